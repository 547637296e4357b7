// Limits the rows that a sort with LIMIT keeps in memory. For LIMIT n, PostgreSQL keeps the first n rows and never
// writes them to disk: 1,000 rows of 1.6 MB took 1.5 GB. A sort without LIMIT goes to disk when it exceeds work_mem
// (tuplesort.c). If a condition is between the sort and the LIMIT, the sort does not know the LIMIT
// (ExecSetTupleBound() in execProcnode.c).
import type { Node, SelectStmt } from '../allowed/allowed-nodes.ts'
import { call, selectFrom, whole } from '../node-builders.ts'
import { columnRef, distinctNames } from '../walk/scope.ts'
import { wholeNumber } from './argument-bounds.ts'

/** The assumed LIMIT if it is not a constant. PostgreSQL keeps no more rows than about half of those in work_mem. */
const ROWS_MAX = 65_536

/**
 * Returns how many rows a sort of the query keeps in memory, or undefined if the sort has no LIMIT. The LIMIT of an
 * outer query applies to the sort too, through sub-queries in FROM, WITH and the arms of UNION ALL.
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

/** Changes the query so that it sorts all rows before it applies the LIMIT. Its result stays the same. */
export function sortWhole(query: SelectStmt, alias: string): void {
  const { withClause, limitCount, limitOffset, limitOption, ...sorted } = query
  if (outputNames(sorted).length === 0) {
    Reflect.deleteProperty(query, 'sortClause')
    return
  }
  const given = outputNames(sorted)
  const names = distinctNames(given)
  const targets = names.map((name, at): Node => ({
    ResTarget: { name: given[at] ?? name, val: columnRef(alias, name) },
  }))
  const [first = ''] = names
  const inner: SelectStmt = { ...sorted, limitOffset: whole(0), limitOption: 'LIMIT_OPTION_COUNT' }
  const always: Node = { NullTest: { arg: call('num_nulls', columnRef(alias, first)), nulltesttype: 'IS_NOT_NULL' } }
  const outer: SelectStmt = {
    ...selectFrom(targets, inner, alias, names),
    ...(withClause && { withClause }),
    whereClause: always,
    ...(limitCount && { limitCount }),
    ...(limitOffset && { limitOffset }),
    ...(limitOption && { limitOption }),
  }
  for (const key of Object.keys(query)) Reflect.deleteProperty(query, key)
  Object.assign(query, outer)
}

function outputNames({ larg, targetList = [], valuesLists }: SelectStmt): readonly string[] {
  if (larg) return outputNames(larg)
  if (valuesLists) return (valuesLists[0]?.List?.items ?? []).map((_, at) => `column${at + 1}`)
  return targetList.map(({ ResTarget: target }) => target?.name ?? '?column?')
}
