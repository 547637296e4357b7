// Decides whether the size of a table is enough to bound the cost of a query: the query must be one SELECT over one
// plain table, without set-returning functions. Such a query needs no EXPLAIN.
import type { CostBound } from '../../confined-query.ts'
import type { Walk } from '../walk/scope.ts'

/** Returns the bound, or null if only EXPLAIN can estimate the cost. */
export function costBound(walk: Walk): CostBound | null {
  const [only, second] = walk.bases
  if (!only || second || walk.selects !== 1 || walk.rowFunctions > 0 || walk.ctes > 0 || walk.weight.items !== 1) {
    return null
  }
  const { schema, name, kind } = only.base.table
  if (kind !== 'r' && kind !== 'm' && kind !== 'p') return null
  return { schema, table: name, operations: walk.operations, sorts: walk.sorts }
}
