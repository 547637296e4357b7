// Writes large values in slices and yields to the event loop in between. The output is the same as that of
// writeValue().
import { setImmediate } from 'node:timers/promises'
import { AT_ONCE, writeBodyInSlices, writeText, type JsonBytes } from '../../json-bytes.ts'
import { endOfCode, endOfName, lengthAt, sizeOf, writeAscii, writePointerId, writeValue } from './write-value.ts'

/** The bytes of one slice. A multiple of 3, so that the base64 texts of the slices can be concatenated. */
const BASE64_AT_ONCE = 3 * 16 * 1024

/**
 * Yields to the event loop at each pause. Returns a promise only if the work pauses. If the signal aborts, throws its
 * reason.
 */
export function runInSlices<T>(work: Generator<undefined, T>, at: { readonly signal: AbortSignal }): T | Promise<T> {
  const step = work.next()
  return step.done === true ? step.value : resumed(work, at.signal)
}

async function resumed<T>(work: Generator<undefined, T>, signal: AbortSignal): Promise<T> {
  for (;;) {
    await setImmediate()
    signal.throwIfAborted()
    const step = work.next()
    if (step.done === true) return step.value
  }
}

/** Like writeValue(), but yields after about each AT_ONCE bytes. */
export function* writeLarge(
  type: number,
  from: Buffer,
  at: number,
  size: number,
  out: JsonBytes,
  depth = 0,
): Generator<undefined, void> {
  if (size <= AT_ONCE) return writeValue(type, from, at, size, out, depth)
  switch (type) {
    case 0x02:
    case 0x0d:
    case 0x0e:
      return yield* writeText.inSlices(from, at + 4, at + size - 1, out)
    case 0x03:
    case 0x04:
      return yield* writeEach(type, from, at, out, depth + 1)
    case 0x05:
      return yield* writeLargeBinary(from, at, out)
    case 0x0b:
      return yield* writeLargePattern(from, at, out)
    case 0x0c:
      return yield* writeLargePointer(from, at, size, out)
    case 0x0f:
      return yield* writeText.inSlices(from, at + 8, endOfCode(from, at, size), out)
    default:
      return writeValue(type, from, at, size, out, depth)
  }
}

/** Deeper values are not written. MongoDB stores at most 200 levels. */
const DEPTH_MAX = 250

function* writeEach(
  type: number,
  from: Buffer,
  start: number,
  out: JsonBytes,
  depth: number,
): Generator<undefined, void> {
  if (depth > DEPTH_MAX) throw new RangeError('a document that is nested too deeply')
  const isDocument = type === 0x03
  const end = start + from.readInt32LE(start) - 1
  let pause = start + AT_ONCE
  out.byte(isDocument ? 0x7b : 0x5b)
  for (let at = start + 4, n = 0; at < end; n++) {
    const kind = from[at] ?? 0
    const nameEnd = endOfName(from, at + 1)
    if (n > 0) out.byte(0x2c)
    if (isDocument) {
      if (nameEnd - at <= AT_ONCE) writeText(from, at + 1, nameEnd, out)
      else yield* writeText.inSlices(from, at + 1, nameEnd, out)
      out.byte(0x3a)
    }
    const size = sizeOf(kind, from, nameEnd + 1)
    if (size <= AT_ONCE) writeValue(kind, from, nameEnd + 1, size, out, depth)
    else yield* writeLarge(kind, from, nameEnd + 1, size, out, depth)
    at = nameEnd + 1 + size
    if (at < pause) continue
    yield* out.nextSlice()
    pause = at + AT_ONCE
  }
  out.byte(isDocument ? 0x7d : 0x5d)
}

function* writeLargePattern(from: Buffer, at: number, out: JsonBytes): Generator<undefined, void> {
  const end = endOfName(from, at)
  writeAscii('"/', out)
  yield* writeBodyInSlices(from, at, end, out)
  writeAscii('/', out)
  yield* writeBodyInSlices(from, end + 1, endOfName(from, end + 1), out)
  out.byte(0x22)
}

function* writeLargePointer(from: Buffer, at: number, size: number, out: JsonBytes): Generator<undefined, void> {
  writeAscii('{"$ref":', out)
  yield* writeText.inSlices(from, at + 4, at + size - 13, out)
  writePointerId(from, at, size, out)
}

/** In subtype 2, the data starts with the length again. */
function* writeLargeBinary(from: Buffer, at: number, out: JsonBytes): Generator<undefined, void> {
  const end = at + 5 + lengthAt(from, at)
  out.byte(0x22)
  for (let part = from[at + 4] === 2 ? at + 9 : at + 5; part < end; part += BASE64_AT_ONCE) {
    writeAscii(from.toString('base64', part, Math.min(end, part + BASE64_AT_ONCE)), out)
    yield* out.nextSlice()
  }
  out.byte(0x22)
}
