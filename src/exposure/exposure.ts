// Which tables and columns of a datasource are shown: read, saved as a new version, and its history. Nothing is shown
// that was not named when it was saved.
import { setImmediate } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
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
import { freeze, goneFrom, type AskedTable, type Gone } from './freeze.ts'
import { warningsOf } from './warnings.ts'
import { readExposure } from './stored.ts'

/** What is shown once an exposure is saved that may show less than the one before. */
export interface HiddenNow {
  readonly full: Catalog
  readonly exposed: Catalog
  /** The exposure by its names, those too that the database has no more. */
  readonly named: readonly ShownTable[]
  /** By tableKey: tables of which a column is shown no more. */
  readonly shrunk: ReadonlySet<string>
}

/** To save one takes more. */
export interface SavingDeps extends ExposureDeps {
  /** Takes away, in the same transaction, what other rooms keep of columns that are shown no more. */
  readonly withdrawHidden: (tx: Transaction<Tables>, id: DatasourceId, now: HiddenNow) => Promise<void>
}

export interface ExposureDeps {
  readonly store: Store
  readonly audit: Audit
  readonly catalogs: Catalogs
}

/** The datasource whose exposure it is; a Reached fits. */
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
  /** Only as the answer of a PUT: what whoever saved it should know. */
  readonly warnings?: readonly string[]
}

export interface ExposureVersion {
  readonly version: number
  readonly tables: readonly ShownTable[]
  readonly author: { readonly accountId: AccountId; readonly name: string | null }
  readonly createdAt: string
}

/** The exposure as it stands: frozen names, and which of them introspection no longer knows. */
export async function getExposure(deps: ExposureDeps, at: ExposurePlace): Promise<Exposure> {
  const [tables, catalog] = await Promise.all([deps.catalogs.shown(at.row), deps.catalogs.full(at.row)])
  return { tables, version: at.row.exposure_version, gone: goneFrom(tables, catalog) }
}

/**
 * Saves a new version, which holds from the next request on. Throws INVALID_REQUEST whose details name every unknown
 * name and every column that may not be exposed, and CONFLICT where another version than the one read stands.
 */
export async function putExposure(
  deps: SavingDeps,
  call: Call,
  at: ExposurePlace,
  asked: { readonly tables: readonly AskedTable[]; readonly version?: number },
): Promise<Exposure> {
  for (let tried = 1; ; tried++) {
    const saved = await save(deps, call, at, asked)
    if (saved !== null) return saved
    // Without a version the last writer wins, so a lost race is run again; with one, what stands now decides.
    if (tried === TRIES) throw conflict()
  }
}

/** Null where another exposure was saved, or the database introspected, in between. */
async function save(
  deps: SavingDeps,
  call: Call,
  at: ExposurePlace,
  asked: { readonly tables: readonly AskedTable[]; readonly version?: number },
): Promise<Exposure | null> {
  const current = await versionsNow(deps.store, at.id)
  if (asked.version !== undefined && asked.version !== current.exposure_version) throw conflict()
  const [catalog, saved] = await Promise.all([deps.catalogs.full(current), deps.catalogs.shown(current)])
  // Of tens of thousands of columns each step takes some 10 ms: others are served in between. Whether what was read still
  // holds is asked in the transaction.
  await setImmediate()
  const { tables, problems } = freeze(asked.tables, catalog, saved)
  if (problems.length > 0) throw invalidRequest(problems, 'The exposure cannot be saved as it stands.')
  const version = current.exposure_version + 1
  const full = catalog ?? NOTHING_KNOWN
  await setImmediate()
  const shown = cut(full, tables)
  await setImmediate()
  const shrunk = shrunkTables(saved, tables)
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
  const same = sameTables(saved, tables)
  await setImmediate()
  const changes = changesOf(fieldsOf(current.exposure_version, saved, same), fieldsOf(version, tables, same))
  await setImmediate()
  const won = await deps.store.write(async (tx) => {
    const { numUpdatedRows } = await tx
      .updateTable('datasources')
      .set({ exposure_version: version })
      .where('id', '=', at.id)
      .where('exposure_version', '=', current.exposure_version)
      // The catalog it is saved at is what drift is told from: it must still be there to be kept.
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
    const what = { target: await targetOf(tx, 'exposure', at.id), changes }
    await deps.audit.change(tx, call, { teamId: at.teamId, datasourceId: at.id }, what)
    return true
  })
  if (!won) return null
  await setImmediate()
  // Cut here, and not by whoever describes it first.
  const exposed = await deps.catalogs.exposed({ ...current, exposure_version: version })
  await setImmediate()
  const warnings =
    catalog === null || exposed === null ? [] : warningsOf(catalog, exposed, (names) => at.driver.typed(names))
  const gone = goneFrom(tables, catalog)
  await setImmediate()
  return { tables, version, gone, warnings }
}

/** As the audit tells it. The columns of tables that are the `same` tell nothing; there may be tens of thousands of them. */
function fieldsOf(version: number, tables: readonly ShownTable[], same: ReadonlySet<string>) {
  const names = ({ schema, table, columns }: ShownTable) => columns.map((column) => pathName(schema, table, column))
  return {
    version,
    tables: tables.map(({ schema, table }) => pathName(schema, table)),
    columns: tables.flatMap((table) => (same.has(tableKey(table.schema, table.table)) ? [] : names(table))),
  }
}

/** The tables that are in both with the same columns. */
function sameTables(before: readonly ShownTable[], after: readonly ShownTable[]): ReadonlySet<string> {
  const was = new Map(before.map(({ schema, table, columns }) => [tableKey(schema, table), columns]))
  const keys = after.map(({ schema, table, columns }) => {
    const key = tableKey(schema, table)
    return isDeepStrictEqual(was.get(key), columns) ? key : null
  })
  return new Set(keys.filter((key) => key !== null))
}

/** Whether the exposure as it stands was saved at the catalog as it stands: another shows more or less by the same names. */
async function isSavedAt(store: Store, at: Versions): Promise<boolean> {
  const row = await store.db
    .selectFrom('exposures')
    .select('catalog_version')
    .where('datasource_id', '=', at.id)
    .where('version', '=', at.exposure_version)
    .executeTakeFirst()
  return row?.catalog_version === at.catalog_version
}

/** By tableKey: of which a column is not named any more. */
function shrunkTables(before: readonly ShownTable[], after: readonly ShownTable[]): ReadonlySet<string> {
  const names = new Map(after.map((each) => [tableKey(each.schema, each.table), new Set(each.columns)]))
  const shrunk = before
    .map((each) => ({ key: tableKey(each.schema, each.table), columns: each.columns }))
    .filter(({ key, columns }) => columns.some((column) => names.get(key)?.has(column) !== true))
  return new Set(shrunk.map(({ key }) => key))
}

/** What is new, gone or retyped since the exposure was saved; nothing where there is nothing to compare. */
export async function getDrift(
  deps: ExposureDeps,
  at: ExposurePlace,
): Promise<Drift & { readonly since: string | null; readonly schemaCapturedAt: string | null }> {
  const [now, then] = await Promise.all([deps.catalogs.full(at.row), deps.catalogs.baseline(at.row)])
  const schemaCapturedAt = now?.capturedAt ?? null
  if (now === null || then === null) return { added: [], removed: [], retyped: [], since: null, schemaCapturedAt }
  return { ...driftOf(then, now), since: then.capturedAt, schemaCapturedAt }
}

/** Every version that was saved, the newest first; one is restored by a PUT of its tables. */
export async function listExposureVersions(
  deps: ExposureDeps,
  at: ExposurePlace,
  page: { readonly cursor?: string | undefined; readonly limit?: number | undefined },
): Promise<{ readonly items: readonly ExposureVersion[]; readonly nextCursor: string | null }> {
  if (page.cursor !== undefined && !/^\d{1,15}$/.test(page.cursor)) throw invalidRequest(['cursor: not one of ours'])
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

/** A version may hold every column of a large database: as many as a page can carry, one at least. */
function fittingCount(bytes: readonly number[]): number {
  let sum = 0
  const tooMuch = bytes.findIndex((each, n) => (sum += each) > PAGE_BYTES_MAX && n > 0)
  return tooMuch < 0 ? bytes.length : tooMuch
}

const PAGE_BYTES_MAX = 8 * 1024 * 1024
/** The oldest go when there are more. */
const VERSIONS_KEPT = 1_000
const TRIES = 5

/** What is saved against must be read now, not recalled. */
export async function versionsNow(store: Store, id: DatasourceId): Promise<Versions> {
  return await store.db
    .selectFrom('datasources')
    .select(['id', 'catalog_version', 'exposure_version'])
    .where('id', '=', id)
    .executeTakeFirstOrThrow(() => notFound())
}

function conflict(): AppError {
  return new AppError('CONFLICT', 'Another version of the exposure was saved meanwhile. Read it again, and save again.')
}
