// An exposure lists the tables and columns of a datasource that queries may read. A listed column also shows the
// columns nested in it: `address` also shows `address.city`.
import { setImmediate } from 'node:timers/promises'
import type { Transaction } from 'kysely'
import type { Call } from '../auth/caller.ts'
import type { Audit } from '../audit/audit.ts'
import { changesOf, pathName } from '../audit/recorded-changes.ts'
import type { Catalog, Driver } from '../drivers/driver.ts'
import { AppError, invalidRequest, notFound } from '../errors.ts'
import type { AccountId, DatasourceId, TeamId } from '../ids.ts'
import { forgetHidden } from '../profiles/stored-profiles.ts'
import type { Store } from '../store/open.ts'
import type { Tables } from '../store/tables.ts'
import { targetOf } from './audited-target.ts'
import { NOTHING_KNOWN, type Catalogs } from './catalog-cache.ts'
import { countsOf, keepCounts, type Versions } from './catalog-counts.ts'
import { cut, tableKey, type ShownTable } from './cut-catalog.ts'
import { driftOf, type Drift } from './drift.ts'
import { freeze, goneFrom, type RequestedTable, type Gone } from './freeze-names.ts'
import { warningsOf } from './warnings.ts'
import { readExposure } from './stored-json.ts'

export interface HiddenNow {
  readonly full: Catalog
  readonly exposed: Catalog
  /** May contain names that no longer exist in the database. */
  readonly named: readonly ShownTable[]
  /** The keys (tableKey) of the tables that lost an exposed column. */
  readonly shrunk: ReadonlySet<string>
}

export interface SavingDeps extends ExposureDeps {
  /**
   * Deletes data that other rooms have stored about columns that are no longer exposed. Runs in the transaction of the
   * save.
   */
  readonly withdrawHidden: (tx: Transaction<Tables>, id: DatasourceId, now: HiddenNow) => Promise<void>
}

export interface ExposureDeps {
  readonly store: Store
  readonly audit: Audit
  readonly catalogs: Catalogs
}

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
  /** Null before the first save. */
  readonly author: Author | null
  readonly savedAt: string | null
  readonly note: string | null
  /** Only in the answer to a PUT. */
  readonly warnings?: readonly string[]
}

interface Author {
  readonly accountId: AccountId
  readonly name: string | null
}

export interface ExposureVersion {
  readonly version: number
  readonly tables: readonly ShownTable[]
  readonly author: Author
  readonly createdAt: string
  readonly savedAt: string
  readonly note: string | null
}

/** `added` and `removed` count the columns that were added and removed since the previous version. */
export interface BriefVersion {
  readonly version: number
  readonly author: Author
  readonly savedAt: string
  readonly note: string | null
  /** The four counts are null for versions that are older than these counts. */
  readonly tables: number | null
  readonly columns: number | null
  readonly added: number | null
  readonly removed: number | null
}

interface Requested {
  readonly tables: readonly RequestedTable[]
  readonly version?: number
  readonly note?: string
}

/** Returns the current exposure. `gone` lists its names that the last introspection did not find. */
export async function getExposure(deps: ExposureDeps, at: ExposurePlace): Promise<Exposure> {
  const [tables, catalog, saved] = await Promise.all([
    deps.catalogs.shown(at.row),
    deps.catalogs.full(at.row),
    savedAs(deps.store, at.row),
  ])
  return { tables, version: at.row.exposure_version, gone: goneFrom(tables, catalog), ...saved }
}

/**
 * Saves a new version, which applies to the next request. Throws INVALID_REQUEST with `details` if freeze() finds
 * problems. Throws CONFLICT if `version` is not the current version, or if concurrent saves won every time.
 */
export async function putExposure(
  deps: SavingDeps,
  call: Call,
  at: ExposurePlace,
  request: Requested,
): Promise<Exposure> {
  for (let tried = 1; ; tried++) {
    const saved = await save(deps, call, at, request)
    if (saved !== null) return saved
    // Another save came first. Try again: if the request gives a version, the next attempt finds the conflict. If not,
    // the last writer wins.
    if (tried === TRIES) throw await conflict(deps.store, at.id)
  }
}

/** Returns null if another exposure was saved or the database was introspected in the meantime. */
async function save(deps: SavingDeps, call: Call, at: ExposurePlace, request: Requested): Promise<Exposure | null> {
  const current = await versionsNow(deps.store, at.id)
  if (request.version !== undefined && request.version !== current.exposure_version)
    throw await conflict(deps.store, at.id)
  const [catalog, saved] = await Promise.all([deps.catalogs.full(current), deps.catalogs.shown(current)])
  // With tens of thousands of columns, each step takes about 10 ms, so yield between steps. The transaction below
  // checks that no version changed in the meantime.
  await setImmediate()
  const { tables, problems } = freeze(request.tables, catalog, saved)
  if (problems.length > 0) throw invalidRequest(problems, 'The exposure cannot be saved in this form.')
  const version = current.exposure_version + 1
  const full = catalog ?? NOTHING_KNOWN
  await setImmediate()
  const shown = cut(full, tables)
  await setImmediate()
  const counts = await countsOf(full, shown.tables.length, catalog)
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
    note: request.note ?? null,
    table_count: tables.length,
    column_count: columnCount(tables),
    added: countOutside(tables, was),
    removed: countOutside(saved, is),
  }
  await setImmediate()
  const changes = changesOf(fieldsOf(current.exposure_version, saved, is), {
    ...fieldsOf(version, tables, was),
    note: request.note,
  })
  await setImmediate()
  const isSaved = await deps.store.write(async (tx) => {
    const { numUpdatedRows } = await tx
      .updateTable('datasources')
      .set({ exposure_version: version })
      .where('id', '=', at.id)
      .where('exposure_version', '=', current.exposure_version)
      // This exposure will later be compared with this version of the catalog (drift), so the store must keep that
      // version.
      .where('catalog_version', '=', current.catalog_version)
      .executeTakeFirstOrThrow()
    if (numUpdatedRows !== 1n) return false
    await tx.insertInto('exposures').values(row).execute()
    if (catalog !== null) await keepCounts(tx, { ...current, exposure_version: version }, counts)
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
  // Cut the catalog now, so that the first description need not wait for the cut.
  const exposed = await deps.catalogs.exposed({ ...current, exposure_version: version })
  await setImmediate()
  const warnings =
    catalog === null || exposed === null ? [] : warningsOf(catalog, exposed, (names) => at.driver.typed(names))
  const gone = goneFrom(tables, catalog)
  await setImmediate()
  return { tables, version, gone, warnings, ...(await savedAs(deps.store, { id: at.id, exposure_version: version })) }
}

/** All fields are null before the first save. */
async function savedAs(
  store: Pick<Store, 'db'>,
  at: Pick<Versions, 'id' | 'exposure_version'>,
): Promise<Pick<Exposure, 'author' | 'savedAt' | 'note'>> {
  const row = await store.db
    .selectFrom('exposures')
    .leftJoin('accounts', 'accounts.id', 'exposures.author_id')
    .select(['exposures.author_id', 'exposures.created_at', 'exposures.note', 'accounts.name'])
    .where('exposures.datasource_id', '=', at.id)
    .where('exposures.version', '=', at.exposure_version)
    .executeTakeFirst()
  if (row === undefined) return { author: null, savedAt: null, note: null }
  return { author: { accountId: row.author_id, name: row.name }, savedAt: row.created_at, note: row.note }
}

function columnCount(tables: readonly ShownTable[]): number {
  return tables.reduce((sum, { columns }) => sum + columns.length, 0)
}

/**
 * Returns true if an exposure that was saved after `version`, up to the current one, removed a column. Versions without
 * counts are ignored, because they are older than every running query.
 */
export async function wasNarrowed(store: Pick<Store, 'db'>, at: Versions, version: number): Promise<boolean> {
  const narrowed = await store.db
    .selectFrom('exposures')
    .select('version')
    .where('datasource_id', '=', at.id)
    .where('version', '>', version)
    .where('version', '<=', at.exposure_version)
    .where('removed', '>', 0)
    .limit(1)
    .executeTakeFirst()
  return narrowed !== undefined
}

function countOutside(tables: readonly ShownTable[], other: NamesByTable): number {
  let count = 0
  for (const { schema, table, columns } of tables) {
    const others = other.get(tableKey(schema, table))
    for (const column of columns) if (others?.has(column) !== true) count++
  }
  return count
}

type NamesByTable = ReadonlyMap<string, ReadonlySet<string>>

function namesByTable(tables: readonly ShownTable[]): NamesByTable {
  return new Map(tables.map(({ schema, table, columns }) => [tableKey(schema, table), new Set(columns)]))
}

/** Leaves out the columns that are also in `other`, because there may be tens of thousands of unchanged columns. */
function fieldsOf(version: number, tables: readonly ShownTable[], other: NamesByTable) {
  const columns = tables.flatMap(({ schema, table, columns }) => {
    const others = other.get(tableKey(schema, table))
    const own = others === undefined ? columns : columns.filter((column) => !others.has(column))
    return own.map((column) => pathName(schema, table, column))
  })
  return { version, tables: tables.map(({ schema, table }) => pathName(schema, table)), columns }
}

/** If the catalog has changed since the save, the same names may show more or less. */
async function isSavedAt(store: Store, at: Versions): Promise<boolean> {
  const row = await store.db
    .selectFrom('exposures')
    .select('catalog_version')
    .where('datasource_id', '=', at.id)
    .where('version', '=', at.exposure_version)
    .executeTakeFirst()
  return row?.catalog_version === at.catalog_version
}

function shrunkTables(before: readonly ShownTable[], after: NamesByTable): ReadonlySet<string> {
  const shrunk = before
    .map((each) => ({ key: tableKey(each.schema, each.table), columns: each.columns }))
    .filter(({ key, columns }) => columns.some((column) => after.get(key)?.has(column) !== true))
  return new Set(shrunk.map(({ key }) => key))
}

/** Returns what was added, removed or retyped since the save. Empty if there was no save, or no catalog then. */
export async function getDrift(
  deps: ExposureDeps,
  at: ExposurePlace,
): Promise<Drift & { readonly since: string | null; readonly schemaCapturedAt: string | null }> {
  const [now, then] = await Promise.all([deps.catalogs.full(at.row), deps.catalogs.baseline(at.row)])
  const schemaCapturedAt = now?.capturedAt ?? null
  if (now === null || then === null) return { added: [], removed: [], retyped: [], since: null, schemaCapturedAt }
  return { ...(await driftOf(then, now)), since: then.capturedAt, schemaCapturedAt }
}

interface Page {
  readonly cursor?: string | undefined
  readonly limit?: number | undefined
}

/** Newest first. To restore a version, PUT its tables. Throws INVALID_REQUEST for an invalid cursor. */
export async function listExposureVersions(
  deps: Pick<ExposureDeps, 'store'>,
  at: Pick<ExposurePlace, 'id'>,
  page: Page,
): Promise<{ readonly items: readonly ExposureVersion[]; readonly nextCursor: string | null }> {
  const limit = page.limit ?? PAGE_LIMIT
  const sizes = await newestVersions(deps.store, at, page)
    .select((eb) => eb.fn<number>('octet_length', ['exposures.tables']).as('bytes'))
    .execute()
  const fitting = fittingCount(sizes.slice(0, limit).map((row) => row.bytes))
  const versions = sizes.slice(0, fitting).map((row) => row.version)
  const rows = await savedVersions(deps.store, at)
    .select('exposures.tables')
    .where('exposures.version', 'in', versions.length === 0 ? [0] : versions)
    .orderBy('exposures.version', 'desc')
    .execute()
  return { items: rows.map(versionOf), nextCursor: cursorAfter(versions, sizes.length > fitting) }
}

/** Like listExposureVersions(), with counts instead of tables. */
export async function listBriefVersions(
  deps: Pick<ExposureDeps, 'store'>,
  at: Pick<ExposurePlace, 'id'>,
  page: Page,
): Promise<{ readonly items: readonly BriefVersion[]; readonly nextCursor: string | null }> {
  const limit = page.limit ?? PAGE_LIMIT
  const rows = await newestVersions(deps.store, at, page)
    .select(['exposures.table_count', 'exposures.column_count', 'exposures.added', 'exposures.removed'])
    .execute()
  const items = rows.slice(0, limit).map(({ table_count: tables, column_count: columns, added, removed, ...row }) => {
    return { ...aboutVersion(row), tables, columns, added, removed }
  })
  const versions = items.map(({ version }) => version)
  return { items, nextCursor: cursorAfter(versions, rows.length > limit) }
}

/** Throws NOT_FOUND. */
export async function getExposureVersion(
  deps: Pick<ExposureDeps, 'store'>,
  at: Pick<ExposurePlace, 'id'>,
  version: string,
): Promise<ExposureVersion> {
  if (!/^[1-9]\d{0,8}$/.test(version)) throw notFound()
  const row = await savedVersions(deps.store, at)
    .select('exposures.tables')
    .where('exposures.version', '=', Number(version))
    .executeTakeFirst()
  if (row === undefined) throw notFound()
  return versionOf(row)
}

/** Selects one row more than the page, to find out whether another page follows. */
function newestVersions(store: Pick<Store, 'db'>, at: Pick<ExposurePlace, 'id'>, { cursor, limit = PAGE_LIMIT }: Page) {
  if (cursor !== undefined && !/^\d{1,15}$/.test(cursor)) throw invalidRequest(['cursor: is not a valid cursor'])
  return savedVersions(store, at)
    .$if(cursor !== undefined, (query) => query.where('exposures.version', '<', Number(cursor)))
    .orderBy('exposures.version', 'desc')
    .limit(limit + 1)
}

function savedVersions(store: Pick<Store, 'db'>, at: Pick<ExposurePlace, 'id'>) {
  return store.db
    .selectFrom('exposures')
    .leftJoin('accounts', 'accounts.id', 'exposures.author_id')
    .select(['exposures.version', 'exposures.author_id', 'exposures.created_at', 'exposures.note', 'accounts.name'])
    .where('exposures.datasource_id', '=', at.id)
}

interface SavedVersion {
  readonly version: number
  readonly author_id: AccountId
  readonly created_at: string
  readonly note: string | null
  readonly name: string | null
}

function aboutVersion({ version, author_id: accountId, created_at: savedAt, note, name }: SavedVersion) {
  return { version, author: { accountId, name }, savedAt, note }
}

function versionOf({ tables, ...row }: SavedVersion & { readonly tables: string }): ExposureVersion {
  return { ...aboutVersion(row), tables: readExposure(tables), createdAt: row.created_at }
}

function cursorAfter(versions: readonly number[], hasMore: boolean): string | null {
  const last = versions.at(-1)
  return hasMore && last !== undefined ? String(last) : null
}

const PAGE_LIMIT = 20

/** At least one. A version may contain every column of a large database, so the size of a page is limited too. */
function fittingCount(bytes: readonly number[]): number {
  let sum = 0
  const tooMuch = bytes.findIndex((each, n) => (sum += each) > PAGE_BYTES_MAX && n > 0)
  return tooMuch < 0 ? bytes.length : tooMuch
}

/** Applies to a page with more than one version. */
const PAGE_BYTES_MAX = 8 * 1024 * 1024
/** Older versions are deleted. */
const VERSIONS_KEPT = 1_000
const TRIES = 5

/** Does not use cached versions, which may be outdated. */
export async function versionsNow(store: Pick<Store, 'db'>, id: DatasourceId): Promise<Versions> {
  return await store.db
    .selectFrom('datasources')
    .select(['id', 'catalog_version', 'exposure_version'])
    .where('id', '=', id)
    .executeTakeFirstOrThrow(() => notFound())
}

async function conflict(store: Pick<Store, 'db'>, id: DatasourceId): Promise<AppError> {
  const { exposure_version: version } = await versionsNow(store, id)
  const { author, savedAt } = await savedAs(store, { id, exposure_version: version })
  return new AppError(
    'CONFLICT',
    'Another version of the exposure was saved in the meantime. Read the exposure again, then save again.',
    { extra: { version, author, savedAt } },
  )
}
