// The JSON of a datasource in REST. No field is secret. A field without a value is null.
import type { Catalogs } from '../exposure/catalog-cache.ts'
import type { CatalogCounts } from '../exposure/catalog-counts.ts'
import type { Role } from '../contract/schemas.ts'
import type { DatasourceTable } from '../store/tables.ts'
import { configOf, type DatasourceRow } from './datasource-rows.ts'

export interface DatasourceItem {
  readonly id: string
  readonly teamId: string
  readonly name: string
  readonly type: DatasourceTable['type']
  readonly status: DatasourceTable['status']
  readonly createdAt: string
  readonly updatedAt: string
  readonly exposedTableCount: number
  readonly connectionMode: ConnectionMode
  readonly host: string | null
  readonly port: number | null
  readonly database: string
  readonly username: string | null
  readonly sslMode: SslMode | null
  readonly config: Readonly<Record<string, unknown>>
  readonly accessMode: DatasourceTable['access_mode']
  /** Null for EXPLICIT, because the access list decides. */
  readonly minRole: Role | null
  readonly lastTestedAt: string | null
  /** Always our own text, never an error text of the database. */
  readonly lastError: string | null
}

/** The additional fields show how much of the database is hidden. */
export interface ManagedItem extends DatasourceItem {
  /** The grade in the last test of the current connection. Null before the first test. */
  readonly lastGrade: DatasourceRow['last_grade']
  readonly schemaCapturedAt: string | null
  readonly tableCount: number | null
  /** How many tables and columns have changed since the save. Null if there was no save, or no catalog then. */
  readonly driftCount: number | null
  readonly exposureVersion: number
}

const CONNECTION_MODES = ['DIRECT', 'URI', 'SSH_TUNNEL', 'SERVICE_ACCOUNT', 'APPLICATION_DEFAULT'] as const
/** From the weakest to the strongest. */
export const SSL_MODES = ['disable', 'require', 'verify-ca', 'verify-full'] as const
type ConnectionMode = (typeof CONNECTION_MODES)[number]
type SslMode = (typeof SSL_MODES)[number]

export async function readManagedItem(
  deps: { readonly catalogs: Pick<Catalogs, 'counts'> },
  row: DatasourceRow,
): Promise<ManagedItem> {
  const [counts = null] = await deps.catalogs.counts([row])
  return managedItemOf(row, counts)
}

/** `counts` is null before the first introspection. */
export function managedItemOf(row: DatasourceRow, counts: CatalogCounts | null): ManagedItem {
  return {
    ...itemOf(row, counts),
    lastGrade: row.last_grade,
    schemaCapturedAt: counts?.capturedAt ?? null,
    tableCount: counts?.tableCount ?? null,
    driftCount: counts?.driftCount ?? null,
    exposureVersion: row.exposure_version,
  }
}

export function itemOf(row: DatasourceRow, counts: CatalogCounts | null): DatasourceItem {
  return {
    id: row.id,
    teamId: row.team_id,
    name: row.name,
    type: row.type,
    status: row.status,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    exposedTableCount: counts?.exposedTableCount ?? 0,
    connectionMode: CONNECTION_MODES.find((mode) => mode === row.connection_mode) ?? 'DIRECT',
    host: row.host,
    port: row.port,
    database: row.database,
    username: row.username,
    sslMode: SSL_MODES.find((mode) => mode === row.ssl_mode) ?? null,
    config: { ...configOf(row), reintrospectHours: row.reintrospect_hours },
    accessMode: row.access_mode,
    minRole: row.access_mode === 'EXPLICIT' ? null : row.min_role,
    lastTestedAt: row.last_tested_at,
    lastError: row.last_error,
  }
}
