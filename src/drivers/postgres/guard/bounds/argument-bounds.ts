// Limits the size of function arguments, such as the count of repeat(text, count) or a string that a slow function
// searches. The guard checks a constant itself. If only the database knows the size, the guard prints CASE WHEN size >
// limit THEN (an expression that fails) ELSE argument END.
import { overBoundText } from '../../exceeded-bound-marker.ts'
import { COUNTED_ARGUMENT, COUNT_MAX, RETURNS_ROWS } from '../allowed/allowed-functions.ts'
import type { TypeName } from '../../captured-facts.ts'
import { word, words, type Node, type SelectStmt, type Struct } from '../allowed/allowed-nodes.ts'
import { call, cast, constant, either, onlyIf, operator, selectFrom, TRUE, whole } from '../node-builders.ts'
import { Refusal, type Refusal as Refused } from '../refusal.ts'
import { remembered } from './printed-size.ts'

/** The maximum number of bytes that repeat() may create. */
export const REPEATED_MAX = 262_144
/** The same if the query sorts or compares long texts that it makes. */
export const REPEATED_SORTED_MAX = 16_384
/** A constant count up to this needs no bound: the result is a few copies of stored data. */
export const FREE_COUNT = 16
/** The limit for a search: the bytes of one string times the bytes of the other. */
const SEARCHED_MAX = 536_870_912
/** A search takes less than a second if one of its strings is a constant of at most this many bytes. */
export const FREE_BYTES = 64
/** A LIKE pattern of at most this many bytes needs no bound: a search for 256 bytes in a megabyte took a second. */
export const FREE_PATTERN = 256
/** The limit in bytes for normalize(): 20,000 combining characters took 6 s, and no cancel ended it. */
const NORMALIZED_MAX = 4_096
/** The largest int4. PostgreSQL refuses this length (54000) before it allocates memory. */
export const REFUSED_COUNT = 2_147_483_647

/** Returns the arguments of a pg_catalog function, bounded if needed. Throws Refusal. */
export function boundedArguments(
  name: string,
  written: Struct<'FuncCall'>,
  args: readonly Node[],
  repeatedMax = REPEATED_MAX,
): readonly Node[] {
  const { location } = written
  if (name === 'format') checkWidths(written.args ?? [], location)
  if (name === 'array_fill') checkFill(written, location)
  if (name === 'polygon' && args.length === 2) checkPoints(args[0], location)
  if (args.some((arg) => arg.NamedArgExpr) && BOUNDED.has(name))
    throw tooMuch(name, location, 'Write the arguments by position, without names.')
  const [first, second] = args
  if (!first || !BOUNDED.has(name)) return args
  if (COUNTED_ARGUMENT.has(name))
    return second ? [first, counted(name, first, second, location, repeatedMax), ...args.slice(2)] : args
  if (NORMALIZES.has(name)) return [noLonger(name, first, NORMALIZED_MAX, location), ...args.slice(1)]
  if (!second) return args
  const [text, sought] = searched(name, first, second, location)
  return [text, sought, ...args.slice(2)]
}

const NORMALIZES: ReadonlySet<string> = new Set(['normalize', 'is_normalized'])
/** Functions whose time grows with the product of the lengths of two strings. Cancelling has no effect on them. */
export const SEARCHES: ReadonlySet<string> = new Set([
  ...['strpos', 'position', 'replace', 'split_part', 'string_to_array', 'string_to_table', 'translate'],
  ...['btrim', 'ltrim', 'rtrim'],
])
const BOUNDED: ReadonlySet<string> = new Set([...COUNTED_ARGUMENT.keys(), ...NORMALIZES, ...SEARCHES])

/** Bounds the count of repeat(), lpad() and rpad(). */
function counted(name: string, text: Node, count: Node, at: number | undefined, repeatedMax: number): Node {
  if (name === 'array_fill') return count
  const known = wholeNumber(count)
  if (known !== undefined && known > COUNT_MAX) throw tooMuch(name, at)
  const length = literalText(text)?.length
  if (name !== 'repeat')
    return known === undefined ? unless({ what: name, size: steady(count, name, at), most: COUNT_MAX }, count) : count
  if (known !== undefined && length !== undefined) {
    if (known * length > REPEATED_MAX)
      throw tooMuch(name, at, `The result must not be longer than ${REPEATED_MAX} bytes.`)
    return count
  }
  if (known !== undefined) {
    if (known <= FREE_COUNT) return count
    return unless({ what: name, size: octets(steady(text, name, at)), most: Math.floor(repeatedMax / known) }, count)
  }
  const most = length === undefined ? COUNT_MAX : Math.min(COUNT_MAX, Math.floor(repeatedMax / Math.max(length, 1)))
  const isMany = { what: name, size: steady(count, name, at), most }
  if (length !== undefined) return unless(isMany, count)
  const product = operator('*', cast(octets(steady(text, name, at)), 'int8'), count)
  return unless(isMany, unless({ what: name, size: product, most: repeatedMax }, count))
}

/** A size that only the database can compute, and its limit. */
export interface Bound {
  /** What is bounded: a function, LIKE, or a word such as `comparison` or `except`. */
  readonly what: string
  readonly size: Node
  readonly most: number
}

/**
 * Returns an expression that has the value of `count`, but fails if the size exceeds the limit. A NULL size never
 * fails. The failing branch must depend on the size: the planner evaluates a constant branch in advance, so every query
 * would fail.
 */
function unless(bound: Bound, count: Node): Node {
  const condition = isMore(bound)
  if (!givesRows([condition, count])) return either(condition, failure(bound), count)
  // PostgreSQL allows no set-returning function in CASE, OR and IS TRUE. The guard therefore prints (ARRAY[count,
  // 2147483647])[1 or 2]. If the size exceeds the limit, the index is 2, and the database refuses the count.
  const isTrue: Node = { A_Expr: { kind: 'AEXPR_NOT_DISTINCT', name: [word('=')], lexpr: condition, rexpr: TRUE } }
  const place = operator('+', whole(1), cast(isTrue, 'int4'))
  const counts: Node = { A_ArrayExpr: { elements: [count, whole(REFUSED_COUNT)] } }
  return { A_Indirection: { arg: counts, indirection: [{ A_Indices: { uidx: place } }] } }
}

/**
 * Returns an expression with the value of `text` that fails if the size exceeds the limit. If `type` is given, the
 * failing branch is cast to it.
 */
export function unlessText(bound: Bound, text: Node, type?: TypeName): Node {
  const condition = isMore(bound)
  if (givesRows(condition)) return call('repeat', text, unless(bound, whole(1)))
  const part = call('substring', text, whole(1), failure(bound))
  if (type === undefined) return either(condition, part, text)
  const typeName = { names: [word(type.schema), word(type.name)], typemod: -1 }
  return either(condition, { TypeCast: { arg: part, typeName } }, text)
}

/**
 * Returns an expression that has the value and type of `node`, but fails if the size exceeds the limit. Works for any
 * type, but not for a literal without a type. Throws Refusal for a set of rows.
 */
export function unlessAny(bound: Bound, node: Node, at: number | undefined): Node {
  if (givesRows([bound.size, node])) {
    const hint = 'Call the function that returns rows in FROM.'
    throw new Refusal('limit', bound.what, `the size of a set of rows cannot be bounded here`, hint, at)
  }
  const fails: Node = { NullTest: { arg: onlyIf(isMore(bound), failure(bound)), nulltesttype: 'IS_NOT_NULL' } }
  const limited = either(fails, { A_Const: { isnull: true } }, node)
  LIMITED.set(limited, limitOf(bound))
  return limited
}

/** Returns a cast that always fails. Its error message contains the bound and the size. */
export function failure(bound: Bound): Node {
  const { mark } = limitOf(bound)
  return cast(call('concat', mark, bound.size), 'int4')
}

/** Returns the condition that the size exceeds the limit. */
export function isMore(bound: Bound, size = bound.size): Node {
  return operator('>', size, limitOf(bound).number)
}

/**
 * The two printed constants of a bound: the number that the size is compared with, and the text of the error message.
 * lower() changes both, and must be called before they are printed.
 */
export interface PrintedLimit {
  readonly what: string
  readonly most: number
  readonly number: Node
  readonly mark: Node
  lower(most: number): void
}

const LIMITS = new WeakMap<Bound, PrintedLimit>()
const MARKS = new WeakMap<Node, PrintedLimit>()
const LIMITED = new WeakMap<Node, PrintedLimit>()

/** Returns the limit whose `mark` is this node. */
export function limitMarkedBy(node: Node | undefined): PrintedLimit | undefined {
  return node && MARKS.get(node)
}

/** Returns the limit on a value that unlessAny() built. */
export function limitOnValue(value: Node): PrintedLimit | undefined {
  return LIMITED.get(value)
}

function limitOf(bound: Bound): PrintedLimit {
  const { what, most } = bound
  const known = LIMITS.get(bound)
  if (known) return known
  const [ival, sval] = [{ ival: most }, { sval: overBoundText(what, most) }]
  const limit: PrintedLimit = {
    what,
    most,
    number: { A_Const: { ival } },
    mark: { A_Const: { sval } },
    lower: (lowered) => {
      ival.ival = Math.max(1, Math.min(lowered, most))
      sval.sval = overBoundText(what, ival.ival)
    },
  }
  LIMITS.set(bound, limit)
  MARKS.set(limit.mark, limit)
  return limit
}

/** Returns whether unless() built this count from the count 1. */
export function isOnce(count: Node | undefined): boolean {
  const [first, second] = count?.A_Indirection?.arg?.A_ArrayExpr?.elements ?? []
  return wholeNumber(first) === 1 && wholeNumber(second) === REFUSED_COUNT
}

/** Returns whether the value contains a set-returning call outside of sub-selects. */
export const givesRows = remembered((part) => {
  if ('SubLink' in part) return false
  return calls(part, RETURNS_ROWS)
})

/** Returns true if the part is a call of one of these functions, and undefined otherwise, as remembered() requires. */
function calls(part: object, names: { has(name: string): boolean }): true | undefined {
  if (!('funcname' in part) || !Array.isArray(part.funcname)) return undefined
  return names.has(words(part.funcname).at(-1) ?? '') ? true : undefined
}

/** Bounds the two strings of a search: the product of their lengths is at most SEARCHED_MAX. */
function searched(
  name: string,
  text: Node,
  sought: Node,
  at: number | undefined,
  type?: TypeName,
): readonly [Node, Node] {
  const [a, b] = [literalText(text)?.length, literalText(sought)?.length]
  if (b !== undefined && b <= FREE_BYTES) return [text, sought]
  if (a !== undefined && (b !== undefined || a <= FREE_BYTES)) return [text, sought]
  const size = b === undefined ? operator('*', bigOctets(text), bigOctets(sought)) : octets(text)
  const most = b === undefined ? SEARCHED_MAX : Math.floor(SEARCHED_MAX / b)
  const isLong = { what: name, size: steadily(size, [text, sought], name, at), most }
  // The planner evaluates constant expressions in advance, even in a branch that is never reached. So put the bound on
  // a string that varies, if there is one.
  if (varies(text) || !varies(sought)) return [unlessText(isLong, text, type), sought]
  return [text, unlessText(isLong, sought)]
}

/**
 * Returns the string and the pattern of LIKE with the bounds that they need. LIKE searches for the part of the pattern
 * behind its first % at every position of the string. `type` is the type of the string, unless it is text, varchar or
 * bytea. The bounded string keeps this type, because LIKE depends on it.
 */
export function boundedPattern(text: Node, pattern: Node, type?: TypeName): readonly [Node, Node] {
  const known = literalText(pattern)
  // If the pattern does not vary, the planner evaluates it in advance. Then bound only the pattern: an index on the
  // unchanged string can still be used.
  const isShort = (literalText(text)?.length ?? Infinity) <= FREE_BYTES
  if (known === undefined && !isShort && !varies(pattern)) return [text, shortPattern(pattern)]
  return known === undefined || soughtBytes(known) > FREE_PATTERN
    ? searched('LIKE', text, pattern, undefined, type)
    : [text, pattern]
}

function shortPattern(pattern: Node): Node {
  return unlessText({ what: 'LIKE', size: octets(steady(pattern, 'LIKE', undefined)), most: FREE_PATTERN }, pattern)
}

/** Limits each pattern of LIKE ANY (SELECT …) to FREE_PATTERN bytes. */
export function boundedPatterns(subselect: SelectStmt, aliasname: string): SelectStmt {
  const pattern: Node = { ColumnRef: { fields: [word(aliasname), word('pattern')] } }
  return selectFrom([{ ResTarget: { val: shortPattern(pattern) } }], subselect, aliasname, ['pattern'])
}

/** Limits the product of the length of a string and the length of all patterns of LIKE ANY or LIKE ALL. */
export function boundedText(text: Node, patterns: Node, type?: TypeName): Node {
  const known = patternsOf(patterns)
  const bytes = known?.reduce((sum, each) => sum + soughtBytes(each), 0)
  if (bytes !== undefined && bytes <= FREE_PATTERN) return text
  const isUntyped = patterns.ParamRef !== undefined || patterns.A_Const !== undefined
  const joined = call('array_to_string', isUntyped ? textArray(patterns) : patterns, constant(''))
  const size = operator('*', bigOctets(text), bytes === undefined ? bigOctets(joined) : whole(bytes))
  return unlessText(
    { what: 'LIKE', size: steadily(size, [text, patterns], 'LIKE', undefined), most: SEARCHED_MAX },
    text,
    type,
  )
}

/** Returns the patterns of ARRAY[…] if all are constants. An array literal is returned as one string. */
export function patternsOf(patterns: Node): readonly string[] | undefined {
  const { A_ArrayExpr: array } = patterns.TypeCast?.arg ?? patterns
  const written = array ? (array.elements ?? []) : [patterns.TypeCast?.arg ?? patterns]
  const known = written.flatMap((each) => literalText(each) ?? [])
  return known.length === written.length ? known : undefined
}

/** Returns how many bytes of a LIKE pattern are behind its first %. */
export function soughtBytes(pattern: string): number {
  const at = pattern.indexOf('%')
  return at < 0 ? 0 : Buffer.byteLength(pattern.slice(at + 1))
}

function noLonger(name: string, text: Node, most: number, at: number | undefined): Node {
  const literal = literalText(text)
  if (literal === undefined) return unlessText({ what: name, size: octets(steady(text, name, at)), most }, text)
  const bytes = Buffer.byteLength(literal)
  if (bytes > most) throw tooMuch(name, at, `The string has ${bytes} bytes; the limit is ${most}.`)
  return text
}

/** Bounds the count of polygon(count, circle), because a distance between polygons compares all their points. */
function checkPoints(count: Node | undefined, at: number | undefined): void {
  const known = wholeNumber(count)
  if (known === undefined || known > POINTS_MAX)
    throw tooMuch('polygon', at, `The count must be a constant of at most ${POINTS_MAX}.`)
}

const POINTS_MAX = 1_000

/** Returns whether the planner cannot evaluate the value in advance: it differs by row or comes from a sub-select. */
export const varies = remembered((part) => ('ColumnRef' in part || 'SubLink' in part ? true : undefined))
/** Returns whether the value contains a parameter. */
export const hasParam = remembered((part) => ('ParamRef' in part ? true : undefined))

/** Functions that return another value at each call. A CASE would check one value and return the next. */
const UNSTEADY: ReadonlySet<string> = new Set([
  ...['random', 'random_normal', 'clock_timestamp', 'timeofday', 'gen_random_uuid', 'uuidv4', 'uuidv7'],
  ...['array_sample', 'array_shuffle'],
])

function steady(node: Node, name: string, at: number | undefined): Node {
  return steadily(node, [node], name, at)
}

/** Returns `made`. Throws Refusal if a node of `of` may have another value each time it is evaluated. */
export function steadily(made: Node, of: readonly Node[], name: string, at: number | undefined): Node {
  if (of.some(isUnsteady)) throw tooMuch(name, at, 'The size must not depend on random() or the clock.')
  return made
}

/** Returns whether the node may have another value each time it is evaluated. */
export const isUnsteady = remembered((part) => calls(part, UNSTEADY))

export const octets = (text: Node): Node => call('octet_length', text)
/** The bytes of a value of any type after a cast to text. */
export const bytesAsText = (node: Node): Node => bigOctets(cast(node, 'text'))
/** The size as int8, because a product of two sizes may exceed int4. */
const bigOctets = (text: Node): Node => cast(octets(text), 'int8')

function textArray(arg: Node): Node {
  const typeName = { names: [word('pg_catalog'), word('text')], typemod: -1, arrayBounds: [{ Integer: { ival: -1 } }] }
  return { TypeCast: { arg, typeName } }
}

function checkFill({ args = [] }: Struct<'FuncCall'>, at: number | undefined): void {
  const count = args[1]
  if (args.some((arg) => arg.NamedArgExpr)) throw tooMuch('array_fill', at)
  if (!count) return
  const size = elementCount(count)
  if (size === undefined || size > COUNT_MAX) throw tooMuch('array_fill', count.A_Const?.location ?? at)
}

/**
 * Returns the text of a constant: a string, a bit string, or a number that is no int4. A cast to a text type is
 * skipped. Returns undefined for other expressions, and for constants that are longer as text than they are written:
 * 1e100, X'FF'.
 */
export function literalText(node: Node): string | undefined {
  if (node.TypeCast?.arg) {
    const { names, typmods = [], arrayBounds = [] } = node.TypeCast.typeName ?? {}
    const isKept = typmods.length === 0 && arrayBounds.length === 0 && isTextType(words(names).at(-1) ?? '')
    return isKept ? literalText(node.TypeCast.arg) : undefined
  }
  if (node.CollateClause?.arg) return literalText(node.CollateClause.arg)
  const value = node.A_Const
  if (!value) return undefined
  const [number, bits] = [value.fval?.fval, value.bsval?.bsval]
  if (number !== undefined) return /[eExX_]/.test(number) ? undefined : number
  if (bits !== undefined) return bits.startsWith('b') ? bits : undefined
  return value.sval?.sval ?? (value.sval ? '' : undefined)
}

function isTextType(name: string): boolean {
  return name === 'text' || name === 'varchar' || name === 'bpchar'
}

/** Returns the value of a constant number, also one that is cast or written as a string. NULL counts as 0. */
export function wholeNumber(node: Node | undefined): number | undefined {
  if (node === undefined) return undefined
  if (node.TypeCast?.arg && !node.TypeCast.typeName?.arrayBounds) return wholeNumber(node.TypeCast.arg)
  const value = node.A_Const
  if (!value) return undefined
  if (value.isnull) return 0
  if (value.ival) return value.ival.ival ?? 0
  const text = value.fval?.fval ?? value.sval?.sval
  const size = text === undefined || text.trim() === '' ? Number.NaN : Number(text.replaceAll('_', ''))
  return Number.isFinite(size) ? size : undefined
}

/** Returns how many elements array_fill() creates, from its constant lengths: ARRAY[10, 20] or '{10,20}'. */
export function elementCount(node: Node): number | undefined {
  if (node.TypeCast?.arg) return elementCount(node.TypeCast.arg)
  const text = node.A_Const?.sval?.sval
  const sizes = node.A_ArrayExpr
    ? (node.A_ArrayExpr.elements ?? []).map(wholeNumber)
    : text !== undefined && /^\s*\{[\s\d,]*\}\s*$/.test(text)
      ? (text.match(/\d+/g) ?? []).map(Number)
      : [undefined]
  let total: number | undefined = 1
  for (const size of sizes) total = size === undefined || total === undefined ? undefined : total * Math.max(size, 1)
  return total
}

/** A conversion of format(): its position, its width (digits, * or *2$), its letter. */
const CONVERSION = /%(?:%|(\d+)\$)?-?(?:(\d+)|(\*)(?:(\d+)\$)?)?([sIL])?/g

/** The limit on conversions. Each of them may print the same long argument. */
const CONVERSIONS_MAX = 64

/** Checks the widths of format(): '%5s' has one, and '%*s' takes it from an argument, which must be a constant. */
function checkWidths(args: readonly Node[], at: number | undefined): void {
  if (isParameter(args[0])) throw tooMuch('format', at, 'Write the format as a literal, not as a parameter.')
  const text = args[0]?.A_Const?.sval?.sval ?? ''
  let next = 1
  const conversions = text.match(/%[^%]/g)?.length ?? 0
  if (conversions > CONVERSIONS_MAX) {
    throw tooMuch('format', at, `The format has ${conversions} conversions; the limit is ${CONVERSIONS_MAX}.`)
  }
  for (const [all, position, digits, star, starPosition] of text.matchAll(CONVERSION)) {
    if (all === '%%') continue
    if (star !== undefined) {
      const width = args[starPosition === undefined ? next : Number(starPosition)]
      const size = width && wholeNumber(width)
      if (size === undefined || Math.abs(size) > COUNT_MAX) throw tooMuch('format', at)
      if (starPosition === undefined) next += 1
    }
    if (Number(digits ?? 0) > COUNT_MAX) throw tooMuch('format', at)
    next = position === undefined ? next + 1 : Number(position) + 1
  }
}

/** Returns whether the node is a parameter. Its value may contain any width. */
function isParameter(node: Node | undefined): boolean {
  return node?.TypeCast?.arg ? isParameter(node.TypeCast.arg) : node?.ParamRef !== undefined
}

function tooMuch(
  name: string,
  at: number | undefined,
  hint = `The count must be a constant of at most ${COUNT_MAX}.`,
): Refused {
  return new Refusal('limit', name, `function ${name}() exceeds a size limit`, hint, at)
}
