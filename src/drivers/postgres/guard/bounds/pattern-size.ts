// Limits the size of compiled regular expressions. PostgreSQL keeps the last 32 of a session until the session ends, up
// to 50 MB each: nine queries of 260 bytes took 526 MB. This file counts the arcs of the automaton that PostgreSQL
// compiles. A count {m,n} repeats its part n times. A class has an arc for each letter that the expression
// distinguishes. A part that may be empty connects what is before it with what is behind it.
import { words, type Node, type SelectStmt } from '../allowed/allowed-nodes.ts'
import { mayBeText } from '../allowed/type-names.ts'
import { call, cast, constant, either, operator, selectFrom, whole } from '../node-builders.ts'
import { Refusal } from '../refusal.ts'
import type { Field, Typed } from '../walk/from-items.ts'
import { columnRef, distinctNames, newAlias, type Level, type Walk } from '../walk/scope.ts'
import { bytesAsText, literalText, patternsOf, wholeNumber } from './argument-bounds.ts'
import { measure, withCollected } from './collected-values.ts'
import { isStoredColumn } from './mark-runs.ts'

/** The maximum number of arcs. PostgreSQL keeps about 25 bytes for each. */
const ARCS_MAX = 100_000
/** PostgreSQL allows no larger count. */
const COUNT_MAX = 255
const DEPTH_MAX = 100
const COPIES_MAX = 20_000
/** A state takes as much memory as this many arcs. */
const STATE_ARCS = 4

/** A part of an expression. */
interface Part {
  /** Arcs to states inside the part. */
  readonly inner: number
  /** Arcs to the end of the part. */
  readonly last: number
  /** States at which a match of the part can begin. */
  readonly entries: number
  readonly mayBeEmpty: boolean
  /** Arcs of additional automata, which PostgreSQL keeps for groups and lookarounds. */
  readonly kept: number
  /** True for groups, references, lookarounds and lazy repetitions. PostgreSQL matches them with their own automata. */
  readonly isApart: boolean
}

const EMPTY: Part = { inner: 0, last: 0, entries: 0, mayBeEmpty: true, kept: 0, isApart: false }
const POSITION: Part = { ...EMPTY, last: 1, entries: 1 }

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
  return boundedOne(walk, level, right, at, '')
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
  const flags = args.slice(2).map(({ node }) => /^[a-z]{1,8}$/.exec(literalText(node) ?? '')?.[0] ?? '')
  if (name === 'substring') {
    if (!mayBeText(walk.exposed, text.type) || isNumber(pattern.node)) return args
    // substring(x SIMILAR 'pattern' ESCAPE '#') has its own escape character.
    const escape = third && !isNumber(third.node) ? 'b' : ''
    const node = boundedOne(walk, level, pattern, at, escape)
    return args.map((arg, place) => (place === 1 ? { ...arg, node } : arg))
  }
  const node = boundedOne(walk, level, pattern, at, flags.join(''))
  return args.map((arg, place) => (place === 1 ? { ...arg, node } : arg))
}

/** Returns whether an argument of substring() is a number. */
function isNumber(node: Node): boolean {
  if (node.A_Const) return wholeNumber(node) !== undefined && node.A_Const.sval === undefined
  if (node.A_Expr) return /^[-+*/%]$/.test(words(node.A_Expr.name).at(-1) ?? '')
  const cast = words(node.TypeCast?.typeName?.names).at(-1)
  return COUNTS.test(cast ?? words(node.FuncCall?.funcname).at(-1) ?? '')
}

function boundedOne(walk: Walk, level: Level, typed: Typed, at: number | undefined, options: string): Node {
  const { node } = typed
  const { funcname, args: [similar] = [] } = node.FuncCall ?? {}
  const isSimilar = words(funcname).at(-1) === 'similar_to_escape'
  const inner = isSimilar && similar ? similar : node
  const texts = patternsOf(inner)
  if (texts) {
    if (texts.some((text) => arcsOf(text, { isSimilar, options }) > ARCS_MAX)) throw tooLarge(at)
    return node
  }
  const param = paramIn(inner)
  const index = param === undefined ? undefined : walk.params.slots[param - 1]
  if (index !== undefined) {
    walk.params.patterns.add(index)
    return node
  }
  if (inner.A_ArrayExpr) {
    const elements = (inner.A_ArrayExpr.elements ?? []).map((each) =>
      boundedOne(walk, level, { node: each, type: null }, at, options),
    )
    const array: Node = { A_ArrayExpr: { ...inner.A_ArrayExpr, elements } }
    return inner === node ? array : node
  }
  // Callers cannot store a pattern.
  if (typed.isStored === true || !mayBeText(walk.exposed, typed.type) || inner.A_Const || isPlain(inner)) return node
  return measure(
    walk,
    level,
    node,
    (value) => ({ what: PATTERN, size: roughSize(cast(value, 'text')), most: ARCS_MAX }),
    at,
  )
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
    return { ResTarget: { name, val: boundedOne(walk, level, { node, type }, at, '') } }
  })
  return selectFrom(targetList, query, alias, names)
}

function paramIn(node: Node): number | undefined {
  const inner = node.TypeCast?.arg ?? node.CollateClause?.arg
  return inner ? paramIn(inner) : node.ParamRef?.number
}

/** The name of the bound in error messages (failure-hint.ts). */
const PATTERN = 'pattern'
/** Matches a pattern with eight counts, a group with a count of two digits, or two groups with counts. */
const MANY_COUNTS = '(?:\\{\\d.*){8}|\\)(?:\\s|#[^\\n]*)*\\\\?\\{\\d*,?\\d\\d|(?:\\)(?:\\s|#[^\\n]*)*\\\\?\\{\\d.*){2}'

/**
 * Returns the size of a pattern: its bytes times its quantifiers and groups, or more than the limit if it has many
 * counts.
 */
function roughSize(text: Node): Node {
  const others = bytesAsText(call('translate', text, constant('*?{('), constant('')))
  const product = operator('*', bytesAsText(text), operator('+', whole(1), operator('-', bytesAsText(text), others)))
  return either(operator('~', text, constant(MANY_COUNTS)), cast(whole(2 * ARCS_MAX), 'int8'), product)
}

/** Returns why the value of a parameter is too large as a pattern, or null. */
export function largePattern(text: string): string | null {
  const isLarge = arcsOf(text) > ARCS_MAX || arcsOf(text, { isSimilar: true }) > ARCS_MAX
  if (isLarge) return `${TOO_LARGE}. ${HINT}`
  return groupsIn(text) > GROUPS_MAX ? `the regular expression has more than ${GROUPS_MAX} groups` : null
}

/** The maximum number of groups in the value of a parameter. */
export const GROUPS_MAX = 50

/** Returns how many groups a regular expression has at most. */
export function groupsIn(text: string): number {
  return text.split(/\((?!\?)/).length - 1
}

const TOO_LARGE = `the regular expression compiles to more than ${ARCS_MAX} parts, which PostgreSQL keeps in memory`
const HINT = 'Use smaller counts, such as {1,20} instead of {1,255}, or * and +, and do not nest counts.'

function tooLarge(at: number | undefined): Refusal {
  return new Refusal('limit', 'regular expression', TOO_LARGE, HINT, at)
}

/** Returns about how many arcs PostgreSQL keeps for a regular expression. */
export function arcsOf(pattern: string, { isSimilar = false, options: given = '' } = {}): number {
  const regex = isSimilar ? fromSimilar(pattern) : pattern
  const director = /^\*\*\*([:=])/.exec(regex)?.[1]
  if (director === '=') return regex.length
  const text = director === undefined ? regex : regex.slice(4)
  const [start = '', written = ''] = /^\(\?([a-z]+)\)/.exec(text) ?? []
  const options = written + given
  if (written.includes('q')) return text.length
  if (/[be]/.test(options)) return roughly(text)
  return new Reader(text.slice(start.length), options).arcs()
}

/** Translates a SIMILAR TO pattern to a regular expression. */
function fromSimilar(pattern: string): string {
  return pattern.replace(/\\.|\[\^?\]?[^\][]*\]|[%_.^$]/gs, (found) => {
    if (found === '%') return '.*'
    if (found === '_') return '.'
    return /^[.^$]$/.test(found) ? `\\${found}` : found
  })
}

/** Returns an upper limit for the syntaxes that Reader cannot read. */
function roughly(text: string): number {
  let product = 1
  for (const [, counts = ''] of text.matchAll(/\{([\d,]+)/g)) {
    product *= Math.max(1, ...counts.split(',').map(Number))
  }
  return product === 1 ? text.length ** 2 / 2 : product * text.length * 32
}

/** Matches a class behind its [. It can match in one way only, so that its time is linear. */
const BRACKET = /^\^?\]?(?:\\.|\[:[^:\]]*:\]|\[\..[^.\]]*\.\]|\[=.[^=\]]*=\]|\[(?![:.=])|[^\\[\]])*\]/s

class Reader {
  readonly #text: string
  readonly #isExtended: boolean
  readonly #isCaseless: boolean
  /** The different characters in the expression. A class has at most an arc for each, and one for all others. */
  readonly #members: number
  readonly #groups: Part[] = []
  /** The number of copies that counts have made. Each copy adds at least five arcs. */
  #copies = 0
  #isUnread = false
  #at = 0

  constructor(text: string, options: string) {
    this.#text = text
    this.#isExtended = options.includes('x')
    this.#isCaseless = options.includes('i')
    this.#members = (this.#isCaseless ? 2 : 1) * new Set(text.match(/\\?./gsu)).size
  }

  arcs(): number {
    let all = this.#alternatives(0)
    // A ) without a ( is an error, or stands for itself.
    while (this.#at < this.#text.length && all.inner <= ARCS_MAX) {
      this.#at += 1
      all = sequence([all, this.#char(1), this.#alternatives(0)])
    }
    if (this.#copies > COPIES_MAX) return Infinity
    const arcs = sizeOf(all) + all.kept + all.entries * (1 + this.#members)
    return this.#isUnread ? Math.max(arcs, roughly(this.#text)) : arcs
  }

  #char(weight: number): Part {
    return { ...POSITION, inner: STATE_ARCS, last: weight, mayBeEmpty: false }
  }

  #single(): Part {
    return this.#char(this.#isCaseless ? 2 : 1)
  }

  #class(): Part {
    return this.#char(1 + this.#members)
  }

  #alternatives(depth: number): Part {
    if (depth > DEPTH_MAX) return { ...EMPTY, inner: Infinity }
    const all = [this.#sequence(depth)]
    while (this.#takes('|')) all.push(this.#sequence(depth))
    const [only] = all
    if (only && all.length === 1) return only
    return {
      inner: sum(all, ({ inner }) => inner),
      last: sum(all, ({ last }) => last),
      entries: 1 + sum(all, ({ entries }) => Math.max(entries - 1, 0)),
      mayBeEmpty: all.some(({ mayBeEmpty }) => mayBeEmpty),
      kept: sum(all, ({ kept }) => kept),
      isApart: all.some(({ isApart }) => isApart),
    }
  }

  #sequence(depth: number): Part {
    const parts: Part[] = []
    for (;;) {
      this.#skip()
      const next = this.#text[this.#at]
      if (next === undefined || next === '|' || next === ')') break
      parts.push(this.#quantified(this.#atom(depth)))
    }
    return sequence(parts)
  }

  #atom(depth: number): Part {
    const next = this.#text[this.#at] ?? ''
    this.#at += 1
    switch (next) {
      case '(':
        return this.#group(depth)
      case '[':
        return this.#bracket()
      case '\\':
        return this.#escape()
      case '.':
        return this.#class()
      case '^':
      case '$':
        return POSITION
      default:
        return this.#single()
    }
  }

  #group(depth: number): Part {
    const [start = '', kind] = /^\?(#|:|<?[=!])/.exec(this.#text.slice(this.#at, this.#at + 4)) ?? []
    this.#at += start.length
    if (kind === '#') {
      const end = this.#text.indexOf(')', this.#at)
      this.#at = end === -1 ? this.#text.length : end + 1
      return EMPTY
    }
    const number = kind === undefined ? this.#groups.push(EMPTY) - 1 : undefined
    const inner = this.#alternatives(depth + 1)
    this.#takes(')')
    if (kind === ':') return inner
    const kept = inner.kept + sizeOf(inner)
    if (number === undefined) return { ...POSITION, kept, isApart: true }
    const group = { ...inner, kept, isApart: true }
    this.#groups[number] = group
    return group
  }

  /** Reads a class behind its [: abc], ^a-z], [:alpha:]]. A ] at the start stands for itself. */
  #bracket(): Part {
    const [found = ''] = BRACKET.exec(this.#text.slice(this.#at)) ?? []
    this.#isUnread ||= found === ''
    this.#at = found === '' ? this.#text.length : this.#at + found.length
    const isList = !/^\^|.-|\[[:=]|\\[dswDSW]/s.test(found)
    const letters = (this.#isCaseless ? 2 : 1) * found.length
    const letterRange = /^([a-z])-([a-z])\]$/.exec(found)
    if (isList) return this.#char(Math.min(letters, 1 + this.#members))
    const size = letterRange
      ? Math.abs((letterRange[2] ?? '').charCodeAt(0) - (letterRange[1] ?? '').charCodeAt(0))
      : Infinity
    return this.#char(Math.min(size + 1, 1 + this.#members))
  }

  #escape(): Part {
    const next = this.#text[this.#at] ?? ''
    this.#at += 1
    if (/[AZmMyY]/.test(next)) return POSITION
    if (/[dswDSW]/.test(next)) return this.#class()
    if (next === 'c') this.#at += 1
    const [digits = ''] = /[1-9]/.test(next) ? (/^\d*/.exec(this.#text.slice(this.#at, this.#at + 3)) ?? []) : []
    const group =
      this.#groups[Number(next + digits) - 1] ?? (/[1-9]/.test(next) ? this.#groups[Number(next) - 1] : undefined)
    return group ? { ...group, mayBeEmpty: true, isApart: true } : this.#single()
  }

  #quantified(item: Part): Part {
    let part = item
    for (;;) {
      this.#skip()
      const [found = '', sign, least = '', comma, most = '', lazy] =
        /^(?:([*+?])|\{(\d{1,3})(?:(,)(\d{0,3}))?\})(\??)/.exec(this.#text.slice(this.#at, this.#at + 12)) ?? []
      if (found === '') return part
      this.#at += found.length
      const from = sign === undefined ? Number(least) : sign === '+' ? 1 : 0
      const to =
        sign === '?' ? 1 : sign !== undefined || (comma && most === '') ? Infinity : Number(comma ? most : least)
      const isApart = part.isApart || lazy === '?'
      const made = this.#repeated(part, Math.min(from, COUNT_MAX), Math.min(to, to === Infinity ? to : COUNT_MAX))
      part = { ...made, kept: part.kept + (isApart ? sizeOf(made) : 0), isApart }
    }
  }

  /** Repeats a part as PostgreSQL does: x{1,3} becomes ((x|)x|)x. */
  #repeated(part: Part, least: number, most: number): Part {
    if (most === 0) return EMPTY
    const optional = most === Infinity ? 0 : most - Math.max(least, 1)
    this.#copies += optional + Math.max(least - 1, 0)
    if (this.#copies > COPIES_MAX) return part
    let all = part
    for (let n = 0; n < optional; n++) all = both({ ...all, mayBeEmpty: true }, part)
    for (let n = 1; n < least; n++) all = both(all, part)
    if (most === Infinity) all = { ...all, inner: all.inner + part.last * part.entries, entries: all.entries + 1 }
    return { ...all, mayBeEmpty: all.mayBeEmpty || least === 0 }
  }

  #takes(char: string): boolean {
    const isNext = this.#text[this.#at] === char
    if (isNext) this.#at += 1
    return isNext
  }

  /** Skips spaces and comments if the expression has option x. */
  #skip(): void {
    if (!this.#isExtended) return
    const [found = ''] = /^(?:\s+|#[^\n]*)*/.exec(this.#text.slice(this.#at)) ?? []
    this.#at += found.length
  }
}

/** Returns the sequence of two parts. */
function both(a: Part, b: Part): Part {
  return {
    inner: a.inner + b.inner + a.last * b.entries,
    last: b.last + (b.mayBeEmpty ? a.last : 0),
    entries: a.entries + (a.mayBeEmpty ? b.entries : 0),
    mayBeEmpty: a.mayBeEmpty && b.mayBeEmpty,
    kept: a.kept + b.kept,
    isApart: a.isApart || b.isApart,
  }
}

function sequence(parts: readonly Part[]): Part {
  const [only] = parts
  if (only && parts.length === 1) return only
  const all = parts.reduce(both, EMPTY)
  // For each part that is matched apart, PostgreSQL keeps an automaton for the part and all that follows.
  const apart = parts.filter(({ isApart }) => isApart).length
  return { ...all, kept: all.kept + apart * sizeOf(all) }
}

function sizeOf({ inner, last }: Part): number {
  return inner + last
}

function sum(parts: readonly Part[], of: (part: Part) => number): number {
  return parts.reduce((all, part) => all + of(part), 0)
}
