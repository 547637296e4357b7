// Reads a regular expression, and computes what PostgreSQL keeps for it: the arcs of its automaton, and the memory of a
// match. It reads all syntaxes of PostgreSQL. Pure. A count {m,n} repeats its part n times. A class has an arc for each
// letter that the expression distinguishes. A part that may be empty connects what is before it with what is behind it.

import type { RegexSyntax } from '../../confined-query.ts'

/** What PostgreSQL keeps for a regular expression. */
export interface Reading {
  /** About how many arcs it keeps until the session ends. */
  readonly arcs: number
  /** How many bytes a match may take. */
  readonly bytes: number
  /** How many groups contain each other. */
  readonly nested: number
  /** The steps of this reading: letters, and copies that counts make. */
  readonly steps: number
}

/** A longer expression is too large in any case. */
export const LETTERS_MAX = 20_000
const TOO_LONG: Reading = { arcs: Infinity, bytes: Infinity, nested: Infinity, steps: LETTERS_MAX }
/** The flags that read an expression differently. Each reading with i is larger than the one without. */
const READINGS = ['i', 'ix', 'ib', 'ibx', 'ie', 'iex', 'q'] as const

/** Returns what PostgreSQL keeps for an expression. */
export function readRegex(pattern: string, syntax: RegexSyntax = {}): Reading {
  if (pattern.length > LETTERS_MAX) return TOO_LONG
  const reading = readOne(pattern, syntax)
  // In an array of patterns, a backslash escapes the next letter of a pattern.
  return ARRAY.test(pattern) ? greater(reading, readOne(pattern.replace(/\\(.)/gs, '$1'), syntax)) : reading
}

/** Matches the text of an array, such as {a,b} or [0:1]={a,b}. No other expression begins like this. */
const ARRAY = /^\s*(?:\[[-+\d:\s[\]]+=\s*)?\{/

function readOne(pattern: string, { flags = '', similar }: RegexSyntax): Reading {
  if (similar === null) return roughly(pattern)
  if (similar !== undefined) return readAs(fromSimilar(pattern, similar), '')
  if (flags !== null) return readAs(pattern, flags)
  if (pattern.length > LETTERS_MAX / READINGS.length) return TOO_LONG
  return READINGS.map((each) => readAs(pattern, each)).reduce(greater)
}

/** Returns the greater numbers of two readings. */
function greater(one: Reading, other: Reading): Reading {
  return {
    arcs: Math.max(one.arcs, other.arcs),
    bytes: Math.max(one.bytes, other.bytes),
    nested: Math.max(one.nested, other.nested),
    steps: one.steps + other.steps,
  }
}

function readAs(pattern: string, given: string): Reading {
  // The last of these flags counts. Without them, the expression may begin with its own flags.
  const syntax = /[beq](?=[^beq]*$)/.exec(given)?.[0]
  const director = syntax === undefined ? /^\*\*\*([:=])/.exec(pattern)?.[1] : undefined
  const text = director === undefined ? pattern : pattern.slice(4)
  const [start = '', written = ''] = (syntax === undefined && /^\(\?([a-z]+)\)/.exec(text)) || []
  const flags = written + given
  const inner = text.slice(start.length)
  switch (director === '=' ? 'q' : (syntax ?? /[beq](?=[^beq]*$)/.exec(written)?.[0])) {
    case 'q':
      return literally(inner)
    case 'b':
      return new Reader(fromBasic(inner), flags, false).reading()
    case 'e':
      return new Reader(inner, flags, false).reading()
    default:
      return new Reader(inner, flags, true).reading()
  }
}

function literally(text: string): Reading {
  const { length } = text
  const letters = new Set(text).size
  return { arcs: length, bytes: matchBytes(length, length ** 2, 1 + 2 * letters), nested: 0, steps: length }
}

/**
 * Returns the memory of a match (newdfa() in rege_dfa.c). PostgreSQL keeps up to two sets of states for each state. A
 * set has a bit for each state, and 24 bytes for each color: each group of letters that the expression distinguishes.
 */
function matchBytes(states: number, squares: number, colors: number): number {
  return 48 * states * colors + squares / 4
}

/** Translates a SIMILAR TO pattern to a regular expression, as similar_escape_internal() does. */
function fromSimilar(pattern: string, escape: string): string {
  let [out, quotes, isClass, isEscaped] = ['', 0, false, false]
  for (const char of pattern) {
    if (isEscaped) {
      isEscaped = false
      if (char === '"' && !isClass) out += (quotes += 1) === 1 ? '){1,1}?(' : '){1,1}(?:'
      else out += `\\${char}`
    } else if (char === escape) isEscaped = true
    else if (isClass) {
      out += char === '\\' ? '\\\\' : char
      isClass = char !== ']'
    } else {
      isClass = char === '['
      out += SIMILAR.get(char) ?? char
    }
  }
  return `^(?:${out})$`
}

const SIMILAR: ReadonlyMap<string, string> = new Map([
  ['%', '.*'],
  ['_', '.'],
  ['(', '(?:'],
  ['\\', '\\\\'],
  ['.', '\\.'],
  ['^', '\\^'],
  ['$', '\\$'],
])

/** Translates a basic regular expression, in which \( begins a group, to an extended one. */
function fromBasic(text: string): string {
  return text.replace(
    /\\([(){}])|\\.|[(){}+?|]/gs,
    (found, sign?: string) => sign ?? (found.length === 1 ? `\\${found}` : found),
  )
}

/** Returns an upper limit for the syntaxes that Reader cannot read. */
function roughly(text: string): Reading {
  let product = 1
  for (const [, counts = ''] of text.matchAll(/\{([\d,]+)/g)) {
    product *= Math.max(1, ...counts.split(',').map(Number))
  }
  const states = product * text.length
  const arcs = product === 1 ? text.length ** 2 / 2 : states * 32
  const nested = text.split('(').length - 1
  return { arcs, bytes: matchBytes(states, states ** 2, text.length), nested, steps: text.length }
}

/** Reading stops at so many arcs. */
const ARCS_READ = 100_000
/** PostgreSQL allows no larger count. */
export const COUNT_MAX = 255
const DEPTH_MAX = 100
/** The arcs and states of a part that is nested deeper. Infinity times 0 would be no number. */
const TOO_MANY = 1e9
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
  /** Single characters, which are about the states of the part. */
  readonly states: number
  /** Additional automata, which PostgreSQL keeps for groups and lookarounds. */
  readonly kept: Kept
  /** True for groups, references, lookarounds and lazy repetitions. PostgreSQL matches them with their own automata. */
  readonly isApart: boolean
}

/** Additional automata together. */
interface Kept {
  readonly arcs: number
  readonly states: number
  /** The sum of the squares of their states. */
  readonly squares: number
}

const NONE: Kept = { arcs: 0, states: 0, squares: 0 }
const EMPTY: Part = { inner: 0, last: 0, entries: 0, mayBeEmpty: true, states: 0, kept: NONE, isApart: false }
const POSITION: Part = { ...EMPTY, last: 1, entries: 1 }

/** Matches a class behind its [. It can match in one way only, so that its time is linear. */
const BRACKET = /^\^?\]?(?:\\.|\[:[^:\]]*:\]|\[\..[^.\]]*\.\]|\[=.[^=\]]*=\]|\[(?![:.=])|[^\\[\]])*\]/s

/** The same without escape sequences. */
const BASIC_CLASS = String.raw`\^?\]?(?:\[:[^:\]]*:\]|\[\..[^.\]]*\.\]|\[=.[^=\]]*=\]|\[(?![:.=])|[^[\]])*`
const BASIC_BRACKET = new RegExp(String.raw`^${BASIC_CLASS}\]`, 's')
/** Matches each class of an expression without escape sequences, also one that does not end. */
export const CLASSES_WITHIN = new RegExp(String.raw`\[${BASIC_CLASS}\]?`, 'gs')
/** Matches one letter, also as an escape sequence. */
const LETTER = String.raw`(?:\\(?:u[\da-fA-F]{4}|U[\da-fA-F]{8}|x[\da-fA-F]+|\d{1,3}|c?.)|.)`
const LETTERS = new RegExp(LETTER, 'gsu')
const RANGES = new RegExp(`${LETTER}-${LETTER}`, 'gsu')
/** Matches a letter for which PostgreSQL keeps a row of a table: see #rows. */
const HIGH = /^(?:[^\0-\u07ff]|\\[uUx])/
const CLASSES = /\[:(\w+):\]|\\([dswDSW])/g
/** No letter tells more combinations of classes apart. */
const COMBINATIONS_MAX = 20
/** A cell of the table of letters and classes takes two bytes, an arc about 25. */
const CELLS_OF_AN_ARC = 12

class Reader {
  readonly #text: string
  readonly #isAdvanced: boolean
  readonly #isExtended: boolean
  readonly #isCaseless: boolean
  /** The different characters in the expression. A class has at most an arc for each, and one for all others. */
  readonly #members: number
  readonly #groups: Part[] = []
  /** The ranges in classes, and the names of classes. */
  readonly #ranges = new Set<string>()
  readonly #classes: number
  /** The letters above U+07FF. For them, PostgreSQL keeps a table with a row for each range between two of them. */
  readonly #rows: number
  #nested = 0
  #open = 0
  /** The number of copies that counts have made. Each copy adds at least five arcs. */
  #copies = 0
  #isUnread = false
  #at = 0

  constructor(text: string, flags: string, isAdvanced: boolean) {
    this.#text = text
    this.#isAdvanced = isAdvanced
    this.#isExtended = flags.includes('x')
    this.#isCaseless = flags.includes('i')
    const cases = this.#isCaseless ? 2 : 1
    const letters = new Set(text.match(LETTERS))
    this.#members = cases * letters.size
    this.#rows = 2 * cases * [...letters].filter((letter) => HIGH.test(letter)).length
    this.#classes = new Set(
      [...text.matchAll(CLASSES)].map(([, name, escape = '']) => name ?? escape.toLowerCase()),
    ).size
  }

  reading(): Reading {
    let all = this.#alternatives(0)
    // A ) without a ( is an error, or stands for itself.
    while (this.#at < this.#text.length && all.inner <= ARCS_READ) {
      this.#at += 1
      all = sequence([all, this.#char(1), this.#alternatives(0)])
    }
    if (this.#copies > COPIES_MAX) return TOO_LONG
    const cells = this.#rows * 2 ** this.#classes
    const arcs = sizeOf(all) + all.kept.arcs + all.entries * (1 + this.#members) + cells / CELLS_OF_AN_ARC
    const kept = plus(all.kept, keptFor(all))
    const bytes = matchBytes(kept.states, kept.squares, this.#colors())
    const found = { arcs, bytes, nested: this.#nested, steps: this.#text.length + this.#copies }
    return this.#isUnread ? greater(found, roughly(this.#text)) : found
  }

  /** Returns how many groups of letters the expression distinguishes. */
  #colors(): number {
    const parts = 1 + 2 * (this.#isCaseless ? 2 : 1) * this.#ranges.size
    return this.#members + parts * Math.min(2 ** this.#classes, COMBINATIONS_MAX)
  }

  #char(weight: number): Part {
    return { ...POSITION, inner: STATE_ARCS, last: weight, mayBeEmpty: false, states: 1 }
  }

  #single(): Part {
    return this.#char(this.#isCaseless ? 2 : 1)
  }

  #class(): Part {
    return this.#char(1 + this.#members)
  }

  #alternatives(depth: number): Part {
    if (depth > DEPTH_MAX) return { ...EMPTY, inner: TOO_MANY, states: TOO_MANY }
    const all = [this.#sequence(depth)]
    while (this.#takes('|')) all.push(this.#sequence(depth))
    const [only] = all
    if (only && all.length === 1) return only
    return {
      inner: sum(all, ({ inner }) => inner),
      last: sum(all, ({ last }) => last),
      entries: 1 + sum(all, ({ entries }) => Math.max(entries - 1, 0)),
      mayBeEmpty: all.some(({ mayBeEmpty }) => mayBeEmpty),
      states: sum(all, ({ states }) => states),
      kept: all.reduce((kept, part) => plus(kept, part.kept), NONE),
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
    const opened = number === undefined ? 0 : 1
    this.#open += opened
    this.#nested = Math.max(this.#nested, this.#open)
    const inner = this.#alternatives(depth + 1)
    this.#open -= opened
    this.#takes(')')
    if (kind === ':') return inner
    const kept = plus(inner.kept, keptFor(inner))
    if (number === undefined) return { ...POSITION, kept, isApart: true }
    const group = { ...inner, kept, isApart: true }
    this.#groups[number] = group
    return group
  }

  /** Reads a class behind its [: abc], ^a-z], [:alpha:]]. A ] at the start stands for itself. */
  #bracket(): Part {
    const [found = ''] = (this.#isAdvanced ? BRACKET : BASIC_BRACKET).exec(this.#text.slice(this.#at)) ?? []
    this.#isUnread ||= found === ''
    this.#at = found === '' ? this.#text.length : this.#at + found.length
    for (const range of found.match(RANGES) ?? []) this.#ranges.add(range)
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
    if (this.#isAdvanced && /[AZmMyY]/.test(next)) return POSITION
    if (this.#isAdvanced && /[dswDSW]/.test(next)) return this.#class()
    if (this.#isAdvanced && next === 'c') this.#at += 1
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
      part = { ...made, kept: isApart ? plus(part.kept, keptFor(made)) : part.kept, isApart }
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
    states: a.states + b.states,
    kept: plus(a.kept, b.kept),
    isApart: a.isApart || b.isApart,
  }
}

function sequence(parts: readonly Part[]): Part {
  const [only] = parts
  if (only && parts.length === 1) return only
  const all = parts.reduce(both, EMPTY)
  // For each part that is matched apart, PostgreSQL keeps an automaton for the part and all that follows.
  const apart = parts.filter(({ isApart }) => isApart).length
  return { ...all, kept: plus(all.kept, keptFor(all), apart) }
}

function sizeOf({ inner, last }: Part): number {
  return inner + last
}

function sum(parts: readonly Part[], of: (part: Part) => number): number {
  return parts.reduce((all, part) => all + of(part), 0)
}

/** Returns what one automaton for the part keeps. */
function keptFor(part: Part): Kept {
  return { arcs: sizeOf(part), states: part.states, squares: part.states ** 2 }
}

function plus(one: Kept, other: Kept, times = 1): Kept {
  return {
    arcs: one.arcs + times * other.arcs,
    states: one.states + times * other.states,
    squares: one.squares + times * other.squares,
  }
}
