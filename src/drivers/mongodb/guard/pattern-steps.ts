// Bounds the steps of a regular expression by how much it can backtrack. From each start position, mongod tries one way
// after another to match. The number of ways is a polynomial in the length of the text. A pattern without such a bound
// is refused: mongod's own limit counts calls, and a call may compare a whole text.
import { isConstant, NONE, plus, product, scaled, type Amount } from './amount.ts'
import { NO_CHARS, partsOf, type Chars, type ParsedPattern, type Pattern } from './pattern-tree.ts'
import { refusedOperator } from './refusal.ts'

/** The steps to compare a character, or to run over it in a repetition and back. Tries are counted in this unit. */
const RUN = 1 / 20
/** The number of comparisons that one more try at a position takes. */
const TRY = 12
const DEGREE_MAX = 3
const TRIES_MAX = 1e9

/** Coefficients by degree: [3, 2] means 3 + 2n for a text of n characters. */
type Polynomial = readonly number[]

/**
 * Upper bounds for one attempt to match a part. `ways` counts how often the part ends a match, so that the next part is
 * tried.
 */
interface Effort {
  readonly tries: Polynomial
  readonly ways: Polynomial
}

/**
 * The sizes of the searched texts: the bytes of all of them and of the longest, the length of the longest word, and the
 * number of texts.
 */
export interface MatchedText {
  readonly bytes: Amount
  readonly longest: Amount
  readonly run: Amount
  readonly starts: Amount
}

/** The bounds of a pattern, which are computed once. */
interface Bound {
  /** The tries of one attempt. */
  readonly tries: Polynomial
  /** True if the attempts at all positions together take as much as one attempt over the whole text. */
  readonly isOnce: boolean
  readonly isWide: boolean
  /** The minimum distance, in characters, between two occurrences of the string with which a match begins. */
  readonly period: number
}

const bounds = new WeakMap<ParsedPattern, Bound>()

function boundOf(pattern: ParsedPattern): Bound {
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
    // All lines together are the text, and the first repetition tries each of their characters.
    isOnce: isAnchored || triesEachLine(tree),
    isWide: isWide(tree),
    period: tree.kind === 'sequence' ? literalAt(tree.of, 0).period : 1,
  }
  bounds.set(pattern, made)
  return made
}

/** Returns the steps to search the texts for a match, if there is none. Throws Refusal if they have no bound. */
export function matchSteps(pattern: ParsedPattern, { bytes, longest, run, starts }: MatchedText): Amount {
  const { branches, isAnchored } = pattern
  const { tries, isOnce, isWide: isWhole, period } = boundOf(pattern)
  const attempts = isAnchored ? starts : bytes
  const [once = 0, ...growing] = tries
  const fixed = Math.max(0, once - 1) * RUN
  const written = bytes.constant
  // A text of the query may be the worst text for the pattern.
  const own = plus(
    scaled(starts, 2 + written / 5),
    (0.2 + branches / 50 + fixed) * attempts.constant,
    powers(growing, written) * (isOnce ? 1 : written),
  )
  if (isConstant(bytes) && isConstant(attempts)) return own
  // The sum of a power over all texts is at most the size of all texts times a power of the longest.
  let power = isOnce ? bytes : product(scaled(bytes, 1 / period), isWhole ? longest : run)
  const grown = growing.map((times, n) => {
    if (n > 0) power = product(power, isWhole ? longest : run)
    return scaled(power, times * RUN * (n === 0 ? 1 : TRY / factorial(n + 1)))
  })
  return plus(own, scaled(bytes, 0.4 + branches / 3), fixed === 0 ? NONE : scaled(attempts, fixed), ...grown)
}

function powers(growing: Polynomial, length: number): number {
  return growing.reduce((sum, times, n) => sum + (times * RUN * TRY * length ** (n + 1)) / factorial(n + 1), 0)
}

/**
 * Returns whether a pattern begins with `.*` and its next part may match a character that `.*` matches. mongod tries
 * such a pattern at the beginnings of lines only.
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
  const { tries } = (tree.kind === 'sequence' ? sequence(failing(tree.of), NO_CHARS) : effortOf(tree, NO_CHARS)) ?? {}
  return tries === undefined || tries.length > DEGREE_MAX + 1 ? null : tries
}

/**
 * Returns the parts with character repetitions at the end reduced to their minimum, because the match succeeds with the
 * minimum.
 */
function failing(parts: readonly Pattern[]): readonly Pattern[] {
  const last = parts.at(-1)
  if (last?.kind !== 'repeat' || last.of.kind !== 'char' || last.least === last.most) return parts
  return last.least === 0 ? failing(parts.slice(0, -1)) : [...parts.slice(0, -1), { ...last, most: last.least }]
}

/**
 * Returns the effort of a part, or null if it has no bound. `next` has the characters with which the parts after it can
 * begin.
 */
function effortOf(part: Pattern, next: Chars): Effort | null {
  switch (part.kind) {
    case 'char':
      return { tries: charTries(1), ways: ONE }
    case 'position':
      return { tries: NOTHING, ways: ONE }
    case 'back reference':
      return { tries: LENGTH, ways: ONE }
    case 'lookaround': {
      // There is one way, because mongod does not go back into a lookaround.
      const effort = effortOf(part.of, part.first)
      return effort === null ? null : { tries: effort.tries, ways: ONE }
    }
    case 'sequence':
      return sequence(part.of, next)
    case 'alternatives':
      return alternatives(part.of, next)
    case 'repeat':
      return part.most <= 1 ? optional(part, next) : repeated(part, next)
  }
}

const NOTHING: Polynomial = [0]
const charTries = (count: number): Polynomial => [count]
const ONE: Polynomial = [1]
const LENGTH: Polynomial = [0, 1]

function sequence(parts: readonly Pattern[], next: Chars): Effort | null {
  const behind = followers(parts, next)
  let [tries, ways] = [ONE, ONE]
  /** The string after a repetition: where it ends, and how far apart its occurrences are. */
  let literal = { end: -1, period: 1 }
  for (const [n, part] of parts.entries()) {
    if (n === literal.end) ways = rarer(ways, literal.period)
    const effort = effortOf(part, behind[n] ?? next)
    if (effort === null) return null
    tries = sum(tries, times(ways, effort.tries))
    const ended = times(ways, effort.ways)
    // Each further way is one more try of the parts that follow.
    tries = sum(tries, triesOfWays(less(ended, ways)))
    if (effort.ways.length > 1) literal = literalAt(parts, n + 1)
    ways = ended
    if (tries.length > DEGREE_MAX + 1) return null
  }
  return { tries, ways }
}

/** Returns the tries of further ways. The tries of a repetition are already included in its run over the text. */
function triesOfWays([once = 0, ...growing]: Polynomial): Polynomial {
  return [once * TRY, ...growing]
}

/** Returns the number of ways to end before a string that occurs at most once in `period` characters. */
function rarer([once = 0, ...growing]: Polynomial, period: number): Polynomial {
  return period < 2 ? [once, ...growing] : [once + 1, ...growing.map((n) => n / period)]
}

/**
 * The number of characters of a string that are compared to find its period. For a longer string, the result may be too
 * short a period, which is safe.
 */
const LITERAL_MAX = 24

/**
 * Returns the end of the string that begins at this part, and how far apart its occurrences are at least (its smallest
 * period).
 */
function literalAt(parts: readonly Pattern[], start: number): { readonly end: number; readonly period: number } {
  const found = parts.findIndex((part, n) => n >= start && part.kind !== 'char')
  const end = found === -1 ? parts.length : found
  const chars = parts.slice(start, Math.min(end, start + LITERAL_MAX)).map(({ first }) => first)
  const fits = (period: number): boolean =>
    chars.every((each, n) => n < period || (each & (chars[n - period] ?? NO_CHARS)) !== 0n)
  let period = 1
  while (period < chars.length && !fits(period)) period++
  return { end, period }
}

/** Returns, for each part, the characters with which the parts behind it can begin. */
function followers(parts: readonly Pattern[], next: Chars): readonly Chars[] {
  const behind: Chars[] = []
  let chars = next
  for (const part of parts.toReversed()) {
    behind.push(chars)
    chars = part.mayBeEmpty ? chars | part.first : part.first
  }
  return behind.reverse()
}

function alternatives(parts: readonly Pattern[], next: Chars): Effort | null {
  const efforts = parts.map((part) => effortOf(part, next))
  const isOneWay = areDistinct(parts, next)
  let [tries, ways]: [Polynomial, Polynomial] = [NOTHING, NOTHING]
  for (const effort of efforts) {
    if (effort === null) return null
    tries = sum(tries, effort.tries)
    ways = isOneWay ? larger(ways, effort.ways) : sum(ways, effort.ways)
  }
  return { tries, ways }
}

/** Returns whether the next character decides which of the alternatives can match. */
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

function optional({ of, least, most }: Repeat, next: Chars): Effort | null {
  if (most === 0) return { tries: NOTHING, ways: ONE }
  const effort = effortOf(of, next)
  if (effort === null || least === 1) return effort
  const isDecided = !of.mayBeEmpty && (of.first & next) === 0n
  return { tries: effort.tries, ways: isDecided ? larger(ONE, effort.ways) : sum(ONE, effort.ways) }
}

function repeated(repeat: Repeat, next: Chars): Effort | null {
  const { of, least, most } = repeat
  const isShort = most - least <= 3
  if (of.kind === 'char') {
    if (most === least) return { tries: charTries(least), ways: ONE }
    const isDecided = (of.first & next) === 0n
    if (isShort) return { tries: charTries(most), ways: isDecided ? ONE : [most - least + 1] }
    return { tries: LENGTH, ways: isDecided ? ONE : LENGTH }
  }
  // Each turn begins and ends in one way only, so all turns together run over the text like one repetition. For each
  // character, mongod may try each character of the group.
  if (!of.mayBeEmpty && isDecided(of, of.first)) {
    const endsInOneWay = (of.first & next) === 0n && isDecided(of, of.first | next)
    return { tries: [0, (TRY / 2) * charsIn(of)], ways: endsInOneWay || most === least ? ONE : LENGTH }
  }
  const effort = most > TURNS_MAX ? null : effortOf(of, of.first | next)
  if (effort === null) return null
  let [tries, ways, turn]: [Polynomial, Polynomial, Polynomial] = [NOTHING, least === 0 ? ONE : NOTHING, ONE]
  for (let n = 1; n <= most && tries.length <= DEGREE_MAX + 1; n++) {
    tries = sum(tries, times(turn, sum([TRY], effort.tries)))
    turn = times(turn, effort.ways)
    if (n >= least) ways = sum(ways, turn)
  }
  return { tries, ways }
}

function charsIn(part: Pattern): number {
  return partsOf(part).reduce((all, each) => all + charsIn(each), 'of' in part ? 0 : 1)
}

/** The maximum turns of a repetition of a part that can match in several ways. With more turns, it has no bound. */
const TURNS_MAX = 8

/**
 * Returns whether the next character always decides how the match of a part goes on. A text then has at most one way to
 * match. `next` has the characters with which the parts after this part can begin.
 */
function isDecided(part: Pattern, next: Chars): boolean {
  switch (part.kind) {
    case 'char':
    case 'position':
      return true
    case 'back reference':
    case 'lookaround':
      return false
    case 'sequence': {
      const behind = followers(part.of, next)
      return part.of.every((each, n) => isDecided(each, behind[n] ?? next))
    }
    case 'alternatives':
      return areDistinct(part.of, next) && part.of.every((each) => isDecided(each, next))
    case 'repeat': {
      const { of, least, most } = part
      if (of.mayBeEmpty) return false
      if (least !== most && (of.first & next) !== 0n) return false
      return isDecided(of, most > 1 ? of.first | next : next)
    }
  }
}

/**
 * Returns whether the part repeats something that matches a space or a line break. Such a repetition may run over a
 * whole text.
 */
function isWide(part: Pattern): boolean {
  if (part.kind === 'back reference') return true
  if (part.kind !== 'repeat') return partsOf(part).some(isWide)
  if (part.of.kind === 'char') return part.most - part.least > 3 && holdsSpace(part.of)
  return isWide(part.of) || (part.most > 1 && holdsSpace(part.of))
}

const SPACE: Chars = 1n << 32n

function holdsSpace(part: Pattern): boolean {
  if (part.kind === 'char') return (part.first & SPACE) !== 0n
  return part.kind === 'back reference' || partsOf(part).some(holdsSpace)
}

function sum(one: Polynomial, other: Polynomial): Polynomial {
  return byDegree(one, other, (n, m) => Math.min(TRIES_MAX, n + m))
}

function larger(one: Polynomial, other: Polynomial): Polynomial {
  return byDegree(one, other, Math.max)
}

/** Returns `one` minus `other`, at least 0 for each coefficient. */
function less(one: Polynomial, other: Polynomial): Polynomial {
  return one.map((n, degree) => Math.max(0, n - (other[degree] ?? 0)))
}

function byDegree(one: Polynomial, other: Polynomial, of: (n: number, m: number) => number): Polynomial {
  return Array.from({ length: Math.max(one.length, other.length) }, (_, n) => of(one[n] ?? 0, other[n] ?? 0))
}

function times(one: Polynomial, other: Polynomial): Polynomial {
  const made = Array.from({ length: one.length + other.length - 1 }, () => 0)
  for (const [n, a] of one.entries())
    for (const [m, b] of other.entries()) made[n + m] = Math.min(TRIES_MAX, (made[n + m] ?? 0) + a * b)
  while (made.length > 1 && made.at(-1) === 0) made.pop()
  return made
}
