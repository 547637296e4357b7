// ORDER BY and DISTINCT ON, where a bare name means an output before it means a column. An output meant by name is
// printed by its place, so that the server cannot choose otherwise.
import { expression } from './expression.ts'
import { notePlace } from './locate.ts'
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
  const places = new Map<string, number>()
  return clause.map(({ SortBy: sort }) => {
    if (!sort?.node) throw refusedStatement('ORDER BY')
    return sortKey(walk, sort, outputOr(walk, level, sort.node, outputs, places))
  })
}

interface Named extends Field {
  readonly node?: Node
}

/** DISTINCT, or DISTINCT ON (…). Throws Refusal. */
export function distinctOn(walk: Walk, level: Level, clause: readonly Node[], outputs: readonly Named[]): Node[] {
  const places = new Map<string, number>()
  return clause.map((node) => (Object.keys(node).length === 0 ? {} : outputOr(walk, level, node, outputs, places).node))
}

/** The place of the output that a bare name means, or else the expression. `places` are those found before. */
function outputOr(walk: Walk, level: Level, node: Node, outputs: readonly Named[], places: Map<string, number>): Typed {
  const ref = node.ColumnRef
  const name = ref?.fields?.length === 1 ? ref.fields[0]?.String?.sval : undefined
  if (name === undefined) return expression(walk, level, node)
  const index = places.get(name) ?? placeOf(name, outputs, ref?.location)
  places.set(name, index)
  const meant = outputs[index]
  if (!meant) return expression(walk, level, node)
  const place: Node = { A_Const: { ival: { ival: index + 1 } } }
  notePlace(walk.places, place, node)
  return { node: place, type: meant.type }
}

/** The first output of this name, -1 where there is none. Throws Refusal where another one of it says something else. */
function placeOf(name: string, outputs: readonly Named[], at: number | undefined): number {
  const index = outputs.findIndex((output) => output.name === name)
  if (index < 0) return index
  const text = JSON.stringify(outputs[index]?.node)
  for (const other of outputs.slice(index + 1)) {
    if (other.name === name && JSON.stringify(other.node) !== text) throw ambiguousOutput(name, at)
  }
  return index
}
