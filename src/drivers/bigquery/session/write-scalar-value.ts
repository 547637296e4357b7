// Converts a value that is neither an array nor a struct from the REST API to exact JSON (docs/contract.md#values,
// docs/drivers/bigquery.md#values). A text that does not match its type becomes a string.
import { JsonBytes, writeInSlices, writePlain, writeRaw, writeText } from '../../json-bytes.ts'
import { isNumber, overValue, quoteWithin, skipSpace } from './json-scan.ts'
import { SLICE_BYTES } from './time-slices.ts'

/** The JSON of the value, usually a string, is json[start…end). */
export type WriteScalar = (json: Buffer, start: number, end: number, out: JsonBytes) => void

const QUOTE = 0x22
const SAFE_MAX = '9007199254740991'
const NOT_FINITE: ReadonlyMap<string, string> = new Map(
  Object.entries({
    nan: '"NaN"',
    inf: '"Infinity"',
    '+inf': '"Infinity"',
    infinity: '"Infinity"',
    '-inf': '"-Infinity"',
    '-infinity': '"-Infinity"',
  }),
)
/** The seconds since 1970 at which year 1 begins and year 9999 ends. */
const SECONDS_MIN = -62_135_596_800
const SECONDS_MAX = 253_402_300_799

/** The key is the type in GoogleSQL. A value of another type keeps BigQuery's text. */
const WRITERS: ReadonlyMap<string, WriteScalar> = new Map(
  Object.entries({
    INT64: writeInteger,
    FLOAT64: writeFloat,
    NUMERIC: writeDecimal,
    BIGNUMERIC: writeDecimal,
    BOOL: writeBool,
    TIMESTAMP: writeTimestamp,
  }),
)

export function scalarWriter(type: string): WriteScalar {
  return WRITERS.get(type) ?? writeAsText
}

/** Returns the content of a string without escapes. An emulator may send a number or a word instead of a string. */
function textOf(json: Buffer, start: number, end: number): string {
  return json[start] === QUOTE ? json.toString('latin1', start + 1, end - 1) : json.toString('latin1', start, end)
}

function writeAscii(text: string, out: JsonBytes): void {
  const into = out.room(text.length)
  out.length += into.write(text, out.length, 'latin1')
}

/**
 * Copies a string unchanged, because its escapes were checked when the response was scanned. Any other value is put in
 * quotes.
 */
function writeAsText(json: Buffer, start: number, end: number, out: JsonBytes): void {
  if (json[start] === QUOTE) writeRaw(json, start, end, out)
  else writePlain(json, start, end, out)
}

/** Writes a number up to ±(2^53−1), and a string for a larger one. */
function writeInteger(json: Buffer, start: number, end: number, out: JsonBytes): void {
  const text = textOf(json, start, end)
  if (!/^(?:0|-?[1-9]\d{0,18})$/.test(text)) return writeAsText(json, start, end, out)
  const digits = text.startsWith('-') ? text.slice(1) : text
  const isSafe = digits.length < 16 || (digits.length === 16 && digits <= SAFE_MAX)
  writeAscii(isSafe ? text : `"${text}"`, out)
}

function writeFloat(json: Buffer, start: number, end: number, out: JsonBytes): void {
  const text = textOf(json, start, end)
  const word = NOT_FINITE.get(text.toLowerCase())
  if (word !== undefined) return writeAscii(word, out)
  const number = Number(text)
  if (!isNumber(text) || !Number.isFinite(number)) return writeAsText(json, start, end, out)
  writeAscii(Object.is(number, -0) ? '-0' : String(number), out)
}

/** Writes a number of up to 15 significant digits, and a string for a longer one. */
function writeDecimal(json: Buffer, start: number, end: number, out: JsonBytes): void {
  const text = textOf(json, start, end)
  if (!/^-?(?:0|[1-9]\d{0,99})(?:\.\d{1,99})?$/.test(text)) return writeAsText(json, start, end, out)
  const digits = text.replace(/[-.]/g, '').replace(/^0+/, '')
  const significant = digits.length - (/0*$/.exec(digits)?.[0].length ?? 0)
  writeAscii(significant <= 15 ? text : `"${text}"`, out)
}

function writeBool(json: Buffer, start: number, end: number, out: JsonBytes): void {
  const text = textOf(json, start, end).toLowerCase()
  if (text === 'true' || text === 'false') writeAscii(text, out)
  else writeAsText(json, start, end, out)
}

/** Converts microseconds since 1970 (formatOptions.useInt64Timestamp) to RFC 3339 in UTC. */
function writeTimestamp(json: Buffer, start: number, end: number, out: JsonBytes): void {
  const text = textOf(json, start, end)
  const moment = /^-?\d{1,18}$/.test(text) ? momentOf(text) : null
  if (moment === null) writeAsText(json, start, end, out)
  else writeAscii(`"${moment}"`, out)
}

/** Returns null outside the years 1 to 9999. After the year 2255, microseconds exceed 2^53, so the digits are split. */
function momentOf(text: string): string | null {
  const isBefore = text.startsWith('-')
  const digits = (isBefore ? text.slice(1) : text).padStart(7, '0')
  let seconds = Number(digits.slice(0, -6))
  let micros = Number(digits.slice(-6))
  if (isBefore) {
    seconds = -seconds - (micros > 0 ? 1 : 0)
    micros = micros > 0 ? 1_000_000 - micros : 0
  }
  if (seconds < SECONDS_MIN || seconds > SECONDS_MAX) return null
  return `${new Date(seconds * 1000).toISOString().slice(0, 19)}.${String(micros).padStart(6, '0')}Z`
}

/** Writes a string of more than SLICE_BYTES, for a value of any type. Yields between two slices. */
export const writeLongText = writeRaw.inSlices

/**
 * Writes the JSON in a string as it is, so that no number is rounded. Returns the end of the string. Yields like
 * overValue().
 */
export function* writeJson(json: Buffer, start: number, out: JsonBytes): Generator<undefined, number> {
  const end = yield* overValue(json, start)
  if (json[start] !== QUOTE) {
    writeAsText(json, start, end, out)
    return end
  }
  const inner = yield* contentOf(json, start, end)
  const span = yield* spanOf(inner)
  if (span === null) yield* writeInSlices(writeText, inner, 0, inner.length, out)
  else yield* writeInSlices(writeRaw, inner, ...span, out)
  return end
}

/** Returns the content of a string, in UTF-8 and without escapes. Yields between two slices. */
function* contentOf(json: Buffer, start: number, end: number): Generator<undefined, Buffer> {
  if (end - start <= SLICE_BYTES) return Buffer.from(String(JSON.parse(json.toString('utf8', start, end))))
  const content = new JsonBytes(end - start + 3 * SLICE_BYTES)
  const last = end - 1
  for (let at = start + 1; at < last;) {
    let stop = quoteWithin(json, at, Math.min(last, at + SLICE_BYTES))
    // A slice must not end within a character of several bytes, or between the two escapes of a surrogate pair.
    for (let n = 0; n < 3 && isContinuation(json[stop]); n++) stop--
    let text = String(JSON.parse(`"${json.toString('utf8', at, stop)}"`))
    if (stop < last && isHighSurrogate(text.charCodeAt(text.length - 1))) {
      text = text.slice(0, -1)
      stop -= '\\uD800'.length
    }
    content.length += content.room(3 * text.length).write(text, content.length)
    at = stop
    yield
  }
  return content.bytes.subarray(0, content.length)
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff
}

/** Returns the start and the end of the JSON value in the text. Returns null if the text is not one JSON value. */
function* spanOf(inner: Buffer): Generator<undefined, readonly [number, number] | null> {
  try {
    const at = skipSpace(inner, 0)
    const end = yield* overValue(inner, at)
    return skipSpace(inner, end) === inner.length ? [at, end] : null
  } catch {
    return null
  }
}
