// The profiles as the store keeps them: read for a description, written by a run, and deleted as soon as an exposure or a
// mark says so. Nothing is written here that privacy.ts did not let through.
import type { Kysely, Transaction } from 'kysely'
import type { CatalogTable, Scalar } from '../drivers/driver.ts'
import { tableKey } from '../drivers/table-key.ts'
import type { DatasourceId } from '../ids.ts'
import type { Tables } from '../store/tables.ts'

/** What is kept of one column's values. */
export interface KeptColumn {
  readonly name: string
  /** As it was when it was profiled: of another type, nothing of this holds any more. */
  readonly type: string
  /** From 0 to 1; null where no row was seen. */
  readonly nullFrac: number | null
  /** Over the whole table, estimated where not every row was read. */
  readonly distinctCount: number | null
  /** The most common first; null for a personal column, and where the values are no categories. */
  readonly values: readonly { readonly value: Scalar; readonly share: number }[] | null
  /** Of numbers and times; null for a personal column. */
  readonly range: { readonly min: Scalar; readonly max: Scalar } | null
  /** Of JSON: the top-level keys of its objects, the most common first; absent for a personal column. */
  readonly keys?: readonly KeptKey[]
  /** By its name, its values or by hand. */
  readonly personal: boolean
  /** No value was seen twice. */
  readonly unique: boolean
  /** What at least half of its texts look like (looks.ts), if anything. */
  readonly look: string | null
  /** Short observations without any name but its own. */
  readonly signals: readonly string[]
}

/** A key that several objects share. */
export interface KeptKey {
  readonly key: string
  /** Of the objects, from 0 to 1. */
  readonly share: number
  /** JSON types of its values. */
  readonly types: readonly string[]
}

/** One table's profile. */
export interface KeptProfile {
  readonly schema: string
  readonly table: string
  /** ISO 8601, UTC. */
  readonly capturedAt: string
  readonly rowsSampled: number
  /** Every row was read. */
  readonly complete: boolean
  readonly columns: readonly KeptColumn[]
}

type Stored = Omit<KeptProfile, 'schema' | 'table' | 'capturedAt'>

/**
 * All that is kept of a datasource, by tableKey; of tables of these names alone, where they are told. What of it is
 * exposed today is for the caller to say.
 */
export async function profilesOf(
  db: Kysely<Tables>,
  datasourceId: DatasourceId,
  names?: readonly string[],
): Promise<ReadonlyMap<string, KeptProfile>> {
  const rows = await db
    .selectFrom('profiles')
    .select(['schema', 'table', 'captured_at', 'profile'])
    .where('datasource_id', '=', datasourceId)
    .$if(names !== undefined, (query) => query.where('table', 'in', names ?? []))
    .execute()
  return new Map(
    rows.map((row) => [
      tableKey(row.schema, row.table),
      { schema: row.schema, table: row.table, capturedAt: row.captured_at, ...readProfile(row.profile) },
    ]),
  )
}

/** Which profile of a table is kept: another run is another, and so is one of which something was taken. */
export interface Stamp {
  readonly table: string
  readonly stamp: string
}

/** By tableKey, without reading a profile. */
export async function stampsOf(db: Kysely<Tables>, datasourceId: DatasourceId): Promise<ReadonlyMap<string, Stamp>> {
  const rows = await db
    .selectFrom('profiles')
    .select(['schema', 'table', 'run', 'captured_at', 'revision'])
    .where('datasource_id', '=', datasourceId)
    .execute()
  return new Map(
    rows.map(({ schema, table, run, captured_at, revision }) => [
      tableKey(schema, table),
      { table, stamp: `${run} ${captured_at} ${revision}` },
    ]),
  )
}

/**
 * Looks at every member by hand: of a thousand tables these are megabytes, which zod takes several times as long for.
 * Throws TypeError for what was not written here: a defect or a damaged store.
 */
function readProfile(json: string): Stored {
  const read: unknown = JSON.parse(json)
  if (!isStored(read)) throw new TypeError('a stored profile that is damaged')
  return read
}

function isStored(it: unknown): it is Stored {
  return (
    isObject(it) &&
    typeof it['rowsSampled'] === 'number' &&
    typeof it['complete'] === 'boolean' &&
    Array.isArray(it['columns']) &&
    it['columns'].every(isKeptColumn)
  )
}

function isKeptColumn(it: unknown): it is KeptColumn {
  return (
    isObject(it) &&
    typeof it['name'] === 'string' &&
    typeof it['type'] === 'string' &&
    isNumberOrNull(it['nullFrac']) &&
    isNumberOrNull(it['distinctCount']) &&
    (it['values'] === null || (Array.isArray(it['values']) && it['values'].every(isShare))) &&
    (it['range'] === null || isRange(it['range'])) &&
    (it['keys'] === undefined || (Array.isArray(it['keys']) && it['keys'].every(isKey))) &&
    typeof it['personal'] === 'boolean' &&
    typeof it['unique'] === 'boolean' &&
    (it['look'] === null || typeof it['look'] === 'string') &&
    Array.isArray(it['signals']) &&
    it['signals'].every((signal) => typeof signal === 'string')
  )
}

function isObject(it: unknown): it is Readonly<Record<string, unknown>> {
  return typeof it === 'object' && it !== null
}

function isNumberOrNull(it: unknown): boolean {
  return it === null || typeof it === 'number'
}

function isScalar(it: unknown): boolean {
  return typeof it === 'string' || typeof it === 'number' || typeof it === 'boolean'
}

function isShare(it: unknown): boolean {
  return isObject(it) && isScalar(it['value']) && typeof it['share'] === 'number'
}

function isKey(it: unknown): boolean {
  return isObject(it) && typeof it['key'] === 'string' && typeof it['share'] === 'number' && Array.isArray(it['types'])
}

function isRange(it: unknown): boolean {
  return isObject(it) && isScalar(it['min']) && isScalar(it['max'])
}

/** What a run has written until now: how many columns of each table, by tableKey. */
export async function writtenBy(
  db: Kysely<Tables>,
  datasourceId: DatasourceId,
  run: string,
): Promise<ReadonlyMap<string, number>> {
  const rows = await db
    .selectFrom('profiles')
    .select(['schema', 'table', 'profile'])
    .where('datasource_id', '=', datasourceId)
    .where('run', '=', run)
    .execute()
  return new Map(rows.map((row) => [tableKey(row.schema, row.table), readProfile(row.profile).columns.length]))
}

/** Writes one table's profile in place of the one before. */
export async function keepProfile(
  tx: Transaction<Tables>,
  datasourceId: DatasourceId,
  run: string,
  { schema, table, capturedAt, ...profile }: KeptProfile,
): Promise<void> {
  const set = { run, captured_at: capturedAt, profile: JSON.stringify(profile) }
  await tx
    .insertInto('profiles')
    .values({ datasource_id: datasourceId, schema, table, ...set })
    .onConflict((oc) => oc.columns(['datasource_id', 'schema', 'table']).doUpdateSet(set))
    .execute()
}

/**
 * Deletes what is not shown any more: whole tables, and of others the columns. `shrunk`: the tables, by tableKey, of which
 * fewer columns may be shown than before; null where any may be. No other is read, and one at a time.
 */
export async function forgetHidden(
  tx: Transaction<Tables>,
  datasourceId: DatasourceId,
  shown: readonly Pick<CatalogTable, 'schema' | 'table' | 'columns'>[],
  shrunk: ReadonlySet<string> | null,
): Promise<void> {
  const tables = new Map(shown.map((each) => [tableKey(each.schema, each.table), each]))
  const known = await tx
    .selectFrom('profiles')
    .select(['schema', 'table'])
    .where('datasource_id', '=', datasourceId)
    .execute()
  for (const at of known) {
    const key = tableKey(at.schema, at.table)
    const now = tables.get(key)
    if (now === undefined) {
      await tx
        .deleteFrom('profiles')
        .where('datasource_id', '=', datasourceId)
        .where('schema', '=', at.schema)
        .where('table', '=', at.table)
        .execute()
    } else if (shrunk === null || shrunk.has(key)) {
      const names = new Set(now.columns.map((column) => column.name))
      await rewrite(tx, datasourceId, at, (columns) => columns.filter((column) => names.has(column.name)))
    }
  }
}

/**
 * Deletes the values, the range and the keys of columns that were marked personal, in the transaction that keeps the mark. Whoever
 * marks one must call this even where no profile is known: it also makes a run that is under way see the mark.
 */
export async function forgetPersonal(
  tx: Transaction<Tables>,
  datasourceId: DatasourceId,
  at: { readonly schema: string; readonly table: string },
  columns: readonly string[],
): Promise<void> {
  if (columns.length === 0) return
  await raiseVersion(tx, datasourceId)
  await rewrite(tx, datasourceId, at, (all) =>
    all.map((column) => {
      if (!columns.includes(column.name)) return column
      const { keys: _, ...rest } = column
      return { ...rest, personal: true, values: null, range: null }
    }),
  )
}

/** Deletes all of a datasource whose connection is another one now. */
export async function forgetAll(tx: Transaction<Tables>, datasourceId: DatasourceId): Promise<void> {
  await tx.deleteFrom('profiles').where('datasource_id', '=', datasourceId).execute()
  await raiseVersion(tx, datasourceId)
}

/** Makes descriptions that were written from the profiles as they were be written anew. */
export async function raiseVersion(tx: Transaction<Tables>, datasourceId: DatasourceId): Promise<void> {
  await tx
    .updateTable('datasources')
    .set((eb) => ({ profile_version: eb('profile_version', '+', 1) }))
    .where('id', '=', datasourceId)
    .execute()
}

async function rewrite(
  tx: Transaction<Tables>,
  datasourceId: DatasourceId,
  at: { readonly schema: string; readonly table: string },
  change: (columns: readonly KeptColumn[]) => readonly KeptColumn[],
): Promise<void> {
  const row = await tx
    .selectFrom('profiles')
    .select('profile')
    .where('datasource_id', '=', datasourceId)
    .where('schema', '=', at.schema)
    .where('table', '=', at.table)
    .executeTakeFirst()
  if (row === undefined) return
  const before = readProfile(row.profile)
  const profile = JSON.stringify({ ...before, columns: change(before.columns) })
  if (profile === row.profile) return
  await tx
    .updateTable('profiles')
    .set((eb) => ({ profile, revision: eb('revision', '+', 1) }))
    .where('datasource_id', '=', datasourceId)
    .where('schema', '=', at.schema)
    .where('table', '=', at.table)
    .execute()
}
