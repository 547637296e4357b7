// Windows and the sort keys of aggregates and windows, where a name means a column and never an output.
import { expression, optional } from './expression.ts'
import { words, type Node, type Struct } from './nodes.ts'
import { operatorName } from './operators.ts'
import { refusedStatement } from './refusal.ts'
import type { Level, Typed, Walk } from './scope.ts'

/** Sort keys whose expressions are plain ones. Throws Refusal. */
export function sortKeys(walk: Walk, level: Level, keys: readonly Node[]): Node[] {
  walk.sorts = true
  return keys.map((key) => {
    const sort = key.SortBy
    if (!sort?.node) throw refusedStatement('ORDER BY')
    return sortKey(walk, sort, expression(walk, level, sort.node))
  })
}

/** A sort key around its confined expression. */
export function sortKey(walk: Walk, sort: Struct<'SortBy'>, { node, type }: Typed): Node {
  const { sortby_dir = '', sortby_nulls = '', useOp, location } = sort
  return {
    SortBy: {
      node,
      sortby_dir,
      sortby_nulls,
      ...(useOp && { useOp: operatorName(walk, words(useOp), [type, type], location) }),
    },
  }
}

/** OVER (…), OVER name, or one of WINDOW. Throws Refusal. */
export function window(walk: Walk, level: Level, def: Struct<'WindowDef'>): Struct<'WindowDef'> {
  const partition = def.partitionClause?.map((node) => expression(walk, level, node).node)
  walk.sorts = true
  return {
    ...(def.name !== undefined && { name: def.name }),
    ...(def.refname !== undefined && { refname: def.refname }),
    ...(partition && { partitionClause: partition }),
    ...(def.orderClause && { orderClause: sortKeys(walk, level, def.orderClause) }),
    frameOptions: def.frameOptions ?? 0,
    ...optional(walk, level, 'startOffset', def.startOffset),
    ...optional(walk, level, 'endOffset', def.endOffset),
  }
}
