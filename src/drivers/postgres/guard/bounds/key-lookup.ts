// Recognizes a lookup by primary key: the query reads one table, and sets each column of the primary key equal to a
// constant. The planner then uses the key's index whatever the constants are, so one plan is good for all of them.
import type { Node, SelectStmt } from '../allowed/allowed-nodes.ts'
import { costBound } from './cost-bound.ts'
import type { Walk } from '../walk/scope.ts'

/** Returns whether the confined query is a lookup by primary key. Returns false if in doubt. */
export function isLookup(walk: Walk, confined: SelectStmt): boolean {
  const [only] = walk.bases
  if (only === undefined || costBound(walk) === null) return false
  const { kind, primaryKey } = only.base.table
  const [from, second] = confined.fromClause ?? []
  const table = from?.RangeSubselect
  if (kind !== 'r' || primaryKey.length === 0 || table === undefined || second !== undefined) return false
  const shown = shownColumns(table)
  const equated = new Set(conjuncts(confined.whereClause).map((each) => equatedColumn(each, table.alias?.aliasname)))
  return primaryKey.every((name) => shown.has(name) && equated.has(shown.get(name)))
}

/** Returns the columns of the table's sub-select: for each, the name that the caller uses. */
function shownColumns({ subquery, alias }: NonNullable<Node['RangeSubselect']>): ReadonlyMap<string, string> {
  const names = (alias?.colnames ?? []).map((name) => name.String?.sval)
  const entries = (subquery?.SelectStmt?.targetList ?? []).flatMap((target, at): [string, string][] => {
    const [column, more] = target.ResTarget?.val?.ColumnRef?.fields ?? []
    const [name, shown] = [column?.String?.sval, names[at]]
    return name === undefined || more !== undefined || shown === undefined ? [] : [[name, shown]]
  })
  return new Map(entries)
}

function conjuncts(where: Node | undefined): readonly Node[] {
  if (where === undefined) return []
  const { BoolExpr: all } = where
  return all?.boolop === 'AND_EXPR' ? (all.args ?? []).flatMap(conjuncts) : [where]
}

/** Returns the column of `column = constant`. */
function equatedColumn({ A_Expr: comparison }: Node, table: string | undefined): string | undefined {
  const { kind, name = [], lexpr, rexpr } = comparison ?? {}
  if (kind !== 'AEXPR_OP' || name.at(-1)?.String?.sval !== '=') return undefined
  const [column, value] = lexpr?.ColumnRef ? [lexpr, rexpr] : [rexpr, lexpr]
  const [first, second, more] = column?.ColumnRef?.fields ?? []
  const isOurs = table !== undefined && first?.String?.sval === table && more === undefined
  return isOurs && isConstant(value) ? second?.String?.sval : undefined
}

function isConstant(value: Node | undefined): boolean {
  return value?.A_Const !== undefined || value?.ParamRef !== undefined || isConstantCast(value)
}

function isConstantCast(value: Node | undefined): boolean {
  const cast = value?.TypeCast
  return cast?.arg !== undefined && isConstant(cast.arg)
}

/** Nodes that call no function, except the functions of operators. */
const QUIET: ReadonlySet<string> = new Set([
  'A_Const',
  'A_Expr',
  'BoolExpr',
  'ColumnRef',
  'Integer',
  'List',
  'NullTest',
  'ParamRef',
  'RangeSubselect',
  'RangeVar',
  'ResTarget',
  'SelectStmt',
  'SortBy',
  'String',
])

/** Returns whether all nodes of a confined query are in QUIET. Keys that start with a capital letter are nodes. */
export function callsNothing(tree: object): boolean {
  return Object.entries(tree).every(([key, value]: [string, unknown]) => {
    const isTag = key < 'a' && key >= 'A'
    if (isTag && !QUIET.has(key)) return false
    return typeof value !== 'object' || value === null || callsNothing(value)
  })
}
