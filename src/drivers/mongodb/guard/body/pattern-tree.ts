// Parses a regular expression (PCRE, as in mongod) to a tree, which pattern-steps.ts uses to bound the work of a
// search. Unknown syntax is refused, for example recursion, conditions, callouts and verbs.
import { Broken, refusedLimit, refusedOperator } from '../refusals/refusal.ts'

/** A set of characters: a bit for each ASCII character, and one bit for all other characters. */
export type Chars = bigint

/**
 * A part of a regular expression. `first` has the characters with which a match can begin. `mayBeEmpty` is true if a
 * match can be empty.
 */
export type Pattern = Readonly<{ first: Chars; mayBeEmpty: boolean }> &
  /** `weight` is the work to compare a character. It is 1 for ASCII. */
  (
    | Readonly<{ kind: 'char'; isDot: boolean; weight: number }>
    /** A condition on the position, such as `^`, `$` or `\b`. */
    | Readonly<{ kind: 'position'; isStart: boolean }>
    /** `longest` is the maximum length of the group's text. */
    | Readonly<{ kind: 'back reference'; index: number; longest: number }>
    | Readonly<{ kind: 'lookaround'; of: Pattern }>
    /** `index` is null for a group that does not capture. */
    | Readonly<{ kind: 'group'; of: Pattern; index: number | null }>
    | Readonly<{ kind: 'sequence' | 'alternatives'; of: readonly Pattern[] }>
    | Readonly<{ kind: 'repeat'; of: Pattern; least: number; most: number; isLazy: boolean }>
  )

export interface ParsedPattern {
  readonly tree: Pattern
  readonly length: number
  /** The number of capturing groups, and one for the whole match. */
  readonly groups: number
  readonly hasLookaround: boolean
  /** True if a match can start only at the beginning of the string. */
  readonly isAnchored: boolean
  /** The steps to compile the pattern. For a filter, mongod compiles it about a dozen times. */
  readonly compiling: number
  /** The steps to look up the other case of characters. */
  readonly folding: number
}

const PATTERN_MAX = 512
/**
 * Limits the size of the compiled pattern. mongod compiles a larger pattern for milliseconds, about a dozen times, and
 * no timeout ends this.
 */
const SIZE_MAX = 1_000
/**
 * Limits the non-ASCII characters whose other case mongod looks up. It does so for each compilation, and no timeout
 * ends this.
 */
const FOLDED_MAX = 100_000
const HINT =
  'Regular expressions may contain characters, classes, groups, alternatives, quantifiers, ^ $ \\b \\d \\w \\s, lookarounds and back references \\1 to \\9.'

export const NO_CHARS: Chars = 0n
const OTHERS: Chars = 1n << 128n
const ALL_CHARS: Chars = (1n << 129n) - 1n
const setOf = (matches: RegExp): Chars =>
  Array.from({ length: 128 }, (_, code) => (matches.test(String.fromCharCode(code)) ? 1n << BigInt(code) : 0n)).reduce(
    (all, each) => all | each,
  )
const DIGITS = setOf(/\d/)
const WORDS = setOf(/\w/)
const SPACES = setOf(/\s/)
const BLANKS = setOf(/[\t ]/)
const NAMED: Readonly<Record<string, Chars>> = {
  alpha: setOf(/[a-z]/i),
  digit: DIGITS,
  alnum: setOf(/[a-z\d]/i),
  upper: setOf(/[A-Z]/),
  lower: setOf(/[a-z]/),
  space: SPACES,
  print: setOf(/[ -~]/),
  graph: setOf(/[!-~]/),
  punct: setOf(/[!-/:-@[-`{-~]/),
  xdigit: setOf(/[\da-f]/i),
  word: WORDS,
  blank: BLANKS,
}
const SHORTHANDS: Readonly<Record<string, Chars>> = {
  d: DIGITS,
  D: ALL_CHARS & ~DIGITS,
  w: WORDS,
  W: ALL_CHARS & ~WORDS,
  s: SPACES,
  S: ALL_CHARS & ~SPACES,
  h: BLANKS | OTHERS,
  H: ALL_CHARS & ~BLANKS,
  // In PCRE, \v means any vertical space.
  v: setOf(/[\n\v\f\r]/) | OTHERS,
}
/** For these shorthands, mongod compares a character with a list. */
const LISTED = 'hHv'
const LISTED_WEIGHT = 8
const LISTED_MEMBERS = 10
const PROPERTY_WEIGHT = 6
/** The weight of a non-ASCII character that has another case. */
const FOLDED_WEIGHT = 2
/** The other cases of a range of characters form at most this many ranges. */
const FOLDED_RUNS = 1_500
const CONTROLS: Readonly<Record<string, number>> = { t: 9, n: 10, f: 12, r: 13, a: 7, e: 27 }
const POSITIONS = 'bBAzZ'

/**
 * Parses a pattern with the options `imsux`. Throws Refusal for unlisted syntax and for a pattern that exceeds a limit.
 * Throws Broken for an invalid pattern.
 */
export function parsePattern(pattern: string, options = ''): ParsedPattern {
  if (pattern.length > PATTERN_MAX)
    throw refusedLimit('regular expression', `a regular expression is longer than ${PATTERN_MAX} characters`)
  if (!/^[imsux]{0,10}$/.test(options)) throw new Broken('the options of a regular expression are letters of i m s u x')
  // Options contain no slash, so two patterns with different options never share a key.
  const key = `${options}/${pattern}`
  const known = parsed.get(key)
  if (known !== undefined) return known
  const made = new Reader(pattern, options).read()
  if (parsed.size >= PARSED_MAX) parsed.clear()
  parsed.set(key, made)
  return made
}

/** The guard's work for each character of a pattern. */
export const WORK_EACH = 8

/** Trees are cached, because the guard looks at a pattern several times. */
const parsed = new Map<string, ParsedPattern>()
const PARSED_MAX = 100

const charOf = (chars: Chars, weight = 1, isDot = false): Pattern => ({
  kind: 'char',
  isDot,
  weight,
  first: chars,
  mayBeEmpty: false,
})
const positionOf = (isStart: boolean): Pattern => ({ kind: 'position', isStart, first: NO_CHARS, mayBeEmpty: true })

class Reader {
  readonly #text: string
  readonly #isExtended: boolean
  readonly #isCaseless: boolean
  readonly #hasLines: boolean
  readonly #dot: Chars
  #at = 0
  #groups = 1
  /** The maximum length of the text of each group that was read. The key is the group's number. */
  readonly #longest = new Map<number, number>()
  #hasLookaround = false
  #folded = 0

  constructor(text: string, options: string) {
    this.#text = text
    // An option inside the pattern may apply only to a part of it. It is counted for the whole pattern.
    const inner = Array.from(text.matchAll(/\(\?([a-z]+)[:)]/gi), ([, letters = '']) => letters).join('')
    const all = options + inner
    this.#isExtended = options.includes('x')
    // With the option x, versions of PCRE skip different characters.
    if (this.#isExtended && /[^\0-\x7f]/.test(text)) throw refused('the option x and a character outside of ASCII')
    this.#isCaseless = all.includes('i')
    this.#hasLines = all.includes('m')
    this.#dot = all.includes('s') ? ALL_CHARS : ALL_CHARS & ~(1n << 10n)
  }

  read(): ParsedPattern {
    const tree = this.#alternatives()
    if (this.#isCaseless && this.#folded > FOLDED_MAX)
      throw refusedLimit(
        'regular expression',
        `a regular expression ignores the case of more than ${FOLDED_MAX} characters outside of ASCII`,
      )
    if (this.#at < this.#text.length) throw new Broken('a regular expression has a ) without its (')
    const size = writtenSize(tree)
    if (size > SIZE_MAX)
      throw refusedLimit(
        'regular expression',
        `a regular expression has ${size} parts if its repeated groups are written out; the limit is ${SIZE_MAX}`,
        'Repeat groups fewer times: {0,20} instead of {0,2000}, or use * or +.',
      )
    return {
      tree,
      length: this.#text.length,
      groups: this.#groups,
      hasLookaround: this.#hasLookaround,
      isAnchored: !this.#hasLines && startsAtBeginning(tree),
      compiling: 6 * this.#text.length + size ** 2 / 50,
      folding: this.#isCaseless ? 1.3 * this.#folded : 0,
    }
  }

  #alternatives(): Pattern {
    const of = [this.#sequence()]
    while (this.#takes('|')) of.push(this.#sequence())
    const [only] = of
    if (only !== undefined && of.length === 1) return only
    const first = of.reduce((all, each) => all | each.first, NO_CHARS)
    return { kind: 'alternatives', of, first, mayBeEmpty: of.some(({ mayBeEmpty }) => mayBeEmpty) }
  }

  #sequence(): Pattern {
    const of: Pattern[] = []
    for (;;) {
      this.#skipSpaces()
      const next = this.#text[this.#at]
      if (next === undefined || next === '|' || next === ')') break
      const item = this.#item()
      if (item !== null) of.push(this.#quantified(item))
    }
    let [first, mayBeEmpty] = [NO_CHARS, true]
    for (const each of of) {
      if (mayBeEmpty) first |= each.first
      mayBeEmpty &&= each.mayBeEmpty
    }
    return { kind: 'sequence', of, first, mayBeEmpty }
  }

  /** Reads the quantifiers after an item. A `?` or `+` after a quantifier does not change what a match can contain. */
  #quantified(item: Pattern): Pattern {
    for (let of = item; ;) {
      this.#skipSpaces()
      if (!'*+?{'.includes(this.#text[this.#at] ?? ' ')) return of
      const [whole = '', sign = '', least = '', comma = '', most = ''] =
        /^(?:([*+?])|\{(\d{1,5})(?:(,)(\d{0,5}))?\})/.exec(this.#text.slice(this.#at, this.#at + 16)) ?? []
      if (whole === '') {
        // Versions of PCRE read this brace differently.
        if (/^\{[\d,\s]/.test(this.#text.slice(this.#at, this.#at + 2)))
          throw refused('a { that begins no {n}, {n,} or {n,m}')
        return of
      }
      if (of.kind === 'position' || of.kind === 'lookaround') throw refused('a quantifier after a position')
      this.#at += whole.length
      this.#skipSpaces()
      const isLazy = this.#takes('?')
      if (!isLazy) this.#takes('+')
      const from = sign === '' ? Number(least) : sign === '+' ? 1 : 0
      const to = sign === '?' ? 1 : sign !== '' ? Infinity : comma === '' ? from : most === '' ? Infinity : Number(most)
      if (to < from) throw new Broken('a regular expression has a quantifier {n,m} with m below n')
      of = {
        kind: 'repeat',
        of,
        least: from,
        most: to,
        isLazy,
        first: of.first,
        mayBeEmpty: of.mayBeEmpty || from === 0,
      }
    }
  }

  /** Reads what a quantifier can follow. Returns null for options, which cannot have a quantifier. */
  #item(): Pattern | null {
    const next = this.#next()
    switch (next) {
      case '(':
        return this.#group()
      case '[':
        return this.#class()
      case '\\':
        return this.#escape()
      case '.':
        return charOf(this.#dot, 1, true)
      case '^':
      case '$':
        return positionOf(next === '^')
      case '*':
      case '+':
      case '?':
        throw new Broken(`a regular expression has a ${next} with nothing to repeat`)
      default:
        return this.#single(next)
    }
  }

  #group(): Pattern | null {
    const [whole = '', options, look] =
      /^\?(?:([a-z]*)(?=[:)])|(<?[=!])|P?<[A-Za-z_]\w*>|>)/i.exec(this.#text.slice(this.#at, this.#at + 100)) ?? []
    if (whole === '' && (this.#text[this.#at] === '?' || this.#text[this.#at] === '*'))
      throw refused(`(${this.#text.slice(this.#at, this.#at + 2)}`)
    this.#at += whole.length
    let index: number | null = null
    if (options !== undefined) {
      if (!/^[ims]*$/.test(options)) throw refused(`(?${options})`, 'Write the options in "options".')
      if (this.#takes(')')) return null
      this.#at++
    } else if (look === undefined && whole !== '?>') index = this.#groups++
    const of = this.#alternatives()
    if (!this.#takes(')')) throw new Broken('a regular expression has a ( without its )')
    if (index !== null) this.#longest.set(index, longestOf(of))
    if (look === undefined) return { kind: 'group', of, index, first: of.first, mayBeEmpty: of.mayBeEmpty }
    this.#hasLookaround = true
    return { kind: 'lookaround', of, first: ALL_CHARS, mayBeEmpty: true }
  }

  #escape(): Pattern {
    const next = this.#next()
    if (POSITIONS.includes(next)) return positionOf(next === 'A')
    if (/[1-9]/.test(next)) {
      if (/\d/.test(this.#text[this.#at] ?? '')) throw refused(`\\${next}${this.#text[this.#at] ?? ''}`)
      const longest = this.#longest.get(Number(next)) ?? Infinity
      return { kind: 'back reference', index: Number(next), longest, first: ALL_CHARS, mayBeEmpty: true }
    }
    if (next === 'p' || next === 'P') {
      const name = /^(?:\{\^?\w+\}|\w)/.exec(this.#text.slice(this.#at))
      if (name === null) throw refused(`\\${next}`)
      this.#at += name[0].length
      return charOf(ALL_CHARS, PROPERTY_WEIGHT)
    }
    const shorthand = SHORTHANDS[next]
    if (shorthand !== undefined) return charOf(shorthand, LISTED.includes(next) ? LISTED_WEIGHT : 1)
    return this.#single(String.fromCodePoint(this.#code(next)))
  }

  #single(char: string): Pattern {
    const chars = this.#folding(codeSet(char))
    const isFolded = this.#isCaseless && (chars & OTHERS) !== 0n
    return charOf(chars, isFolded ? FOLDED_WEIGHT : 1)
  }

  /** Reads the end of an escape. Returns the code of its character. */
  #code(next: string): number {
    const control = CONTROLS[next]
    if (control !== undefined) return control
    if (next === 'x') {
      const [whole, wide, narrow = ''] =
        /^(?:\{([\da-f]{1,6})\}|([\da-f]{2}))/i.exec(this.#text.slice(this.#at, this.#at + 8)) ?? []
      if (whole === undefined) throw refused('\\x', 'Write \\x with two digits, or \\x{…} with up to six.')
      this.#at += whole.length
      return Math.min(Number.parseInt(wide ?? narrow, 16), 0x10_ffff)
    }
    if (/[a-z\d]/i.test(next)) throw refused(`\\${next}`)
    return next.codePointAt(0) ?? 0
  }

  #class(): Pattern {
    const isNegated = this.#takes('^')
    let chars = NO_CHARS
    /** Counts the characters and ranges outside of ASCII with which mongod compares a character. */
    let members = 0
    // The option to ignore case may apply only to another part of the pattern. So the other case of an excluded
    // character may be excluded or not.
    const fold = (set: Chars): Chars => (isNegated ? set : this.#folding(set))
    for (let isFirst = true; ; isFirst = false) {
      if (this.#at >= this.#text.length) throw new Broken('a regular expression has a [ without its ]')
      if (!isFirst && this.#takes(']')) break
      const rest = this.#text.slice(this.#at, this.#at + 12)
      if (/^\[[:.=]/.test(rest)) {
        const [named = '', name = ''] = /^\[:(\w+):\]/.exec(rest) ?? []
        const known = NAMED[name]
        if (known === undefined) throw refused(`${rest.slice(0, 2)} in a class`)
        chars |= fold(known)
        if (this.#isCaseless) members += 2
        this.#at += named.length
        continue
      }
      const start = this.#member()
      const isRange =
        this.#text[this.#at] === '-' && this.#at + 1 < this.#text.length && this.#text[this.#at + 1] !== ']'
      if (typeof start === 'bigint' || !isRange) {
        chars |= typeof start === 'bigint' ? start : fold(codeSet(String.fromCodePoint(start)))
        members += typeof start === 'bigint' ? membersOf(start) : this.#members(start, start)
        continue
      }
      this.#at++
      const end = this.#member()
      if (typeof end === 'bigint' || end < start) throw new Broken('a regular expression has a range without an end')
      chars |= fold(rangeSet(start, end))
      members += this.#members(start, end)
      this.#folded += Math.max(0, end - Math.max(start, 128) + 1)
    }
    return charOf(isNegated ? (ALL_CHARS & ~chars) | OTHERS : chars, members === 0 ? 1 : 2 + members / 3)
  }

  /**
   * Returns how many members outside of ASCII a range adds to a class. If case is ignored, the other case of each
   * character may be one more member.
   */
  #members(start: number, end: number): number {
    if (!this.#isCaseless) return end > 127 ? 1 : 0
    if (end <= 127) return (folded(rangeSet(start, end)) & OTHERS) === 0n ? 0 : 2
    return 2 + Math.min(end - Math.max(start, 128) + 1, FOLDED_RUNS)
  }

  /** Returns a set, or the code of a single character. */
  #member(): Chars | number {
    const next = this.#next()
    if (next !== '\\') return next.codePointAt(0) ?? 0
    const escaped = this.#next()
    if (escaped === 'b') return 8
    if (escaped === 'p' || escaped === 'P') throw refused(`\\${escaped} in a class`)
    return SHORTHANDS[escaped] ?? this.#code(escaped)
  }

  #folding(chars: Chars): Chars {
    return this.#isCaseless ? folded(chars) : chars
  }

  /** Reads one character, which may be two UTF-16 units. */
  #next(): string {
    const code = this.#text.codePointAt(this.#at)
    if (code === undefined) throw new Broken('a regular expression ends too early')
    const next = String.fromCodePoint(code)
    this.#at += next.length
    return next
  }

  #takes(char: string): boolean {
    if (this.#text[this.#at] !== char) return false
    this.#at++
    return true
  }

  /** With the option x, spaces and comments outside of classes have no meaning. */
  #skipSpaces(): void {
    if (!this.#isExtended) return
    this.#at += /^(?:[ \t\n\v\f\r]|#[^\n]*)*/.exec(this.#text.slice(this.#at))?.[0].length ?? 0
  }
}

export function partsOf(part: Pattern): readonly Pattern[] {
  return 'of' in part ? [part.of].flat() : []
}

/** Returns the maximum number of characters of a match. */
export function longestOf(part: Pattern): number {
  switch (part.kind) {
    case 'char':
      return 1
    case 'position':
    case 'lookaround':
      return 0
    case 'back reference':
      return part.longest
    case 'group':
      return longestOf(part.of)
    case 'sequence':
      return part.of.reduce((all, each) => all + longestOf(each), 0)
    case 'alternatives':
      return Math.max(...part.of.map(longestOf))
    case 'repeat': {
      const each = longestOf(part.of)
      return each === 0 || part.most === 0 ? 0 : each * part.most
    }
  }
}

/** Returns how many members outside of ASCII a shorthand adds to a class. */
function membersOf(shorthand: Chars): number {
  if ((shorthand & OTHERS) === 0n) return 0
  return LISTED.split('').some((name) => SHORTHANDS[name] === shorthand) ? LISTED_MEMBERS : 1
}

/**
 * Returns the size of the compiled pattern. PCRE writes a repeated group `most` times, or `least` times if `most` is
 * infinite.
 */
function writtenSize(part: Pattern): number {
  if (part.kind === 'group') return writtenSize(part.of)
  const size = partsOf(part).reduce((all, each) => all + writtenSize(each), 1)
  if (part.kind !== 'repeat' || part.of.kind === 'char') return size
  return size * Math.max(1, part.most === Infinity ? part.least : part.most)
}

/** True if each match begins at the beginning of the string, because `^` or `\A` comes first. */
function startsAtBeginning(pattern: Pattern): boolean {
  if (pattern.kind === 'position') return pattern.isStart
  if (pattern.kind === 'group') return startsAtBeginning(pattern.of)
  if (pattern.kind === 'alternatives') return pattern.of.every(startsAtBeginning)
  const [first] = pattern.kind === 'sequence' ? pattern.of : []
  return first !== undefined && startsAtBeginning(first)
}

function codeSet(char: string): Chars {
  const code = char.codePointAt(0) ?? 0
  return code < 128 ? 1n << BigInt(code) : OTHERS
}

function rangeSet(start: number, end: number): Chars {
  const others = end > 127 ? OTHERS : NO_CHARS
  if (start > 127) return others
  const last = Math.min(end, 127)
  return others | (((1n << BigInt(last - start + 1)) - 1n) << BigInt(start))
}

const CAPITALS = NAMED['upper'] ?? NO_CHARS
const SMALLS = NAMED['lower'] ?? NO_CHARS
/** ASCII letters that have another case outside of ASCII: the Kelvin sign for k, the long s for s. */
const FOLDED_OUTSIDE = setOf(/[ks]/i)

function folded(chars: Chars): Chars {
  const both = chars | ((chars & CAPITALS) << 32n) | ((chars & SMALLS) >> 32n)
  const inside = (both & OTHERS) === 0n ? NO_CHARS : FOLDED_OUTSIDE
  return both | inside | ((both & FOLDED_OUTSIDE) === 0n ? NO_CHARS : OTHERS)
}

function refused(what: string, hint = HINT): Error {
  return refusedOperator('$regex', `a regular expression contains ${what}`, hint)
}
