// Writes one DataRow as a JSON list. Short values are copied here, because a function call for each would take as long
// as the copy. The writer of the type writes the others.
import { AT_ONCE, copyBytes, plainUntil, writeInSlices, type JsonBytes, type WriteValue } from '../../json-bytes.ts'
import { NULL, writeNull, WRITERS } from './write-scalar-value.ts'

const [COMMA, OPEN, CLOSE, QUOTE] = [0x2c, 0x5b, 0x5d, 0x22]
/** Values of more bytes are not copied here. */
const SHORT_BYTES = 256
/** A number of up to 15 characters is neither too large nor too precise for JSON. */
const NUMBER_BYTES = 15

/** How a short value of a type is copied. */
type Copied = 'bare' | 'number' | 'text'

const COPIED: ReadonlyMap<WriteValue, Copied> = new Map([
  [WRITERS.integer, 'bare'],
  [WRITERS.json, 'bare'],
  [WRITERS.int8, 'number'],
  [WRITERS.numeric, 'number'],
  [WRITERS.float, 'number'],
  [WRITERS.text, 'text'],
])

export interface RowColumn {
  readonly write: WriteValue
  readonly copied: Copied | null
}

export function rowColumn(write: WriteValue): RowColumn {
  return { write, copied: COPIED.get(write) ?? null }
}

/**
 * Writes the row in from[start…end). Returns early, with a part of the row, if `out` exceeds `bytesMax`. Throws
 * RangeError if the row does not fit the columns.
 */
export function writeRow(
  from: Buffer,
  start: number,
  end: number,
  columns: readonly RowColumn[],
  bytesMax: number,
  out: JsonBytes,
): void {
  const source = out.source(from)
  if (source.getUint16(start) !== columns.length) throw new RangeError('a row of another length')
  let at = start + 2
  // In the row, each value has four bytes for its length. In JSON, a copied value is at most three bytes longer than
  // its text, and a null has five bytes.
  out.room(end - at + columns.length + 2)
  let into = out.view
  let to = out.length
  into.setUint8(to++, OPEN)
  for (const { copied, write } of columns) {
    const length = source.getInt32(at)
    at += 4
    if (length === -1) {
      into.setInt32(to, NULL)
      into.setUint8(to + 4, COMMA)
      to += 5
      continue
    }
    const stop = at + length
    if (length < 0 || stop > end) throw new RangeError('a value that ends behind its row')
    if (isBare(copied, source, at, stop)) to = copyBytes(source, at, stop, into, to)
    else if (copied === 'text' && length <= SHORT_BYTES && plainUntil(source, at, stop) === stop) {
      into.setUint8(to, QUOTE)
      to = copyBytes(source, at, stop, into, to + 1)
      into.setUint8(to++, QUOTE)
    } else {
      out.length = to
      write(from, at, stop, out)
      if (out.length > bytesMax) return
      out.room(end - stop + columns.length + 2)
      into = out.view
      to = out.length
    }
    into.setUint8(to++, COMMA)
    at = stop
  }
  // The last comma becomes the bracket.
  if (columns.length > 0) to--
  into.setUint8(to++, CLOSE)
  out.length = to
}

/** Writes a long row like writeRow(), and yields after each slice. */
export function* writeLongRow(
  from: Buffer,
  start: number,
  end: number,
  columns: readonly RowColumn[],
  bytesMax: number,
  out: JsonBytes,
): Generator<undefined, void> {
  if (from.readUInt16BE(start) !== columns.length) throw new RangeError('a row of another length')
  let at = start + 2
  let pause = at + AT_ONCE
  out.byte(OPEN)
  for (const [n, { write }] of columns.entries()) {
    if (n > 0) out.byte(COMMA)
    const length = from.readInt32BE(at)
    at += 4
    if (length === -1) {
      writeNull(out)
      continue
    }
    const stop = at + length
    if (length < 0 || stop > end) throw new RangeError('a value that ends behind its row')
    for (const slice of writeInSlices(write, from, at, stop, out)) {
      if (out.length > bytesMax) return
      yield slice
    }
    if (out.length > bytesMax) return
    at = stop
    if (at < pause) continue
    yield* out.nextSlice()
    pause = at + AT_ONCE
  }
  out.byte(CLOSE)
}

/** Returns whether the text of a value is also its JSON. A number ends in a digit, unlike NaN and Infinity. */
function isBare(copied: Copied | null, source: DataView, start: number, end: number): boolean {
  if (copied === 'number') return end - start <= NUMBER_BYTES && source.getUint8(end - 1) <= 0x39
  return copied === 'bare' && end - start <= SHORT_BYTES
}
