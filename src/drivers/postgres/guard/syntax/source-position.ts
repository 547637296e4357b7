// Maps the position of an error from the printed text to the caller's text. It walks through the tree of the printed
// text and the confined tree at the same time.
import type { Node, SelectStmt } from '../allowed/allowed-nodes.ts'

/** For each confined node, the byte offset in the caller's text of the node that it is made from. */
export type Places = Map<Node, number>

/** `from` is the parsed node that the confined node is made from. */
export function notePlace(places: Places | null, confined: Node, from: Node): void {
  if (places === null) return
  const at = locationOf(from)
  if (at !== undefined) places.set(confined, at)
}

/** Returns where a parsed node begins, as a byte offset in the caller's text. */
export function locationOf(node: Node): number | undefined {
  for (const struct of Object.values(node)) {
    const at = property(struct, 'location')
    if (typeof at === 'number' && at >= 0) return at
  }
  return node.A_Indirection?.arg && locationOf(node.A_Indirection.arg)
}

/**
 * Maps a byte offset in the printed text to the caller's text. Returns null if no printed node begins there, or if
 * neither this node nor an outer one has a known place.
 */
export function sourceOf(confined: SelectStmt, printed: unknown, places: Places, offset: number): number | null {
  const stmts = property(printed, 'stmts')
  const stmt = property(Array.isArray(stmts) ? stmts[0] : undefined, 'stmt')
  let found: number | null = null
  const walk = (ours: unknown, theirs: unknown, around: number | null): void => {
    if (Array.isArray(ours)) {
      for (const [index, item] of ours.entries()) walk(item, Array.isArray(theirs) ? theirs[index] : undefined, around)
      return
    }
    if (!isObject(ours)) return
    const place = places.get(ours) ?? around
    // Of nodes that begin at the same offset, the innermost is visited last.
    if (property(theirs, 'location') === offset) found = place
    for (const key in ours) walk(ours[key], property(theirs, key), place)
  }
  walk({ SelectStmt: confined }, stmt, null)
  return found
}

function isObject(value: unknown): value is Record<string, unknown> & Node {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function property(value: unknown, key: string): unknown {
  return isObject(value) ? value[key] : undefined
}
