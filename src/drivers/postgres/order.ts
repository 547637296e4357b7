// ORDER BY and DISTINCT ON, where a bare name means an output before it means a column. An output meant by name is
// printed by its place, so that the server cannot choose otherwise.
import { expression } from './expression.ts'
import type { Node } from './nodes.ts'
import { ambiguousOutput, refusedStatement } from './refusal.ts'
import type { Field, Level, Typed, Walk } from './scope.ts'
import { sortKey } from './windows.ts'

/**
 * ORDER BY of a SELECT; `outputs` with their confined expressions, or without where only outputs may be meant (UNION and
 * its kin, VALUES). Throws Refusal.
 */
export function sortBy(walk: Walk, level: Level, clause: readonly Node[], outputs: readonly Named[]): Node[] {
  walk.sorts = true
  return clause.map(({ SortBy: sort }) => {
    if (!sort?.node) throw refusedStatement('ORDER BY')
    return sortKey(walk, sort, outputOr(walk, level, sort.node, outputs))
  })
}

interface Named extends Field {
  readonly node?: Node
}

/** DISTINCT, or DISTINCT ON (…). Throws Refusal. */
export function distinctOn(walk: Walk, level: Level, clause: readonly Node[], outputs: readonly Named[]): Node[] {
  return clause.map((node) => (Object.keys(node).length === 0 ? {} : outputOr(walk, level, node, outputs).node))
}

/** The place of the output that a bare name means, or else the expression. */
function outputOr(walk: Walk, level: Level, node: Node, outputs: readonly Named[]): Typed {
  const ref = node.ColumnRef
  const name = ref?.fields?.length === 1 ? ref.fields[0]?.String?.sval : undefined
  const index = name === undefined ? -1 : outputs.findIndex((output) => output.name === name)
  const meant = outputs[index]
  if (!meant || name === undefined) return expression(walk, level, node)
  const text = JSON.stringify(meant.node)
  for (const other of outputs.slice(index + 1)) {
    if (other.name === name && JSON.stringify(other.node) !== text) throw ambiguousOutput(name, ref?.location)
  }
  return { node: { A_Const: { ival: { ival: index + 1 } } }, type: meant.type }
}
