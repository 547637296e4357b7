// Arguments that are looked at for their value: counts that would be allocated at once.
import { COUNTED_ARGUMENT, COUNT_MAX } from './functions.ts'
import { type Node, type Struct } from './nodes.ts'
import { Refusal, type Refusal as Refused } from './refusal.ts'

/** Refuses repeat('x', 1e9) and its kin: the count must be a constant of at most COUNT_MAX. Throws Refusal. */
export function checkCounts(name: string, { args = [], location }: Struct<'FuncCall'>): void {
  if (name === 'format') checkWidths(args, location)
  const place = COUNTED_ARGUMENT.get(name)
  if (place === undefined) return
  if (args.some((arg) => arg.NamedArgExpr)) throw tooMuch(name, location)
  const count = args[place - 1]
  if (!count) return
  const size = name === 'array_fill' ? product(count) : whole(count)
  if (size === undefined || size > COUNT_MAX) throw tooMuch(name, count.A_Const?.location ?? location)
}

/** A constant whole number, also where it is cast or written as a text. */
function whole(node: Node): number | undefined {
  if (node.TypeCast?.arg && !node.TypeCast.typeName?.arrayBounds) return whole(node.TypeCast.arg)
  const value = node.A_Const
  if (!value) return undefined
  if (value.isnull) return 0
  if (value.ival) return value.ival.ival ?? 0
  const text = value.fval?.fval ?? value.sval?.sval
  const size = text === undefined || text.trim() === '' ? Number.NaN : Number(text.replaceAll('_', ''))
  return Number.isFinite(size) ? size : undefined
}

/** Elements of an array by its lengths: ARRAY[10, 20] or '{10,20}'. */
function product(node: Node): number | undefined {
  if (node.TypeCast?.arg) return product(node.TypeCast.arg)
  const text = node.A_Const?.sval?.sval
  const sizes = node.A_ArrayExpr
    ? (node.A_ArrayExpr.elements ?? []).map(whole)
    : text !== undefined && /^\s*\{[\s\d,]*\}\s*$/.test(text)
      ? (text.match(/\d+/g) ?? []).map(Number)
      : [undefined]
  let total: number | undefined = 1
  for (const size of sizes) total = size === undefined || total === undefined ? undefined : total * Math.max(size, 1)
  return total
}

/** A conversion of format(): its position, its width (digits, * or *2$), its letter. */
const CONVERSION = /%(?:%|(\d+)\$)?-?(?:(\d+)|(\*)(?:(\d+)\$)?)?([sIL])?/g

/** Widths of a constant format: in the text, or as an argument that must be a constant then. */
function checkWidths(args: readonly Node[], at: number | undefined): void {
  if (isParameter(args[0])) throw tooMuch('format', at, 'Write the format in the text.')
  const text = args[0]?.A_Const?.sval?.sval ?? ''
  let next = 1
  for (const [all, position, digits, star, starPosition] of text.matchAll(CONVERSION)) {
    if (all === '%%') continue
    if (star !== undefined) {
      const width = args[starPosition === undefined ? next : Number(starPosition)]
      const size = width && whole(width)
      if (size === undefined || Math.abs(size) > COUNT_MAX) throw tooMuch('format', at)
      if (starPosition === undefined) next += 1
    }
    if (Number(digits ?? 0) > COUNT_MAX) throw tooMuch('format', at)
    next = position === undefined ? next + 1 : Number(position) + 1
  }
}

/** A parameter is any text a caller likes, its widths too. */
function isParameter(node: Node | undefined): boolean {
  return node?.TypeCast?.arg ? isParameter(node.TypeCast.arg) : node?.ParamRef !== undefined
}

function tooMuch(
  name: string,
  at: number | undefined,
  hint = `Its count must be a constant of at most ${COUNT_MAX}.`,
): Refused {
  return new Refusal('limit', name, `function ${name}() is asked for too much at once`, hint, at)
}
