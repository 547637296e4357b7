// The profiles as the store keeps them: read for a description, written by a run, and deleted as soon as an exposure or a
// mark says so. Nothing is written here that privacy.ts did not let through.
import type { Kysely, Transaction } from 'kysely'
import { z } from 'zod'
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
  /** By its name, its values or by hand. */
  readonly personal: boolean
  /** No value was seen twice. */
  readonly unique: boolean
  /** What at least half of its texts look like (looks.ts), if anything. */
  readonly look: string | null
  /** Short observations without any name but its own. */
  readonly signals: readonly string[]
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

const StoredScalar = z.union([z.string(), z.number(), z.boolean()])
const StoredColumns = z.object({
  rowsSampled: z.number(),
  complete: z.boolean(),
  columns: z.array(
    z.object({
      name: z.string(),
      type: z.string(),
      nullFrac: z.number().nullable(),
      distinctCount: z.number().nullable(),
      values: z.array(z.object({ value: StoredScalar, share: z.number() })).nullable(),
      range: z.object({ min: StoredScalar, max: StoredScalar }).nullable(),
      personal: z.boolean(),
      unique: z.boolean(),
      look: z.string().nullable(),
      signals: z.array(z.string()),
    }),
  ),
})

/** All that is kept of a datasource, by tableKey. What of it is exposed today is for the caller to say. */
export async function profilesOf(
  db: Kysely<Tables>,
  datasourceId: DatasourceId,
): Promise<ReadonlyMap<string, KeptProfile>> {
  const rows = await db
    .selectFrom('profiles')
    .select(['schema', 'table', 'captured_at', 'profile'])
    .where('datasource_id', '=', datasourceId)
    .execute()
  return new Map(
    rows.map((row) => [
      tableKey(row.schema, row.table),
      { schema: row.schema, table: row.table, capturedAt: row.captured_at, ...readProfile(row.profile) },
    ]),
  )
}

/** Throws a ZodError for what was not written here: a defect or a damaged store. */
function readProfile(json: string): z.infer<typeof StoredColumns> {
  return StoredColumns.parse(JSON.parse(json))
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

/** Deletes what is not shown any more: whole tables, and of others the columns. */
export async function forgetHidden(
  tx: Transaction<Tables>,
  datasourceId: DatasourceId,
  shown: readonly Pick<CatalogTable, 'schema' | 'table' | 'columns'>[],
): Promise<void> {
  const names = new Map(
    shown.map((each) => [tableKey(each.schema, each.table), new Set(each.columns.map((column) => column.name))]),
  )
  for (const row of await rowsOf(tx, datasourceId)) {
    const kept = names.get(tableKey(row.schema, row.table))
    if (kept === undefined) {
      await tx
        .deleteFrom('profiles')
        .where('datasource_id', '=', datasourceId)
        .where('schema', '=', row.schema)
        .where('table', '=', row.table)
        .execute()
      continue
    }
    await rewrite(tx, datasourceId, row, (columns) => columns.filter((column) => kept.has(column.name)))
  }
}

/**
 * Deletes the values and the range of columns that were marked personal, in the transaction that keeps the mark. Whoever
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
  for (const row of await rowsOf(tx, datasourceId, at)) {
    await rewrite(tx, datasourceId, row, (all) =>
      all.map((column) =>
        columns.includes(column.name) ? { ...column, personal: true, values: null, range: null } : column,
      ),
    )
  }
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

interface Row {
  readonly schema: string
  readonly table: string
  readonly profile: string
}

function rowsOf(
  tx: Transaction<Tables>,
  datasourceId: DatasourceId,
  at?: { readonly schema: string; readonly table: string },
): Promise<readonly Row[]> {
  return tx
    .selectFrom('profiles')
    .select(['schema', 'table', 'profile'])
    .where('datasource_id', '=', datasourceId)
    .$if(at !== undefined, (query) => query.where('schema', '=', at?.schema ?? '').where('table', '=', at?.table ?? ''))
    .execute()
}

async function rewrite(
  tx: Transaction<Tables>,
  datasourceId: DatasourceId,
  row: Row,
  change: (columns: readonly KeptColumn[]) => readonly KeptColumn[],
): Promise<void> {
  const before = readProfile(row.profile)
  const profile = JSON.stringify({ ...before, columns: change(before.columns) })
  if (profile === row.profile) return
  await tx
    .updateTable('profiles')
    .set({ profile })
    .where('datasource_id', '=', datasourceId)
    .where('schema', '=', row.schema)
    .where('table', '=', row.table)
    .execute()
}
