// Encodes arrays and named composites from PostgreSQL's text format as JSON lists and objects. A composite whose text
// does not fit the looked-up type is written as a string.
import { writeText, type JsonBytes } from '../../json-bytes.ts'
import { writeNull, type WriteValue } from './write-scalar-value.ts'

const [OPEN, CLOSE, QUOTE, BACKSLASH, BRACKET, EQUALS] = [0x7b, 0x7d, 0x22, 0x5c, 0x5b, 0x3d]
const [ROW_OPEN, ROW_CLOSE, COMMA] = [0x28, 0x29, 0x2c]
const NULL = Buffer.from('NULL')

/** Writes an array such as `{1,"a b",NULL,{…}}`. Drops its bounds (`[2:3]={…}`), which JSON cannot express. */
export function arrayWriter(element: WriteValue, delimiter: number): WriteValue {
  return (from, start, end, out) => {
    let at = start
    if (from[at] === BRACKET)
      do at++
      while (at < end && from[at - 1] !== EQUALS)
    while (at < end) {
      const byte = from[at]
      if (byte === OPEN) out.byte(0x5b)
      else if (byte === CLOSE) out.byte(0x5d)
      else if (byte === delimiter) out.byte(COMMA)
      else {
        at =
          byte === QUOTE
            ? quotedElement(from, at, end, element, out)
            : bareElement(from, at, end, element, delimiter, out)
        continue
      }
      at++
    }
  }
}

function bareElement(
  from: Buffer,
  start: number,
  end: number,
  element: WriteValue,
  delimiter: number,
  out: JsonBytes,
): number {
  let at = start
  while (at < end && from[at] !== delimiter && from[at] !== CLOSE) at++
  if (at - start === 4 && from.compare(NULL, 0, 4, start, at) === 0) writeNull(out)
  else element(from, start, at, out)
  return at
}

function quotedElement(from: Buffer, start: number, end: number, element: WriteValue, out: JsonBytes): number {
  let at = start + 1
  let escapes = 0
  while (at < end && from[at] !== QUOTE) {
    if (from[at] === BACKSLASH) {
      escapes++
      at++
    }
    at++
  }
  if (escapes === 0) element(from, start + 1, at, out)
  else {
    const plain = Buffer.allocUnsafe(at - start - 1)
    let length = 0
    for (let i = start + 1; i < at; i++) {
      if (from[i] === BACKSLASH) i++
      plain[length++] = from[i] ?? 0
    }
    element(plain, 0, length, out)
  }
  return at + 1
}

export interface AttributeWriter {
  readonly name: string
  readonly write: WriteValue
}

/**
 * Writes `(1,"a b",)` as {name: value}. An empty field is NULL. In quotes, `""` means one quote and `\\` one backslash.
 */
export function compositeWriter(attributes: readonly AttributeWriter[]): WriteValue {
  const keys = attributes.map(({ name }, i) => Buffer.from(`${i === 0 ? '' : ','}${JSON.stringify(name)}:`))
  return (from, start, end, out) => {
    const fields = rowFields(from, start, end)
    if (fields?.length !== attributes.length) return writeText(from, start, end, out)
    out.byte(OPEN)
    attributes.forEach(({ write }, i) => {
      const key = keys[i]
      const field = fields[i]
      if (key === undefined) return
      out.room(key.length)
      out.length += key.copy(out.bytes, out.length)
      if (field === undefined || field === null) writeNull(out)
      else write(field, 0, field.length, out)
    })
    out.byte(CLOSE)
  }
}

/**
 * Splits a row's text into fields. Returns null if it is not a row. Reads `()` as one NULL, although a row without
 * fields has the same text.
 */
function rowFields(from: Buffer, start: number, end: number): (Buffer | null)[] | null {
  if (from[start] !== ROW_OPEN || from[end - 1] !== ROW_CLOSE) return null
  const fields: (Buffer | null)[] = []
  const plain = Buffer.allocUnsafe(end - start)
  let length = 0
  let at = start + 1
  while (at < end) {
    const first = length
    let quoted = false
    let seen = false
    for (; at < end; at++) {
      const byte = from[at] ?? 0
      if (!quoted && (byte === COMMA || at === end - 1)) break
      if (byte === QUOTE) {
        // Inside quotes, a doubled quote means one quote. A single quote opens or closes.
        if (quoted && from[at + 1] === QUOTE) plain[length++] = from[++at] ?? 0
        else quoted = !quoted
        seen = true
      } else {
        plain[length++] = byte === BACKSLASH ? (from[++at] ?? 0) : byte
        seen = true
      }
    }
    fields.push(seen ? plain.subarray(first, length) : null)
    at++
  }
  return fields
}
