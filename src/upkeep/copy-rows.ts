// Copies all rows of one store to an empty store of the same version. One of the two is an SQLite file.
import { sql, type Kysely, type Transaction } from 'kysely'
import type { DialectName } from '../store/migration.ts'
import type { Tables } from '../store/tables.ts'

export interface CopySide {
  readonly db: Kysely<Tables>
  readonly dialect: DialectName
}

type Row = Readonly<Record<string, unknown>>

/** How many rows are read at once. A row may have several megabytes. */
const ROWS = 100
/** SQLite accepts 32,766 parameters in a statement, PostgreSQL 65,535. */
const PARAMETERS = 30_000

export async function copyRows(from: CopySide, to: CopySide): Promise<number> {
  return await from.db
    .transaction()
    .setIsolationLevel('repeatable read')
    .execute((reading) => to.db.transaction().execute((writing) => copyAll(from, to, reading, writing)))
}

async function copyAll(
  from: CopySide,
  to: CopySide,
  reading: Transaction<Tables>,
  writing: Transaction<Tables>,
): Promise<number> {
  const tables = await inOrder(to.dialect === 'sqlite' ? writing : reading)
  let copied = 0
  for (const table of tables) {
    // A new store may already contain rows, such as marks.
    await sql`delete from ${sql.table(table)}`.execute(writing)
    const booleans = to.dialect === 'postgres' ? await booleansOf(writing, table) : NONE
    for await (const rows of portionsOf(reading, from.dialect, table)) {
      copied += rows.length
      await insert(writing, table, rows, booleans)
    }
  }
  return copied
}

const NONE: ReadonlySet<string> = new Set()

/** Returns all tables except the list of migrations. A table comes after the tables that it references. */
async function inOrder(sqlite: Kysely<Tables>): Promise<readonly string[]> {
  const { rows } = await sql<{ name: string }>`
    select name from sqlite_master where type = 'table' and name not like 'sqlite_%' and name <> 'migrations' order by name
  `.execute(sqlite)
  const ordered = new Set<string>()
  const visit = async (name: string, path: ReadonlySet<string>): Promise<void> => {
    if (ordered.has(name) || path.has(name)) return
    const references = await sql<{ table: string }>`select "table" from pragma_foreign_key_list(${name})`.execute(
      sqlite,
    )
    for (const { table } of references.rows) await visit(table, new Set([...path, name]))
    ordered.add(name)
  }
  for (const { name } of rows) await visit(name, NONE)
  return [...ordered]
}

async function booleansOf(db: Kysely<Tables>, table: string): Promise<ReadonlySet<string>> {
  const { rows } = await sql<{ column_name: string }>`
    select column_name from information_schema.columns
    where table_schema = current_schema() and table_name = ${table} and data_type = 'boolean'
  `.execute(db)
  return new Set(rows.map((row) => row.column_name))
}

async function* portionsOf(db: Kysely<Tables>, dialect: DialectName, table: string): AsyncIterable<readonly Row[]> {
  if (dialect === 'postgres') yield* byCursor(db, table)
  else yield* byRowId(db, table)
}

async function* byCursor(db: Kysely<Tables>, table: string): AsyncIterable<readonly Row[]> {
  await sql`declare copied no scroll cursor for select * from ${sql.table(table)}`.execute(db)
  for (;;) {
    const { rows } = await sql<Row>`fetch ${sql.lit(ROWS)} from copied`.execute(db)
    if (rows.length === 0) break
    yield rows
  }
  await sql`close copied`.execute(db)
}

async function* byRowId(db: Kysely<Tables>, table: string): AsyncIterable<readonly Row[]> {
  for (let last = -1; ;) {
    const { rows } = await sql<Row>`
      select rowid as "copied rowid", * from ${sql.table(table)} where rowid > ${last} order by rowid limit ${ROWS}
    `.execute(db)
    if (rows.length === 0) return
    last = Number(rows.at(-1)?.['copied rowid'])
    yield rows.map(({ 'copied rowid': _, ...row }) => row)
  }
}

async function insert(
  db: Kysely<Tables>,
  table: string,
  rows: readonly Row[],
  booleans: ReadonlySet<string>,
): Promise<void> {
  const columns = Object.keys(rows[0] ?? {})
  const names = sql.join(columns.map((column) => sql.ref(column)))
  const size = Math.max(1, Math.floor(PARAMETERS / columns.length))
  for (let at = 0; at < rows.length; at += size) {
    const values = rows
      .slice(at, at + size)
      .map((row) => sql`(${sql.join(columns.map((column) => valueOf(row[column], booleans.has(column))))})`)
    await sql`insert into ${sql.table(table)} (${names}) values ${sql.join(values)}`.execute(db)
  }
}

/** SQLite stores booleans as 0 and 1. */
function valueOf(value: unknown, isBoolean: boolean): unknown {
  return isBoolean && value !== null ? value === 1 : value
}
