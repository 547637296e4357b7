// Walks FROM. A table becomes a sub-select of its exposed columns. Each item except a join gets a generated alias and a
// list of its columns, so nothing in it can be reached by another name. All functions throw Refusal.
import type { TypeName } from '../../captured-facts.ts'
import { FROM_DEFINITION, RETURNS_ROWS } from '../allowed/allowed-functions.ts'
import { word, words, type Node, type SelectStmt, type Struct } from '../allowed/allowed-nodes.ts'
import { readAs } from './column-read-type.ts'
import type { ExposedColumn, ExposedTable } from '../exposed.ts'
import { columnHint, tableHint } from '../allowed/hints.ts'
import { checkComparison } from '../allowed/operator-lookup.ts'
import { selectFrom, selectOnly, subSelect } from '../node-builders.ts'
import { outputName } from './output-names.ts'
import { addItem, dropItem } from '../bounds/query-weight.ts'
import {
  mostRuns,
  RUNS_MAX,
  runsOf,
  storedColumn,
  unsearchable,
  withoutLongRuns,
  withRuns,
} from '../bounds/mark-runs.ts'
import { collectedIn, copiedInto, maxCollected, withCollected } from '../bounds/collected-values.ts'
import { anyLoose, mayBeLoose, withLoose } from '../bounds/nondeterministic.ts'
import { readsMade } from '../bounds/printed-size.ts'
import { unifiedType } from '../bounds/spatial.ts'
import { noLongerThan, noteStored, type PrintedColumn } from '../bounds/stored-lengths.ts'
import { Refusal, refusedColumn, refusedFunction, refusedStatement, refusedTable } from '../refusal.ts'
import {
  addSort,
  columnRef,
  distinctNames,
  findCte,
  newAlias,
  newLevel,
  spend,
  type Cte,
  type CteColumn,
  type Level,
  type Walk,
} from './scope.ts'
import type { Base, Column, Field, Item, SqlType } from './from-items.ts'
import { notePlace } from '../syntax/source-position.ts'
import { fieldsOf, sqlType, typeName } from '../allowed/type-names.ts'
import { Shown } from './visible-names.ts'
import { callOf, expression, noteJoined, valueFunction, type Called } from './walk-expression.ts'
import { jsonTable } from './walk-json.ts'
import { select } from './walk-select.ts'

/** A confined FROM item, and the names that it makes visible. */
export interface From {
  readonly node: Node
  readonly shown: Shown
}

/** Confines the FROM list, and adds its names to `level`. */
export function fromItems(walk: Walk, level: Level, nodes: readonly Node[]): Node[] {
  return nodes.map((node) => {
    const from = fromItem(walk, level, node)
    const [before] = level.shown
    if (before) {
      checkNames(before, from.shown)
      before.take(from.shown, [])
    } else level.shown = [from.shown]
    return from.node
  })
}

/** Confines one item. `level` contains the items on its left, for LATERAL. */
function fromItem(walk: Walk, level: Level, node: Node): From {
  if (node.JoinExpr) return join(walk, level, node.JoinExpr)
  if (node.RangeVar) return table(walk, level, node.RangeVar)
  addItem(walk.weight)
  if (node.RangeSubselect) return subselect(walk, level, node.RangeSubselect)
  if (node.RangeFunction) return functionItem(walk, level, node.RangeFunction)
  if (node.RangeTableSample) return sample(walk, level, node.RangeTableSample)
  if (node.JsonTable) return jsonTable(walk, level, node.JsonTable)
  throw refusedStatement(Object.keys(node)[0] ?? 'FROM')
}

/** Refuses two tables of the same name, as PostgreSQL does. */
function checkNames(left: Shown, right: Shown): void {
  for (const { name, schema } of right.items) {
    if (name === null) continue
    const others = left.tables(name, undefined)
    const clash = others.some((other) => other.schema === null || schema === null || other.schema === schema)
    if (clash) {
      const why = `FROM names table ${name} more than once`
      throw new Refusal('table', name, why, 'Give each table its own alias.', -1)
    }
  }
}

function table(walk: Walk, level: Level, node: Struct<'RangeVar'>): From {
  addItem(walk.weight)
  const cte = node.schemaname === undefined ? findCte(level.ctes, node.relname ?? '') : undefined
  return cte ? cteItem(walk, cte, node) : tableItem(walk, node)
}

function cteItem(walk: Walk, cte: Cte, node: Struct<'RangeVar'>): From {
  dropItem(walk.weight)
  walk.weight.ctes.set(cte, (walk.weight.ctes.get(cte) ?? 0) + 1)
  cte.references += 1
  // In the query that has the WITH, `*` includes the columns that SEARCH and CYCLE add. In deeper queries, it does not.
  const isFurtherIn = walk.depth !== cte.depth
  const fields = cte.columns().map((field) => ({ ...field, notInStar: isFurtherIn && field.added === true }))
  const made = namedItem(walk, { name: node.alias?.aliasname ?? cte.name, alias: node.alias, fields })
  const from: Node = { RangeVar: { relname: cte.alias, inh: true, relpersistence: 'p', alias: made.alias } }
  return { node: from, shown: Shown.of(made.item) }
}

function subselect(walk: Walk, level: Level, node: Struct<'RangeSubselect'>): From {
  const query = node.subquery?.SelectStmt
  if (!query) throw refusedStatement('a sub-query that is no SELECT')
  dropItem(walk.weight)
  const { lateral } = node
  const inner = select(walk, query, lateral ? level : level.parent, level.ctes)
  const made = namedItem(walk, { name: node.alias?.aliasname ?? null, alias: node.alias, fields: inner.outputs })
  const subquery: Node = { SelectStmt: inner.node }
  return {
    node: { RangeSubselect: { ...(lateral && { lateral }), subquery, alias: made.alias } },
    shown: Shown.of(made.item),
  }
}

interface Named {
  readonly name: string | null
  readonly alias: Struct<'Alias'> | undefined
  readonly fields: readonly (CteColumn & { readonly notInStar?: boolean })[]
}

/** Gives an item a generated alias, and names its columns as the caller sees them. */
export function namedItem(walk: Walk, { name, alias, fields }: Named): { alias: Struct<'Alias'>; item: Item } {
  const aliasname = newAlias(walk, 't', name ?? 'a part of FROM')
  // Each reference to a CTE lists its columns again.
  spend(walk, fields.length / 2)
  const own = fields.filter((field) => field.added !== true)
  const names = renamed(name, own, alias)
  const printed = distinctNames(names)
  const columns = fields.map((field, index): Column => {
    const called = printed[index] ?? field.name
    const read = (): Node => {
      walk.unread.delete(column)
      return readColumn(walk, columnRef(aliasname, called), field)
    }
    const column = { ...field, name: names[index] ?? field.name, origin: null, read }
    walk.unread.add(column)
    return column
  })
  const item: Item = { name, schema: null, columns, whole: () => rowOf(aliasname, columns), base: null }
  const colnames = printed.map(word)
  return {
    alias: { aliasname, ...(colnames.length > 0 && { colnames }) },
    item,
  }
}

/** Returns a reference to a column that is not a table's. Searches a column of a function in FROM for long runs. */
function readColumn(walk: Walk, node: Node, { made, runs, collected = Infinity }: Field): Node {
  const read = withCollected(withRuns(readsMade(node, copiedInto(made)), runs), collected, made ?? [])
  withLoose(read, walk.readsLoose && anyLoose(made))
  return runs === undefined ? read : withoutLongRuns(walk, { node: read, type: null }, undefined).node
}

/** Applies an alias list such as t(a, b), which renames columns from the left. */
function renamed(name: string | null, fields: readonly { name: string }[], alias?: Struct<'Alias'>): string[] {
  const given = words(alias?.colnames)
  if (given.length > fields.length) {
    const why = `table ${name ?? ''} has ${fields.length} exposed columns, but the alias list names ${given.length}`
    throw new Refusal('table', name ?? '', why, `Name at most ${fields.length} columns.`, -1)
  }
  return fields.map((field, index) => given[index] ?? field.name)
}

function rowOf(aliasname: string, columns: readonly Column[]): ReturnType<Item['whole']> {
  const row = readsMade(
    columnRef(aliasname),
    columns.flatMap(({ made = [] }) => made),
  )
  withCollected(
    row,
    columns.reduce((sum, { collected = Infinity }) => sum + collected, 0),
  )
  return {
    node: withRuns(row, Math.max(1, ...columns.map(({ runs = 1 }) => runs))),
    type: { kind: 'row', columns: columns.map(({ name, type }) => ({ name, type })) },
  }
}

/**
 * Returns a row of a table with the table's own column names, which an alias list such as t(a, b) does not change:
 * (SELECT r FROM (SELECT t1.a, t1.b) AS r(id, name)).
 */
function rowUnder(walk: Walk, own: readonly { readonly name: string }[], columns: readonly Column[]): Node {
  const aliasname = newAlias(walk, 't', 'a row')
  const targetList = columns.map((column): Node => ({ ResTarget: { val: column.read() } }))
  const names = own.map(({ name }) => name)
  const row: Node = { ResTarget: { val: columnRef(aliasname) } }
  return withCollected(subSelect(selectFrom([row], selectOnly(...targetList), aliasname, names)), 0)
}

/** Wraps the table inside its sub-select, for TABLESAMPLE. */
type Inside = (table: Node) => Node

function tableItem(walk: Walk, node: Struct<'RangeVar'>, inside: Inside = (plain) => plain): From {
  const found = findTable(walk, node)
  const base: Base = { table: found, used: new Set() }
  const name = node.alias?.aliasname ?? found.name
  const aliasname = newAlias(walk, 't', name)
  const names = renamed(name, found.columns, node.alias)
  const printed = distinctNames(names)
  spend(walk, found.columns.length / 2)
  const columns = found.columns.map((column, index): Column => {
    const own = printed[index] ?? column.name
    return {
      name: names[index] ?? column.name,
      type: sqlType(walk.exposed, shownType(walk, column)),
      origin: { base, column: column.name },
      collected: 0,
      read: () => {
        base.used.add(column.name)
        const read = withCollected(columnRef(aliasname, own), 0)
        const isLoose = column.icu === 'nondeterministic'
        walk.readsLoose ||= isLoose
        return withLoose(storedColumn(read, column.type), isLoose)
      },
    }
  })
  const whole: Item['whole'] = () => {
    for (const column of found.columns) base.used.add(column.name)
    spend(walk, columns.length)
    const row = rowOf(aliasname, columns)
    const oids = found.columns.map((column) => column.typeOid)
    const type: SqlType = {
      kind: 'row',
      columns: found.columns.map(({ name: own }, index) => ({ name: own, type: columns[index]?.type ?? null })),
      oids,
    }
    return node.alias?.colnames ? { node: rowUnder(walk, found.columns, columns), type } : { node: row.node, type }
  }
  const item: Item = { name, schema: node.alias ? null : found.schema, columns, whole, base }
  const wrapped = wrap(walk, base, { aliasname, printed, node, inside })
  return { node: wrapped, shown: Shown.of(item) }
}

/** Returns the type with which the query reads a column. */
function shownType(walk: Walk, column: ExposedColumn): TypeName {
  return readAs(walk.exposed, column) ?? column.type
}

/** Finds an exposed table. The message is the same for a hidden and for an unknown table. */
function findTable(walk: Walk, node: Struct<'RangeVar'>): ExposedTable {
  const { catalogname, schemaname, relname = '' } = node
  const isOurs = catalogname === undefined || catalogname === walk.exposed.capture.database
  const found = isOurs ? walk.exposed.table(schemaname, relname) : undefined
  const names = [catalogname, schemaname, relname].filter((part) => part !== undefined)
  if (!found) throw refusedTable(names.join('.'), tableHint(walk.exposed, names), node.location)
  return found
}

interface Wrapping {
  readonly aliasname: string
  readonly printed: readonly string[]
  readonly node: Struct<'RangeVar'>
  readonly inside: Inside
}

/**
 * Prints (SELECT c FROM schema.t AS t0) AS t1(c). finish() adds the columns later, when the guard knows which of them
 * the query reads. They are printed as c, not as t0.c: if c was dropped since introspection, PostgreSQL would read t0.c
 * as the call c(t0) with the whole row (manual, 8.16.5). c cannot mean the row t0, because no exposed column is named
 * like a generated alias. If c means a column of an outer query, the session answers SCHEMA_STALE
 * (session/lock-columns.ts).
 */
function wrap(walk: Walk, base: Base, { aliasname, printed, node, inside }: Wrapping): Node {
  const targetList: Node[] = []
  const colnames: Node[] = []
  const read: PrintedColumn[] = []
  const { schema, name } = base.table
  const plain: Node = {
    RangeVar: {
      schemaname: schema,
      relname: name,
      ...(node.inh && { inh: true as const }),
      relpersistence: 'p',
      alias: { aliasname: `${walk.prefix}t0` },
    },
  }
  const query: SelectStmt & { whereClause?: Node } = {
    targetList,
    fromClause: [inside(plain)],
    limitOption: 'LIMIT_OPTION_DEFAULT',
    op: 'SETOP_NONE',
  }
  walk.bases.push({
    base,
    finish: () => {
      for (const [index, column] of base.table.columns.entries()) {
        const { name } = column
        if (!base.used.has(name)) continue
        const ref = columnRef(name)
        const node = plainly(ref, readAs(walk.exposed, column))
        const stored = noteStored(walk.exposed, ref, column, query)
        targetList.push({ ResTarget: { val: node } })
        colnames.push(word(printed[index] ?? name))
        read.push({ node, type: shownType(walk, column), stored })
      }
    },
    limit: (lengths) => {
      const condition = noLongerThan(walk.exposed, read, lengths)
      if (condition) query.whereClause = condition
    },
  })
  return { RangeSubselect: { subquery: { SelectStmt: query }, alias: { aliasname, colnames } } }
}

/** Casts a column to the type of readAs(), so that no literal gets the column's own type. */
function plainly(arg: Node, type: TypeName | undefined): Node {
  if (type === undefined) return arg
  return { TypeCast: { arg, typeName: { names: [word(type.schema), word(type.name)], typemod: -1 } } }
}

const METHODS: ReadonlySet<string> = new Set(['bernoulli', 'system'])

function sample(walk: Walk, level: Level, node: Struct<'RangeTableSample'>): From {
  const { relation, method, args, repeatable, location } = node
  const name = words(method).at(-1) ?? ''
  const isListed = METHODS.has(name) && (method?.length === 1 || words(method)[0] === 'pg_catalog')
  if (!relation?.RangeVar || !isListed) throw refusedStatement(`TABLESAMPLE ${words(method).join('.')}`, location)
  const { relname = '', schemaname } = relation.RangeVar
  if (schemaname === undefined && findCte(level.ctes, relname)) throw refusedStatement('TABLESAMPLE of WITH', location)
  // The arguments may refer to outer queries only, because their sub-select is not LATERAL.
  const around = newLevel(level.parent, level.ctes)
  const confined = {
    method: [word('pg_catalog'), word(name)],
    args: (args ?? []).map((arg) => expression(walk, around, arg).node),
    ...(repeatable && { repeatable: expression(walk, around, repeatable).node }),
  }
  return tableItem(walk, relation.RangeVar, (plain) => ({ RangeTableSample: { relation: plain, ...confined } }))
}

// JOIN. USING and NATURAL mean exposed columns only. Each USING gets a generated alias, so that its columns can be
// qualified (PostgreSQL 14 and newer).

const TYPES: ReadonlySet<string> = new Set(['JOIN_INNER', 'JOIN_LEFT', 'JOIN_RIGHT', 'JOIN_FULL'])

function join(walk: Walk, level: Level, node: Struct<'JoinExpr'>): From {
  const { jointype = '', larg, rarg } = node
  if (!larg || !rarg || !TYPES.has(jointype)) throw refusedStatement(jointype || 'JOIN')
  addSort(walk)
  if (jointype === 'JOIN_INNER') noteJoined(walk, node.quals)
  const left = fromItem(walk, level, larg)
  const before = level.shown
  // LATERAL on the right side sees the left side, except in RIGHT and FULL joins.
  if (jointype === 'JOIN_INNER' || jointype === 'JOIN_LEFT') level.shown = [...before, left.shown]
  const right = fromItem(walk, level, rarg)
  level.shown = before
  const sides: Sides = { left: left.shown, right: right.shown, jointype }
  checkNames(left.shown, right.shown)
  const names = node.isNatural ? commonNames(walk, sides) : words(node.usingClause)
  const merged = using(walk, sides, names, node)
  const on = condition(walk, level, sides, node, merged !== undefined)
  const shown = left.shown
  spend(walk, 1 + right.shown.count / 8)
  shown.take(right.shown, merged?.columns ?? [])
  const confined = {
    jointype,
    larg: left.node,
    rarg: right.node,
    ...(merged && { usingClause: names.map(word), join_using_alias: { aliasname: merged.alias } }),
    ...(on && { quals: on }),
  }
  if (node.alias) return aliased(walk, confined, shown.star(), node.alias)
  if (merged?.named) shown.add(merged.named)
  return { node: { JoinExpr: confined }, shown }
}

interface Sides {
  readonly left: Shown
  readonly right: Shown
  readonly jointype: string
}

/** Returns the exposed columns that both sides of a NATURAL join have. */
function commonNames(walk: Walk, { left, right }: Sides): string[] {
  const common = [...right.names()].filter((name) => left.column(name) !== undefined)
  if (common.length < 2) return common
  // In the order of the left side.
  spend(walk, left.count / 8)
  const wanted = new Set(common)
  return [...new Set(left.star().map((column) => column.name))].filter((name) => wanted.has(name))
}

interface Merged {
  readonly alias: string
  readonly columns: readonly Column[]
  /** The item for the caller's alias of USING. */
  readonly named: Item | undefined
}

function using(walk: Walk, sides: Sides, names: readonly string[], node: Struct<'JoinExpr'>): Merged | undefined {
  if (names.length === 0) return undefined
  // Each name is printed for both tables and in USING.
  spend(walk, 3 * names.length)
  const given = node.join_using_alias?.aliasname
  const alias = newAlias(walk, 't', given ?? 'a join')
  const columns = names.map((name): Column => {
    const left = onlyColumn(sides.left, name)
    const right = onlyColumn(sides.right, name)
    checkComparison(walk, '=', [left.type, right.type], undefined)
    const isLoose = [left.read(), right.read()].some(mayBeLoose)
    const kept = sides.jointype === 'JOIN_RIGHT' ? right : left
    const origin = sides.jointype === 'JOIN_FULL' ? null : kept.origin
    const made = [...(left.made ?? []), ...(right.made ?? [])]
    const { runs } = mostRuns(left, right)
    // USING compares the columns without a search for long runs.
    if (runs !== undefined && runs > RUNS_MAX && runs !== Infinity) throw unsearchable(name)
    const collected = maxCollected(left, right)
    const read = (): Node => {
      const merged = withRuns(readsMade(columnRef(alias, name), copiedInto(made)), runs)
      return withLoose(withCollected(merged, collected, made), isLoose)
    }
    const type = unifiedType(walk.exposed, [kept.type, left.type, right.type])
    return { ...mostRuns(left, right), collected, name, type, origin, made, read }
  })
  const named =
    given === undefined
      ? undefined
      : { name: given, schema: null, columns, whole: () => rowOf(alias, columns), base: null }
  return { alias, columns, named }
}

function onlyColumn(side: Shown, name: string): Column {
  const column = side.column(name)
  if (column === undefined) throw refusedColumn(name, columnHint(name, [{ name: null, columns: side.star() }]), -1)
  if (column !== null) return column
  const why = `column ${name} is ambiguous in USING: one side has more than one such column`
  throw new Refusal('column', name, why, 'Use ON with qualified columns.', -1)
}

/** Returns the join condition: TRUE for an outer NATURAL join without common columns. */
function condition(
  walk: Walk,
  level: Level,
  { left, right, jointype }: Sides,
  node: Struct<'JoinExpr'>,
  isMerged: boolean,
): Node | undefined {
  if (node.quals) {
    return expression(walk, { ...newLevel(level.parent, level.ctes), shown: [left, right] }, node.quals).node
  }
  if (isMerged || (jointype === 'JOIN_INNER' && !node.usingClause)) return undefined
  return { A_Const: { boolval: { boolval: true } } }
}

/** Confines (a JOIN b …) AS j(x, y). Other items see only j. */
function aliased(walk: Walk, confined: Struct<'JoinExpr'>, columns: readonly Column[], alias: Struct<'Alias'>): From {
  const name = alias.aliasname ?? ''
  const aliasname = newAlias(walk, 't', name)
  const names = renamed(name, columns, alias)
  const printed = distinctNames(names)
  const own = columns.map((column, index): Column => {
    // The alias list names columns by position, so print every column.
    column.read()
    const called = printed[index] ?? column.name
    const read = (): Node => readColumn(walk, columnRef(aliasname, called), column)
    return { ...column, name: names[index] ?? column.name, read }
  })
  const item: Item = { name, schema: null, columns: own, whole: () => rowOf(aliasname, own), base: null }
  const colnames = printed.map(word)
  const node: Node = { JoinExpr: { ...confined, alias: { aliasname, ...(colnames.length > 0 && { colnames }) } } }
  return { node, shown: Shown.of(item) }
}

// Function calls in FROM. The columns come from the list of functions, a composite type or the caller's definitions.

interface Part {
  readonly node: Node
  readonly fields: readonly Field[]
  /** True if the function returns scalars. Its alias then means the scalar, not a row. */
  readonly isScalar: boolean
  /** Column definitions that are written after the alias, not inside ROWS FROM. */
  readonly definitions?: readonly Node[]
}

function functionItem(walk: Walk, level: Level, node: Struct<'RangeFunction'>): From {
  walk.rowFunctions += 1
  const { alias, ordinality, is_rowsfrom, coldeflist, lateral } = node
  const functions = node.functions ?? []
  const name = alias?.aliasname ?? functionName(walk, functions[0])
  const parts = functions.map((item) => part(walk, level, item, functions.length === 1 ? name : undefined, coldeflist))
  const fields = [
    ...parts.flatMap((each) => each.fields),
    ...(ordinality ? [{ name: 'ordinality', type: null, collected: 0 }] : []),
  ]
  const made = namedItem(walk, { name, alias: coldeflist ? undefined : alias, fields })
  const [first] = parts
  const [column] = made.item.columns
  const isValue = parts.length === 1 && first?.isScalar === true && !ordinality
  const item = isValue && column ? { ...made.item, whole: () => valueOf(walk, made.alias, column) } : made.item
  const shown = first?.definitions
  const confined = {
    ...(lateral && { lateral }),
    ...(ordinality && { ordinality }),
    ...(is_rowsfrom && { is_rowsfrom }),
    functions: parts.map((each) => each.node),
    // The grammar does not allow a definition list together with an alias list.
    alias: shown ? { aliasname: made.alias.aliasname ?? '' } : made.alias,
    ...(shown && { coldeflist: shown }),
  }
  return { node: { RangeFunction: confined }, shown: Shown.of(item) }
}

function valueOf(walk: Walk, alias: Struct<'Alias'>, column: Column): { node: Node; type: Field['type'] } {
  return { node: readColumn(walk, columnRef(alias.aliasname ?? ''), column), type: column.type }
}

function functionName(walk: Walk, item: Node | undefined): string {
  const call = item?.List?.items?.[0]
  return call ? outputName(call, { major: walk.exposed.major, subLink: () => undefined }) : 'function'
}

/** Confines one function in FROM. `item` is the list [call, its column definitions or {}]. */
function part(
  walk: Walk,
  level: Level,
  item: Node,
  only: string | undefined,
  outside: readonly Node[] | undefined,
): Part {
  const [source, inside, ...others] = item.List?.items ?? []
  if (others.length > 0 || (inside && !inside.List && Object.keys(inside).length > 0)) throw refusedStatement('FROM')
  if (source?.SQLValueFunction) {
    const { node } = valueFunction(source.SQLValueFunction)
    const name = only ?? outputName(source, { major: walk.exposed.major, subLink: () => undefined })
    return { node: { List: { items: [node, {}] } }, fields: [{ name, type: null, collected: 0 }], isScalar: true }
  }
  if (!source?.FuncCall) throw refusedStatement('an expression that is not a function in FROM')
  const call = source.FuncCall
  const isMany =
    call.funcname?.length === 1 && call.funcname[0]?.String?.sval === 'unnest' && (call.args?.length ?? 0) > 1
  if (isMany) return unnestMany(walk, level, call)
  const called = callOf(walk, level, call)
  if (!RETURNS_ROWS.has(called.name)) addSort(walk)
  notePlace(walk.places, called.node, source)
  if (called.name === 'pg_typeof') throw refusedFunction('pg_typeof', call.location, 'Call it in the select list.')
  const written = outside ?? inside?.List?.items
  if (written) return defined(walk, called, written, outside !== undefined, call.location)
  if (FROM_DEFINITION.has(called.name)) {
    throw refusedFunction(called.name, call.location, `Define its columns: ${called.name}(…) AS t(a int, b text).`)
  }
  return { node: { List: { items: [called.node, {}] } }, ...columnsOf(walk, called, only) }
}

/** Returns the limits that hold for each column of a function. */
function givenBy(walk: Walk, call: Node): Pick<Field, 'runs' | 'collected'> {
  const collected = walk.collects ? collectedIn(call) : 0
  return walk.exposed.comparesByIcu ? { runs: runsOf(call), collected } : { collected }
}

function columnsOf(walk: Walk, called: Called, only: string | undefined): Pick<Part, 'fields' | 'isScalar'> {
  const fields = fieldsOf(walk.exposed, called.type)
  const given = givenBy(walk, called.node)
  if (fields) return { fields: fields.map((field) => ({ ...field, ...given })), isScalar: false }
  return { fields: [{ name: called.out[0] ?? only ?? called.name, type: called.type, ...given }], isScalar: true }
}

/** Confines unnest(a, b) with several arrays. Only the unqualified name unnest allows this form. */
function unnestMany(walk: Walk, level: Level, call: Struct<'FuncCall'>): Part {
  const fields: Field[] = []
  const args = (call.args ?? []).map((arg) => {
    const { node, type } = callOf(walk, level, { ...call, args: [arg] })
    const given = givenBy(walk, node)
    fields.push(
      ...(fieldsOf(walk.exposed, type) ?? [{ name: 'unnest', type }]).map((field) => ({ ...field, ...given })),
    )
    return node.FuncCall?.args?.[0] ?? node
  })
  const node: Node = { FuncCall: { funcname: [word('unnest')], args, funcformat: 'COERCE_EXPLICIT_CALL' } }
  return { node: { List: { items: [node, {}] } }, fields, isScalar: false }
}

/** Confines a function that returns a record, whose columns the caller defines. */
function defined(
  walk: Walk,
  called: Called,
  written: readonly Node[],
  isOutside: boolean,
  at: number | undefined,
): Part {
  if (!FROM_DEFINITION.has(called.name)) {
    throw refusedFunction(called.name, at, `${called.name}() takes no list of column definitions.`)
  }
  const fields: Field[] = []
  const nodes = written.map((node): Node => {
    const def = node.ColumnDef
    if (!def?.typeName || def.colname === undefined) throw refusedStatement('a column definition', at)
    const type = typeName(walk, def.typeName)
    fields.push({ name: def.colname, type: type.type, ...givenBy(walk, called.node) })
    return { ColumnDef: { colname: def.colname, typeName: type.node, is_local: true } }
  })
  const items: Node[] = [called.node, isOutside ? {} : { List: { items: nodes } }]
  return { node: { List: { items } }, fields, isScalar: false, ...(isOutside && { definitions: nodes }) }
}
