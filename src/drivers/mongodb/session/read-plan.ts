// Reads the server's answer to explain. Parts that the cost does not depend on are not decoded, because rejected plans
// and the bounds of index scans may have megabytes.
import { endOfName, lengthAt, sizeOf } from './write-value.ts'

export type PlanNode = Readonly<Record<string, unknown>>

const [DOUBLE, STRING, DOCUMENT, ARRAY, INT, LONG] = [0x01, 0x02, 0x03, 0x04, 0x10, 0x12]
const SKIPPED: ReadonlySet<string> = new Set(['command', 'indexBounds', 'parsedQuery', 'rejectedPlans'])
/** MongoDB sends at most 200 levels. */
const DEPTH_MAX = 250
const EMPTY_BYTES = 5

/**
 * Keeps strings, numbers, arrays and documents. Other values become null. For a filter, keeps only whether it is empty.
 * Throws RangeError for invalid BSON.
 */
export function readPlan(bytes: Uint8Array): PlanNode {
  return readDocument(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), 0, 0)
}

function readDocument(from: Buffer, start: number, depth: number): PlanNode {
  // A query may have a field `__proto__`.
  const node: Record<string, unknown> = Object.create(null)
  eachField(from, start, depth, (name, type, at) => {
    if (SKIPPED.has(name)) return
    if (name === 'filter' && type === DOCUMENT) node[name] = lengthAt(from, at) > EMPTY_BYTES ? { any: true } : {}
    else node[name] = readValue(type, from, at, depth)
  })
  return node
}

function readValue(type: number, from: Buffer, at: number, depth: number): unknown {
  switch (type) {
    case DOUBLE:
      return from.readDoubleLE(at)
    case STRING:
      return from.toString('utf8', at + 4, at + 4 + lengthAt(from, at) - 1)
    case DOCUMENT:
      return readDocument(from, at, depth + 1)
    case ARRAY: {
      const all: unknown[] = []
      eachField(from, at, depth + 1, (_, kind, start) => all.push(readValue(kind, from, start, depth + 1)))
      return all
    }
    case INT:
      return from.readInt32LE(at)
    case LONG:
      return Number(from.readBigInt64LE(at))
    default:
      return null
  }
}

function eachField(
  from: Buffer,
  start: number,
  depth: number,
  visit: (name: string, type: number, at: number) => void,
): void {
  if (depth > DEPTH_MAX) throw new RangeError('a plan that is nested too deeply')
  const end = start + lengthAt(from, start) - 1
  for (let at = start + 4; at < end;) {
    const type = from[at] ?? 0
    const stop = endOfName(from, at + 1)
    const size = sizeOf(type, from, stop + 1)
    visit(from.toString('utf8', at + 1, stop), type, stop + 1)
    at = stop + 1 + size
  }
}
