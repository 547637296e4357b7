// Writes values of PostgreSQL as JSON (docs/contract.md#values). The bytes of the database's text become JSON directly,
// so no value is rounded by a JavaScript number or Date.
import type { JsonBytes, WriteValue } from '../../json-bytes.ts'
import { AT_ONCE, writePlain, writeRaw, writeText } from '../../json-bytes.ts'
import type { Form } from './json-form-by-type.ts'

// `true` and `fals` as numbers, to write four letters at once.
const TRUE = Buffer.from('true').readInt32BE()
const FALS = Buffer.from('fals').readInt32BE()
export const NULL = Buffer.from('null').readInt32BE()
const E = 0x65
const SAFE_MAX = Buffer.from('9007199254740991')
const BASE64 = Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/')
const MINUS = 0x2d
const POINT = 0x2e
const ZERO = 0x30
const [DASH, COLON, SPACE, PLUS] = [0x2d, 0x3a, 0x20, 0x2b]

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= 0x39
}

export function writeNull(out: JsonBytes): void {
  out.room(4)
  out.view.setInt32(out.length, NULL)
  out.length += 4
}

function writeBool(from: Buffer, start: number, _end: number, out: JsonBytes): void {
  out.room(5)
  const isTrue = from[start] === 0x74
  out.view.setInt32(out.length, isTrue ? TRUE : FALS)
  out.length += 4
  if (!isTrue) out.bytes[out.length++] = E
}

/** Writes a JSON number. Beyond ±(2^53−1), writes a string. */
function writeInt8(from: Buffer, start: number, end: number, out: JsonBytes): void {
  const digits = from[start] === MINUS ? start + 1 : start
  const count = end - digits
  const safe = count < 16 || (count === 16 && from.compare(SAFE_MAX, 0, 16, digits, end) <= 0)
  if (safe) writeRaw(from, start, end, out)
  else writePlain(from, start, end, out)
}

/** Writes a float, which PostgreSQL prints like a JSON number. NaN, Infinity and -Infinity become strings. */
function writeFloat(from: Buffer, start: number, end: number, out: JsonBytes): void {
  if (isDigit(from[from[start] === MINUS ? start + 1 : start])) writeRaw(from, start, end, out)
  else writePlain(from, start, end, out)
}

/** Writes a number of up to 15 significant digits between 1e-300 and 1e300. Writes any other as a string. */
function writeNumeric(from: Buffer, start: number, end: number, out: JsonBytes): void {
  const digits = from[start] === MINUS ? start + 1 : start
  if (isDigit(from[digits]) && (end - digits <= 15 || isShort(from, digits, end))) writeRaw(from, start, end, out)
  else writePlain(from, start, end, out)
}

/** Returns whether a numeric is written as a number. Leading and trailing zeros do not count: 1.50 has two digits. */
function isShort(from: Buffer, start: number, end: number): boolean {
  let count = 0
  let whole = -1
  let first = -1
  let last = -1
  for (let i = start; i < end; i++) {
    const byte = from[i]
    if (byte === POINT) {
      whole = count
      continue
    }
    if (byte !== ZERO) {
      if (first < 0) first = count
      last = count
    }
    count++
  }
  if (first < 0) return true
  if (whole < 0) whole = count
  const magnitude = first < whole ? whole - first : first - whole + 1
  return last - first < 15 && magnitude <= 300
}

/** Writes a bytea, whose text is `\x` and hex digits (setting bytea_output). */
function writeBytea(from: Buffer, start: number, end: number, out: JsonBytes): void {
  out.byte(0x22)
  writeBase64(from, start + 2, end, out)
  out.byte(0x22)
}

/** The hex digits of one slice: a multiple of 6, so that the base64 texts of the slices can be concatenated. */
const HEX_AT_ONCE = AT_ONCE - (AT_ONCE % 6)

writeBytea.inSlices = function* (from: Buffer, start: number, end: number, out: JsonBytes): Generator<undefined, void> {
  yield* out.makeRoom(end - start)
  out.byte(0x22)
  for (let at = start + 2; at < end; at += HEX_AT_ONCE) {
    writeBase64(from, at, Math.min(end, at + HEX_AT_ONCE), out)
    yield
  }
  out.byte(0x22)
}

function writeBase64(from: Buffer, start: number, end: number, out: JsonBytes): void {
  const into = out.room(Math.ceil((end - start) / 6) * 4)
  let at = out.length
  for (let i = start; i < end; i += 6) {
    const left = Math.min(6, end - i) / 2
    const bits =
      (byteOf(from, i) << 16) | ((left > 1 ? byteOf(from, i + 2) : 0) << 8) | (left > 2 ? byteOf(from, i + 4) : 0)
    into[at++] = BASE64[bits >> 18] ?? 0
    into[at++] = BASE64[(bits >> 12) & 63] ?? 0
    into[at++] = left > 1 ? (BASE64[(bits >> 6) & 63] ?? 0) : 0x3d
    into[at++] = left > 2 ? (BASE64[bits & 63] ?? 0) : 0x3d
  }
  out.length = at
}

function byteOf(from: Buffer, at: number): number {
  return (nibble(from[at] ?? 0) << 4) | nibble(from[at + 1] ?? 0)
}

function nibble(byte: number): number {
  return byte <= 0x39 ? byte - ZERO : (byte & 0xf) + 9
}

/**
 * Writes a timestamp as RFC 3339. PostgreSQL's text (`2024-01-01 10:00:00.5`) differs only by the space. Infinity, BC
 * and years over 9999 stay as PostgreSQL prints them.
 */
function writeTimestamp(from: Buffer, start: number, end: number, out: JsonBytes): void {
  if (isMoment(from, start, end)) writeMoment(from, start, end, out)
  else writeText(from, start, end, out)
}

/** Writes a timestamptz. The session's time zone is UTC, so a time that RFC 3339 can express ends in +00. */
function writeTimestamptz(from: Buffer, start: number, end: number, out: JsonBytes): void {
  const zone = end - 3
  const utc = from[zone] === PLUS && from[zone + 1] === ZERO && from[zone + 2] === ZERO
  if (!utc || !isMoment(from, start, zone)) return writeText(from, start, end, out)
  writeMoment(from, start, zone, out)
  out.bytes[out.length - 1] = 0x5a
  out.byte(0x22)
}

function isMoment(from: Buffer, start: number, end: number): boolean {
  return (
    from[start + 4] === DASH &&
    from[start + 7] === DASH &&
    from[start + 10] === SPACE &&
    from[start + 13] === COLON &&
    from[start + 16] === COLON &&
    (end === start + 19 || (end > start + 20 && from[start + 19] === POINT && isDigit(from[end - 1])))
  )
}

function writeMoment(from: Buffer, start: number, end: number, out: JsonBytes): void {
  const space = out.length + 11
  writePlain(from, start, end, out)
  out.bytes[space] = 0x54
}

export const WRITERS: Readonly<Record<Form, WriteValue>> = {
  text: writeText,
  bool: writeBool,
  integer: writeRaw,
  int8: writeInt8,
  numeric: writeNumeric,
  float: writeFloat,
  bytea: writeBytea,
  json: writeRaw,
  timestamp: writeTimestamp,
  timestamptz: writeTimestamptz,
}
