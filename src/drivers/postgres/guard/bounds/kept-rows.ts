// Limits the rows that a sort with LIMIT keeps in memory. For LIMIT n, PostgreSQL keeps the first n rows and never
// writes them to disk: 1,000 rows of 1.6 MB took 1.5 GB. A sort without LIMIT goes to disk when it exceeds work_mem
// (tuplesort.c). If a condition is between the sort and the LIMIT, the sort does not know the LIMIT
// (ExecSetTupleBound() in execProcnode.c).
import type { Node, SelectStmt } from '../allowed/allowed-nodes.ts'
import { call, selectFrom, selectOnly, subSelect, whole } from '../node-builders.ts'
import { columnRef, distinctNames } from '../walk/scope.ts'
import { wholeNumber } from './argument-bounds.ts'

/** The assumed LIMIT if it is not a constant. PostgreSQL keeps no more rows than about half of those in work_mem. */
const ROWS_MAX = 65_536

/**
 * Returns how many rows a sort of the query keeps in memory, or undefined if it has no sort. Without its own LIMIT, the
 * LIMIT of an outer query may apply to the sort, through sub-queries in FROM, WITH and the arms of UNION ALL.
 */
export function rowsKept({ sortClause, limitCount, limitOffset, limitOption }: SelectStmt): number | undefined {
  if (!sortClause || limitOption === 'LIMIT_OPTION_WITH_TIES') return undefined
  if (!limitCount || limitCount.A_Const?.isnull) return ROWS_MAX
  const [count, skipped] = [limitCount, limitOffset].map((node) => (node ? (rowsIn(node) ?? ROWS_MAX) : 0))
  return Math.min((count ?? 0) + (skipped ?? 0), ROWS_MAX)
}

function rowsIn(node: Node): number | undefined {
  const { op, args = [] } = node.MinMaxExpr ?? {}
  if (op !== 'IS_LEAST') return wholeNumber(node)
  const known = args.flatMap((arg) => wholeNumber(arg) ?? [])
  return known.length > 0 ? Math.min(...known) : undefined
}

/**
 * Changes the query so that it sorts all rows before it applies the LIMIT. Its result stays the same. If the query is a
 * sub-query without its own LIMIT, PostgreSQL still moves conditions of the outer query into it, before the sort. The
 * condition that separates the sort from the LIMIT must not move, so it has a sub-select (qual_is_pushdown_safe() in
 * allpaths.c).
 */
export function sortWhole(query: SelectStmt, alias: string): void {
  const { withClause, limitCount, limitOffset, limitOption, ...sorted } = query
  const outputs = outputsOf(sorted)
  if (outputs.length === 0) {
    Reflect.deleteProperty(query, 'sortClause')
    return
  }
  const names = distinctNames(outputs.map(({ name }) => name))
  const targets = names.map((name, at): Node => {
    const { name: given = name, constant } = outputs[at] ?? {}
    return { ResTarget: { name: given, val: constant ?? columnRef(alias, name) } }
  })
  const [first = ''] = names
  const isLimited = (limitCount ?? limitOffset) !== undefined
  const offset: Partial<SelectStmt> = { limitOffset: whole(0), limitOption: 'LIMIT_OPTION_COUNT' }
  const inner: SelectStmt = { ...sorted, ...(isLimited ? offset : limitOption && { limitOption }) }
  const count = call('num_nulls', columnRef(alias, first))
  const known = isLimited ? count : subSelect(selectOnly({ ResTarget: { val: count } }))
  const outer: SelectStmt = {
    ...selectFrom(targets, inner, alias, names),
    ...(withClause && { withClause }),
    whereClause: { NullTest: { arg: known, nulltesttype: 'IS_NOT_NULL' } },
    ...(limitCount && { limitCount }),
    ...(limitOffset && { limitOffset }),
    ...(limitOption && { limitOption }),
  }
  for (const key of Object.keys(query)) Reflect.deleteProperty(query, key)
  Object.assign(query, outer)
}

interface Output {
  readonly name: string
  /** A constant without a type, which would become a text inside a sub-query. */
  readonly constant?: Node | undefined
}

function outputsOf({ larg, targetList = [], valuesLists }: SelectStmt): readonly Output[] {
  if (larg) return outputsOf(larg).map(({ name }) => ({ name }))
  if (valuesLists) return (valuesLists[0]?.List?.items ?? []).map((_, at) => ({ name: `column${at + 1}` }))
  return targetList.map(({ ResTarget: { name = '?column?', val } = {} }) => {
    return { name, constant: val && (val.A_Const ?? val.ParamRef) ? val : undefined }
  })
}
