// Introspects a database over a new connection and stores the result as the newest catalog, in a job. A new column
// stays hidden until an exposure with it is saved, unless it is nested in an exposed column.
import { setImmediate } from 'node:timers/promises'
import { z } from 'zod'
import { changesOf, listedOf, pathName, type Changes } from '../audit/recorded-changes.ts'
import type { Call } from '../auth/caller.ts'
import type { Catalog, CatalogTable } from '../drivers/driver.ts'
import { AppError } from '../errors.ts'
import { inSlices } from '../event-loop-slices.ts'
import { targetOf } from '../exposure/audited-target.ts'
import { retainUnsampled } from './retain-unsampled.ts'
import { withdrawHidden } from '../documentation/withdraw-texts.ts'
import { countsOf, keepCounts } from '../exposure/catalog-counts.ts'
import { cut, tableKey, type ShownTable } from '../exposure/cut-catalog.ts'
import { writeCatalog } from '../exposure/stored-json.ts'
import type { JobId, TeamId } from '../ids.ts'
import { forgetHidden } from '../profiles/stored-profiles.ts'
import type { Work } from '../jobs/jobs.ts'
import type { Store } from '../store/open.ts'
import { noteFailure } from '../datasources/test-datasource.ts'
import type { DatasourceDeps } from '../datasources/datasources.ts'
import { deadlineOf } from '../deadline.ts'
import type { LeaseTarget } from '../datasources/connection-pool.ts'
import type { Reached } from '../datasources/require-reach.ts'
import { changedMeanwhile } from '../datasources/changed-or-overloaded.ts'
import { requireEnabled } from '../exposure/require-usable.ts'
import { readRow, type DatasourceRow } from '../datasources/datasource-rows.ts'

const INTROSPECT_MS = 30 * 60_000
/** After this time, a caller gets the id of the job instead of the result. */
const PATIENCE_MS = 10_000

export type IntrospectDeps = Pick<DatasourceDeps, 'store' | 'audit' | 'catalogs' | 'leases'>

const Introspected = z.object({
  schemaCapturedAt: z.string(),
  tableCount: z.int(),
  added: z.int(),
  removed: z.int(),
  changed: z.int(),
})
export type Introspected = z.infer<typeof Introspected>

/**
 * Only one introspection of a datasource runs at a time, and concurrent callers share it. Returns the id of the job if
 * the introspection takes over 10 s, or if another process runs it. Throws DATASOURCE_DISABLED, RATE_LIMITED if the
 * caller or the team runs too many jobs, and the errors of connecting and introspecting.
 */
export async function introspectDatasource(
  deps: DatasourceDeps,
  call: Call,
  at: Reached,
  patienceMs = PATIENCE_MS,
): Promise<Introspected | { readonly jobId: JobId }> {
  requireEnabled(at.row)
  const work: Work = async (progress, signal) => {
    try {
      return await introspect(deps, call, at, progress, signal)
    } catch (error) {
      // Recorded here, because the caller may already have the id of the job.
      deps.audit.refused(call, { teamId: at.teamId, datasourceId: at.id }, error)
      throw error
    }
  }
  const job = await deps.jobs.start(at.id, INTROSPECT, work, { ...call, teamId: at.teamId })
  // A caller who joins a running job is recorded too.
  if (job.isShared) {
    const target = { kind: 'job', id: job.id, name: INTROSPECT } as const
    deps.audit.record(call, { teamId: at.teamId, datasourceId: at.id, outcome: 'ANSWERED', target })
  }
  // This process cannot wait for another process, so the caller polls the job.
  if (job.isElsewhere) return { jobId: job.id }
  const { promise: late, resolve } = Promise.withResolvers<null>()
  const timer = setTimeout(() => resolve(null), patienceMs)
  try {
    const result = await Promise.race([job.ended(), late])
    return result === null ? { jobId: job.id } : Introspected.parse(result)
  } finally {
    clearTimeout(timer)
  }
}

export const INTROSPECT = 'introspect'

/**
 * `call` is null for a scheduled introspection. Throws CONFLICT if the introspection was cancelled or the connection
 * changed in the meantime, QUERY_TIMEOUT, and the errors of connecting and introspecting.
 */
export async function introspect(
  deps: IntrospectDeps,
  call: Call | null,
  at: LeaseTarget & { readonly teamId: TeamId },
  progress: Parameters<Work>[0],
  ended: AbortSignal,
): Promise<Introspected> {
  using deadline = deadlineOf(ended, INTROSPECT_MS)
  const { signal } = deadline
  let catalog: Catalog
  try {
    await using connection = await deps.leases.connect(at, signal)
    catalog = await connection.introspect(signal, progress)
  } catch (error) {
    if (ended.aborted) throw new AppError('CONFLICT', 'The introspection was cancelled.', { cause: error })
    if (signal.aborted)
      throw new AppError(
        'QUERY_TIMEOUT',
        'The introspection took too long. Try again when the database is less busy, or restrict the login to fewer schemas.',
        { cause: error },
      )
    await noteFailure(deps, at, error)
    throw error
  }
  const { after, differences: differences } = await keep(deps, call, at, catalog)
  const { added, removed, changed } = differences
  const counts = { added: added.length, removed: removed.length, changed: changed.length }
  return { schemaCapturedAt: after.capturedAt, tableCount: after.tables.length, ...counts }
}

interface Stored {
  readonly after: Catalog
  readonly differences: Differences
}

/**
 * Keeps the previous catalog, because other processes may still read it, and the catalog for which the exposure was
 * saved, because drift is computed from it.
 */
async function keep(
  deps: IntrospectDeps,
  call: Call | null,
  at: LeaseTarget & { readonly teamId: TeamId },
  found: Catalog,
): Promise<Stored> {
  for (let tried = 1; ; tried++) {
    const row = await readRow(deps.store, at.id)
    if (row?.connection_version !== at.row.connection_version) throw changedMeanwhile()
    const before = await deps.catalogs.full(row)
    // The previous catalog counts only if it is from the same database and login.
    const shown = await deps.catalogs.shown(row)
    const isSame = before !== null && (await connectionOf(deps.store, row)) === row.connection_version
    const after = isSame ? retainUnsampled(before, found, shown) : found
    const stored = { after, differences: await compare(before, after) }
    if (await write(deps, call, { teamId: at.teamId, row, shown }, stored)) return stored
    if (tried === KEEP_TRIES) throw changedMeanwhile()
  }
}

/** An attempt to store a catalog fails if the datasource changes in the meantime. */
const KEEP_TRIES = 5

/** Returns the version of the connection over which the newest catalog was read. Null if it is unknown. */
async function connectionOf(store: Store, row: DatasourceRow): Promise<number | null> {
  const catalog = await store.db
    .selectFrom('catalogs')
    .select('connection_version')
    .where('datasource_id', '=', row.id)
    .where('version', '=', row.catalog_version)
    .executeTakeFirst()
  return catalog?.connection_version ?? null
}

/** Returns false if the catalog, the connection or the exposure changed in the meantime. */
async function write(
  deps: IntrospectDeps,
  call: Call | null,
  {
    teamId,
    row,
    shown,
  }: { readonly teamId: TeamId; readonly row: DatasourceRow; readonly shown: readonly ShownTable[] },
  { after: catalog, differences: differences }: Stored,
): Promise<boolean> {
  const text = await writeCatalog(catalog)
  await setImmediate()
  const exposed = cut(catalog, shown)
  await setImmediate()
  const shrunk = barredTables(catalog, exposed, shown)
  const counts = await countsOf(catalog, exposed.tables.length, await deps.catalogs.baseline(row))
  const version = row.catalog_version + 1
  return await deps.store.write(async (tx) => {
    const { numUpdatedRows } = await tx
      .updateTable('datasources')
      .set({ catalog_version: version })
      .where('id', '=', row.id)
      .where('catalog_version', '=', row.catalog_version)
      .where('connection_version', '=', row.connection_version)
      .where('exposure_version', '=', row.exposure_version)
      .executeTakeFirstOrThrow()
    if (numUpdatedRows !== 1n) return false
    if (shrunk.size > 0) {
      await forgetHidden(tx, row.id, exposed.tables, shrunk)
      await withdrawHidden(tx, row.id, { full: catalog, exposed, named: shown, shrunk })
    }
    const captured = { captured_at: catalog.capturedAt, connection_version: row.connection_version }
    await tx
      .insertInto('catalogs')
      .values({ datasource_id: row.id, version, catalog: text, ...captured })
      .execute()
    await keepCounts(tx, { ...row, catalog_version: version }, counts)
    const saved = await tx
      .selectFrom('exposures')
      .innerJoin('datasources', 'datasources.id', 'exposures.datasource_id')
      .select('exposures.catalog_version')
      .where('datasources.id', '=', row.id)
      .whereRef('exposures.version', '=', 'datasources.exposure_version')
      .executeTakeFirst()
    await tx
      .deleteFrom('catalogs')
      .where('datasource_id', '=', row.id)
      .where('version', '<', version - 1)
      .where('version', '!=', saved?.catalog_version ?? 0)
      .execute()
    await tx.deleteFrom('reintrospections').where('datasource_id', '=', row.id).execute()
    if (call !== null) {
      const changes = {
        ...changesOf({ catalogVersion: row.catalog_version }, { catalogVersion: version }),
        ...tableChanges(differences),
      }
      const what = { target: await targetOf(tx, 'datasource', row.id), changes }
      await deps.audit.change(tx, call, { teamId, datasourceId: row.id }, what)
    }
    return true
  })
}

/** Returns the keys of the tables in which the saved exposure contains a column that may no longer be exposed. */
function barredTables(catalog: Catalog, exposed: Catalog, shown: readonly ShownTable[]): ReadonlySet<string> {
  const keyed = ({ tables }: Catalog) =>
    new Map(tables.map((each) => [tableKey(each.schema, each.table), each.columns]))
  const [all, seen] = [keyed(catalog), keyed(exposed)]
  const barred = shown.filter(({ schema, table, columns }) => {
    const key = tableKey(schema, table)
    const [known, visible] = [all, seen].map((of) => new Set(of.get(key)?.map((column) => column.name)))
    return columns.some((name) => known?.has(name) === true && visible?.has(name) !== true)
  })
  return new Set(barred.map((each) => tableKey(each.schema, each.table)))
}

function tableChanges({ added, removed, changed }: Differences): Changes {
  const names = (tables: readonly CatalogTable[]) => tables.map(({ schema, table }) => pathName(schema, table))
  const isSame = added.length + removed.length + changed.length === 0
  return isSame ? {} : { tables: listedOf(names(removed), names(added), names(changed)) }
}

interface Differences {
  readonly added: readonly CatalogTable[]
  readonly removed: readonly CatalogTable[]
  readonly changed: readonly CatalogTable[]
}

/** Yields to the event loop, because catalogs may be large. */
async function compare(before: Catalog | null, after: Catalog): Promise<Differences> {
  const turn = inSlices()
  const keyed = (catalog: Catalog | null) =>
    new Map(catalog?.tables.map((table) => [tableKey(table.schema, table.table), table]))
  const [was, is] = [keyed(before), keyed(after)]
  const differences = {
    added: new Array<CatalogTable>(),
    removed: new Array<CatalogTable>(),
    changed: new Array<CatalogTable>(),
  }
  for (const [key, table] of is) {
    await turn()
    const old = was.get(key)
    if (old === undefined) differences.added.push(table)
    else if (shapeOf(old) !== shapeOf(table)) differences.changed.push(table)
  }
  for (const [key, table] of was) if (!is.has(key)) differences.removed.push(table)
  return differences
}

function shapeOf(table: CatalogTable): string {
  const columns = table.columns.map((it) => [
    it.name,
    it.type,
    it.nullable,
    it.primaryKey,
    it.references,
    it.description,
  ])
  return JSON.stringify([table.kind, table.description, columns])
}
