// Reads JSON as bytes, so that ten megabytes of rows never become a tree of objects. endOfValue() and membersOf() check
// every byte against the JSON grammar. firstOf(), nextOf() and valueOf() may be called only on bytes that were checked
// before.
import { Unreadable } from './http-exchange.ts'
import { runToEnd, SLICE_BYTES } from './time-slices.ts'

/** BigQuery has at most 15 levels of arrays of structs, which are 80 levels of JSON. */
const DEPTH_MAX = 128
const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const COLON = 0x3a
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d]

// 1 for a byte that completes an escape sequence. `u` is not marked, because four hex digits must follow it.
const ESCAPES = new Uint8Array(256)
for (const letter of '"\\/bfnrt') ESCAPES[letter.charCodeAt(0)] = 1
const HEX = new Uint8Array(256)
for (const digit of '0123456789abcdefABCDEF') HEX[digit.charCodeAt(0)] = 1

export function skipSpace(json: Buffer, at: number): number {
  for (;;) {
    const byte = json[at]
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return at
    at++
  }
}

/** Returns the end of the value at `at`. Throws Unreadable if it is no valid JSON value, or is nested too deeply. */
export function endOfValue(json: Buffer, at: number): number {
  if (json[at] !== OPEN_OBJECT && json[at] !== OPEN_ARRAY) return endOfPlain(json, at)
  return runToEnd(overValue(json, at))
}

/** Like endOfValue(), but yields between two slices, and calls `onLong` for each string of more than SLICE_BYTES. */
export function* overValue(json: Buffer, start: number, onLong?: () => void): Generator<undefined, number> {
  /** The byte that closes the innermost open array or object, or 0 if none is open. */
  let close = 0
  /** The bytes that close the enclosing arrays and objects of the innermost one. */
  const around: number[] = []
  let isKey = false
  let pause = start + SLICE_BYTES
  let at = start
  for (;;) {
    if (json[at] === QUOTE) {
      const quote = quoteWithin(json, at + 1, Math.min(json.length, at + SLICE_BYTES))
      if (json[quote] === QUOTE) at = quote + 1
      else {
        onLong?.()
        at = yield* overRestOfString(json, quote)
      }
      if (isKey) {
        at = skipSpace(json, at)
        if (json[at] !== COLON) throw broken(at)
        at = skipSpace(json, at + 1)
        isKey = false
        continue
      }
    } else if (isKey) throw broken(at)
    else {
      const opened = closeOf(json[at])
      if (opened === 0) at = endOfPlain(json, at)
      else {
        at = skipSpace(json, at + 1)
        if (json[at] !== opened) {
          if (around.push(close) > DEPTH_MAX) throw new Unreadable('JSON that is nested too deeply')
          close = opened
          isKey = opened === CLOSE_OBJECT
          continue
        }
        at++
      }
    }
    while (close !== 0 && json[(at = skipSpace(json, at))] === close) {
      close = around.pop() ?? 0
      at++
    }
    if (close === 0) return at
    if (json[at] !== COMMA) throw broken(at)
    at = skipSpace(json, at + 1)
    isKey = close === CLOSE_OBJECT
    if (at < pause) continue
    pause = at + SLICE_BYTES
    yield
  }
}

/** Checks a string from `start` on, and returns its end. Yields between two slices. */
function* overRestOfString(json: Buffer, start: number): Generator<undefined, number> {
  for (let at = start; ;) {
    at = quoteWithin(json, at, Math.min(json.length, at + SLICE_BYTES))
    if (json[at] === QUOTE) return at + 1
    if (at >= json.length) throw broken(at)
    yield
  }
}

function closeOf(byte: number | undefined): number {
  if (byte === OPEN_OBJECT) return CLOSE_OBJECT
  return byte === OPEN_ARRAY ? CLOSE_ARRAY : 0
}

/** Checks the key at `at`, and returns the start of its value. */
function behindKey(json: Buffer, at: number): number {
  if (json[at] !== QUOTE) throw broken(at)
  const colon = skipSpace(json, endOfString(json, at))
  if (json[colon] !== COLON) throw broken(colon)
  return skipSpace(json, colon + 1)
}

/** The value is neither an array nor an object. */
function endOfPlain(json: Buffer, at: number): number {
  switch (json[at]) {
    case QUOTE:
      return endOfString(json, at)
    case 0x74:
      return endOfWord(json, at, 'true')
    case 0x66:
      return endOfWord(json, at, 'false')
    case 0x6e:
      return endOfWord(json, at, 'null')
    default:
      return endOfNumber(json, at)
  }
}

function endOfString(json: Buffer, start: number): number {
  const quote = quoteWithin(json, start + 1, json.length)
  if (json[quote] !== QUOTE) throw broken(quote)
  return quote + 1
}

/**
 * Checks the characters of a string. Returns the position of the quote that ends the string. If the quote is not before
 * `limit`, returns the start of the first character that is not before `limit`.
 */
export function quoteWithin(json: Buffer, start: number, limit: number): number {
  let at = start
  for (; at < limit; at++) {
    const byte = json[at]
    if (byte === QUOTE) return at
    if (byte === undefined || byte < 0x20) throw broken(at)
    if (byte !== BACKSLASH) continue
    at++
    const letter = json[at] ?? 0
    if (ESCAPES[letter] === 1) continue
    if (letter !== 0x75) throw broken(at)
    for (const end = at + 4; at < end; at++) if (HEX[json[at + 1] ?? 0] !== 1) throw broken(at)
  }
  return at
}

function endOfWord(json: Buffer, at: number, word: string): number {
  for (let i = 0; i < word.length; i++) if (json[at + i] !== word.charCodeAt(i)) throw broken(at)
  return at + word.length
}

function endOfNumber(json: Buffer, start: number): number {
  let at = start
  while (at - start < 400 && isOfNumber(json[at])) at++
  if (!isNumber(json.toString('latin1', start, at))) throw broken(start)
  return at
}

function isOfNumber(byte: number | undefined): boolean {
  if (byte === undefined) return false
  return (byte >= 0x30 && byte <= 0x39) || byte === 0x2d || byte === 0x2b || byte === 0x2e || (byte | 0x20) === 0x65
}

/** Returns false for a text of 400 characters or more. */
export function isNumber(text: string): boolean {
  return text.length < 400 && /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(text)
}

/** `start` and `end` are those of the value. */
export interface Member {
  readonly key: string
  readonly start: number
  readonly end: number
}

/** Checks the object at `start`, and returns its members and its end. Yields, and calls `onLong`, like overValue(). */
export function* membersOf(
  json: Buffer,
  start: number,
  onLong?: () => void,
): Generator<undefined, { readonly members: readonly Member[]; readonly end: number }> {
  const members: Member[] = []
  if (json[start] !== OPEN_OBJECT) throw broken(start)
  let at = skipSpace(json, start + 1)
  if (json[at] === CLOSE_OBJECT) return { members, end: at + 1 }
  for (;;) {
    const value = behindKey(json, at)
    const key = String(JSON.parse(json.toString('utf8', at, endOfString(json, at))))
    const end = yield* overValue(json, value, onLong)
    members.push({ key, start: value, end })
    at = skipSpace(json, end)
    if (json[at] === CLOSE_OBJECT) return { members, end: at + 1 }
    if (json[at] !== COMMA) throw broken(at)
    at = skipSpace(json, at + 1)
  }
}

/** Returns the start of the first value in an array, or null for an empty array. */
export function firstOf(json: Buffer, start: number): number | null {
  const at = skipSpace(json, start + 1)
  return json[at] === CLOSE_ARRAY ? null : at
}

/** `end` is the end of the previous value. Returns the start of the next value, or null. */
export function nextOf(json: Buffer, end: number): number | null {
  const at = skipSpace(json, end)
  return json[at] === COMMA ? skipSpace(json, at + 1) : null
}

/**
 * Finds the key that is the single letter `letter` (`f` or `v`) in the object at `start`, and returns the start of its
 * value.
 */
export function valueOf(json: Buffer, start: number, letter: number): number {
  if (json[start] !== OPEN_OBJECT) throw broken(start)
  for (let at = skipSpace(json, start + 1); json[at] === QUOTE;) {
    const keyEnd = endOfString(json, at)
    const value = skipSpace(json, skipSpace(json, keyEnd) + 1)
    if (keyEnd - at === 3 && json[at + 1] === letter) return value
    at = skipSpace(json, endOfValue(json, value))
    if (json[at] === COMMA) at = skipSpace(json, at + 1)
  }
  throw broken(start)
}

export function isArray(json: Buffer, at: number): boolean {
  return json[at] === OPEN_ARRAY
}

export function isNull(json: Buffer, at: number): boolean {
  return json[at] === 0x6e
}

function broken(at: number): Unreadable {
  return new Unreadable(`invalid JSON at byte ${at}`)
}
