// Compares the printed text, parsed again, with the confined tree, node for node. This is the guard's last check. Only
// positions and empty lists are ignored, because each exception could let a difference through.

/** Keys with positions, which a confined tree does not have. */
export const PLACES: ReadonlySet<string> = new Set([
  'location',
  'list_start',
  'list_end',
  'rexpr_list_start',
  'rexpr_list_end',
  'name_location',
])

/**
 * A gap in the tree of a form (reparse-cache.ts): the index of the token that belongs there, and how the token is read.
 */
export class Slot {
  readonly index: number
  readonly isNegative: boolean
  readonly isNumber: boolean

  constructor(index: number, isNumber: boolean, isNegative: boolean) {
    this.index = index
    this.isNumber = isNumber
    this.isNegative = isNegative
  }

  /** Returns whether this value of a confined tree equals the token. */
  holds(value: unknown, tokens: readonly string[]): boolean {
    const token = tokens[this.index] ?? ''
    if (!this.isNumber) return value === token
    return value === (this.isNegative ? -Number(token) : Number(token))
  }
}

/**
 * Returns whether a parse result is one SELECT that equals the confined one. `tokens` are the values of the parse
 * result's slots (reparse-cache.ts).
 */
export function isSameTree(parsed: unknown, confined: object, tokens: readonly string[] = []): boolean {
  const stmts = held(parsed, 'stmts')
  if (!Array.isArray(stmts) || stmts.length !== 1) return false
  return isSame(held(stmts[0], 'stmt'), { SelectStmt: confined }, tokens)
}

function isSame(parsed: unknown, confined: unknown, tokens: readonly string[]): boolean {
  if (Array.isArray(confined)) {
    return (
      Array.isArray(parsed) &&
      parsed.length === confined.length &&
      confined.every((item, index) => isSame(parsed[index], item, tokens))
    )
  }
  if (!isObject(confined)) return parsed instanceof Slot ? parsed.holds(confined, tokens) : parsed === confined
  if (!isObject(parsed) || Array.isArray(parsed)) return false
  let count = 0
  for (const key in confined) {
    const item = confined[key]
    // The parser omits an empty list.
    if (item === undefined || (Array.isArray(item) && item.length === 0)) continue
    count += 1
    if (PLACES.has(key) || !isSame(parsed[key], item, tokens)) return false
  }
  for (const key in parsed) if (!PLACES.has(key)) count -= 1
  return count === 0
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

function held(value: unknown, key: string): unknown {
  return isObject(value) ? value[key] : undefined
}
