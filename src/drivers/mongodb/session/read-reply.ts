// Reads the answer to a command that opens a cursor. Documents stay bytes.
import { endOfName, lengthAt, sizeOf } from './write-value.ts'

export interface Batch {
  /** A BSON array of documents. */
  readonly bytes: Buffer
  /** The cursor that the server keeps open for more documents. Null if there are none. */
  readonly cursor: bigint | null
}

const [DOUBLE, DOCUMENT, ARRAY, INT, LONG] = [0x01, 0x03, 0x04, 0x10, 0x12]

/**
 * Returns null if the answer is an error of the server. Throws RangeError for invalid BSON, and for any other answer.
 */
export function readReply(body: Buffer): Batch | null {
  let isOk: boolean | null = null
  let batch: Batch | null = null
  const end = lengthAt(body, 0) - 1
  for (let at = 4; at < end;) {
    const type = body[at] ?? 0
    const stop = endOfName(body, at + 1)
    const size = sizeOf(type, body, stop + 1)
    const name = body.toString('latin1', at + 1, stop)
    if (name === 'ok') isOk = isOne(type, body, stop + 1)
    if (name === 'cursor' && type === DOCUMENT) batch = readCursor(body, stop + 1)
    at = stop + 1 + size
  }
  if (isOk === false) return null
  if (isOk === null || batch === null) throw new RangeError('an answer without a cursor')
  return batch
}

function isOne(type: number, from: Buffer, at: number): boolean {
  if (type === DOUBLE) return from.readDoubleLE(at) === 1
  return (type === INT || type === LONG) && from.readInt32LE(at) === 1
}

function readCursor(from: Buffer, start: number): Batch {
  let bytes: Buffer | null = null
  let id: bigint | null = null
  const end = start + lengthAt(from, start) - 1
  for (let at = start + 4; at < end;) {
    const type = from[at] ?? 0
    const stop = endOfName(from, at + 1)
    const size = sizeOf(type, from, stop + 1)
    const name = from.toString('latin1', at + 1, stop)
    if (name === 'firstBatch' && type === ARRAY) bytes = from.subarray(stop + 1, stop + 1 + size)
    if (name === 'id' && type === LONG) id = from.readBigInt64LE(stop + 1)
    at = stop + 1 + size
  }
  if (bytes === null || id === null) throw new RangeError('a cursor without a batch or an id')
  return { bytes, cursor: id === 0n ? null : id }
}
