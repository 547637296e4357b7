// Applies a row limit to the query's LIMIT. The caller passes one more than the row cap, to detect a truncated answer.
import { word, type Node, type SelectStmt } from '../allowed/allowed-nodes.ts'
import { columnRef, distinctNames, newAlias, type Walk } from './scope.ts'
import type { Selected } from './walk-select.ts'

/** Returns the query with a LIMIT of at most `rows`. */
export function limited(walk: Walk, query: Selected, rows: number): SelectStmt {
  const { node } = query
  if (node.limitOption === 'LIMIT_OPTION_WITH_TIES') return around(walk, query, rows)
  return { ...node, limitCount: least(node.limitCount, rows), limitOption: 'LIMIT_OPTION_COUNT' }
}

function number(value: number): Node {
  return { A_Const: { ival: value === 0 ? {} : { ival: value } } }
}

/** Returns the smaller count. LEAST ignores NULL, and PostgreSQL treats LIMIT ALL as LIMIT NULL. */
function least(count: Node | undefined, rows: number): Node {
  const constant = count?.A_Const
  if (!count || constant?.isnull) return number(rows)
  if (constant?.ival) return (constant.ival.ival ?? 0) <= rows ? count : number(rows)
  return { MinMaxExpr: { op: 'IS_LEAST', args: [count, number(rows)] } }
}

/** Wraps a query WITH TIES, which may return more rows than its count, in an outer query that applies the limit. */
function around(walk: Walk, { node, outputs }: Selected, rows: number): SelectStmt {
  const aliasname = newAlias(walk, 't', 'the query')
  const names = distinctNames(outputs.map((output) => output.name))
  return {
    targetList: outputs.map(({ name }, index): Node => ({
      ResTarget: { name, val: columnRef(aliasname, names[index] ?? name) },
    })),
    fromClause: [
      { RangeSubselect: { subquery: { SelectStmt: node }, alias: { aliasname, colnames: names.map(word) } } },
    ],
    limitCount: number(rows),
    limitOption: 'LIMIT_OPTION_COUNT',
    op: 'SETOP_NONE',
  }
}
