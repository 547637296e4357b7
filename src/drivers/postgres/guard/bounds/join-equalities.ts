// Counts the equalities of columns that join the tables of one FROM. For merge joins, PostgreSQL tries many orders of
// these columns with many orders of the tables: eight tables joined by 20 columns took 5 s and 570 MB to plan. Without
// merge joins, it takes 0.2 s and 40 MB.
import { isNode, type Node, type SelectStmt } from '../allowed/allowed-nodes.ts'
import { refusedLimit } from '../refusal.ts'
import { aggregates, equalities } from './unhashed.ts'

/** A query with more equalities runs without merge joins. Almost all real queries have fewer. */
const MERGED_MAX = 40
/** The limit. Without merge joins, planning 1,400 equalities took 1.5 s and 210 MB, and 9,600 were cancelled late. */
const EQUALITIES_MAX = 1_000

/** Returns whether a confined query must run without merge joins. Throws Refusal for too many equalities. */
export function joinsByMany(query: SelectStmt): boolean {
  const joins = new Joins()
  joins.visit({ SelectStmt: query })
  if (joins.most > EQUALITIES_MAX) {
    const why = `the query joins by ${joins.most} equalities of columns; the limit is ${EQUALITIES_MAX}`
    throw refusedLimit('JOIN', why)
  }
  return joins.most > MERGED_MAX
}

/** Walks a confined query. PostgreSQL may merge a sub-select into the outer FROM, so its equalities count there too. */
class Joins {
  /** The largest number of equalities in one FROM. */
  most = 0
  readonly #known = new Map<string, number>()

  visit(value: unknown): void {
    if (!isNode(value)) return
    if (value.SelectStmt) this.#select(value.SelectStmt)
    else for (const part of Object.values(value)) this.visit(part)
  }

  /** Returns how many equalities the query adds to the outer FROM. */
  #select(query: SelectStmt): number {
    const { withClause, larg, rarg, fromClause = [], whereClause, ...parts } = query
    for (const { CommonTableExpr: cte } of withClause?.ctes ?? []) {
      const body = cte?.ctequery?.SelectStmt
      if (body) this.#known.set(cte.ctename ?? '', this.#select(body))
    }
    if (larg && rarg) {
      const arms = Math.max(this.#select(larg), this.#select(rarg))
      this.visit(Object.values(parts))
      return arms
    }
    const count = fromClause.reduce((sum, item) => sum + this.#item(item), this.#condition(whereClause))
    this.most = Math.max(this.most, count)
    this.visit(Object.values(parts))
    const { groupClause, distinctClause, limitCount, limitOffset, targetList = [] } = query
    const isApart = (groupClause ?? distinctClause ?? limitCount ?? limitOffset) !== undefined
    return isApart || targetList.some(aggregates) ? 0 : count
  }

  #item(item: Node): number {
    const { JoinExpr: join, RangeSubselect: sub, RangeVar: table } = item
    if (join) {
      const sides = (join.larg ? this.#item(join.larg) : 0) + (join.rarg ? this.#item(join.rarg) : 0)
      return sides + (join.usingClause?.length ?? 0) + this.#condition(join.quals)
    }
    if (sub?.subquery?.SelectStmt) return this.#select(sub.subquery.SelectStmt)
    if (table) return table.schemaname === undefined ? (this.#known.get(table.relname ?? '') ?? 0) : 0
    this.visit(item)
    return 0
  }

  /** Returns the equalities of a condition, and those of its sub-queries that PostgreSQL may turn into joins. */
  #condition(node: Node | undefined): number {
    const { boolop, args = [] } = node?.BoolExpr ?? {}
    if (boolop === 'AND_EXPR' || boolop === 'NOT_EXPR') return args.reduce((sum, arg) => sum + this.#condition(arg), 0)
    const query = node?.SubLink?.subselect?.SelectStmt
    if (query) {
      this.visit(node.SubLink?.testexpr)
      return this.#select(query) + 1
    }
    this.visit(node)
    return equalities(node).length
  }
}
