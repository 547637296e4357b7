// Creates, changes, disables, deletes and lists datasources. Secrets are never returned.
import type { Insertable, Transaction } from 'kysely'
import type { Audit } from '../audit/audit.ts'
import type { Target } from '../audit/recorded-changes.ts'
import type { Call } from '../auth/caller.ts'
import type { ConnectionSettings, Driver } from '../drivers/driver.ts'
import { AppError, invalidRequest, notFound } from '../errors.ts'
import { mapInSlices } from '../event-loop-slices.ts'
import type { Catalogs } from '../exposure/catalog-cache.ts'
import { newId, type DatasourceId, type TeamId } from '../ids.ts'
import type { Jobs } from '../jobs/jobs.ts'
import { forgetAll } from '../profiles/stored-profiles.ts'
import type { Secrets } from '../secrets.ts'
import { hideDatasource, removeHidden } from '../store/delete-team.ts'
import type { Store } from '../store/open.ts'
import type { Role } from '../contract/schemas.ts'
import type { DatasourceTable, Tables } from '../store/tables.ts'
import type { Membership } from '../teams/require-membership.ts'
import { roleAtLeast } from '../teams/roles.ts'
import { listChanger, listCreator } from './access-list.ts'
import { datasourceChanges, secretChanges } from './audited-fields.ts'
import {
  changedSettings,
  differs,
  newSettings,
  requireEffect,
  requireSecrets,
  splitConfig,
  touchesConnection,
  type ConnectionInput,
} from './change-connection.ts'
import { itemOf, managedItemOf, readManagedItem, type DatasourceItem, type ManagedItem } from './datasource-item.ts'
import type { Leases } from './connection-pool.ts'
import { isWithin, reachedOf, type Drivers, type Reached } from './require-reach.ts'
import { changedMeanwhile } from './changed-or-overloaded.ts'
import { readRow, settingsFor, type DatasourceRow } from './datasource-rows.ts'

export interface DatasourceDeps {
  readonly store: Store
  readonly secrets: Secrets
  readonly audit: Audit
  readonly jobs: Jobs
  readonly drivers: Drivers
  readonly catalogs: Catalogs
  readonly leases: Leases
}

/** Limited because lists and webhook checks read all datasources of a team. */
const DATASOURCES_MAX = 500

/** Throws INVALID_REQUEST if this service has no driver for the type. */
export function requireDriver(drivers: Drivers, type: DatasourceTable['type']): Driver {
  const driver = drivers.get(type)
  if (driver === undefined) throw invalidRequest([`type: ${type} is not supported by this version`])
  return driver
}

interface AccessInput {
  readonly accessMode?: DatasourceTable['access_mode']
  readonly minRole?: Role | null
}

export type NewDatasource = ConnectionInput &
  AccessInput & { readonly name: string; readonly type: DatasourceTable['type'] }
export type DatasourceChange = ConnectionInput & AccessInput & { readonly name?: string }

/** Oldest first. Only signed-in managers get more fields, because docs/contract.md fixes the fields for programs. */
export async function listDatasources(
  deps: Pick<DatasourceDeps, 'store' | 'catalogs' | 'audit'>,
  call: Call,
  membership: Membership,
): Promise<readonly (DatasourceItem | ManagedItem)[]> {
  const rows = await reachable(deps, call, membership)
  deps.audit.record(call, { teamId: membership.teamId, outcome: 'ANSWERED' })
  const isManager = call.caller.kind === 'session' && roleAtLeast(membership.role, 'ADMIN')
  const counts = await deps.catalogs.counts(rows)
  return await mapInSlices(rows, (row, n) => (isManager ? managedItemOf : itemOf)(row, counts[n] ?? null))
}

export async function reachable(
  deps: Pick<DatasourceDeps, 'store'>,
  call: Call,
  membership: Membership,
): Promise<readonly DatasourceRow[]> {
  const rows = await deps.store.recall(`datasources of ${membership.teamId}`, () =>
    deps.store.db
      .selectFrom('datasources')
      .selectAll()
      .where('team_id', '=', membership.teamId)
      .orderBy('created_at')
      .orderBy('id')
      .execute(),
  )
  const within = rows.filter((row) => isWithin(call.caller, row.id))
  return await reachedOf(deps.store, membership, within)
}

export function getDatasource(deps: Pick<DatasourceDeps, 'catalogs'>, at: Reached): Promise<ManagedItem> {
  return readManagedItem(deps, at.row)
}

/**
 * Throws INVALID_REQUEST if the driver does not accept the settings, and CONFLICT if the team has too many datasources.
 */
export async function createDatasource(
  deps: DatasourceDeps,
  call: Call,
  membership: Membership,
  input: NewDatasource,
): Promise<ManagedItem> {
  const driver = requireDriver(deps.drivers, input.type)
  const { connection, reintrospectHours } = splitConfig(input)
  const settings = driver.settings(newSettings(connection))
  const { teamId } = membership
  const now = new Date().toISOString()
  const row: Insertable<DatasourceTable> & DatasourceRow = {
    id: newId<DatasourceId>(),
    team_id: teamId,
    name: input.name,
    type: input.type,
    status: 'PENDING',
    ...columnsOf(settings),
    access_mode: input.accessMode ?? 'ROLE_BASED',
    // A safe default.
    min_role: input.minRole ?? 'ADMIN',
    created_at: now,
    updated_at: now,
    last_tested_at: null,
    last_error: null,
    last_grade: null,
    connection_version: 1,
    catalog_version: 0,
    exposure_version: 0,
    profile_version: 0,
    profiled_at: null,
    documentation_version: 0,
    published_version: 0,
    published_at: null,
    reintrospect_hours: reintrospectHours ?? REINTROSPECT_HOURS,
  }
  await deps.store.write(async (tx) => {
    await requireRoom(tx, teamId)
    await tx.insertInto('datasources').values(row).execute()
    await sealAll(deps, tx, row, settings)
    if (row.access_mode === 'EXPLICIT') await listCreator(tx, row.id, membership)
    const changes = { ...datasourceChanges(null, row), ...secretChanges({}, settings.secrets) }
    await deps.audit.change(tx, call, { teamId, datasourceId: row.id }, { target: targetOf(row), changes })
  })
  return await readManagedItem(deps, row)
}

async function requireRoom(tx: Transaction<Tables>, teamId: TeamId): Promise<void> {
  const { count } = await tx
    .selectFrom('datasources')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('team_id', '=', teamId)
    .executeTakeFirstOrThrow()
  if (Number(count) < DATASOURCES_MAX) return
  throw new AppError('CONFLICT', `A team can have at most ${DATASOURCES_MAX} datasources. Delete a datasource first.`)
}

/**
 * If the connection changes, the datasource becomes PENDING (or stays DISABLED), and its connections are closed. An
 * ADMIN who makes the datasource EXPLICIT is put on its access list. Throws INVALID_REQUEST if a stored secret must be
 * sent again, if a field would have no effect, or if the driver refuses the settings. Throws OVERLOADED or CONFLICT if
 * the connection was changed in the meantime.
 */
export async function changeDatasource(
  deps: DatasourceDeps,
  call: Call,
  at: Reached,
  change: DatasourceChange,
): Promise<ManagedItem> {
  const { connection, reintrospectHours } = splitConfig(change)
  const kept = await settingsFor(deps, at.row)
  const next = touchesConnection(connection) ? at.driver.settings(changedSettings(kept, connection)) : kept
  requireEffect(next, connection)
  requireSecrets(kept, next, connection)
  const isMoved = differs(kept, next)
  const set = {
    ...(change.name !== undefined && { name: change.name }),
    ...(change.accessMode !== undefined && { access_mode: change.accessMode }),
    ...(change.minRole !== undefined && change.minRole !== null && { min_role: change.minRole }),
    ...(reintrospectHours !== undefined && { reintrospect_hours: reintrospectHours }),
    ...(isMoved && { ...columnsOf(next), ...pending(at.row), connection_version: at.row.connection_version + 1 }),
    updated_at: new Date().toISOString(),
  }
  await deps.store.write(async (tx) => {
    if (change.accessMode === 'EXPLICIT') await listChanger(tx, at)
    const before = await rowIn(tx, at)
    const result = await tx
      .updateTable('datasources')
      .set(set)
      .where('id', '=', at.id)
      // The checks above are about this version of the connection.
      .where('connection_version', '=', at.row.connection_version)
      .executeTakeFirstOrThrow()
    if (result.numUpdatedRows !== 1n) throw changedMeanwhile()
    if (isMoved) {
      await tx.deleteFrom('datasource_secrets').where('datasource_id', '=', at.id).execute()
      await sealAll(deps, tx, at.row, next)
      await forgetAll(tx, at.id)
      await tx.deleteFrom('test_reports').where('datasource_id', '=', at.id).execute()
    }
    const after = await rowIn(tx, at)
    const changes = { ...datasourceChanges(before, after), ...secretChanges(kept.secrets, next.secrets) }
    await deps.audit.change(tx, call, { teamId: at.teamId, datasourceId: at.id }, { target: targetOf(after), changes })
  })
  if (isMoved) await endAll(deps, at.id)
  return await readManagedItem(deps, await rowNow(deps, at.id))
}

const REINTROSPECT_HOURS = 24

/** Keeps the audit rows. */
export async function deleteDatasource(deps: DatasourceDeps, call: Call, at: Reached): Promise<void> {
  const hidden = await deps.store.write(async (tx) => {
    const row = await rowIn(tx, at)
    const secrets = await tx
      .selectFrom('datasource_secrets')
      .select('field')
      .where('datasource_id', '=', at.id)
      .execute()
    const team = await hideDatasource(tx, at.id)
    const kept = Object.fromEntries(secrets.map(({ field }) => [field, true]))
    const changes = { ...datasourceChanges(row, null), ...secretChanges(kept, {}) }
    await deps.audit.change(tx, call, { teamId: at.teamId, datasourceId: at.id }, { target: targetOf(row), changes })
    return team
  })
  await endAll(deps, at.id)
  removeHidden(deps.store, hidden)
}

/** Also closes the datasource's connections and cancels its jobs. */
export async function disableDatasource(deps: DatasourceDeps, call: Call, at: Reached): Promise<ManagedItem> {
  const item = await setStatus(deps, call, at, 'DISABLED')
  await endAll(deps, at.id)
  return item
}

/** Sets a DISABLED datasource to PENDING until it is tested. Any other status stays. */
export async function enableDatasource(deps: DatasourceDeps, call: Call, at: Reached): Promise<ManagedItem> {
  return await setStatus(deps, call, at, at.row.status === 'DISABLED' ? 'PENDING' : at.row.status)
}

async function endAll(deps: Pick<DatasourceDeps, 'leases' | 'jobs'>, id: DatasourceId): Promise<void> {
  await Promise.all([deps.leases.end(id), deps.jobs.endAll(id)])
}

async function setStatus(
  deps: DatasourceDeps,
  call: Call,
  at: Reached,
  status: DatasourceRow['status'],
): Promise<ManagedItem> {
  await deps.store.write(async (tx) => {
    const set = { status, updated_at: new Date().toISOString() }
    const row = await rowIn(tx, at)
    await tx.updateTable('datasources').set(set).where('id', '=', at.id).execute()
    const changes = datasourceChanges(row, { ...row, status })
    await deps.audit.change(tx, call, { teamId: at.teamId, datasourceId: at.id }, { target: targetOf(row), changes })
  })
  return await readManagedItem(deps, await rowNow(deps, at.id))
}

function targetOf({ id, name }: Pick<DatasourceRow, 'id' | 'name'>): Target {
  return { kind: 'datasource', id, name }
}

async function rowIn(tx: Transaction<Tables>, { id, teamId }: Reached): Promise<DatasourceRow> {
  const row = await readRow({ db: tx }, id)
  // A deleted datasource belongs to a hidden team until its rows are deleted.
  if (row?.team_id !== teamId) throw notFound()
  return row
}

async function rowNow(deps: Pick<DatasourceDeps, 'store'>, id: DatasourceId): Promise<DatasourceRow> {
  const row = await readRow(deps.store, id)
  if (row === undefined) throw notFound()
  return row
}

function columnsOf(settings: ConnectionSettings) {
  return {
    connection_mode: settings.connectionMode,
    host: settings.host,
    port: settings.port,
    database: settings.database,
    username: settings.username,
    ssl_mode: settings.sslMode,
    config: JSON.stringify(settings.config),
  }
}

/** The last test was about the old connection, so the datasource becomes PENDING. DISABLED stays. */
function pending(row: DatasourceRow) {
  const status = row.status === 'DISABLED' ? 'DISABLED' : 'PENDING'
  return { status, last_tested_at: null, last_error: null, last_grade: null } as const
}

async function sealAll(
  deps: Pick<DatasourceDeps, 'secrets'>,
  tx: Transaction<Tables>,
  row: Pick<DatasourceRow, 'id' | 'team_id'>,
  settings: ConnectionSettings,
): Promise<void> {
  for (const [field, text] of Object.entries(settings.secrets)) {
    const sealed = deps.secrets.seal({ teamId: row.team_id, datasourceId: row.id, field }, text)
    await tx.insertInto('datasource_secrets').values({ datasource_id: row.id, field, sealed }).execute()
  }
}
