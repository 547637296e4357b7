// Maps a position in the printed text to the caller's text. The database reports the position of a parse node, so the printed
// text is parsed again and both trees are walked in parallel. This runs only for errors.
import type { Node, SelectStmt } from './allowed-nodes.ts'

/** A confined node → the byte offset of what it was made of. */
export type Places = Map<Node, number>

/** Notes where a confined node comes from; `from` is the node as it was parsed. */
export function notePlace(places: Places | null, confined: Node, from: Node): void {
  if (places === null) return
  const at = locationOf(from)
  if (at !== undefined) places.set(confined, at)
}

function locationOf(node: Node): number | undefined {
  for (const struct of Object.values(node)) {
    const at = property(struct, 'location')
    if (typeof at === 'number' && at >= 0) return at
  }
  return node.A_Indirection?.arg && locationOf(node.A_Indirection.arg)
}

/**
 * The byte offset in the caller's text for one in the printed text. Null where no node of the printed text begins right
 * there, or that node was not made of one place of the caller's text.
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
    // The innermost that begins there is met last.
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
