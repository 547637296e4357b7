// Limits numbers that are short as text and long in memory: 1e131000 has 8 bytes, and 131,001 digits when it is written
// out. 8,000 of them in one document took 3 GB. If a query makes a text and reads it as a document or as a list of
// numbers, the guard prints a check that no number has an exponent of four digits or more. Stored values are not
// checked. value-growth.ts counts the numbers of constants.
import { words, type Node, type Struct } from '../allowed/allowed-nodes.ts'
import { call, cast, constant, onlyIf, operator } from '../node-builders.ts'
import type { SqlType, Typed } from '../walk/from-items.ts'
import type { Level, Walk } from '../walk/scope.ts'
import { type Bound } from './argument-bounds.ts'
import { collectedIn, measure, withCollected } from './collected-values.ts'

/** The name of the bound in error messages (failure-hint.ts). */
const LONG_NUMBER = 'exponent'
const EXPONENT_MAX = 999

/** Characters that PostgreSQL may remove from an element of a list. */
const REMOVED = '"\\_'
const BEFORE = String.raw`(?:^|[\s,:{(]|\[)`
const AFTER = String.raw`(?:$|[\s,:})]|\])`
/** Matches a number of a document whose exponent exceeds EXPONENT_MAX, and captures the exponent. */
const IN_DOCUMENT = String.raw`${BEFORE}[-+]?(?:[0-9]+(?:[.][0-9]*)?|[.][0-9]+)[eE][-+]?0*([1-9][0-9]{3,8})${AFTER}`
/**
 * The same for a list. PostgreSQL removes quotes and backslashes from its elements, also within a number, and since
 * version 16 accepts an underscore between digits. No two neighbouring repetitions share a character, so that the time
 * is linear.
 */
const IN_LIST = String.raw`${BEFORE}["\\+-]*[0-9.][0-9._"\\]*[eE]["\\+0_-]*([1-9](?:["\\_]*[0-9]){3,8})["\\]*${AFTER}`

/** Returns why the value of a parameter may not have this type, or null. */
export function longNumberIn(text: string, type: SqlType): string | null {
  const isList = type.kind === 'array'
  const of = type.kind === 'array' ? type.of : type
  const isOfNumbers = of.kind === 'named' && (isList ? NUMBERS.test(of.name) : /^jsonb$|multirange$/.test(of.name))
  if (!isOfNumbers) return null
  const pattern = isList || of.name !== 'jsonb' ? IN_LIST : IN_DOCUMENT
  const [, exponent] = new RegExp(pattern).exec(text) ?? []
  if (exponent === undefined) return null
  return `a number in it has the exponent ${exponent.replace(/["\\_]/g, '')}; the limit is ${EXPONENT_MAX}`
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
  if (!readsMany || !isMade(from) || hasNumbers(from)) return from
  return checked(walk, level, from, to === 'jsonb' && !isArray ? IN_DOCUMENT : IN_LIST, at)
}

const NUMBERS = /^_?(?:numeric|numrange|jsonb)$/
const NUMBER = /^(?:int[248]|float[48]|numeric)$/

/** Returns whether the value is an array of numbers, and no text of one. */
function hasNumbers({ node, type }: Typed): boolean {
  if (type)
    return (
      type.kind === 'array' && type.of.kind === 'named' && type.of.schema === 'pg_catalog' && NUMBER.test(type.of.name)
    )
  return node.A_ArrayExpr?.elements?.every(isNumber) ?? false
}

function isNumber(node: Node): boolean {
  const { A_Const: value, A_ArrayExpr: array } = node
  return array ? (array.elements ?? []).every(isNumber) : (value?.ival ?? value?.fval) !== undefined
}

/** Kinds of user-defined types that may contain documents or lists of numbers. */
const CONTAINERS: ReadonlySet<string> = new Set(['array', 'composite', 'domain'])

/** Functions that convert arguments of type json to jsonb. */
const READS_JSON = /^(?:to_jsonb|jsonb_agg|jsonb_object_agg|jsonb_build_array|jsonb_build_object)/
/** Functions that convert the numbers of a document to columns. */
const READS_RECORDS = /^json_(?:populate|to)_record/

/** Returns the arguments of a function, checked if it may read numbers from them. */
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

/** Returns the document that a function of SQL/JSON reads, checked if the query makes it. */
export function readAsJson(walk: Walk, level: Level, value: Typed, at: number | undefined): Typed {
  return isMade(value) ? checked(walk, level, value, IN_DOCUMENT, at) : value
}

/** Returns whether the query makes the value. Stored values, their parts, and constants do not count. */
function isMade({ node, type }: Typed): boolean {
  if (type?.kind === 'named' && type.schema === 'pg_catalog' && type.name === 'jsonb') return false
  if (node.ParamRef) return true
  // Inside a sub-select, an empty array would have no type.
  if (node.A_Const ?? (node.A_ArrayExpr && !node.A_ArrayExpr.elements?.length)) return false
  if (node.ColumnRef ?? node.CollateClause) return collectedIn(node) > 0
  const [symbol = ''] = words(node.A_Expr?.name).slice(-1)
  return !PARTS.test(symbol) || collectedIn(node) > 0
}

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
 * Returns the value with a check for long numbers: with `onlyJson`, only if it turns out to be json. Throws Refusal.
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
    const exponent = call('substring', cast(value, 'text'), constant(pattern))
    const digits = pattern === IN_LIST ? call('translate', exponent, constant(REMOVED), constant('')) : exponent
    const found = cast(digits, 'int4')
    const isRead = operator('=', cast(call('pg_typeof', value), 'text'), constant('json'))
    const size = onlyJson && typed.type === null ? onlyIf(isRead, found) : found
    return { what: LONG_NUMBER, size, most: EXPONENT_MAX }
  }
  return { ...typed, node: withCollected(measure(walk, level, node, boundOf, at), collectedIn(node)) }
}
