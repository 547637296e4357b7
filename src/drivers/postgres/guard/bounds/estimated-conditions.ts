// Limits the planner's work when it estimates conditions. For each sample in its statistics, the planner calls LIKE, a
// regular expression or an operator of an extension. For two columns, it compares all samples with each other. No
// cancel ends this: 200 operators of pg_trgm took 5 s. If a query has many such conditions, they are printed as
// COALESCE(condition, false), which the planner does not estimate. In WHERE, ON and HAVING, the result is the same.
import { isNode, words, type Node, type SelectStmt, type Struct } from '../allowed/allowed-nodes.ts'
import { literalText } from './argument-bounds.ts'
import { remembered } from './printed-size.ts'
import { piecesOf } from './unhashed.ts'

/** The limit for the sum of the units below. A unit took up to 0.15 ms. */
const UNITS_MAX = 2_000
/** The units of an operator that is called for each sample, such as LIKE. 200 took 0.5 s. */
const SAMPLED = 20
/** The units of a comparison of two columns. 100 took 0.1 s, and 3 s if `default_statistics_target` is 500. */
const COMPARED = 50
/** The units of an operator of pg_trgm. 50 took 2 s. */
const TRIGRAMS = 100
/** The assumed number of patterns in a parameter. */
const PATTERNS = 50
/** PostgreSQL copies the conditions on a set operation to all its arms. This many arms count once. */
const FREE_ARMS = 10

const FALSE: Node = { A_Const: { boolval: {} } }
const OF_TRIGRAMS: ReadonlySet<string> = new Set(['%', '<%', '%>', '<<%', '%>>'])
const EQUALS: ReadonlySet<string> = new Set(['=', '<>', '!='])
const ORDERS: ReadonlySet<string> = new Set(['<', '<=', '>', '>='])
/** Operators that return no boolean, so they are never conditions. */
const COMPUTES: ReadonlySet<string> = new Set([
  ...['+', '-', '*', '/', '^', '||', '|', '&', '#', '->', '->>', '#>', '#>>', '#-', '##', '<->', '<#>'],
  ...['<<->', '<->>', '<<<->', '<->>>', '<=>', '<+>'],
])
/** Functions that the planner estimates like operators. */
const ESTIMATED = /like$|regexeq$|regexne$|^starts_with$|^st_/

/** Hides the conditions of a confined query from the planner if their units exceed the limit. Changes the query. */
export function hideConditions(query: SelectStmt): void {
  const count = new Count()
  count.select(query)
  if (count.units <= UNITS_MAX) return
  for (const hold of count.holders) hold()
}

const hasSubQuery = remembered((part) => ('SubLink' in part ? true : undefined))
const hasColumn = remembered((part) => ('ColumnRef' in part ? true : undefined))

class Count {
  units = 0
  /** Each function prints the conditions of one place inside COALESCE. */
  readonly holders: (() => void)[] = []
  readonly #known = new Map<string, { readonly units: number; readonly arms: number }>()
  #arms = 1

  /** Counts a query. Returns how many arms get the conditions of the outer query. */
  select(query: SelectStmt): number {
    const { withClause, larg, rarg, fromClause = [], whereClause, havingClause, ...parts } = query
    for (const { CommonTableExpr: cte } of withClause?.ctes ?? []) {
      const body = cte?.ctequery?.SelectStmt
      if (!body) continue
      const before = this.units
      const arms = this.select(body)
      this.#known.set(cte.ctename ?? '', { units: this.units - before, arms })
    }
    if (larg && rarg) {
      const arms = this.select(larg) + this.select(rarg)
      this.#visit(parts, false)
      return arms
    }
    const outside = this.#arms
    this.#arms = 1
    const arms = fromClause.reduce((most, item) => Math.max(most, this.#item(item)), 1)
    this.#arms = arms
    this.#condition(whereClause)
    this.#condition(havingClause)
    this.#visit(parts, true)
    this.#arms = outside
    if (whereClause) this.holders.push(() => Object.assign(query, { whereClause: hidden(whereClause) }))
    if (havingClause) this.holders.push(() => Object.assign(query, { havingClause: hidden(havingClause) }))
    return arms
  }

  #item(item: Node): number {
    const { JoinExpr: join, RangeSubselect: sub, RangeVar: table } = item
    if (join) {
      const arms = Math.max(join.larg ? this.#item(join.larg) : 1, join.rarg ? this.#item(join.rarg) : 1)
      const { quals } = join
      this.#condition(quals)
      if (quals) this.holders.push(() => Object.assign(join, { quals: hidden(quals) }))
      return arms
    }
    if (sub?.subquery?.SelectStmt) return this.select(sub.subquery.SelectStmt)
    if (table) return this.#table(table)
    this.#visit(item, false)
    return 1
  }

  /** Counts a reference to WITH as a copy of the WITH query. */
  #table({ schemaname, relname = '' }: Struct<'RangeVar'>): number {
    const cte = schemaname === undefined ? this.#known.get(relname) : undefined
    this.units += cte?.units ?? 0
    return cte?.arms ?? 1
  }

  #condition(node: Node | undefined): void {
    const { boolop, args = [] } = node?.BoolExpr ?? {}
    if (boolop === 'AND_EXPR') for (const arg of args) this.#condition(arg)
    else this.#visit(node, node !== undefined && !isPlain(node))
  }

  /** Counts the conditions in a part of a query. If `counts` is false, only those in sub-queries count. */
  #visit(value: unknown, counts: boolean): void {
    if (!isNode(value)) return
    if (value.SelectStmt) {
      this.select(value.SelectStmt)
      return
    }
    if (counts) this.units += unitsOf(value) * Math.max(1, this.#arms / FREE_ARMS)
    if (value.A_Expr) {
      const { lexpr, rexpr } = value.A_Expr
      // The planner reads (a ~ b) = true as a ~ b.
      this.#visit(lexpr, counts && !hasColumn(rexpr))
      this.#visit(rexpr, counts && !hasColumn(lexpr))
      return
    }
    const isOpaque = value.FuncCall !== undefined
    if (value.CaseWhen) {
      this.#visit(value.CaseWhen.expr, false)
      this.#visit(value.CaseWhen.result, counts)
      return
    }
    for (const part of Object.values(value)) this.#visit(part, counts && !isOpaque)
  }
}

function unitsOf({ A_Expr: expr, FuncCall: call }: Pick<Node, 'A_Expr' | 'FuncCall'>): number {
  if (call) return ESTIMATED.test(words(call.funcname).at(-1) ?? '') ? unitsOfSides('~', call.args ?? []) : 0
  const { kind = '', name, lexpr, rexpr } = expr ?? {}
  if (!lexpr || !rexpr) return 0
  if (kind.includes('DISTINCT')) return unitsOfSides('=', [lexpr, rexpr])
  const symbol = words(name).at(-1) ?? ''
  if (kind === 'AEXPR_IN')
    return rexpr.List?.items?.reduce((sum, item) => sum + unitsOfSides('=', [lexpr, item]), 0) ?? 0
  if (kind.startsWith('AEXPR_OP_A')) return unitsOfArray(symbol, lexpr, rexpr)
  if (kind === 'AEXPR_NULLIF' || kind.includes('BETWEEN')) return 0
  return unitsOfSides(symbol, [lexpr, rexpr])
}

function unitsOfArray(symbol: string, left: Node, right: Node): number {
  const array = right.TypeCast?.arg ?? right
  const { elements } = array.A_ArrayExpr ?? {}
  if (elements) return elements.reduce((sum, element) => sum + unitsOfSides(symbol, [left, element]), 0)
  if (isComputed(array)) return UNITS_MAX + 1
  const patterns = literalText(array)?.split(',').length ?? (array.ParamRef ? PATTERNS : 1)
  return patterns * unitsOfSides(symbol, [left])
}

/** Returns whether the planner computes this array and estimates each element: a million elements took 300 MB. */
function isComputed(array: Node): boolean {
  return !hasColumn(array) && !hasSubQuery(array) && piecesOf(array) === Infinity
}

function unitsOfSides(symbol: string, sides: readonly Node[]): number {
  if (COMPUTES.has(symbol) || ORDERS.has(symbol)) return 0
  if (OF_TRIGRAMS.has(symbol)) return sides.some(isNumber) ? 0 : TRIGRAMS
  if (sides.length > 1 && sides.every(hasColumn)) return COMPARED
  return EQUALS.has(symbol) ? 0 : SAMPLED
}

function isNumber({ A_Const: value, TypeCast: cast }: Node): boolean {
  return cast?.arg ? isNumber(cast.arg) : value?.ival !== undefined || value?.fval !== undefined
}

/** Returns whether the value contains a condition that the planner may estimate. */
const hasConditions = remembered((part) => (unitsOf(part) > 0 ? true : undefined))

/** Puts each part of AND that may be costly to estimate into COALESCE. */
function hidden(node: Node): Node {
  const { boolop, args = [] } = node.BoolExpr ?? {}
  if (boolop === 'AND_EXPR') return { BoolExpr: { boolop, args: args.map(hidden) } }
  return isPlain(node) ? node : { CoalesceExpr: { args: [node, FALSE] } }
}

/**
 * Returns whether a part of AND stays unchanged: it joins tables, or its estimate is cheap. The planner may replace a
 * column of a sub-select by a condition. So a column alone, or a column compared with a boolean, does not stay
 * unchanged.
 */
function isPlain({ A_Expr: expr, SubLink: link, BoolExpr: not, NullTest: nulls, A_Const: value }: Node): boolean {
  if (link ?? nulls ?? value) return true
  if (not) return not.boolop === 'NOT_EXPR' && not.args?.[0]?.SubLink !== undefined
  const { kind = '', name, lexpr, rexpr } = expr ?? {}
  if (!lexpr || !rexpr || hasConditions(lexpr) || hasConditions(rexpr)) return false
  if (kind.includes('BETWEEN')) return true
  const symbol = words(name).at(-1) ?? ''
  if (kind === 'AEXPR_IN') return !hasColumn(rexpr)
  if (kind === 'AEXPR_OP_ANY' || kind === 'AEXPR_OP_ALL') return unitsOfArray(symbol, lexpr, rexpr) === 0
  if (kind !== 'AEXPR_OP' && kind !== 'AEXPR_NOT_DISTINCT') return false
  return ORDERS.has(symbol) || (EQUALS.has(symbol) && !mayBeBoolean(lexpr) && !mayBeBoolean(rexpr))
}

function mayBeBoolean(node: Node): boolean {
  if (node.TypeCast?.arg) return mayBeBoolean(node.TypeCast.arg)
  return node.A_Const?.boolval !== undefined || /^\s*(?:[tfyn01]|on|of)/i.test(literalText(node) ?? '')
}
