// Converts stored values from BSON to JSON, both as bytes (docs/contract.md#values, docs/drivers/mongodb.md#values).
// One bad stored value must never fail a query. The client library's reader would throw for dates outside JavaScript's
// range, invalid UTF-8 and unusual regular expressions, so it is not used.
import { writeText, type JsonBytes } from '../../json-bytes.ts'
import { writeDecimal } from './decimal128.ts'

/** The deprecated type undefined (6) counts as null. */
export const ALIASES: Readonly<Record<number, string>> = {
  0x01: 'double',
  0x02: 'string',
  0x03: 'object',
  0x04: 'array',
  0x05: 'binData',
  0x06: 'null',
  0x07: 'objectId',
  0x08: 'bool',
  0x09: 'date',
  0x0a: 'null',
  0x0b: 'regex',
  0x0c: 'dbPointer',
  0x0d: 'javascript',
  0x0e: 'symbol',
  0x0f: 'javascript',
  0x10: 'int',
  0x11: 'timestamp',
  0x12: 'long',
  0x13: 'decimal',
  0x7f: 'maxKey',
  0xff: 'minKey',
}

const DATE_MAX = 8_640_000_000_000_000
const UUID_DASHES = new Set([4, 6, 8, 10])
/** Deeper values are not written. MongoDB stores at most 200 levels. */
const DEPTH_MAX = 250
const NAME_USUAL = 256

/** A name ends at the next NUL. Throws RangeError if there is none. */
export function endOfName(from: Buffer, start: number): number {
  // Most names are short, so a loop is faster than a call into the runtime.
  const near = Math.min(from.length, start + NAME_USUAL)
  for (let at = start; at < near; at++) if (from[at] === 0) return at
  const end = near < from.length ? from.indexOf(0, near) : -1
  if (end === -1) throw new RangeError('a BSON name that does not end')
  return end
}

/**
 * Returns the length at this place. Only the length of a document includes the length field itself. Throws RangeError
 * if the length goes past the end of the buffer.
 */
export function lengthAt(from: Buffer, at: number): number {
  const length = from.readInt32LE(at)
  if (length < 0 || length > from.length - at) throw new RangeError('a BSON length past the end')
  return length
}

/**
 * Returns the size of the value in bytes. Throws RangeError for an unknown type. Also throws it for a value that ends
 * after the buffer, because the missing bytes would be read as zeros.
 */
export function sizeOf(type: number, from: Buffer, at: number): number {
  const size = statedSize(type, from, at)
  if (size > from.length - at) throw new RangeError('a BSON value past the end')
  return size
}

function statedSize(type: number, from: Buffer, at: number): number {
  switch (type) {
    case 0x01:
    case 0x09:
    case 0x11:
    case 0x12:
      return 8
    case 0x02:
    case 0x0d:
    case 0x0e:
      return 4 + lengthAt(from, at)
    case 0x03:
    case 0x04:
    case 0x0f:
      return lengthAt(from, at)
    case 0x05:
      return 5 + lengthAt(from, at)
    case 0x06:
    case 0x0a:
    case 0x7f:
    case 0xff:
      return 0
    case 0x07:
      return 12
    case 0x08:
      return 1
    case 0x0b:
      return endOfName(from, endOfName(from, at) + 1) + 1 - at
    case 0x0c:
      return 4 + lengthAt(from, at) + 12
    case 0x10:
      return 4
    case 0x13:
      return 16
    default:
      throw new RangeError(`a BSON type ${type}`)
  }
}

/** The bytes of an empty document. */
const SCOPE_MIN = 5

/** Returns where the text of code with a scope ends. Throws RangeError if there is no room for the scope. */
export function endOfCode(from: Buffer, at: number, size: number): number {
  const length = lengthAt(from, at + 4)
  if (8 + length + SCOPE_MIN > size) throw new RangeError('BSON code past its end')
  return at + 8 + length - 1
}

/** `size` comes from sizeOf(). */
export function writeValue(type: number, from: Buffer, at: number, size: number, out: JsonBytes, depth = 0): void {
  switch (type) {
    case 0x01:
      return writeDouble(from.readDoubleLE(at), out)
    case 0x02:
    case 0x0d:
    case 0x0e:
      return writeText(from, at + 4, at + size - 1, out)
    case 0x03:
      return writeDocument(from, at, out, depth + 1)
    case 0x04:
      return writeArray(from, at, out, depth + 1)
    case 0x05:
      return writeBinary(from, at, out)
    case 0x07:
      return writeObjectId(from, at, out)
    case 0x08:
      return writeAscii(from[at] === 0 ? 'false' : 'true', out)
    case 0x09:
      return writeDate(from, at, out)
    case 0x0b:
      return writePattern(from, at, out)
    case 0x0c:
      return writePointer(from, at, size, out)
    case 0x0f:
      return writeText(from, at + 8, endOfCode(from, at, size), out)
    case 0x10:
      return writeAscii(String(from.readInt32LE(at)), out)
    case 0x11:
      return writeAscii(`{"t":${from.readUInt32LE(at + 4)},"i":${from.readUInt32LE(at)}}`, out)
    case 0x12:
      return writeLong(from, at, out)
    case 0x13:
      return writeAscii(writeDecimal(from.readBigUInt64LE(at), from.readBigUInt64LE(at + 8)), out)
    case 0x7f:
      return writeAscii('"MaxKey"', out)
    case 0xff:
      return writeAscii('"MinKey"', out)
    default:
      return writeAscii('null', out)
  }
}

export function writeAscii(text: string, out: JsonBytes): void {
  const into = out.room(text.length)
  let at = out.length
  if (text.length > 64) at += into.write(text, at, 'latin1')
  else for (let i = 0; i < text.length; i++) into[at++] = text.charCodeAt(i)
  out.length = at
}

const HEX = Buffer.from('0123456789abcdef', 'latin1')

function writeObjectId(from: Buffer, start: number, out: JsonBytes): void {
  const into = out.room(26)
  let at = out.length
  into[at++] = 0x22
  for (let i = start; i < start + 12; i++) {
    const byte = from[i] ?? 0
    into[at++] = HEX[byte >> 4] ?? 0
    into[at++] = HEX[byte & 15] ?? 0
  }
  into[at++] = 0x22
  out.length = at
}

function writeDocument(from: Buffer, start: number, out: JsonBytes, depth: number): void {
  if (depth > DEPTH_MAX) throw new RangeError('a document that is nested too deeply')
  const end = start + from.readInt32LE(start) - 1
  out.byte(0x7b)
  for (let at = start + 4, n = 0; at < end; n++) {
    const type = from[at] ?? 0
    const name = at + 1
    const nameEnd = endOfName(from, name)
    if (n > 0) out.byte(0x2c)
    writeText(from, name, nameEnd, out)
    out.byte(0x3a)
    const size = sizeOf(type, from, nameEnd + 1)
    writeValue(type, from, nameEnd + 1, size, out, depth)
    at = nameEnd + 1 + size
  }
  out.byte(0x7d)
}

function writeArray(from: Buffer, start: number, out: JsonBytes, depth: number): void {
  if (depth > DEPTH_MAX) throw new RangeError('a document that is nested too deeply')
  const end = start + from.readInt32LE(start) - 1
  out.byte(0x5b)
  for (let at = start + 4, n = 0; at < end; n++) {
    const type = from[at] ?? 0
    const value = endOfName(from, at + 1) + 1
    if (n > 0) out.byte(0x2c)
    const size = sizeOf(type, from, value)
    writeValue(type, from, value, size, out, depth)
    at = value + size
  }
  out.byte(0x5d)
}

function writeDouble(value: number, out: JsonBytes): void {
  if (Number.isFinite(value)) writeAscii(String(value), out)
  else writeAscii(Number.isNaN(value) ? '"NaN"' : value > 0 ? '"Infinity"' : '"-Infinity"', out)
}

function writeUuid(from: Buffer, start: number, out: JsonBytes): void {
  const into = out.room(38)
  let at = out.length
  into[at++] = 0x22
  for (let i = 0; i < 16; i++) {
    if (UUID_DASHES.has(i)) into[at++] = 0x2d
    const byte = from[start + i] ?? 0
    into[at++] = HEX[byte >> 4] ?? 0
    into[at++] = HEX[byte & 15] ?? 0
  }
  into[at++] = 0x22
  out.length = at
}

/** Below this limit of its high 32 bits, a 64-bit integer is exact as a JavaScript number. */
const HIGH_MAX = 2 ** 21

function writeLong(from: Buffer, at: number, out: JsonBytes): void {
  const high = from.readInt32LE(at + 4)
  const number = high * 2 ** 32 + from.readUInt32LE(at)
  const isSafe = high >= -HIGH_MAX && high < HIGH_MAX && Number.isSafeInteger(number)
  writeAscii(isSafe ? String(number) : `"${from.readBigInt64LE(at)}"`, out)
}

function writeDate(from: Buffer, at: number, out: JsonBytes): void {
  const high = from.readInt32LE(at + 4)
  const ms = high * 2 ** 32 + from.readUInt32LE(at)
  const isWithin = high >= -HIGH_MAX && high < HIGH_MAX && ms >= -DATE_MAX && ms <= DATE_MAX
  const text = isWithin ? `"${new Date(ms).toISOString()}"` : `{"$date":{"$numberLong":"${from.readBigInt64LE(at)}"}}`
  writeAscii(text, out)
}

function writeBinary(from: Buffer, at: number, out: JsonBytes): void {
  const subType = from[at + 4]
  // In subtype 2, the data starts with the length again.
  const start = subType === 2 ? at + 9 : at + 5
  const end = at + 5 + from.readInt32LE(at)
  if (subType === 4 && end - start === 16) return writeUuid(from, start, out)
  writeAscii(`"${from.toString('base64', start, Math.max(start, end))}"`, out)
}

function writePattern(from: Buffer, at: number, out: JsonBytes): void {
  const end = endOfName(from, at)
  const text = Buffer.concat([
    Buffer.from('/'),
    from.subarray(at, end),
    Buffer.from('/'),
    from.subarray(end + 1, endOfName(from, end + 1)),
  ])
  writeText(text, 0, text.length, out)
}

/** Writes the deprecated type DBPointer as a DBRef document. */
function writePointer(from: Buffer, at: number, size: number, out: JsonBytes): void {
  writeAscii('{"$ref":', out)
  writeText(from, at + 4, at + size - 13, out)
  writePointerId(from, at, size, out)
}

export function writePointerId(from: Buffer, at: number, size: number, out: JsonBytes): void {
  writeAscii(`,"$id":"${from.toString('hex', at + size - 12, at + size)}"}`, out)
}
