// Bounds the steps of a regular expression by how much it can backtrack. From each start position, mongod tries one way
// to match after another. The number of ways is a polynomial in the length of the text. A pattern without such a bound
// is refused. mongod's own limit is not enough: it counts calls, and one call may compare a whole text.
import { constant, most, plus, product, scaled, type Amount } from './amount.ts'
import { longestOf, NO_CHARS, partsOf, type Chars, type ParsedPattern, type Pattern } from '../body/pattern-tree.ts'
import { refusedOperator } from '../refusals/refusal.ts'

/** The steps of a try, which enters a part of a pattern, or runs over a character in a repetition. */
const TRY = 1 / 20
/** The tries that it costs to return to a repetition or an alternative, and to end it in another way. */
const WAY = 10
/** The tries to begin an attempt at a position. */
const START = 6.5
/** For each capturing group, every try takes longer by this share, because mongod copies what the groups matched. */
const COPY = 1 / 30
/** The steps for each byte of a text, and for each text, whatever the pattern is. */
const BYTE = 0.2
const TEXT = 2
const DEGREE_MAX = 3
const TRIES_MAX = 1e9

/** [3, 2] means 3 + 2n for a text of n characters. */
type Polynomial = readonly number[]

/**
 * Upper bounds for one attempt to match a part at a position, called an entry. An entry is live if the next character
 * of the text can begin the part. If the part can be empty, the entry is also live if this character can begin what
 * follows the part. At the end of a text, no entry is live.
 */
interface Effort {
  /** `tries` is for an entry that is live, `idle` for an entry that is not live. */
  readonly tries: Polynomial
  readonly idle: Polynomial
  /**
   * After a live entry, the part may end several times. `live` counts the ends at which the following part has a live
   * entry, and `dead` counts the other ends.
   */
  readonly live: Polynomial
  readonly dead: Polynomial
  /**
   * In how many ways the part can match nothing. After an entry that is not live, the part ends in each of these ways.
   */
  readonly empty: number
}

/** What follows a part. */
interface Next {
  /** The characters with which it can begin. */
  readonly chars: Chars
  /**
   * True if mongod knows these characters when it compiles the pattern. mongod then also knows where the previous
   * repetition ends.
   */
  readonly isPlain: boolean
}

/**
 * The texts that are searched: the bytes of all texts, the bytes of the longest text, the length of the longest word,
 * and the number of texts.
 */
export interface MatchedText {
  readonly bytes: Amount
  readonly longest: Amount
  readonly run: Amount
  readonly starts: Amount
}

interface Bound {
  readonly tries: Polynomial
  /** The constant term of `tries`, averaged over the attempts at all positions. */
  readonly often: number
  /** True if the attempts at all positions together take as long as one attempt over the whole text. */
  readonly isOnce: boolean
  readonly isWide: boolean
  /** For a match that begins with a string: the minimum distance of two occurrences of this string, in characters. */
  readonly period: number
}

const bounds = new WeakMap<ParsedPattern, Bound>()

/** Throws Refusal if the pattern has no bounds. */
export function boundOf(pattern: ParsedPattern): Bound {
  const known = bounds.get(pattern)
  if (known !== undefined) return known
  const { tree, isAnchored } = pattern
  const tries = triesOf(tree)
  if (tries === null) {
    throw refusedOperator(
      '$regex',
      'a regular expression repeats a part that can match a text in several ways',
      'Let the next character decide where a part ends: (?:[a-z]+,)* instead of (?:[a-z]+,?)*.',
    )
  }
  const made = {
    tries,
    // A pattern that is tried once for each line runs over the text once, because all lines together are the text.
    isOnce: isAnchored || triesEachLine(tree),
    isWide: isWide(tree),
    ...(tree.kind === 'sequence' ? fromString(tree.of, tries) : { often: tries[0] ?? 0, period: 1 }),
  }
  bounds.set(pattern, made)
  return made
}

/**
 * For a pattern that begins with a string: how often its parts are entered. A character of the string is entered only
 * at places where the characters before it were found.
 */
function fromString(parts: readonly Pattern[], [once = 0]: Polynomial): Pick<Bound, 'often' | 'period'> {
  const start = parts.findIndex(({ kind }) => kind !== 'position')
  const string = literalAt(parts, Math.max(0, start))
  const { end } = string
  const period = periodBefore(string, end)
  let [often, rest] = [0, once]
  for (const [n, part] of parts.slice(0, end).entries()) {
    often += weightOf(part) / (n < start ? 1 : periodBefore(string, n))
    rest -= weightOf(part)
  }
  return { often: often + rest / period, period }
}

/** Returns the steps to search the texts if they have no match. Throws Refusal if there is no bound. */
export function matchSteps(pattern: ParsedPattern, { bytes, longest, run, starts }: MatchedText): Amount {
  const { tries, often, isOnce, isWide: isWhole, period } = boundOf(pattern)
  const each = TRY * (1 + COPY * (pattern.groups - 1))
  // From later positions, less of the text is left. A lookbehind does not need what is left.
  const isShrinking = !isOnce && !pattern.hasLookaround
  const [once = 0, ...growing] = tries
  // A text that the query contains may be one word.
  const reach = most(isWhole ? longest : run, constant(bytes.constant))
  // The sum of the squares of all lengths is at most the sum of the lengths, times the longest length. The same holds
  // for higher powers.
  let power = isOnce ? bytes : product(scaled(bytes, 1 / period), reach)
  const grown = growing.map((times, n) => {
    if (n > 0) power = product(power, reach)
    return scaled(power, (times * each) / factorial(n + (isShrinking ? 2 : 1)))
  })
  const attempts = pattern.isAnchored ? 0 : scaled(bytes, (START + often) * each)
  return plus(scaled(starts, TEXT + once * each), scaled(bytes, BYTE), attempts, ...grown)
}

/**
 * True if a pattern begins with `.*`, and the next part may match a character that `.*` matches too. mongod tries such
 * a pattern only at the beginnings of lines.
 */
function triesEachLine(tree: Pattern): boolean {
  const [first, second] = tree.kind === 'sequence' ? tree.of : []
  if (
    first?.kind !== 'repeat' ||
    first.least > 0 ||
    first.most < Infinity ||
    first.of.kind !== 'char' ||
    !first.of.isDot
  )
    return false
  return second !== undefined && (second.first & first.of.first) !== 0n && !refersBack(tree)
}

function refersBack(part: Pattern): boolean {
  return part.kind === 'back reference' || partsOf(part).some(refersBack)
}

const factorial = (n: number): number => (n <= 1 ? 1 : n * factorial(n - 1))

/** Returns the tries of one attempt, or null if they have no bound. */
export function triesOf(tree: Pattern): Polynomial | null {
  const whole = tree.kind === 'sequence' ? { ...tree, of: failing(tree.of) } : tree
  const { tries } = effortOf(whole, { chars: NO_CHARS, isPlain: false }) ?? {}
  return tries === undefined || tries.length > DEGREE_MAX + 1 ? null : tries
}

/** A repetition of characters with a larger weight counts in full, even at the end of a pattern. */
const LIGHT = 4

/**
 * At the end of a pattern, the minimum of a repetition is enough for a match. So character repetitions at the end are
 * reduced to their minimum.
 */
function failing(parts: readonly Pattern[]): readonly Pattern[] {
  const last = parts.at(-1)
  if (last?.kind !== 'repeat' || last.of.kind !== 'char' || last.of.weight > LIGHT || last.least === last.most)
    return parts
  const before = parts.slice(0, -1)
  return [...(last.least === 0 ? failing(before) : before), { ...last, most: last.least }]
}

/**
 * Returns the tries to enter a part, without the parts in it. The numbers were measured on mongod 6.0 and on the newest
 * engine.
 */
export function weightOf(part: Pattern): number {
  switch (part.kind) {
    case 'char':
      return part.weight
    case 'position':
      return 3
    case 'back reference':
      return 4
    case 'lookaround':
      return 10
    case 'group':
      return part.index === null ? 4 : 14
    case 'sequence':
      return 1
    case 'alternatives':
      return 3 * part.of.length
    case 'repeat':
      return part.of.kind === 'char' ? 2 : 4
  }
}

/** Returns null if the part has no bound. Each entry costs at least the weight of the part. */
function effortOf(part: Pattern, next: Next): Effort | null {
  const inner = effortInside(part, next)
  if (inner === null) return null
  const weight = [weightOf(part)]
  return { ...inner, tries: sum(weight, larger(inner.tries, inner.idle)), idle: sum(weight, inner.idle) }
}

function effortInside(part: Pattern, next: Next): Effort | null {
  switch (part.kind) {
    case 'char':
      return { tries: NOTHING, idle: NOTHING, live: ONE, dead: NOTHING, empty: 0 }
    case 'position':
      return { tries: NOTHING, idle: NOTHING, live: ONE, dead: NOTHING, empty: 1 }
    case 'back reference':
      return { ...backReference(part.longest), live: ONE, dead: NOTHING, empty: 1 }
    case 'lookaround': {
      // mongod does not go back into a lookaround, so there is one way. A lookbehind may begin at a position without a
      // next character.
      const effort = effortOf(part.of, { chars: part.first, isPlain: false })
      if (effort === null) return null
      return { tries: effort.tries, idle: effort.tries, live: ONE, dead: NOTHING, empty: 1 }
    }
    case 'group':
      return effortOf(part.of, next)
    case 'sequence':
      return sequence(part.of, next)
    case 'alternatives':
      return alternatives(part.of, next)
    case 'repeat':
      return repeated(part, next)
  }
}

const NOTHING: Polynomial = [0]
const ONE: Polynomial = [1]
const LENGTH: Polynomial = [1, 1]

function backReference(longest: number): Pick<Effort, 'tries' | 'idle'> {
  // matchSteps() divides each power by a factorial, because each repetition leaves less of the text. A back reference
  // does not leave less, so its tries are multiplied by the highest degree.
  const tries = longest <= SHORT ? [2 * longest] : [0, 2 * DEGREE_MAX]
  return { tries, idle: tries }
}

/** A part that matches at most this many characters counts as these characters, and not as the whole text. */
const SHORT = 32

function sequence(parts: readonly Pattern[], next: Next): Effort | null {
  const behind = followers(parts, next)
  let [tries, idle, empty]: [Polynomial, Polynomial, number] = [NOTHING, NOTHING, 1]
  let [live, dead] = [ONE, NOTHING]
  /** The string after a repetition, and how often it is entered. */
  let [string, entered]: [Literal, Polynomial] = [{ start: parts.length, end: -1, periods: [] }, live]
  for (const [n, part] of parts.entries()) {
    if (n > string.start && n <= string.end) live = rarer(entered, periodBefore(string, n))
    const effort = effortOf(part, behind[n] ?? next)
    if (effort === null) return null
    tries = sum(tries, sum(times(live, effort.tries), times(dead, effort.idle)))
    idle = sum(idle, times([empty], effort.idle))
    dead = sum(times(live, effort.dead), times(dead, [effort.empty]))
    live = times(live, effort.live)
    empty = Math.min(TRIES_MAX, empty * effort.empty)
    if (effort.live.length > 1) [string, entered] = [literalAt(parts, n + 1), live]
    if (Math.max(tries.length, live.length, dead.length) > DEGREE_MAX + 1) return null
  }
  return { tries, idle, live, dead, empty }
}

/** Returns the number of ways to end after a string that occurs at most once in `period` characters. */
function rarer(ways: Polynomial, period: number): Polynomial {
  // One way for each character becomes one way for each occurrence, and one more.
  return period < 2 ? ways : ways.map((n, degree) => (degree === 0 ? n : n / period) + (ways[degree + 1] ?? 0))
}

/**
 * Only this many characters of a string are compared to find its period. For a longer string, the period may be too
 * short, which is safe.
 */
const LITERAL_MAX = 24

/** A string in a sequence of parts. `start` is its first part, and `end` the part after it. */
interface Literal {
  readonly start: number
  readonly end: number
  /**
   * At index n, the minimum distance of two occurrences of the first n characters. For more characters, the last
   * distance holds.
   */
  readonly periods: readonly number[]
}

/** Finds the next string, which may be empty. */
function literalAt(parts: readonly Pattern[], start: number): Literal {
  const found = parts.findIndex((part, n) => n >= start && part.kind !== 'char')
  const end = found === -1 ? parts.length : found
  const chars = parts.slice(start, Math.min(end, start + LITERAL_MAX)).map(({ first }) => first)
  const periods = [1]
  let period = 1
  for (let count = 1; count <= chars.length; count++) {
    while (period < count && !repeats(chars.slice(0, count), period)) period++
    periods.push(period)
  }
  return { start, end, periods }
}

/** True if a text can contain these characters twice, at this distance. */
function repeats(chars: readonly Chars[], distance: number): boolean {
  return chars.every((each, n) => n < distance || (each & (chars[n - distance] ?? NO_CHARS)) !== 0n)
}

/** Returns the minimum distance of two occurrences of the string's characters before `part`. */
function periodBefore({ start, periods }: Literal, part: number): number {
  return periods[Math.min(part - start, periods.length - 1)] ?? 1
}

function followers(parts: readonly Pattern[], next: Next): readonly Next[] {
  const behind: Next[] = []
  let after = next
  for (const part of parts.toReversed()) {
    behind.push(after)
    after = {
      chars: part.mayBeEmpty ? after.chars | part.first : part.first,
      isPlain: isPlain(part) && (!part.mayBeEmpty || after.isPlain),
    }
  }
  return behind.reverse()
}

/** True for characters and groups of characters. mongod looks into them when it compiles the pattern. */
function isPlain(part: Pattern): boolean {
  const known = plain.get(part)
  if (known !== undefined) return known
  const found = consistsOfChars(part)
  plain.set(part, found)
  return found
}

const plain = new WeakMap<Pattern, boolean>()

function consistsOfChars(part: Pattern): boolean {
  if (part.kind === 'repeat') return part.of.kind === 'char' || (part.most === 1 && isPlain(part.of))
  return part.kind === 'char' || (part.kind in PLAIN && partsOf(part).every(isPlain))
}

const PLAIN = { group: true, sequence: true, alternatives: true }

function alternatives(parts: readonly Pattern[], next: Next): Effort | null {
  const [isDecided, isOneWay] = [areDistinct(parts, next.chars), areExclusive(parts)]
  let [tries, idle, empty]: [Polynomial, Polynomial, number] = [NOTHING, NOTHING, 0]
  let [live, dead] = [NOTHING, NOTHING]
  for (const part of parts) {
    const effort = effortOf(part, next)
    if (effort === null) return null
    tries = sum(tries, effort.tries)
    idle = sum(idle, effort.idle)
    live = isDecided || isOneWay ? larger(live, effort.live) : sum(live, effort.live)
    dead = isOneWay ? larger(dead, effort.dead) : sum(dead, effort.dead)
    empty += effort.empty
  }
  // If the next character decides for one alternative, the other alternatives may match nothing.
  if (isDecided && !isOneWay) dead = sum(dead, [empty])
  return { tries, idle, live, dead, empty: Math.min(TRIES_MAX, empty) }
}

/** True if no text begins with two of the alternatives, because they differ in a character at the same position. */
function areExclusive(parts: readonly Pattern[]): boolean {
  if (parts.length > COMPARED_MAX) return false
  const texts = parts.map(charsAtStart)
  return texts.every((one, n) =>
    texts.slice(n + 1).every((other) => one.some((chars, place) => (chars & (other[place] ?? ALL)) === 0n)),
  )
}

const ALL: Chars = -1n
/** Comparing more alternatives with each other would take the guard too long. */
const COMPARED_MAX = 32

const partsIn = (part: Pattern): readonly Pattern[] => (part.kind === 'sequence' ? part.of : [part])

/** Returns the characters with which each match of the part begins, position by position. */
function charsAtStart(part: Pattern): readonly Chars[] {
  const parts = partsIn(part)
  const end = parts.findIndex(({ kind }) => kind !== 'char')
  return parts.slice(0, end === -1 ? parts.length : end).map(({ first }) => first)
}

/** True if the next character decides which alternative can match. */
function areDistinct(parts: readonly Pattern[], next: Chars): boolean {
  let seen = NO_CHARS
  for (const part of parts) {
    const first = part.mayBeEmpty ? part.first | next : part.first
    if ((seen & first) !== 0n || (part.mayBeEmpty && first === NO_CHARS && parts.length > 1)) return false
    seen |= first
  }
  return true
}

type Repeat = Pattern & { readonly kind: 'repeat' }

function repeated(repeat: Repeat, next: Next): Effort | null {
  const { of, most: turns } = repeat
  if (of.kind === 'char' && turns > 1) return repeatedChar(repeat, of.weight, next)
  // If each iteration begins and ends in one way only, all iterations together run over the text like one repetition.
  const isRun = turns > 1 && !of.mayBeEmpty && isDecided(of, of.first)
  return isRun ? run(repeat, next) : eachTurn(repeat, next)
}

function repeatedChar({ of, least, most: turns, isLazy }: Repeat, weight: number, next: Next): Effort {
  const isOneWay = turns === least || (of.first & next.chars) === 0n
  // If mongod knows from the next character where a repetition ends, it does not return to the repetition. It may
  // always return to a lazy repetition.
  const back = turns === least || (isOneWay && next.isPlain && !isLazy) ? 0 : WAY
  const ends = turns - least <= 3 ? [turns - least + 1] : LENGTH
  const tries = turns - least <= 3 ? [turns * weight + (turns - least) * back] : [weight + back, weight + back]
  const [live, dead] = isOneWay ? [ONE, turns === least ? NOTHING : ends] : [ends, NOTHING]
  return { tries, idle: [weight], live, dead, empty: least === 0 ? 1 : 0 }
}

/** Each iteration begins and ends in one way only, so each character of the text enters each part of the group once. */
function run({ of, least, most: turns }: Repeat, { chars }: Next): Effort {
  const once = weightOfAll(of)
  const isOneWay = isDecided(of, of.first | chars) && (turns === least || (of.first & chars) === 0n)
  const length = turns * longestOf(of)
  const ends = length <= SHORT ? [1 + length] : LENGTH
  const [live, dead] = isOneWay ? [ONE, ends] : [ends, NOTHING]
  return { tries: times([once + 2 * WAY], ends), idle: [once], live, dead, empty: least === 0 ? 1 : 0 }
}

function weightOfAll(part: Pattern): number {
  const back = part.kind === 'repeat' ? WAY : 0
  return partsOf(part).reduce((all, each) => all + weightOfAll(each), weightOf(part) + back)
}

/** The iterations can begin or end in several ways. */
function eachTurn({ of, least, most: turns }: Repeat, next: Next): Effort | null {
  const again = turns > 1 ? { chars: of.first | next.chars, isPlain: false } : next
  const effort = turns > TURNS_MAX ? null : effortOf(of, again)
  if (effort === null) return null
  const isOneWay = turns === 1 && !of.mayBeEmpty && (of.first & next.chars) === 0n
  let [tries, idle, skips]: [Polynomial, Polynomial, number] = [NOTHING, NOTHING, 1]
  let [live, dead]: [Polynomial, Polynomial] = [ONE, NOTHING]
  let all: Pick<Effort, 'live' | 'dead' | 'empty'> =
    least === 0 ? { live: ONE, dead: isOneWay ? ONE : NOTHING, empty: 1 } : { live: NOTHING, dead: NOTHING, empty: 0 }
  for (let n = 1; n <= turns && tries.length <= DEGREE_MAX + 1; n++) {
    const back = turns === least && n === 1 ? NOTHING : [WAY]
    tries = sum(tries, sum(times(live, sum(back, effort.tries)), times(dead, effort.idle)))
    idle = sum(idle, times([skips], effort.idle))
    dead = sum(times(live, effort.dead), times(dead, [effort.empty]))
    live = times(live, effort.live)
    skips = Math.min(TRIES_MAX, skips * effort.empty)
    if (n < least) continue
    all = {
      live: isOneWay ? larger(all.live, live) : sum(all.live, live),
      dead: sum(all.dead, dead),
      empty: Math.min(TRIES_MAX, all.empty + skips),
    }
  }
  return { tries, idle, ...all }
}

/** If a part can match in several ways, a repetition with more iterations has no bound. */
const TURNS_MAX = 8

/** True if the alternatives are strings, and no text begins with two of them. */
function areStrings(parts: readonly Pattern[]): boolean {
  return parts.every((part) => partsIn(part).every(({ kind }) => kind === 'char')) && areExclusive(parts)
}

/**
 * True if the next characters always decide how the match of a part goes on. A text then has at most one way to match.
 * `next` has the characters with which the following part can begin.
 */
function isDecided(part: Pattern, next: Chars): boolean {
  switch (part.kind) {
    case 'char':
    case 'position':
      return true
    case 'back reference':
    case 'lookaround':
      return false
    case 'group':
      return isDecided(part.of, next)
    case 'sequence': {
      const behind = followers(part.of, { chars: next, isPlain: false })
      return part.of.every((each, n) => isDecided(each, behind[n]?.chars ?? next))
    }
    case 'alternatives':
      return areStrings(part.of) || (areDistinct(part.of, next) && part.of.every((each) => isDecided(each, next)))
    case 'repeat': {
      const { of, least, most } = part
      if (of.mayBeEmpty) return false
      if (least !== most && (of.first & next) !== 0n) return false
      return isDecided(of, most > 1 ? of.first | next : next)
    }
  }
}

/** True for a repetition that matches a space or a line break, and so may run over a whole text. */
function isWide(part: Pattern): boolean {
  if (part.kind === 'back reference') return part.longest > SHORT
  if (part.kind !== 'repeat') return partsOf(part).some(isWide)
  if (part.of.kind === 'char') return part.most - part.least > 3 && holdsSpace(part.of)
  return isWide(part.of) || (part.most > 1 && holdsSpace(part.of))
}

const SPACE: Chars = 1n << 32n

function holdsSpace(part: Pattern): boolean {
  if (part.kind === 'char') return (part.first & SPACE) !== 0n
  return part.kind === 'back reference' ? part.longest > 0 : partsOf(part).some(holdsSpace)
}

function isConstant(of: Polynomial, n: number): boolean {
  return of.length === 1 && of[0] === n
}

function sum(one: Polynomial, other: Polynomial): Polynomial {
  if (isConstant(one, 0)) return other
  if (isConstant(other, 0)) return one
  return byDegree(one, other, (n, m) => Math.min(TRIES_MAX, n + m))
}

function larger(one: Polynomial, other: Polynomial): Polynomial {
  return byDegree(one, other, Math.max)
}

function byDegree(one: Polynomial, other: Polynomial, of: (n: number, m: number) => number): Polynomial {
  return Array.from({ length: Math.max(one.length, other.length) }, (_, n) => of(one[n] ?? 0, other[n] ?? 0))
}

function times(one: Polynomial, other: Polynomial): Polynomial {
  if (isConstant(one, 0) || isConstant(other, 1)) return one
  if (isConstant(other, 0) || isConstant(one, 1)) return other
  const made = Array.from({ length: one.length + other.length - 1 }, () => 0)
  for (const [n, a] of one.entries())
    for (const [m, b] of other.entries()) made[n + m] = Math.min(TRIES_MAX, (made[n + m] ?? 0) + a * b)
  while (made.length > 1 && made.at(-1) === 0) made.pop()
  return made
}
