// Bounds the numbers that a query writes in short and reads from a text: 1e131000 has 8 bytes, and 131,001 digits when it
// is written out. 8,000 of them in one document took 3 GB. value-growth.ts counts the numbers of constants. Here, a text
// that the query makes fails when it is read as a document or as a list of numbers, if one of its numbers has an
// exponent of four digits or more. Stored values are read as they are.
import { words, type Node, type Struct } from '../allowed/allowed-nodes.ts'
import { call, cast, constant, onlyIf, operator } from '../node-builders.ts'
import type { SqlType, Typed } from '../walk/from-items.ts'
import type { Level, Walk } from '../walk/scope.ts'
import { type Bound } from './argument-bounds.ts'
import { collectedIn, measure, withCollected } from './collected-values.ts'

/** The name of the bound: see failure-hint.ts. */
const LONG_NUMBER = 'exponent'
const EXPONENT_MAX = 999

/** Matches a number with a larger exponent, and captures the exponent. The elements of a list may be quoted. */
const IN_DOCUMENT = longNumber('')
const IN_LIST = longNumber('"?')

function longNumber(quote: string): string {
  const before = String.raw`(?:^|[\s,:{(]|\[)${quote}`
  const after = String.raw`${quote}(?:$|[\s,:})]|\])`
  return String.raw`${before}[-+]?[0-9]*[.]?[0-9]*[eE][-+]?0*([1-9][0-9]{3,8})${after}`
}

/** Returns why a text may not become a value of a type. Null if it may. */
export function longNumberIn(text: string, type: SqlType): string | null {
  const isList = type.kind === 'array'
  const of = type.kind === 'array' ? type.of : type
  const isOfNumbers = of.kind === 'named' && (isList ? NUMBERS.test(of.name) : /^jsonb$|multirange$/.test(of.name))
  if (!isOfNumbers) return null
  const [, exponent] = new RegExp(isList ? IN_LIST : IN_DOCUMENT).exec(text) ?? []
  if (exponent === undefined) return null
  return `a number in it has the exponent ${exponent}; the limit is ${EXPONENT_MAX}`
}

/** Returns the operand of a cast, checked if the cast may read many numbers from a text that the query makes. */
export function readByCast(
  walk: Walk,
  level: Level,
  from: Typed,
  { names, arrayBounds = [] }: Struct<'TypeName'>,
  at: number | undefined,
): Typed {
  const [to = '', schema] = words(names).toReversed()
  const isArray = arrayBounds.length > 0 || to.startsWith('_')
  const isBuiltIn = schema === undefined || schema === 'pg_catalog'
  const readsMany = isBuiltIn
    ? to === 'jsonb' || to.endsWith('multirange') || (isArray && NUMBERS.test(to))
    : CONTAINERS.has(walk.exposed.type(schema, to)?.kind ?? '')
  if (!readsMany || !isMade(from)) return from
  return checked(walk, level, from, to === 'jsonb' && !isArray ? IN_DOCUMENT : IN_LIST, at)
}

const NUMBERS = /^_?(?:numeric|numrange|jsonb)$/
/** Kinds of types of users that may contain documents and lists of numbers. */
const CONTAINERS: ReadonlySet<string> = new Set(['array', 'composite', 'domain'])

/** Functions that read a value of type json, but no other value, as jsonb. */
const READS_JSON = /^(?:to_jsonb|jsonb_agg|jsonb_object_agg|jsonb_build_array|jsonb_build_object)/
/** Functions that read the numbers of a document as columns. */
const READS_RECORDS = /^json_(?:populate|to)_record/

/** Returns the arguments of a function, checked if it may read them as jsonb or as numbers. */
export function readByFunction(
  walk: Walk,
  level: Level,
  name: string,
  args: readonly Typed[],
  at: number | undefined,
): readonly Typed[] {
  if (!READS_JSON.test(name) && !READS_RECORDS.test(name)) return args
  return args.map((arg) => (isMade(arg) && mayBeJson(arg) ? checked(walk, level, arg, IN_DOCUMENT, at, true) : arg))
}

/** Returns a document that a function of SQL/JSON reads, checked if the query makes it. */
export function readAsJson(walk: Walk, level: Level, value: Typed, at: number | undefined): Typed {
  return isMade(value) ? checked(walk, level, value, IN_DOCUMENT, at) : value
}

/** Returns whether the query makes the value, from more than its constants. */
function isMade({ node, type }: Typed): boolean {
  if (type?.kind === 'named' && type.schema === 'pg_catalog' && type.name === 'jsonb') return false
  if (node.ParamRef) return true
  if (node.A_Const) return false
  if (node.ColumnRef ?? node.CollateClause) return collectedIn(node) > 0
  const [symbol = ''] = words(node.A_Expr?.name).slice(-1)
  return !PARTS.test(symbol) || collectedIn(node) > 0
}

/** Operators that return a part of a document. */
const PARTS = /^(?:->>?|#>>?)$/

function mayBeJson({ node, type }: Typed): boolean {
  if (type) return isJson(type)
  const { FuncCall: called } = node
  if (called) return /^(?:json_|(?:array_to|row_to|to)_json$)/.test(words(called.funcname).at(-1) ?? '')
  return !(node.A_Const ?? node.ParamRef ?? node.BoolExpr ?? node.NullTest)
}

function isJson(type: SqlType): boolean {
  return type.kind === 'array' ? isJson(type.of) : type.kind === 'row' || type.name === 'json'
}

/**
 * Returns the value, for which the printed text fails if a number in it is long. `onlyJson` says that a value of an
 * unknown type is read only if it is json. Throws Refusal.
 */
function checked(
  walk: Walk,
  level: Level,
  typed: Typed,
  pattern: string,
  at: number | undefined,
  onlyJson = false,
): Typed {
  const { node } = typed
  if (node.NamedArgExpr?.arg) {
    const arg = checked(walk, level, { node: node.NamedArgExpr.arg, type: typed.type }, pattern, at, onlyJson).node
    return { ...typed, node: withCollected({ NamedArgExpr: { ...node.NamedArgExpr, arg } }, collectedIn(node)) }
  }
  const boundOf = (value: Node): Bound => {
    const found = cast(call('substring', cast(value, 'text'), constant(pattern)), 'int4')
    const isRead = operator('=', cast(call('pg_typeof', value), 'text'), constant('json'))
    const size = onlyJson && typed.type === null ? onlyIf(isRead, found) : found
    return { what: LONG_NUMBER, size, most: EXPONENT_MAX }
  }
  return { ...typed, node: withCollected(measure(walk, level, node, boundOf, at), collectedIn(node)) }
}
