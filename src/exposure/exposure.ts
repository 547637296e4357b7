// Reads an exposure, saves it as a new version and lists its history. It never shows a column that was not named when
// the exposure was saved.
import { setImmediate } from 'node:timers/promises'
import type { Transaction } from 'kysely'
import type { Call } from '../auth/caller.ts'
import type { Audit } from '../audit/audit.ts'
import { changesOf, pathName } from '../audit/changes.ts'
import type { Catalog, Driver } from '../drivers/driver.ts'
import { AppError, invalidRequest, notFound } from '../errors.ts'
import type { AccountId, DatasourceId, TeamId } from '../ids.ts'
import { forgetHidden } from '../profiles/stored.ts'
import type { Store } from '../store/open.ts'
import type { Tables } from '../store/tables.ts'
import { targetOf } from './audited-target.ts'
import { NOTHING_KNOWN, type Catalogs, type Versions } from './catalogs.ts'
import { cut, tableKey, type ShownTable } from './cut.ts'
import { driftOf, type Drift } from './drift.ts'
import { freeze, goneFrom, type RequestedTable, type Gone } from './freeze.ts'
import { warningsOf } from './warnings.ts'
import { readExposure } from './stored.ts'

/** The state after saving an exposure that may show less than the previous one. */
export interface HiddenNow {
  readonly full: Catalog
  readonly exposed: Catalog
  /** The exposure as named, including names that no longer exist in the database. */
  readonly named: readonly ShownTable[]
  /** By tableKey: tables that lost at least one exposed column. */
  readonly shrunk: ReadonlySet<string>
}

/** Additional dependencies for saving. */
export interface SavingDeps extends ExposureDeps {
  /** Deletes, in the same transaction, what other rooms store about columns that are no longer exposed. */
  readonly withdrawHidden: (tx: Transaction<Tables>, id: DatasourceId, now: HiddenNow) => Promise<void>
}

export interface ExposureDeps {
  readonly store: Store
  readonly audit: Audit
  readonly catalogs: Catalogs
}

/** The datasource of the exposure; a Reached fits. */
export interface ExposurePlace {
  readonly id: DatasourceId
  readonly teamId: TeamId
  readonly row: Versions
  readonly driver: Pick<Driver, 'typed'>
}

export interface Exposure {
  readonly tables: readonly ShownTable[]
  readonly version: number
  readonly gone: readonly Gone[]
  /** Only in the answer to a PUT: what the author should know. */
  readonly warnings?: readonly string[]
}

export interface ExposureVersion {
  readonly version: number
  readonly tables: readonly ShownTable[]
  readonly author: { readonly accountId: AccountId; readonly name: string | null }
  readonly createdAt: string
}

/** The current exposure: its frozen names, and which of them introspection no longer finds. */
export async function getExposure(deps: ExposureDeps, at: ExposurePlace): Promise<Exposure> {
  const [tables, catalog] = await Promise.all([deps.catalogs.shown(at.row), deps.catalogs.full(at.row)])
  return { tables, version: at.row.exposure_version, gone: goneFrom(tables, catalog) }
}

/**
 * Saves a new version, which applies from the next request on. Throws INVALID_REQUEST with `details` for every unknown
 * name and every column that may not be exposed. Throws CONFLICT if another version was saved since the caller read it.
 */
export async function putExposure(
  deps: SavingDeps,
  call: Call,
  at: ExposurePlace,
  request: { readonly tables: readonly RequestedTable[]; readonly version?: number },
): Promise<Exposure> {
  for (let tried = 1; ; tried++) {
    const saved = await save(deps, call, at, request)
    if (saved !== null) return saved
    // Without a version the last writer wins, so a lost race is retried. With a version, the retry compares it again.
    if (tried === TRIES) throw conflict()
  }
}

/** Returns null if another exposure was saved, or the database introspected, in the meantime. */
async function save(
  deps: SavingDeps,
  call: Call,
  at: ExposurePlace,
  request: { readonly tables: readonly RequestedTable[]; readonly version?: number },
): Promise<Exposure | null> {
  const current = await versionsNow(deps.store, at.id)
  if (request.version !== undefined && request.version !== current.exposure_version) throw conflict()
  const [catalog, saved] = await Promise.all([deps.catalogs.full(current), deps.catalogs.shown(current)])
  // With tens of thousands of columns, each step takes about 10 ms. Yield to the event loop between steps. The
  // transaction below checks that nothing changed in the meantime.
  await setImmediate()
  const { tables, problems } = freeze(request.tables, catalog, saved)
  if (problems.length > 0) throw invalidRequest(problems, 'The exposure cannot be saved as it stands.')
  const version = current.exposure_version + 1
  const full = catalog ?? NOTHING_KNOWN
  await setImmediate()
  const shown = cut(full, tables)
  await setImmediate()
  const [was, is] = [namesByTable(saved), namesByTable(tables)]
  const shrunk = shrunkTables(saved, is)
  const isSame = await isSavedAt(deps.store, current)
  const row = {
    datasource_id: at.id,
    version,
    tables: JSON.stringify(tables),
    author_id: call.caller.accountId,
    created_at: new Date().toISOString(),
    catalog_version: current.catalog_version === 0 ? null : current.catalog_version,
  }
  await setImmediate()
  const changes = changesOf(fieldsOf(current.exposure_version, saved, is), fieldsOf(version, tables, was))
  await setImmediate()
  const isSaved = await deps.store.write(async (tx) => {
    const { numUpdatedRows } = await tx
      .updateTable('datasources')
      .set({ exposure_version: version })
      .where('id', '=', at.id)
      .where('exposure_version', '=', current.exposure_version)
      // Drift is compared with this catalog version, so the row must still exist and be kept.
      .where('catalog_version', '=', current.catalog_version)
      .executeTakeFirstOrThrow()
    if (numUpdatedRows !== 1n) return false
    await tx.insertInto('exposures').values(row).execute()
    await forgetHidden(tx, at.id, shown.tables, isSame ? shrunk : null)
    if (!isSame || shrunk.size > 0)
      await deps.withdrawHidden(tx, at.id, { full, exposed: shown, named: tables, shrunk })
    await tx
      .deleteFrom('exposures')
      .where('datasource_id', '=', at.id)
      .where('version', '<=', version - VERSIONS_KEPT)
      .execute()
    const change = { target: await targetOf(tx, 'exposure', at.id), changes }
    await deps.audit.change(tx, call, { teamId: at.teamId, datasourceId: at.id }, change)
    return true
  })
  if (!isSaved) return null
  await setImmediate()
  // Cut now, so that the first description does not have to.
  const exposed = await deps.catalogs.exposed({ ...current, exposure_version: version })
  await setImmediate()
  const warnings =
    catalog === null || exposed === null ? [] : warningsOf(catalog, exposed, (names) => at.driver.typed(names))
  const gone = goneFrom(tables, catalog)
  await setImmediate()
  return { tables, version, gone, warnings }
}

/** The names of the columns, by tableKey. */
type NamesByTable = ReadonlyMap<string, ReadonlySet<string>>

function namesByTable(tables: readonly ShownTable[]): NamesByTable {
  return new Map(tables.map(({ schema, table, columns }) => [tableKey(schema, table), new Set(columns)]))
}

/**
 * The exposure as the audit records it. Leaves out the columns that the `other` side has too: there may be tens of
 * thousands.
 */
function fieldsOf(version: number, tables: readonly ShownTable[], other: NamesByTable) {
  const columns = tables.flatMap(({ schema, table, columns }) => {
    const others = other.get(tableKey(schema, table))
    const own = others === undefined ? columns : columns.filter((column) => !others.has(column))
    return own.map((column) => pathName(schema, table, column))
  })
  return { version, tables: tables.map(({ schema, table }) => pathName(schema, table)), columns }
}

/**
 * True if the current exposure was saved against the current catalog. Another catalog shows more or less under the same
 * names.
 */
async function isSavedAt(store: Store, at: Versions): Promise<boolean> {
  const row = await store.db
    .selectFrom('exposures')
    .select('catalog_version')
    .where('datasource_id', '=', at.id)
    .where('version', '=', at.exposure_version)
    .executeTakeFirst()
  return row?.catalog_version === at.catalog_version
}

/** By tableKey: tables with a column that is no longer named. */
function shrunkTables(before: readonly ShownTable[], after: NamesByTable): ReadonlySet<string> {
  const shrunk = before
    .map((each) => ({ key: tableKey(each.schema, each.table), columns: each.columns }))
    .filter(({ key, columns }) => columns.some((column) => after.get(key)?.has(column) !== true))
  return new Set(shrunk.map(({ key }) => key))
}

/** The columns added, removed or retyped since the exposure was saved. Empty if there is nothing to compare. */
export async function getDrift(
  deps: ExposureDeps,
  at: ExposurePlace,
): Promise<Drift & { readonly since: string | null; readonly schemaCapturedAt: string | null }> {
  const [now, then] = await Promise.all([deps.catalogs.full(at.row), deps.catalogs.baseline(at.row)])
  const schemaCapturedAt = now?.capturedAt ?? null
  if (now === null || then === null) return { added: [], removed: [], retyped: [], since: null, schemaCapturedAt }
  return { ...(await driftOf(then, now)), since: then.capturedAt, schemaCapturedAt }
}

/** Every saved version, newest first. To restore one, PUT its tables. */
export async function listExposureVersions(
  deps: ExposureDeps,
  at: ExposurePlace,
  page: { readonly cursor?: string | undefined; readonly limit?: number | undefined },
): Promise<{ readonly items: readonly ExposureVersion[]; readonly nextCursor: string | null }> {
  if (page.cursor !== undefined && !/^\d{1,15}$/.test(page.cursor))
    throw invalidRequest(['cursor: is not a valid cursor'])
  const limit = page.limit ?? 20
  const sizes = await deps.store.db
    .selectFrom('exposures')
    .select(['version', (eb) => eb.fn<number>('octet_length', ['tables']).as('bytes')])
    .where('datasource_id', '=', at.id)
    .$if(page.cursor !== undefined, (query) => query.where('version', '<', Number(page.cursor)))
    .orderBy('version', 'desc')
    .limit(limit + 1)
    .execute()
  const fitting = fittingCount(sizes.slice(0, limit).map((row) => row.bytes))
  const versions = sizes.slice(0, fitting).map((row) => row.version)
  const rows = await deps.store.db
    .selectFrom('exposures')
    .leftJoin('accounts', 'accounts.id', 'exposures.author_id')
    .select(['exposures.version', 'exposures.tables', 'exposures.author_id', 'exposures.created_at', 'accounts.name'])
    .where('exposures.datasource_id', '=', at.id)
    .where('exposures.version', 'in', versions.length === 0 ? [0] : versions)
    .orderBy('exposures.version', 'desc')
    .execute()
  const items = rows.map((row) => ({
    version: row.version,
    tables: readExposure(row.tables),
    author: { accountId: row.author_id, name: row.name },
    createdAt: row.created_at,
  }))
  const last = versions.at(-1)
  return { items, nextCursor: sizes.length > fitting && last !== undefined ? String(last) : null }
}

/** A version may hold every column of a large database. Returns as many versions as fit a page, at least one. */
function fittingCount(bytes: readonly number[]): number {
  let sum = 0
  const tooMuch = bytes.findIndex((each, n) => (sum += each) > PAGE_BYTES_MAX && n > 0)
  return tooMuch < 0 ? bytes.length : tooMuch
}

const PAGE_BYTES_MAX = 8 * 1024 * 1024
/** Older versions are deleted. */
const VERSIONS_KEPT = 1_000
const TRIES = 5

/** Saving must compare with the stored versions, not with cached ones. */
export async function versionsNow(store: Store, id: DatasourceId): Promise<Versions> {
  return await store.db
    .selectFrom('datasources')
    .select(['id', 'catalog_version', 'exposure_version'])
    .where('id', '=', id)
    .executeTakeFirstOrThrow(() => notFound())
}

function conflict(): AppError {
  return new AppError(
    'CONFLICT',
    'Another version of the exposure was saved in the meantime. Read the exposure again, then save again.',
  )
}
