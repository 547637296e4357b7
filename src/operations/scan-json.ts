// Checks the text of a JSON body before it is parsed. A body must be unambiguous: valid UTF-8, no lone surrogates, no
// duplicate keys. Otherwise a proxy, a log or a database could interpret it differently. Its cost must be bounded:
// parsing takes time per value, and recursion takes stack per level.
import { isUtf8 } from 'node:buffer'
import { setImmediate } from 'node:timers/promises'
import { invalidRequest, type AppError } from '../errors.ts'

/** The maximum nesting of arrays and objects, because functions that serialize or compare values recurse. */
export const DEPTH_MAX = 1_000
/** The maximum number of fields of one object, because they are all validated in one step. */
const FIELDS_MAX = 10_000
/** The maximum number of characters of one string, because a string is parsed in one step. */
const STRING_MAX = 1 << 20
/** Scanning this many characters takes about one millisecond. Then it yields to the event loop. */
const CHARACTERS_AT_ONCE = 1 << 16

/** Throws INVALID_REQUEST for invalid UTF-8, which toString() would silently replace. */
export function textOf(body: Buffer): string {
  if (!isUtf8(body)) throw invalidRequest(['body: not valid UTF-8'])
  return body.toString('utf8')
}

/** Null if the text may be parsed, or is invalid JSON, which the parser refuses. A promise only for a long text. */
export function refusalOf(text: string, valuesMax: number): AppError | null | Promise<AppError | null> {
  const scanning = scan(text, valuesMax)
  if (text.length > CHARACTERS_AT_ONCE) return scanInSteps(scanning)
  let step = scanning.next()
  while (step.done !== true) step = scanning.next()
  return asRefusal(step.value)
}

async function scanInSteps(scanning: Generator<undefined, string | null>): Promise<AppError | null> {
  let step = scanning.next()
  while (step.done !== true) {
    await setImmediate()
    step = scanning.next()
  }
  return asRefusal(step.value)
}

function asRefusal(problem: string | null): AppError | null {
  return problem === null ? null : invalidRequest([`body: ${problem}`])
}

const [SPACE, QUOTE, COMMA, COLON, OPEN, CLOSE, OPEN_LIST, CLOSE_LIST, BACKSLASH] = [
  32, 34, 44, 58, 123, 125, 91, 93, 92,
] as const

/** Visits each character once, and yields after each step. Returns the first problem, or null. */
export function* scan(text: string, valuesMax: number): Generator<undefined, string | null> {
  /** The keys of each open object. Undefined before the first key, and for an array. */
  const openNames: (Set<string> | undefined)[] = []
  /** Counts the values: one for the root, and for each non-empty array or object, its commas plus one. */
  let values = 1
  /** The last string: the positions of its quotes, and whether it has escapes. */
  let string = { from: 0, to: 0, isEscaped: false }
  let isInString = false
  /** The last non-space character outside strings. */
  let before = 0
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
        if (at - string.from > STRING_MAX) return STRING_TOO_LONG
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
      if (end - at > STRING_MAX) return STRING_TOO_LONG
      string = { from: at, to: end, isEscaped: false }
      // Most strings have no escape, so the next quote ends the string.
      if (end < escape) at = end
      else isInString = true
    } else if (unit === COLON) {
      const inner = text.slice(string.from + 1, string.to)
      const name = string.isEscaped ? unescaped(inner) : inner
      const names = namesOf(openNames)
      if (names.has(name)) return `${shown(name)} occurs twice in one object, at character ${string.from}`
      if (names.add(name).size > FIELDS_MAX) return `contains an object with more than ${FIELDS_MAX} fields`
    } else if (unit === COMMA) values++
    else if (unit === OPEN || unit === OPEN_LIST) {
      if (openNames.push(undefined) > DEPTH_MAX) return `nested deeper than ${DEPTH_MAX} levels`
    } else if (unit === CLOSE || unit === CLOSE_LIST) {
      openNames.pop()
      if (before !== OPEN && before !== OPEN_LIST) values++
    }
    if (unit > SPACE) before = unit
    if (values > valuesMax) return `contains more than ${valuesMax} values: send fewer at once`
  }
  return null
}

const STRING_TOO_LONG = `contains a string of more than ${STRING_MAX} characters`

/** Returns the next position of `sought`, or the end of the text. */
function placeOf(sought: string, text: string, from: number): number {
  const at = text.indexOf(sought, from)
  return at === -1 ? text.length : at
}

const UNIT_LENGTH = 6

/**
 * Returns the length of the escape sequence, where a surrogate pair is one sequence. Returns 0 for a lone surrogate.
 */
function escapeAt(text: string, at: number): number {
  const unit = escapedUnit(text, at)
  if (unit === null) return 2
  if (unit < 0xd800 || unit > 0xdfff) return UNIT_LENGTH
  const next = unit < 0xdc00 ? escapedUnit(text, at + UNIT_LENGTH) : null
  return next !== null && next >= 0xdc00 && next <= 0xdfff ? 2 * UNIT_LENGTH : 0
}

/** Null if there is no \uXXXX at this position. */
function escapedUnit(text: string, at: number): number | null {
  if (!text.startsWith('\\u', at)) return null
  const digits = text.slice(at + 2, at + UNIT_LENGTH)
  return /^[\da-f]{4}$/i.test(digits) ? Number.parseInt(digits, 16) : null
}

/** A colon outside of objects is invalid JSON, which the parser refuses. */
function namesOf(openNames: (Set<string> | undefined)[]): Set<string> {
  const names = openNames.at(-1) ?? new Set()
  if (openNames.length > 0) openNames[openNames.length - 1] = names
  return names
}

function unescaped(inner: string): string {
  try {
    return String(JSON.parse(`"${inner}"`))
  } catch {
    // Invalid JSON, which the parser refuses.
    return inner
  }
}

const NAME_SHOWN_MAX = 100

function shown(name: string): string {
  return JSON.stringify(name.slice(0, NAME_SHOWN_MAX).toWellFormed())
}
