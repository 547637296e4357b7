// Decides which queries PostgreSQL must run without hash joins, or without hashed groups. Both usually go to disk when
// they grow. But a hash join keeps all rows of one key in memory, and a hash of groups does not notice when the values of
// its groups grow later. The planner avoids neither if its estimates are misled. A query of stored rows is limited by
// what is stored, so only a query that makes many rows or long values itself sorts instead. Its answer is the same.
import { AGGREGATES } from '../allowed/allowed-functions.ts'
import { words, type Node, type SelectStmt, type Struct } from '../allowed/allowed-nodes.ts'
import type { SwitchedOff } from '../../confined-query.ts'
import type { SqlType } from '../walk/from-items.ts'
import { literalText, wholeNumber } from './argument-bounds.ts'
import type { Grown } from './value-growth.ts'

/** Aggregates whose state is as large as a value, or as a sum of values. */
const GROWING = /^(?:any_value|avg|bit_(?:and|or|xor)|max|min|range_intersect_agg|stddev.*|sum|var.*)$/
/** Types whose values are small. */
const SMALL = /^(?:bool|int[248]|float[48]|oid|date|timetz|time|timestamptz|timestamp|interval|uuid|money)$/

/** Returns whether the state of an aggregate over values of this type may grow after its group was made. */
export function mayGrow(name: string, type: SqlType | null): boolean {
  return GROWING.test(name) && !(type?.kind === 'named' && SMALL.test(type.name))
}

/** Returns the settings that must be off for a confined query. `isGrouped` says whether it has GROUP BY. */
export function switchedOff(query: SelectStmt, { hasLongRows, states }: Grown, isGrouped: boolean): SwitchedOff {
  const rows = new Rows()
  rows.visit({ SelectStmt: query })
  const joins = rows.isJoined && (hasLongRows || rows.multiply)
  const groups = isGrouped && (states === 'long' || (states === 'stored' && rows.multiply))
  if (joins && groups) return 'enable_hashjoin enable_hashagg'
  if (joins) return 'enable_hashjoin'
  return groups ? 'enable_hashagg' : ''
}

/** A set of rows of at most this size is not worth a sort. */
const FEW_ROWS = 1_000
/** A step of generate_series() over dates. So many days are few. */
const CALENDAR = /^\s*\d{0,3}\s*(?:day|week|mon|month|quarter|year)s?\s*$/i
/** The largest end of a short series of whole numbers. */
const SERIES_END = 100_000

/** Walks a confined query and finds out whether it joins, and whether it makes many rows from few. */
class Rows {
  /** True if the query joins: in FROM, or by a sub-query in a condition. */
  isJoined = false
  /**
   * True if a part of the query may have more rows than a table: a join without an equality, a series of numbers, a
   * recursion that counts.
   */
  multiply = false
  /** WITH queries that have few rows. */
  readonly #few = new Set<string>()

  visit(value: unknown): void {
    if (!isNode(value)) return
    const { SubLink: link, FuncCall: call, SelectStmt: query } = value
    if (link && /^(?:EXISTS|ANY)_SUBLINK$/.test(link.subLinkType ?? '')) this.isJoined = true
    if (call && isLongSeries(call)) this.multiply = true
    if (query) this.#select(query)
    else for (const part of Object.values(value)) this.visit(part)
  }

  #select(query: SelectStmt): void {
    for (const { CommonTableExpr: cte } of query.withClause?.ctes ?? []) {
      const body = cte?.ctequery?.SelectStmt
      if (body && cte.ctename !== undefined) {
        this.#select(body)
        if (this.#isFew(body)) this.#few.add(cte.ctename)
        if (countsUp(cte.ctename, body)) this.multiply = true
      }
    }
    const { withClause: _with, larg, rarg, ...parts } = query
    if (larg) this.#select(larg)
    if (rarg) this.#select(rarg)
    if (!larg) this.#from(query)
    this.visit(Object.values(parts))
  }

  #from({ fromClause = [], whereClause }: SelectStmt): void {
    const level = new Level()
    for (const item of fromClause) level.item(item)
    if (level.items.length < 2) return
    this.isJoined = true
    level.condition(whereClause)
    const many = level.items.filter((item) => !this.#isFewItem(item))
    if (!level.connects(many.map(aliasOf))) this.multiply = true
  }

  /** Returns whether the query has few rows: it aggregates all rows, or it has a low limit, or no FROM. */
  #isFew(query: SelectStmt): boolean {
    const { larg, rarg, fromClause = [], limitCount, groupClause, targetList } = query
    const most = wholeNumber(limitCount)
    if (most !== undefined && most <= FEW_ROWS && !limitCount?.A_Const?.isnull) return true
    if (larg && rarg) return this.#isFew(larg) && this.#isFew(rarg)
    if (!groupClause && targetList?.some(aggregates) === true) return true
    const level = new Level()
    for (const item of fromClause) level.item(item)
    return level.items.every((item) => this.#isFewItem(item))
  }

  #isFewItem(item: Node): boolean {
    const query = item.RangeSubselect?.subquery?.SelectStmt
    if (query) return this.#isFew(query)
    const table = item.RangeVar
    if (table) return table.schemaname === undefined && this.#few.has(table.relname ?? '')
    // A function without arguments of other items has the rows that its text lists, or few days.
    return item.RangeFunction !== undefined && references(item).size === 0
  }
}

/** The FROM items of one SELECT, and the equalities that join them. */
class Level {
  readonly items: Node[] = []
  /** For each alias, an alias of the same group. */
  readonly #group = new Map<string, string>()

  /** Adds an item. Returns the aliases in it. */
  item(node: Node): readonly string[] {
    const join = node.JoinExpr
    if (!join) {
      this.items.push(node)
      const alias = aliasOf(node)
      this.#group.set(alias, alias)
      // LATERAL
      for (const other of references(node)) if (this.#group.has(other)) this.#unite(alias, other)
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

  /** Reads the equalities of a condition. */
  condition(node: Node | undefined): void {
    for (const [left, right] of equalities(node)) this.#unite(left, right)
  }

  /** Returns whether equalities connect the items. */
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

/** Returns whether the value may be a node. A list or a part of a node has none of its tags. */
function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null
}

function aliasOf(item: Node): string {
  const { alias } = item.RangeSubselect ?? item.RangeVar ?? item.RangeFunction ?? item.JsonTable ?? {}
  return alias?.aliasname ?? ''
}

/** Returns the pairs of aliases that a condition compares by equality, for every row. One side must be a column. */
function equalities(node: Node | undefined): readonly (readonly [string, string])[] {
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

/** Returns the aliases to which the columns in a node refer. */
function references(value: unknown, found = new Set<string>()): ReadonlySet<string> {
  if (!isNode(value)) return found
  const [alias] = words(value.ColumnRef?.fields)
  if (alias !== undefined) found.add(alias)
  for (const part of Object.values(value)) references(part, found)
  return found
}

/** Returns whether the query aggregates: it contains an aggregate that is not in a sub-query. */
function aggregates(value: unknown): boolean {
  if (!isNode(value)) return false
  const { FuncCall: call, SubLink: link, JsonArrayAgg, JsonObjectAgg } = value
  if (link) return false
  if (call && !call.over && AGGREGATES.has(words(call.funcname).at(-1) ?? '')) return true
  return (JsonArrayAgg ?? JsonObjectAgg) !== undefined || Object.values(value).some(aggregates)
}

/** Returns whether generate_series() may return many rows: other numbers than small ones, or time in small steps. */
function isLongSeries({ funcname, args = [] }: Struct<'FuncCall'>): boolean {
  if (words(funcname).at(-1) !== 'generate_series') return false
  const [from, to, step] = args
  if (step && CALENDAR.test(stepText(step) ?? '')) return false
  const [first, last] = [wholeNumber(from), wholeNumber(to)]
  const isShort = (end: number | undefined): boolean => end !== undefined && Math.abs(end) <= SERIES_END
  return !isShort(first) || !isShort(last) || (step !== undefined && !Number.isInteger(wholeNumber(step)))
}

function stepText(step: Node): string | undefined {
  return step.TypeCast?.arg ? stepText(step.TypeCast.arg) : literalText(step)
}

/** Returns whether a recursive query makes rows of its own: its second arm reads only the rows before. */
function countsUp(name: string, { larg, rarg }: SelectStmt): boolean {
  const [only, second] = rarg?.fromClause ?? []
  return larg !== undefined && second === undefined && only?.RangeVar?.relname === name
}
