// The last check of the guard: compares the parsed printed text with the confined tree, node by node. Only positions
// and empty lists are ignored, because each exception could hide a difference.

/** Keys of positions, which a confined tree does not have. */
export const PLACES: ReadonlySet<string> = new Set([
  'location',
  'list_start',
  'list_end',
  'rexpr_list_start',
  'rexpr_list_end',
  'name_location',
])

/** Stands for a token in the tree of a form (reparse-cache.ts). `index` is the index of the token. */
export class Slot {
  readonly index: number
  readonly isNegative: boolean
  readonly isNumber: boolean

  constructor(index: number, isNumber: boolean, isNegative: boolean) {
    this.index = index
    this.isNumber = isNumber
    this.isNegative = isNegative
  }

  holds(value: unknown, tokens: readonly string[]): boolean {
    const token = tokens[this.index] ?? ''
    if (!this.isNumber) return value === token
    return value === (this.isNegative ? -Number(token) : Number(token))
  }
}

/**
 * Returns whether the parse result is one SELECT that equals the confined one. `tokens` has the values of its slots.
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
    // The parser leaves out empty lists.
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
