// Reads, writes and deletes stored profiles. When a column is hidden or marked as personal, some of its data is deleted
// in the same transaction. Callers must write only data that privacy.ts allows.
import type { Kysely, Transaction } from 'kysely'
import type { CatalogTable, Scalar } from '../drivers/driver.ts'
import { tableKey } from '../drivers/table-key.ts'
import { inSlices } from '../event-loop-slices.ts'
import type { DatasourceId } from '../ids.ts'
import type { Tables } from '../store/tables.ts'

export interface KeptColumn {
  readonly name: string
  /** The type when the column was profiled. The profile is not used after a change of the type. */
  readonly type: string
  /** From 0 to 1. Null if no row was read. */
  readonly nullFrac: number | null
  /** The number of distinct values in the table. Estimated if not every row was read. */
  readonly distinctCount: number | null
  /** The most common values come first. Null if no value may be stored. */
  readonly values: readonly { readonly value: Scalar; readonly share: number }[] | null
  /** For numbers and times. Null if no range may be stored. */
  readonly range: { readonly min: Scalar; readonly max: Scalar } | null
  /** For JSON: the top-level keys, most common first. Absent if no key may be stored. */
  readonly keys?: readonly KeptKey[]
  /** True if the column is personal by its name, its values, or a person's mark. */
  readonly personal: boolean
  /** True if no value was seen twice. */
  readonly unique: boolean
  /** The look (recognize-text.ts) of at least half of the column's texts, if they have one. */
  readonly look: string | null
  /** Short observations that contain no name and no value. */
  readonly signals: readonly string[]
}

export interface KeptKey {
  readonly key: string
  readonly share: number
  readonly types: readonly string[]
}

export interface KeptProfile {
  readonly schema: string
  readonly table: string
  /** ISO 8601, UTC. */
  readonly capturedAt: string
  readonly rowsSampled: number
  readonly complete: boolean
  readonly columns: readonly KeptColumn[]
}

type Stored = Omit<KeptProfile, 'schema' | 'table' | 'capturedAt'>

/** Returns the stored profiles by tableKey. The caller must leave out what the current exposure hides. */
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

/** `stamp` changes when the table is profiled again, or when a part of its profile is deleted. */
export interface Stamp {
  readonly table: string
  readonly stamp: string
}

/** Returns the stamps by tableKey. */
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

/** Throws TypeError if the store is damaged. Does not use zod, which would take several times as long. */
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

/** Returns the number of stored columns of each table that a job has profiled so far, by tableKey. */
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

export async function saveProfile(
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
 * Deletes the profiles of tables and columns that are no longer exposed. `shrunk` has the keys (tableKey) of the tables
 * that may show fewer columns than before. Null means all tables. Only these tables are read, one at a time.
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
  // SQLite answers synchronously, so let other requests run.
  const pause = inSlices()
  for (const at of known) {
    await pause()
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
 * Deletes the values, the range and the keys of columns that a person marks as personal, in the transaction that saves
 * the mark. Must be called for every mark, even without a profile, so that a running profile job notices the mark.
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

/** Called when the connection of the datasource has changed. */
export async function forgetAll(tx: Transaction<Tables>, datasourceId: DatasourceId): Promise<void> {
  await tx.deleteFrom('profiles').where('datasource_id', '=', datasourceId).execute()
  await raiseVersion(tx, datasourceId)
}

/** Makes descriptions of the previous profiles outdated. */
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
