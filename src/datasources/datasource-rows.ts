// Reads a datasource and its connection settings from the store. Secrets are decrypted only to connect or to change the
// connection. They never appear in an answer, a log line or an error.
import type { Selectable } from 'kysely'
import { z } from 'zod'
import type { ConnectionSettings } from '../drivers/driver.ts'
import type { DatasourceId } from '../ids.ts'
import type { Secrets } from '../secrets.ts'
import type { Store } from '../store/open.ts'
import type { DatasourceTable } from '../store/tables.ts'
import { changedJustNow } from './changed-or-overloaded.ts'

export type DatasourceRow = Selectable<DatasourceTable>

const Config = z.record(z.string(), z.unknown())

/** The row is cached until the next write to the store. */
export function recallRow(store: Store, id: DatasourceId): Promise<DatasourceRow | undefined> {
  return store.recall(`datasource ${id}`, () => readRow(store, id))
}

export function knownRow(store: Pick<Store, 'known'>, id: DatasourceId): DatasourceRow | undefined {
  return store.known<DatasourceRow>(`datasource ${id}`)
}

export function readRow(store: Pick<Store, 'db'>, id: DatasourceId): Promise<DatasourceRow | undefined> {
  return store.db.selectFrom('datasources').selectAll().where('id', '=', id).executeTakeFirst()
}

export function configOf(row: Pick<DatasourceRow, 'config'>): Readonly<Record<string, unknown>> {
  return Config.parse(JSON.parse(row.config))
}

/** Throws OVERLOADED if the connection has changed, because new secrets must not be sent to an old address. */
export async function settingsFor(
  deps: { readonly store: Store; readonly secrets: Secrets },
  row: DatasourceRow,
): Promise<ConnectionSettings> {
  // Secrets and version change in one transaction. So if the version is unchanged after the secrets were read, the
  // secrets belong to this row.
  const secrets = await openSecretsOf(deps, row)
  const now = await deps.store.db
    .selectFrom('datasources')
    .select('connection_version')
    .where('id', '=', row.id)
    .executeTakeFirst()
  if (now?.connection_version !== row.connection_version) throw changedJustNow()
  return {
    connectionMode: row.connection_mode,
    host: row.host,
    port: row.port,
    database: row.database,
    username: row.username,
    sslMode: row.ssl_mode,
    config: configOf(row),
    secrets,
  }
}

async function openSecretsOf(
  deps: { readonly store: Store; readonly secrets: Secrets },
  row: DatasourceRow,
): Promise<Readonly<Record<string, string>>> {
  const sealed = await deps.store.db
    .selectFrom('datasource_secrets')
    .selectAll()
    .where('datasource_id', '=', row.id)
    .execute()
  return Object.fromEntries(
    sealed.map((secret) => {
      const place = { teamId: row.team_id, datasourceId: row.id, field: secret.field }
      return [secret.field, deps.secrets.open(place, secret.sealed)]
    }),
  )
}
