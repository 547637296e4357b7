// Finds the column that a name means: first in the query itself, then in its outer queries, as PostgreSQL does.
// PostgreSQL may also read `a.b` as a call of the function b, as a cast or as a system column. The guard refuses these.
import { WITHOUT_EQUALITY } from '../allowed/types-and-extensions.ts'
import { columnHint, NOTHING_SHOWN } from '../allowed/hints.ts'
import { word, words, type Node, type Struct } from '../allowed/allowed-nodes.ts'
import { typed } from '../../quote.ts'
import { Refusal, refusedColumn } from '../refusal.ts'
import { countedCall } from '../bounds/collected-rows.ts'
import { spend, type Level, type Walk } from './scope.ts'
import type { Column, Item, SqlType, Typed } from './from-items.ts'

/** Confines a ColumnRef. Throws Refusal. */
export function resolve(walk: Walk, level: Level, ref: Struct<'ColumnRef'>): Typed {
  const fields = ref.fields ?? []
  const names = words(fields)
  if (names.length !== fields.length) return wholeOf(walk, level, names, ref.location)
  const last = names.at(-1) ?? ''
  if (names.length === 1) {
    const column = unqualified(level, last, ref.location)
    if (column) return reference(walk, column.column, column.level)
    const item = findItem(walk, level, names, ref.location)
    if (item) return noteWhole(walk, item.item, item.level)
    throw refusedColumn(last, columnHint(last, itemsHere(level)), ref.location)
  }
  const found = findItem(walk, level, names.slice(0, -1), ref.location)
  if (!found) throw noItem(walk, level, names, ref.location)
  const column = only(found.item, last, ref.location)
  if (column) return reference(walk, column, found.level)
  throw refusedColumn(names.join('.'), columnHint(last, [found.item]), ref.location)
}

/** Looks up an unqualified name in this query, not in outer queries. Throws Refusal if it is ambiguous. */
export function unqualifiedHere(level: Level, name: string, at: number | undefined): Column | undefined {
  let found: Column | undefined
  for (const shown of level.shown) {
    const column = shown.column(name)
    if (column === undefined) continue
    if (found || column === null) throw ambiguous(name, at)
    found = column
  }
  return found
}

function unqualified(level: Level, name: string, at: number | undefined): { column: Column; level: Level } | undefined {
  for (let here: Level | null = level; here; here = here.parent) {
    const column = unqualifiedHere(here, name, at)
    if (column) return { column, level: here }
  }
  return undefined
}

/** Returns the FROM item that `t`, `schema.t` or `database.schema.t` means. */
function findItem(
  walk: Walk,
  level: Level,
  names: readonly string[],
  at: number | undefined,
): { readonly item: Item; readonly level: Level } | undefined {
  const name = names.at(-1) ?? ''
  const schema = names.length > 1 ? names.at(-2) : undefined
  if (names.length > 3 || (names.length === 3 && names[0] !== walk.exposed.capture.database)) return undefined
  for (let here: Level | null = level; here; here = here.parent) {
    const found = here.shown.flatMap((shown) => shown.tables(name, schema))
    if (found.length > 1) throw ambiguousTable(names.join('.'), at)
    if (found[0]) return { item: found[0], level: here }
  }
  return undefined
}

/** Returns the FROM item if a ColumnRef means a whole row: `t.*`, or `t` if no column has this name. */
export function rowMeant(walk: Walk, level: Level, ref: Struct<'ColumnRef'>): RowMeant | undefined {
  const names = words(ref.fields)
  const isStar = names.length !== ref.fields?.length
  if (names.length === 0) return undefined
  if (!isStar && names.length === 1 && unqualified(level, names[0] ?? '', ref.location)) return undefined
  if (!isStar && names.length > 1) return undefined
  return findItem(walk, level, names, ref.location)
}

interface RowMeant {
  readonly item: Item
  readonly level: Level
}

/** Confines (t).column, which means t.column. Throws Refusal. */
export function columnOfRow(walk: Walk, { item, level }: RowMeant, name: string, ref: Struct<'ColumnRef'>): Typed {
  const column = only(item, name, ref.location)
  if (!column) throw refusedColumn(name, columnHint(name, [item]), ref.location)
  return reference(walk, column, level)
}

/** Returns the column of this query that a ColumnRef means, or undefined if it means no column of this query. */
export function columnHere(walk: Walk, level: Level, ref: Struct<'ColumnRef'>): Column | undefined {
  const names = words(ref.fields)
  if (names.length === 0 || names.length !== ref.fields?.length) return undefined
  const last = names.at(-1) ?? ''
  if (names.length === 1) return unqualifiedHere(level, last, ref.location)
  const found = findItem(walk, level, names.slice(0, -1), ref.location)
  return found?.level === level ? only(found.item, last, ref.location) : undefined
}

export interface ColumnOf {
  readonly column: Column
  readonly level: Level
}

/** Returns the columns that `*` or `t.*` means. Throws Refusal. */
export function starColumns(walk: Walk, level: Level, ref: Struct<'ColumnRef'>): readonly ColumnOf[] {
  const columns = columnsMeant(walk, level, ref)
  spend(walk, columns.length)
  return columns
}

function columnsMeant(walk: Walk, level: Level, ref: Struct<'ColumnRef'>): readonly ColumnOf[] {
  const names = words(ref.fields)
  if (names.length === 0) {
    if (level.shown.length === 0) {
      throw new Refusal('column', '*', '* needs a FROM', 'Name what to select, or add FROM and a table.', ref.location)
    }
    return level.shown.flatMap((shown) => inStar(shown.star()).map((column) => ({ column, level })))
  }
  const found = findItem(walk, level, names, ref.location)
  if (!found) throw noItem(walk, level, [...names, '*'], ref.location)
  return inStar(found.item.columns).map((column) => ({ column, level: found.level }))
}

function inStar(columns: readonly Column[]): readonly Column[] {
  return columns.filter((column) => column.notInStar !== true)
}

/**
 * Returns a reference to a column. If GROUP BY contains the primary key of the column's table, PostgreSQL accepts the
 * column without GROUP BY. The sub-select that the guard prints for the table has no key. So the column is added to
 * GROUP BY, or, if its type does not allow that, read by any_value().
 */
export function reference(walk: Walk, column: Column, level: Level): Typed {
  const node = column.read()
  const { origin } = column
  if (!origin) return { node, type: column.type }
  const stored = { node, type: column.type, isStored: true }
  if (level.phase !== 'output' || level.aggregates > 0) return stored
  const grouped = level.covered.get(origin.base)
  if (!grouped || grouped.has(origin.column)) return stored
  if (hasNoEquality(column.type)) return { node: anyOfGroup(walk, level, node), type: column.type }
  level.ungrouped.set(words(node.ColumnRef?.fields).join('\0'), node)
  return stored
}

/** Returns a whole row. With the table's primary key in GROUP BY, it is treated like a column in reference(). */
function noteWhole(walk: Walk, item: Item, level: Level): Typed {
  const whole = item.whole()
  if (!item.base || level.phase !== 'output' || level.aggregates > 0 || !level.covered.has(item.base)) return whole
  if (!whole.node.ColumnRef || item.columns.some((column) => hasNoEquality(column.type)))
    return { ...whole, node: anyOfGroup(walk, level, whole.node) }
  level.ungrouped.set(words(whole.node.ColumnRef?.fields).join('\0'), whole.node)
  return whole
}

function hasNoEquality(type: SqlType | null): boolean {
  return type?.kind === 'named' && type.schema === 'pg_catalog' && WITHOUT_EQUALITY.has(type.name)
}

const ANY_VALUE_MAJOR = 16

/**
 * Returns an aggregate for `node`, which has the same value in all rows of a group. Some types, such as json, cannot be
 * in GROUP BY. Without any_value() (before version 16), it is array_agg(), whose rows are counted.
 */
function anyOfGroup(walk: Walk, level: Level, node: Node): Node {
  const aggregate = (name: string): Struct<'FuncCall'> => ({
    funcname: [word('pg_catalog'), word(name)],
    args: [node],
    funcformat: 'COERCE_EXPLICIT_CALL',
  })
  if (walk.exposed.major >= ANY_VALUE_MAJOR) {
    const one = aggregate('any_value')
    walk.growing.add(one)
    return { FuncCall: one }
  }
  const all = countedCall(walk, level, 'array_agg', aggregate('array_agg'), undefined)
  const first: Node = { A_Indices: { uidx: { A_Const: { ival: { ival: 1 } } } } }
  return { A_Indirection: { arg: { FuncCall: all }, indirection: [first] } }
}

function wholeOf(walk: Walk, level: Level, names: readonly string[], at: number | undefined): Typed {
  const found = names.length > 0 ? findItem(walk, level, names, at) : undefined
  if (found) return noteWhole(walk, found.item, found.level)
  if (names.length > 0) throw noItem(walk, level, [...names, '*'], at)
  throw new Refusal('column', '*', '* is not allowed here', 'Name the columns, or use count(*).', at)
}

const byName = new WeakMap<Item, ReadonlyMap<string, Column | null>>()

function only(item: Item, name: string, at: number | undefined): Column | undefined {
  const known = byName.get(item) ?? indexed(item)
  const found = known.get(name)
  if (found === null) throw ambiguous(name, at)
  return found
}

/** Indexes the columns by name, so that a lookup in a wide table is fast. Null if two columns have the name. */
function indexed(item: Item): ReadonlyMap<string, Column | null> {
  const index = new Map<string, Column | null>()
  for (const column of item.columns) index.set(column.name, index.has(column.name) ? null : column)
  byName.set(item, index)
  return index
}

function ambiguous(name: string, at: number | undefined): Refusal {
  return new Refusal(
    'column',
    name,
    `column ${name} is ambiguous: more than one column in FROM has this name`,
    `Qualify the column: table.${typed(name)}.`,
    at,
  )
}

function ambiguousTable(name: string, at: number | undefined): Refusal {
  return new Refusal('table', name, `table ${name} is ambiguous here`, 'Give each table in FROM an alias.', at)
}

/** Refuses `t.x` if FROM has no t. The message is the same whether a table t exists or not. */
function noItem(walk: Walk, level: Level, names: readonly string[], at: number | undefined): Refusal {
  const item = names.slice(0, -1).join('.')
  const here = columnHint(names.at(-1) ?? '', itemsHere(level))
  return new Refusal(
    'column',
    names.join('.'),
    `column ${names.join('.')} does not exist or is not exposed: FROM has no table or alias ${item}`,
    here === NOTHING_SHOWN ? walk.exposed.listed : here,
    at,
  )
}

/** Returns the FROM items of this query and of its outer queries. */
function itemsHere(level: Level): readonly Item[] {
  const items: Item[] = []
  for (let here: Level | null = level; here; here = here.parent) {
    for (const shown of here.shown) items.push(...shown.items)
  }
  return items
}
