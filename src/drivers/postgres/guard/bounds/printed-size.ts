// Limits the number of expressions in the query that the guard prints. A bound on an argument prints the argument
// several times, so nested calls multiply: a text of 205 bytes blocked the main thread for 82 s. The confined tree
// stores such an argument once and refers to it several times, so the guard can count before it prints. PostgreSQL
// multiplies too: it copies an expression of a sub-select to each place that reads its column. Ten levels of 38 bytes
// took 2.9 GB, and no timeout ended them. These copies count too.
import type { Node, Struct } from '../allowed/allowed-nodes.ts'
import { Refusal } from '../refusal.ts'
import { TooMuchHere, type Walk } from '../walk/scope.ts'

/** The nodes in each part of a confined tree, except columns that are added to a table later: spend() counts these. */
const SIZES = new WeakMap<object, number>()

/** The expressions that a reference to columns stands for. */
const MADE = new WeakMap<object, readonly Node[]>()

/** Smaller parts are counted again each time, which takes less time than to remember them. */
const SMALL = 16

/** Returns how many nodes are printed for a part of a confined tree. A part that is used twice counts twice. */
function printedNodes(part: object): number {
  const known = SIZES.get(part)
  if (known !== undefined) return known
  const own = isOperator(part) ? copiedNodes(part) : 0
  const size = Object.entries(part).reduce((sum, [key, value]: [string, unknown]) => {
    // The tag of a node is a key that starts with a capital letter.
    const tag = key < 'a' && key >= 'A' && key !== 'String' ? 1 : 0
    return sum + tag + (typeof value === 'object' && value !== null ? printedNodes(value) : 0)
  }, own)
  if (size > SMALL) SIZES.set(part, size)
  return size
}

interface Operator {
  readonly A_Expr: Struct<'A_Expr'>
}

function isOperator(part: object): part is Operator {
  return 'A_Expr' in part
}

/** Returns how many nodes PostgreSQL adds when it rewrites an operator. */
function copiedNodes({ A_Expr: expr }: Operator): number {
  const { left, right } = copiedSides(expr)
  const nodes = (times: number, side: Node | undefined): number => (times > 0 && side ? times * printedNodes(side) : 0)
  return nodes(left, expr.lexpr) + nodes(right, expr.rexpr)
}

/**
 * Returns how many additional copies PostgreSQL makes of each side of an operator. It rewrites `a BETWEEN b AND c` to
 * `a >= b AND a <= c`, BETWEEN SYMMETRIC to two of these, and `a IN (b, c)` to `a = b OR a = c` if b and c are columns.
 * Ten nested levels of 31 bytes took 1.6 GB, and no cancel ended them.
 */
export function copiedSides({ kind = '', rexpr }: Struct<'A_Expr'>): { left: number; right: number } {
  if (!rexpr?.List) return { left: 0, right: 0 }
  if (kind.endsWith('BETWEEN_SYM')) return { left: 3, right: 1 }
  if (kind.endsWith('BETWEEN')) return { left: 1, right: 0 }
  return { left: (rexpr.List.items ?? []).filter((item) => !isConstant(item)).length, right: 0 }
}

export function isConstant({ A_Const: value, ParamRef: param, TypeCast: cast }: Node): boolean {
  return value !== undefined || param !== undefined || (cast?.arg !== undefined && isConstant(cast.arg))
}

/** Counts a reference to columns like the expressions behind the columns, because PostgreSQL may copy these here. */
export function readsMade(reference: Node, made: readonly Node[] | undefined): Node {
  if (made === undefined) return reference
  SIZES.set(reference, printedNodes(made) + 1)
  MADE.set(reference, made)
  return reference
}

/** Returns the expressions behind a reference to columns, or undefined if there are none. */
export function madeBehind(reference: object): readonly Node[] | undefined {
  return MADE.get(reference)
}

/** Counts a confined expression, printed after `before` other nodes. Throws Refusal if the text becomes too large. */
export function countPrinted(walk: Walk, before: number, node: object, at: number | undefined): void {
  walk.printed = before + printedNodes(node)
  if (walk.printed <= walk.printedMax) return
  if (walk.isHere) throw new TooMuchHere()
  const why = `the query becomes ${walk.printed} expressions, because PostgreSQL repeats the expression of a column in each place that reads it, and the guard repeats each argument whose size it checks; the limit is ${walk.printedMax}`
  throw new Refusal('limit', 'length', why, HINT, at)
}

const HINT =
  'Compute the inner value of nested calls once: WITH v AS MATERIALIZED (SELECT replace(a, b, c) AS x FROM t) SELECT replace(x, d, e) FROM v.'

/** Returns a function that tells whether the test holds for any part of a tree. Each part is tested once. */
export function remembered(test: (part: object) => boolean | undefined): (value: unknown) => boolean {
  const known = new WeakMap<object, boolean>()
  let visited = 0
  const holds = (value: unknown): boolean => {
    if (typeof value !== 'object' || value === null) return false
    const before = known.get(value)
    if (before !== undefined) return before
    const first = visited++
    const found = test(value) ?? Object.values(value).some(holds)
    if (visited - first > SMALL) known.set(value, found)
    return found
  }
  return holds
}
