// Decides which queries PostgreSQL must run without hash joins, or without hashed groups. Usually, hash tables go to
// disk when they grow. But a hash join keeps all rows of one key in memory, and PostgreSQL does not notice when a value
// in a hashed group grows. The planner avoids neither if its estimates are wrong. The size of the database limits
// queries that only read stored rows. So only a query that itself makes many rows or long values must sort instead. Its
// answer is the same.
import { RETURNS_ROWS } from '../allowed/allowed-functions.ts'
import { isNode, words, type Node, type SelectStmt, type Struct } from '../allowed/allowed-nodes.ts'
import type { SwitchedOff } from '../../confined-query.ts'
import type { SqlType } from '../walk/from-items.ts'
import { literalText, wholeNumber } from './argument-bounds.ts'
import { isAggregate } from './collected-rows.ts'
import type { Grown } from './value-growth.ts'

/** Aggregates whose state is as long as a value, or as a sum of values. */
const GROWING = /^(?:any_value|avg|bit_(?:and|or|xor)|max|min|range_intersect_agg|stddev.*|sum|var.*)$/
/** Types whose values stay short. */
const SMALL = /^(?:bool|int[248]|float[48]|oid|date|timetz|time|timestamptz|timestamp|interval|uuid|money)$/

/** Returns whether the state of an aggregate over this type may grow when rows are added to a group. */
export function mayGrow(name: string, type: SqlType | null): boolean {
  return GROWING.test(name) && !(type?.kind === 'named' && SMALL.test(type.name))
}

/** Returns the settings that must be off for a confined query. `isGrouped` is true if it has GROUP BY. */
export function switchedOff(query: SelectStmt, { hasLongRows, states }: Grown, isGrouped: boolean): SwitchedOff {
  const rows = new Rows()
  rows.visit({ SelectStmt: query })
  const joins = rows.isJoined && (hasLongRows || rows.multiply)
  const groups = isGrouped && (states === 'long' || (states === 'stored' && rows.multiply))
  if (joins && groups) return 'enable_hashjoin enable_hashagg'
  if (joins) return 'enable_hashjoin'
  return groups ? 'enable_hashagg' : ''
}

/** The assumed rows of a generate_series() over dates, or of a parameter, if the text does not show the number. */
const ASSUMED_ROWS = 1_000
/** A query makes many rows if a part of it may make more than this. */
const MANY_ROWS = 10_000
/** A sub-select with a higher LIMIT counts as a table without a LIMIT. */
const LIMIT_MAX = 1_000
/** If both ends of a series are at most this, such as years, the series is as long as their difference. */
const SERIES_END = 10_000
/** A step of a series of dates. */
const CALENDAR = /^\s*(?:\d{1,3}\s*)?(?:day|week|mon|month|quarter|year)s?\s*$/i
const DAY_MS = 86_400_000

/** Walks a confined query to find out whether it joins, and whether it makes many rows from few. */
class Rows {
  /** True if the query joins in FROM, or by a sub-query in a condition. */
  isJoined = false
  /** True if a part of the query may have more rows than a table, for example by a join without an equality. */
  multiply = false
  /** The rows of each WITH query by its name. */
  readonly #known = new Map<string, number>()
  readonly #counted = new Map<SelectStmt, number>()

  visit(value: unknown): void {
    if (!isNode(value)) return
    const { SubLink: link, FuncCall: call, SelectStmt: query } = value
    if (link && /^(?:EXISTS|ANY)_SUBLINK$/.test(link.subLinkType ?? '')) this.isJoined = true
    if (call && seriesRows(call) > MANY_ROWS) this.multiply = true
    if (query) this.#select(query)
    else for (const part of Object.values(value)) this.visit(part)
  }

  #select(query: SelectStmt): void {
    for (const { CommonTableExpr: cte } of query.withClause?.ctes ?? []) {
      const body = cte?.ctequery?.SelectStmt
      if (body && cte.ctename !== undefined) {
        this.#select(body)
        this.#known.set(cte.ctename, this.#rows(body))
        if (countsUp(cte.ctename, body)) this.multiply = true
      }
    }
    const { withClause: _with, larg, rarg, ...parts } = query
    if (larg) this.#select(larg)
    if (rarg) this.#select(rarg)
    if (!larg) this.#from(query)
    this.#note(this.#rows(query))
    this.visit(Object.values(parts))
  }

  #from({ fromClause = [], whereClause }: SelectStmt): void {
    const level = new Level()
    for (const item of fromClause) level.item(item)
    if (level.items.length < 2) return
    this.isJoined = true
    level.condition(whereClause)
    const counts = level.items.map((item) => this.#itemRows(item))
    const many = level.items.filter((_, n) => counts[n] === Infinity)
    if (!level.connects(many.map(aliasOf))) this.multiply = true
    const known = level.items.map((item, n) =>
      counts[n] === Infinity ? elementsIn(item.RangeFunction) : (counts[n] ?? 1),
    )
    this.#note(known.reduce((all, rows) => all * rows, 1))
  }

  /** Sets `multiply` if the query makes many rows. Infinity stands for the rows of a table. */
  #note(rows: number): void {
    if (rows > MANY_ROWS && rows !== Infinity) this.multiply = true
  }

  /** Returns the largest number of rows that the text of the query shows, or Infinity if it reads a table. */
  #rows(query: SelectStmt): number {
    const counted = this.#counted.get(query)
    if (counted !== undefined) return counted
    const rows = this.#count(query)
    this.#counted.set(query, rows)
    return rows
  }

  #count(query: SelectStmt): number {
    const { limitCount, limitOption } = query
    const limit = wholeNumber(limitCount) ?? Infinity
    const isLow = limit <= LIMIT_MAX && !limitCount?.A_Const?.isnull && limitOption !== 'LIMIT_OPTION_WITH_TIES'
    const most = isLow ? Math.max(limit, 0) : Infinity
    return Math.min(most, this.#unlimited(query))
  }

  #unlimited({ larg, rarg, fromClause = [], valuesLists, groupClause, targetList = [] }: SelectStmt): number {
    if (larg && rarg) return this.#rows(larg) + this.#rows(rarg)
    if (valuesLists) return valuesLists.length
    const made = setsIn(targetList)
    if (!groupClause && targetList.some(aggregates)) return made
    if (groupClause?.some(({ GroupingSet: set }) => set)) return Infinity
    const level = new Level()
    for (const item of fromClause) level.item(item)
    return level.items.reduce((all, item) => all * this.#itemRows(item), made)
  }

  #itemRows(item: Node): number {
    const query = item.RangeSubselect?.subquery?.SelectStmt
    if (query) return this.#rows(query)
    const table = item.RangeVar
    if (table) return table.schemaname === undefined ? (this.#known.get(table.relname ?? '') ?? Infinity) : Infinity
    return item.RangeFunction && references(item).size === 0 ? Math.max(setsIn(item.RangeFunction), 1) : Infinity
  }
}

/** The FROM items of one SELECT, and the equalities that join them. */
class Level {
  readonly items: Node[] = []
  /** For each alias, another alias that equalities connect it to. The last alias of such a chain refers to itself. */
  readonly #group = new Map<string, string>()

  /** Adds a FROM item. Returns the aliases in it. */
  item(node: Node): readonly string[] {
    const join = node.JoinExpr
    if (!join) {
      this.items.push(node)
      const alias = aliasOf(node)
      this.#group.set(alias, alias)
      // Only functions and LATERAL sub-selects may refer to earlier items.
      for (const other of seesOthers(node) ? references(node) : [])
        if (this.#group.has(other)) this.#unite(alias, other)
      return [alias]
    }
    const left = join.larg ? this.item(join.larg) : []
    const right = join.rarg ? this.item(join.rarg) : []
    const all = [...left, ...right]
    const [first = ''] = all
    for (const alias of [join.alias?.aliasname, join.join_using_alias?.aliasname]) {
      if (alias !== undefined) this.#group.set(alias, first)
    }
    if (join.usingClause) this.#unite(first, right[0] ?? first)
    this.condition(join.quals)
    return all
  }

  condition(node: Node | undefined): void {
    for (const [left, right] of equalities(node)) this.#unite(left, right)
  }

  /** Returns whether equalities connect all these aliases. */
  connects(aliases: readonly string[]): boolean {
    const [first = '', ...others] = aliases.map((alias) => this.#root(alias))
    return others.every((other) => other === first)
  }

  #unite(one: string, other: string): void {
    this.#group.set(this.#root(one), this.#root(other))
  }

  #root(alias: string): string {
    const next = this.#group.get(alias) ?? alias
    return next === alias ? alias : this.#root(next)
  }
}

function aliasOf(item: Node): string {
  const { alias } = item.RangeSubselect ?? item.RangeVar ?? item.RangeFunction ?? item.JsonTable ?? {}
  return alias?.aliasname ?? ''
}

/** Returns the pairs of aliases that a condition makes equal in every row. One side must be a column. */
export function equalities(node: Node | undefined): readonly (readonly [string, string])[] {
  const { boolop, args = [] } = node?.BoolExpr ?? {}
  if (boolop === 'AND_EXPR') return args.flatMap(equalities)
  if (boolop === 'OR_EXPR') {
    const [first = [], ...others] = args.map(equalities)
    return first.filter((pair) => others.every((other) => other.some((each) => isSamePair(each, pair))))
  }
  const { kind, name, lexpr, rexpr } = node?.A_Expr ?? {}
  const isEquality = (kind === 'AEXPR_OP' && words(name).at(-1) === '=') || kind === 'AEXPR_NOT_DISTINCT'
  if (!isEquality || !lexpr || !rexpr || !(isColumn(lexpr) || isColumn(rexpr))) return []
  return [...references(lexpr)].flatMap((left) => [...references(rexpr)].map((right) => [left, right] as const))
}

function isSamePair([a, b]: readonly [string, string], [c, d]: readonly [string, string]): boolean {
  return (a === c && b === d) || (a === d && b === c)
}

/** Returns whether the node is a column, or a cast of one. */
function isColumn(node: Node): boolean {
  return node.TypeCast?.arg ? isColumn(node.TypeCast.arg) : node.ColumnRef !== undefined
}

function seesOthers({ RangeSubselect: query, RangeFunction: call, JsonTable: table }: Node): boolean {
  return call !== undefined || table !== undefined || query?.lateral === true
}

/** Returns the aliases to which the columns in a node refer. */
export function references(value: unknown, found = new Set<string>()): ReadonlySet<string> {
  if (!isNode(value)) return found
  const [alias] = words(value.ColumnRef?.fields)
  if (alias !== undefined) found.add(alias)
  for (const part of Object.values(value)) references(part, found)
  return found
}

/** Returns whether the query aggregates: it contains an aggregate that is not in a sub-query. */
export function aggregates(value: unknown): boolean {
  if (!isNode(value)) return false
  const { FuncCall: call, SubLink: link, JsonArrayAgg, JsonObjectAgg } = value
  if (link) return false
  if (call && isAggregate(call)) return true
  return (JsonArrayAgg ?? JsonObjectAgg) !== undefined || Object.values(value).some(aggregates)
}

/** Multiplies the rows of all set-returning functions in a part of the query. */
function setsIn(value: unknown): number {
  if (!isNode(value)) return 1
  if (value.SubLink) return 1
  const call = value.FuncCall
  const own = call ? rowsOf(call) : 1
  return Object.values(value).reduce((all: number, part: unknown) => all * setsIn(part), own)
}

/** Returns the largest number of rows that a function returns. A path of JSON may return a value more than once. */
function rowsOf(call: Struct<'FuncCall'>): number {
  const name = words(call.funcname).at(-1) ?? ''
  if (!RETURNS_ROWS.has(name)) return 1
  const rows = name === 'generate_series' ? seriesRows(call) : name.includes('path') ? Infinity : sumOf(call.args)
  return Math.min(Math.max(rows, 1), MANY_ROWS + 1)
}

/** Functions that split a text into an array. */
const SPLITS: ReadonlySet<string> = new Set(['string_to_array', 'regexp_split_to_array'])

/** Returns the largest number of pieces into which a value can be split, or Infinity if it is computed. */
export function piecesOf(node: Node): number {
  const { A_Const: value, A_ArrayExpr: array, TypeCast: cast, FuncCall: call } = node
  if (node.ParamRef) return ASSUMED_ROWS
  if (value) return value.ival || value.boolval || value.isnull ? 1 : (literalText(node)?.length ?? Infinity)
  if (array) return sumOf(array.elements)
  if (cast?.arg) return keepsPieces(cast, cast.arg.TypeCast) ? piecesOf(cast.arg) : Infinity
  return call && SPLITS.has(words(call.funcname).at(-1) ?? '') ? sumOf(call.args) : Infinity
}

/** Returns whether a cast of a cast keeps the number of pieces. A text or an array does; a number may grow as text. */
function keepsPieces({ typeName: to }: Struct<'TypeCast'>, inner: Struct<'TypeCast'> | undefined): boolean {
  const from = inner?.typeName
  return !from || (isArray(from) ? isArray(to) : /^(?:text|varchar)$/.test(words(from.names).at(-1) ?? ''))
}

function isArray(type: Struct<'TypeName'> | undefined): boolean {
  return type?.arrayBounds !== undefined || words(type?.names).at(-1)?.startsWith('_') === true
}

function sumOf(nodes: readonly Node[] = []): number {
  return nodes.reduce((sum, node) => sum + piecesOf(node), 0)
}

/** Returns the rows of generate_series(), or Infinity if its arguments do not show them. Other functions return 1. */
function seriesRows({ funcname, args = [] }: Struct<'FuncCall'>): number {
  if (words(funcname).at(-1) !== 'generate_series') return 1
  const [from, to, step] = args
  if (step && CALENDAR.test(stepText(step) ?? '')) return calendarDays(from, to)
  const each = step === undefined ? 1 : (wholeNumber(step) ?? 0)
  const ends = [wholeNumber(from) ?? Infinity, wholeNumber(to) ?? Infinity]
  // shape-cache.ts replaces the numbers by large marks, one at a time. The length must not depend on them.
  if (!Number.isInteger(each) || each === 0 || ends.some((end) => Math.abs(end) > SERIES_END)) return Infinity
  const [first = 0, last = 0] = ends
  return Math.abs(last - first) / Math.abs(each) + 1
}

/** Returns how many days are between two constant dates. */
function calendarDays(from: Node | undefined, to: Node | undefined): number {
  const [first, last] = [from, to].map((end) => Date.parse((end && stepText(end)) ?? ''))
  const days = Math.abs((last ?? NaN) - (first ?? NaN)) / DAY_MS + 1
  return Number.isNaN(days) ? ASSUMED_ROWS : days
}

/** Returns the length of the longest array that is written in a function of FROM, such as unnest(ARRAY[t.a, t.b]). */
function elementsIn(value: unknown): number {
  if (!isNode(value)) return 1
  const own = value.A_ArrayExpr?.elements?.length ?? 1
  return Object.values(value).reduce((most: number, part: unknown) => Math.max(most, elementsIn(part)), own)
}

function stepText(step: Node): string | undefined {
  return step.TypeCast?.arg ? stepText(step.TypeCast.arg) : literalText(step)
}

/** Returns whether a recursive query makes its own rows: each iteration reads only rows of the previous one. */
function countsUp(name: string, { larg, rarg }: SelectStmt): boolean {
  const [only, second] = rarg?.fromClause ?? []
  return larg !== undefined && second === undefined && only?.RangeVar?.relname === name
}
