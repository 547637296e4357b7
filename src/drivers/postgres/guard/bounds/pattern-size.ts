// Limits the size of compiled regular expressions, and the memory of a match. PostgreSQL keeps the last 32 expressions
// of a session until the session ends, up to 50 MB each: nine queries of 260 bytes took 526 MB. A match keeps sets of
// states: 15,000 different letters took 3.6 GB. pattern-reader.ts computes both.
import type { PatternUse, RegexSyntax } from '../../confined-query.ts'
import { words, type Node, type SelectStmt } from '../allowed/allowed-nodes.ts'
import { mayBeText } from '../allowed/type-names.ts'
import { call, cast, constant, either, operator, selectFrom, whole } from '../node-builders.ts'
import { Refusal } from '../refusal.ts'
import type { Field, Typed } from '../walk/from-items.ts'
import { columnRef, distinctNames, newAlias, type Level, type Walk } from '../walk/scope.ts'
import { bytesAsText, literalText, patternsOf, unlessAny, wholeNumber } from './argument-bounds.ts'
import { measure, withCollected } from './collected-values.ts'
import { isStoredColumn } from './mark-runs.ts'
import { COUNT_MAX, LETTERS_MAX, readRegex, type Reading } from './pattern-reader.ts'

/** The maximum number of arcs. PostgreSQL keeps about 25 bytes for each. */
const ARCS_MAX = 100_000
/** The maximum number of bytes that a match may take. */
const MATCH_MAX = 134_217_728

/** The operators that take a regular expression on their right side. */
export const MATCHES = /^!?~\*?$/
/** The functions whose second argument is a regular expression. */
const TAKES_PATTERN = /^(?:regexp_\w+|substring)$/
/** Functions that return numbers, and are often an argument of substring(). */
const COUNTS = /^(?:\w*length|strpos|position|int[248])$/

/**
 * Returns the right operand of an operator in MATCHES. A constant pattern is checked at once, and a parameter when its
 * value is known. The printed text checks a pattern that the query makes. Throws Refusal.
 */
export function boundedRegex(walk: Walk, level: Level, left: Typed, right: Typed, at: number | undefined): Node {
  if (!mayBeText(walk.exposed, left.type)) return right.node
  return boundedOne(walk, level, right, at, {})
}

/** The parameters of regexp_*(), by their names in PostgreSQL 18. */
const PARAMETERS: ReadonlyMap<string, readonly string[]> = new Map([
  ['regexp_count', ['string', 'pattern', 'start', 'flags']],
  ['regexp_instr', ['string', 'pattern', 'start', 'N', 'endoption', 'flags', 'subexpr']],
  ['regexp_replace', ['string', 'pattern', 'replacement', 'start', 'N', 'flags']],
  ['regexp_substr', ['string', 'pattern', 'start', 'N', 'flags', 'subexpr']],
])
const MATCH_PARAMETERS = ['string', 'pattern', 'flags']

/**
 * Returns the arguments of regexp_*() in their places, without names, because the bounds read them by their places.
 * Throws Refusal.
 */
export function inPlaces(name: string, args: readonly Node[], at: number | undefined): readonly Node[] {
  if (!name.startsWith('regexp_') || args.every((arg) => !arg.NamedArgExpr)) return args
  const names = args.map((arg) => arg.NamedArgExpr?.name)
  const all = PARAMETERS.get(name) ?? MATCH_PARAMETERS
  const isShort = name === 'regexp_replace' && !names.includes('start') && args.length === 4
  const known = isShort ? [...all.slice(0, 3), 'flags'] : all
  const places = names.map((each, place) => (each === undefined ? place : known.indexOf(each)))
  const sorted = known.slice(0, args.length).map((_, place) => args[places.indexOf(place)])
  if (sorted.length < args.length || sorted.includes(undefined)) {
    const hint = `The parameters are, in this order: ${known.join(', ')}.`
    throw new Refusal('function', name, `${name}() has no such parameters`, hint, at)
  }
  return sorted.flatMap((arg) => arg?.NamedArgExpr?.arg ?? arg ?? [])
}

/** Returns the arguments of a function, with the same checks of its pattern. Throws Refusal. */
export function boundedRegexArguments(
  walk: Walk,
  level: Level,
  name: string,
  args: readonly Typed[],
  at: number | undefined,
): readonly Typed[] {
  const [text, pattern, third] = args
  if (!TAKES_PATTERN.test(name) || !text || !pattern) return args
  const isSubstring = name === 'substring'
  if (isSubstring && (!mayBeText(walk.exposed, text.type) || isNumber(pattern.node))) return args
  // substring(x SIMILAR 'pattern' ESCAPE '#') has its own escape character.
  const similar = third && !isNumber(third.node) ? escapeOf(third.node) : undefined
  const syntax = isSubstring
    ? { ...(similar !== undefined && { similar }) }
    : {
        flags: flagsOf(
          name,
          args.map((arg) => arg.node),
        ),
      }
  const node = boundedOne(walk, level, pattern, at, syntax)
  return args.map((arg, place) => (place === 1 ? { ...arg, node } : arg))
}

/** Returns the flags of a call, or null if only the database knows them. */
export function flagsOf(name: string, args: readonly Node[]): string | null {
  // The fourth argument of regexp_replace() may be the flags or the start.
  const place = name === 'regexp_replace' && args.length === 4 ? 3 : placeOfFlags(name)
  const flags = args[place]
  if (flags === undefined || wholeNumber(flags) !== undefined) return ''
  return literalText(flags.TypeCast?.arg ?? flags) ?? null
}

function placeOfFlags(name: string): number {
  return (PARAMETERS.get(name) ?? MATCH_PARAMETERS).indexOf('flags')
}

/** Returns the escape character of a SIMILAR TO pattern, or null if only the database knows it. */
function escapeOf(node: Node): string | null {
  return literalText(node.TypeCast?.arg ?? node) ?? null
}

/** Returns whether an argument of substring() is a number. */
function isNumber(node: Node): boolean {
  if (node.A_Const) return wholeNumber(node) !== undefined && node.A_Const.sval === undefined
  if (node.A_Expr) return /^[-+*/%]$/.test(words(node.A_Expr.name).at(-1) ?? '')
  const cast = words(node.TypeCast?.typeName?.names).at(-1)
  return COUNTS.test(cast ?? words(node.FuncCall?.funcname).at(-1) ?? '')
}

function boundedOne(walk: Walk, level: Level, typed: Typed, at: number | undefined, given: RegexSyntax): Node {
  const { node } = typed
  const { funcname, args: [similar, escape] = [] } = node.FuncCall ?? {}
  const isSimilar = words(funcname).at(-1) === 'similar_to_escape'
  const inner = isSimilar && similar ? similar : node
  const syntax = isSimilar ? { similar: escape ? escapeOf(escape) : '\\' } : given
  const texts = patternsOf(inner)
  if (texts) {
    for (const text of texts) checkRegex(text, syntax, at)
    return node
  }
  const param = paramIn(inner)
  const index = param === undefined ? undefined : walk.params.slots[param - 1]
  if (index !== undefined) {
    walk.params.patterns.set(JSON.stringify([index, syntax]), { at: index, syntax })
    return node
  }
  if (inner.A_ArrayExpr) {
    const elements = (inner.A_ArrayExpr.elements ?? []).map((each) =>
      boundedOne(walk, level, { node: each, type: null }, at, syntax),
    )
    const array: Node = { A_ArrayExpr: { ...inner.A_ArrayExpr, elements } }
    return inner === node ? array : node
  }
  if (!mayBeText(walk.exposed, typed.type) || inner.A_Const) return node
  // Callers cannot store a pattern, but each long stored text is one.
  if (typed.isStored === true || isPlain(inner)) {
    return unlessAny({ what: PATTERN, size: bytesAsText(node), most: STORED_MAX }, node, at)
  }
  return measure(
    walk,
    level,
    node,
    (value) => ({ what: PATTERN, size: roughSize(cast(value, 'text')), most: ARCS_MAX }),
    at,
  )
}

/** Throws Refusal if a constant is too large as a regular expression. */
export function checkRegex(text: string, syntax: RegexSyntax, at: number | undefined): void {
  const problem = problemOf(readRegex(text, syntax))
  if (problem) throw new Refusal('limit', 'regular expression', problem.why, problem.hint, at)
}

/** Returns whether the pattern is joined only from stored columns and short constants without counts. */
function isPlain(node: Node): boolean {
  if (node.ColumnRef) return isStoredColumn(node)
  if (node.TypeCast?.arg) return isPlain(node.TypeCast.arg)
  const text = literalText(node)
  if (text !== undefined) return text.length <= PLAIN_MAX && !text.includes('{')
  if (node.FuncCall)
    return words(node.FuncCall.funcname).at(-1) === 'concat' && (node.FuncCall.args ?? []).every(isPlain)
  const { name, lexpr, rexpr } = node.A_Expr ?? {}
  return words(name).at(-1) === '||' && lexpr !== undefined && rexpr !== undefined && isPlain(lexpr) && isPlain(rexpr)
}

const PLAIN_MAX = 64
/** The maximum number of bytes of a stored pattern: a match of 2,048 different letters takes up to 200 MB. */
const STORED_MAX = 4_096

/** Returns the query of ANY or ALL, with a check of each row, which is a pattern. Throws Refusal. */
export function boundedRegexRows(
  walk: Walk,
  level: Level,
  query: SelectStmt,
  outputs: readonly Field[],
  at: number | undefined,
): SelectStmt {
  const alias = newAlias(walk, 't', 'the patterns of ANY')
  const names = distinctNames(outputs.map(({ name }) => name))
  const targetList = outputs.map(({ type }, index): Node => {
    const name = names[index] ?? ''
    const node = withCollected(columnRef(alias, name), Infinity, [])
    return { ResTarget: { name, val: boundedOne(walk, level, { node, type }, at, {}) } }
  })
  return selectFrom(targetList, query, alias, names)
}

function paramIn(node: Node): number | undefined {
  const inner = node.TypeCast?.arg ?? node.CollateClause?.arg
  return inner ? paramIn(inner) : node.ParamRef?.number
}

/** The name of the bound in error messages (failure-hint.ts). */
const PATTERN = 'pattern'
/** Matches a group with a count. */
const GROUP_COUNT = '\\)(?:\\s|#[^\\n]*)*\\\\?\\{\\d'
/** Matches a pattern with eight counts, a group with a count of two digits, or two groups with counts. */
const MANY_COUNTS = `(?:\\{\\d.*){8}|${GROUP_COUNT}?\\d*,?\\d\\d|(?:${GROUP_COUNT}.*){2}`

/**
 * Returns the size of a pattern in arcs: its bytes times its quantifiers, groups and counts, or the memory of a match,
 * if it is more. A pattern of more letters or with many counts is too large.
 */
function roughSize(text: Node): Node {
  const bytes = bytesAsText(text)
  const without = (signs: string): Node => bytesAsText(call('translate', text, constant(signs), constant('')))
  // The greatest count has three digits, two or one.
  const matches = (pattern: string): Node => operator('~', text, constant(pattern))
  const most = either(
    matches('\\{\\d*,?\\d\\d\\d'),
    whole(COUNT_MAX),
    either(matches('\\{\\d*,?\\d\\d'), whole(99), whole(9)),
  )
  const counts = operator('*', operator('-', bytes, without('{')), most)
  const signs = operator('-', bytes, without('*?('))
  const arcs = operator('*', bytes, operator('+', operator('+', whole(1), signs), counts))
  const letters = cast(call('char_length', text), 'int8')
  const states = operator('+', letters, counts)
  // A letter that is not ASCII has more than one byte.
  const colors = least(letters, operator('-', operator('+', whole(128), bytes), letters))
  const set = operator('+', operator('*', whole(48), colors), operator('/', states, whole(4)))
  const match = operator('/', operator('*', states, set), whole(Math.ceil(MATCH_MAX / ARCS_MAX)))
  const size: Node = { MinMaxExpr: { op: 'IS_GREATEST', args: [arcs, match] } }
  const times = either(matches(GROUP_COUNT), whole(9), whole(1))
  const isLong: Node = {
    BoolExpr: { boolop: 'OR_EXPR', args: [operator('>', bytes, whole(LETTERS_MAX)), matches(MANY_COUNTS)] },
  }
  return either(isLong, cast(whole(2 * ARCS_MAX), 'int8'), operator('*', size, times))
}

function least(...args: readonly Node[]): Node {
  return { MinMaxExpr: { op: 'IS_LEAST', args } }
}

/** Returns for each parameter that is too large as a regular expression: its index, and why. */
export function largePatterns(
  uses: readonly PatternUse[],
  texts: readonly (string | null)[],
): readonly (readonly [number, string])[] {
  let steps = 0
  return uses.flatMap(({ at, syntax }) => {
    const text = texts[at] ?? ''
    // Each reading takes thread time, so the patterns of a request have a limit together.
    if (steps > STEPS_MAX) return [[at, TOGETHER]] as const
    const reading = readRegex(text, syntax)
    steps += reading.steps
    const why = largeParameter(text, reading)
    return why === null ? [] : ([[at, why]] as const)
  })
}

/** The maximum number of steps to read all patterns in parameters. */
const STEPS_MAX = 100_000
const TOGETHER = 'the regular expressions of the query are too large together'

function largeParameter(text: string, reading: Reading): string | null {
  const problem = problemOf(reading)
  if (problem) return `${problem.why}. ${problem.hint}`
  if (groupsIn(text) > GROUPS_MAX) return `the regular expression has more than ${GROUPS_MAX} groups`
  return reading.nested > NESTED_MAX ? `the regular expression nests more than ${NESTED_MAX} groups` : null
}

/** The maximum number of groups in the value of a parameter. */
export const GROUPS_MAX = 50
/** The maximum number of groups inside each other in the value of a parameter. */
export const NESTED_MAX = 10

/** Returns how many groups a regular expression has at most, in any syntax. */
export function groupsIn(text: string): number {
  return text.split(/\\\(|\((?!\?)/).length - 1
}

interface Problem {
  readonly why: string
  readonly hint: string
}

const TOO_LARGE: Problem = {
  why: `the regular expression compiles to more than ${ARCS_MAX} parts, which PostgreSQL keeps in memory`,
  hint: 'Use smaller counts, such as {1,20} instead of {1,255}, or * and +, and do not nest counts.',
}
const TOO_VARIED: Problem = {
  why: `a match of the regular expression may take more than ${MATCH_MAX} bytes: its length times its different letters is too large`,
  hint: 'Use a shorter expression, or one with fewer different letters.',
}

/** Returns why the expression is too large. */
function problemOf({ arcs, bytes }: Reading): Problem | undefined {
  if (arcs > ARCS_MAX) return TOO_LARGE
  return bytes > MATCH_MAX ? TOO_VARIED : undefined
}
