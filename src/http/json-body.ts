// Looks the bytes of a JSON body over before they are parsed. A body means one thing only: valid UTF-8, no lone surrogates,
// no name twice in an object; otherwise a proxy, a log or a database could read it differently. And it is no more work than
// a request may make: parsing takes time for each value, whatever recurses takes stack for each level.
import { isUtf8 } from 'node:buffer'
import { setImmediate } from 'node:timers/promises'
import { invalidRequest, type AppError } from '../errors.ts'

/** Arrays and objects within each other: what is written again, or compared, recurses. */
export const DEPTH_MAX = 1_000
/**
 * Values in a body: JSON.parse holds the event loop for up to 0.3 µs for each. The second is of the routes that take a
 * larger body: 40,000 columns of 2,000 tables are 48,000 values.
 */
export const VALUES_MAX = 30_000
export const VALUES_MAX_OF_LARGE = 60_000
/** Characters that are looked at without a pause, about a millisecond's. A shorter body is looked at in one go. */
const CHARACTERS_AT_ONCE = 1 << 16

/** The text of a body. Throws INVALID_REQUEST unless it is UTF-8: decoding would replace what it cannot read. */
export function textOf(body: Buffer): string {
  if (!isUtf8(body)) throw invalidRequest(['body: not valid UTF-8'])
  return body.toString('utf8')
}

/**
 * Why a text must not be parsed, as a refusal, or null. Of a text that is no JSON it may say anything, as parsing refuses
 * that. A promise only for a long text: other requests are served in between.
 */
export function refusalOf(text: string, valuesMax: number): AppError | null | Promise<AppError | null> {
  const look = lookOver(text, valuesMax)
  if (text.length > CHARACTERS_AT_ONCE) return inTurns(look)
  let step = look.next()
  while (step.done !== true) step = look.next()
  return told(step.value)
}

async function inTurns(look: Generator<undefined, string | null>): Promise<AppError | null> {
  let step = look.next()
  while (step.done !== true) {
    await setImmediate()
    step = look.next()
  }
  return told(step.value)
}

function told(problem: string | null): AppError | null {
  return problem === null ? null : invalidRequest([`body: ${problem}`])
}

const [SPACE, QUOTE, COMMA, COLON, OPEN, CLOSE, OPEN_LIST, CLOSE_LIST, BACKSLASH] = [
  32, 34, 44, 58, 123, 125, 91, 93, 92,
] as const

/**
 * Visits each character once, and keeps the names of open objects only. Yields every so many characters; ends with the
 * first problem.
 */
export function* lookOver(text: string, valuesMax: number): Generator<undefined, string | null> {
  /** The names of each open object; undefined before the first one, and for an array. */
  const open: (Set<string> | undefined)[] = []
  /** The whole, and of each array or object as many as it has commas, and one more unless it is empty. */
  let values = 1
  /** The last string: where its quotes are, and whether it has escapes. */
  let string = { from: 0, to: 0, isEscaped: false }
  let isInString = false
  /** The last character outside of strings that is no space. */
  let before = 0
  /** Of the next backslash. */
  let escape = -1
  let pause = CHARACTERS_AT_ONCE
  for (let at = 0; at < text.length; at++) {
    if (at >= pause) {
      yield
      pause = at + CHARACTERS_AT_ONCE
    }
    const unit = text.charCodeAt(at)
    if (isInString) {
      if (unit === QUOTE) {
        string.to = at
        isInString = false
      } else if (unit === BACKSLASH) {
        string.isEscaped = true
        const length = escapeAt(text, at)
        if (length === 0) return `a lone surrogate, ${text.slice(at, at + UNIT_LENGTH)}, at character ${at}`
        at += length - 1
      }
      continue
    }
    if (unit === QUOTE) {
      if (escape < at) escape = placeOf('\\', text, at)
      const end = placeOf('"', text, at + 1)
      string = { from: at, to: end, isEscaped: false }
      // Most strings have no escape: their end is found in one go.
      if (end < escape) at = end
      else isInString = true
    } else if (unit === COLON) {
      const inner = text.slice(string.from + 1, string.to)
      const name = string.isEscaped ? unescaped(inner) : inner
      if (isRepeated(open, name)) return `${shown(name)} stands twice in one object, at character ${string.from}`
    } else if (unit === COMMA) values++
    else if (unit === OPEN || unit === OPEN_LIST) {
      if (open.push(undefined) > DEPTH_MAX) return `nested deeper than ${DEPTH_MAX} levels`
    } else if (unit === CLOSE || unit === CLOSE_LIST) {
      open.pop()
      if (before !== OPEN && before !== OPEN_LIST) values++
    }
    if (unit > SPACE) before = unit
    if (values > valuesMax) return `holds more than ${valuesMax} values: send less at once`
  }
  return null
}

/** From a place on; the end of the text where there is none. */
function placeOf(sought: string, text: string, from: number): number {
  const at = text.indexOf(sought, from)
  return at === -1 ? text.length : at
}

/** Of \uXXXX. */
const UNIT_LENGTH = 6

/** How long the escape is that begins at a place, both halves of a pair together; 0 for a lone surrogate. */
function escapeAt(text: string, at: number): number {
  const unit = escapedUnit(text, at)
  if (unit === null) return 2
  if (unit < 0xd800 || unit > 0xdfff) return UNIT_LENGTH
  const next = unit < 0xdc00 ? escapedUnit(text, at + UNIT_LENGTH) : null
  return next !== null && next >= 0xdc00 && next <= 0xdfff ? 2 * UNIT_LENGTH : 0
}

/** The code unit of the \uXXXX that begins at a place, or null. */
function escapedUnit(text: string, at: number): number | null {
  if (!text.startsWith('\\u', at)) return null
  const digits = text.slice(at + 2, at + UNIT_LENGTH)
  return /^[\da-f]{4}$/i.test(digits) ? Number.parseInt(digits, 16) : null
}

/** Keeps a name of the innermost object; true where it was there. */
function isRepeated(open: (Set<string> | undefined)[], name: string): boolean {
  const names = open.at(-1)
  if (names?.has(name) === true) return true
  if (names !== undefined) names.add(name)
  else if (open.length > 0) open[open.length - 1] = new Set([name])
  return false
}

function unescaped(inner: string): string {
  try {
    return String(JSON.parse(`"${inner}"`))
  } catch {
    // No JSON: parsing refuses it.
    return inner
  }
}

const NAME_SHOWN_MAX = 100

function shown(name: string): string {
  return JSON.stringify(name.slice(0, NAME_SHOWN_MAX).toWellFormed())
}
