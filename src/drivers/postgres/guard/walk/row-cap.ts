// Lowers the LIMIT of a query to a number of rows. The caller passes the row cap plus one, to see whether rows are cut.
import type { Node, SelectStmt } from '../allowed/allowed-nodes.ts'
import { selectFrom, whole } from '../node-builders.ts'
import { columnRef, distinctNames, newAlias, type Walk } from './scope.ts'
import type { Selected } from './walk-select.ts'

export function limited(walk: Walk, query: Selected, rows: number): SelectStmt {
  const { node } = query
  if (node.limitOption === 'LIMIT_OPTION_WITH_TIES') return around(walk, query, rows)
  return { ...node, limitCount: least(node.limitCount, rows), limitOption: 'LIMIT_OPTION_COUNT' }
}

/** Returns the smaller count. PostgreSQL reads LIMIT ALL as NULL, which LEAST ignores. */
function least(count: Node | undefined, rows: number): Node {
  const constant = count?.A_Const
  if (!count || constant?.isnull) return whole(rows)
  if (constant?.ival) return (constant.ival.ival ?? 0) <= rows ? count : whole(rows)
  return { MinMaxExpr: { op: 'IS_LEAST', args: [count, whole(rows)] } }
}

/** A query WITH TIES may return more rows than its LIMIT. So the new limit is on an outer query. */
function around(walk: Walk, { node, outputs }: Selected, rows: number): SelectStmt {
  const aliasname = newAlias(walk, 't', 'the query')
  const names = distinctNames(outputs.map((output) => output.name))
  const columns = outputs.map(({ name }, index): Node => ({
    ResTarget: { name, val: columnRef(aliasname, names[index] ?? name) },
  }))
  const query = selectFrom(columns, node, aliasname, names)
  return { ...query, limitCount: whole(rows), limitOption: 'LIMIT_OPTION_COUNT' }
}
