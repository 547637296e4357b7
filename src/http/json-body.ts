// Checks that the bytes of a JSON body mean one thing only: valid UTF-8, no lone surrogates, no name twice in an object.
// Otherwise a proxy, a log or a database could read the same body differently. It parses no values.
import { isUtf8 } from 'node:buffer'
import { invalidRequest, type AppError } from '../errors.ts'

/** The text of a body. Throws INVALID_REQUEST unless it is UTF-8: decoding would replace what it cannot read. */
export function textOf(body: Buffer): string {
  if (!isUtf8(body)) throw invalidRequest(['body: not valid UTF-8'])
  return body.toString('utf8')
}

/** What in the text could be read in two ways, as a refusal, or null. `text` must be valid JSON. */
export function ambiguityIn(text: string): AppError | null {
  const problem = loneSurrogate(text) ?? repeatedName(text)
  return problem === null ? null : invalidRequest([`body: ${problem}`])
}

const SURROGATE_ESCAPE = /\\u[dD][89a-fA-F]/

/** UTF-8 cannot encode a lone surrogate, so only escapes can bring one in. Visits each escape once. */
function loneSurrogate(text: string): string | null {
  if (!SURROGATE_ESCAPE.test(text)) return null
  for (let at = text.indexOf('\\'); at !== -1; at = text.indexOf('\\', at)) {
    const unit = escapedUnit(text, at)
    if (unit === null) at += 2
    else if (!isSurrogate(unit)) at += ESCAPE_LENGTH
    else if (isHigh(unit) && isLow(escapedUnit(text, at + ESCAPE_LENGTH))) at += 2 * ESCAPE_LENGTH
    else return `a lone surrogate, ${text.slice(at, at + ESCAPE_LENGTH)}, at character ${at}`
  }
  return null
}

const ESCAPE_LENGTH = 6

/** The code unit of the \uXXXX that begins at a place, or null. */
function escapedUnit(text: string, at: number): number | null {
  return text.startsWith('\\u', at) ? Number.parseInt(text.slice(at + 2, at + ESCAPE_LENGTH), 16) : null
}

const isSurrogate = (unit: number) => unit >= 0xd800 && unit <= 0xdfff
const isHigh = (unit: number) => unit >= 0xd800 && unit <= 0xdbff
const isLow = (unit: number | null) => unit !== null && unit >= 0xdc00 && unit <= 0xdfff

const NAME_SHOWN_MAX = 100
const [QUOTE, COLON, OPEN, CLOSE, OPEN_LIST, CLOSE_LIST] = [34, 58, 123, 125, 91, 93] as const

/** The first name that an object holds twice. Visits each character once, and keeps the names of open objects only. */
function repeatedName(text: string): string | null {
  /** The names of each open object; undefined before the first one, and for an array. */
  const open: (Set<string> | undefined)[] = []
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    if (unit === OPEN || unit === OPEN_LIST) open.push(undefined)
    else if (unit === CLOSE || unit === CLOSE_LIST) open.pop()
    else if (unit === QUOTE) {
      const start = at
      at = endOfString(text, start)
      if (!isName(text, at)) continue
      const name = nameIn(text.slice(start + 1, at))
      const names = open.at(-1)
      if (names === undefined) open[open.length - 1] = new Set([name])
      else if (names.has(name)) return `${shown(name)} stands twice in one object, at character ${start}`
      else names.add(name)
    }
  }
  return null
}

/** Where the string that begins at a place has its closing quote: the next one behind an even number of backslashes. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); ; end = text.indexOf('"', end + 1)) {
    let before = end
    while (text[before - 1] === '\\') before--
    if ((end - before) % 2 === 0) return end
  }
}

/** A colon follows the string that ends at a place. */
function isName(text: string, end: number): boolean {
  let next = end + 1
  while (text.charCodeAt(next) <= 32) next++
  return text.charCodeAt(next) === COLON
}

function nameIn(inner: string): string {
  return inner.includes('\\') ? String(JSON.parse(`"${inner}"`)) : inner
}

function shown(name: string): string {
  return JSON.stringify(name.slice(0, NAME_SHOWN_MAX).toWellFormed())
}
