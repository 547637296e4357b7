// Writes the cells of a row, {f: [{v: …}, …]}, as a JSON array. A value does not show its type, so the schema decides
// where arrays and structs are. The bytes must have been checked by json-scan.
import type { ColumnType } from '../captured-facts.ts'
import type { JsonBytes } from '../../json-bytes.ts'
import { Unreadable } from './http-exchange.ts'
import { endOfValue, firstOf, isArray, isNull, nextOf, overValue, skipSpace, valueOf } from './json-scan.ts'
import { scalarWriter, writeJson, writeLongText } from './write-scalar-value.ts'
import { SLICE_BYTES, type SlicePace } from './time-slices.ts'

/** Writes the value at `at`, and returns the position after it. */
type WriteShort = (json: Buffer, at: number, out: JsonBytes) => number
/** Does the same for a value that may be long: an array, JSON or a long text. Yields between two slices. */
type WriteCell = (json: Buffer, at: number, out: JsonBytes, pace: SlicePace) => number | Generator<undefined, number>

const COMMA = 0x2c
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d]
const F = 0x66
const V = 0x76

/** Throws Unreadable for a row of another format. */
export type WriteRow = WriteCell

export function rowWriter(columns: readonly ColumnType[], hasLongText: boolean): WriteRow {
  return cellsWriter(columns, null, hasLongText)
}

/** `keys` are the keys of a struct, or null for a row. */
function cellsWriter(types: readonly ColumnType[], keys: readonly Buffer[] | null, hasLongText: boolean): WriteCell {
  const short = hasLongText ? [null] : types.map(shortWriter)
  if (short.every((write) => write !== null)) return (json, at, out) => writeShort(json, at, short, keys, out)
  const cells = types.map((type) => cellWriter(type, hasLongText))
  return (json, at, out, pace) => writeLong(json, at, { cells, keys, out, pace })
}

function cellWriter(type: ColumnType, hasLongText: boolean): WriteCell {
  const single = singleWriter({ ...type, repeated: false }, hasLongText)
  return type.repeated ? arrayWriter(single) : single
}

function singleWriter(type: ColumnType, hasLongText: boolean): WriteCell {
  const short = hasLongText ? null : shortWriter(type)
  if (short !== null) return short
  if (type.name === 'JSON') return jsonWriter
  return type.name === 'STRUCT' ? structWriter(type, hasLongText) : textWriter(type.name)
}

/** Returns null if values of the type may be long. */
function shortWriter(type: ColumnType): WriteShort | null {
  if (type.repeated || type.name === 'JSON') return null
  if (type.name !== 'STRUCT') return plainWriter(type.name)
  const cells = type.fields.map(shortWriter)
  if (!cells.every((write) => write !== null)) return null
  const keys = keysOf(type)
  return (json, at, out) => (isNull(json, at) ? writeNullAt(json, at, out) : writeShort(json, at, cells, keys, out))
}

const jsonWriter: WriteCell = (json, at, out) => {
  if (isNull(json, at)) return writeNullAt(json, at, out)
  if (json[at] === OPEN_ARRAY || json[at] === OPEN_OBJECT) throw new Unreadable('a JSON value with several parts')
  return writeJson(json, at, out)
}

function plainWriter(name: string): WriteShort {
  const write = scalarWriter(name)
  return (json, at, out) => {
    requirePlain(name, json, at)
    const end = endOfValue(json, at)
    if (isNull(json, at)) writeNull(out)
    else write(json, at, end, out)
    return end
  }
}

/** Like plainWriter(), but yields between two slices of a long text. */
function textWriter(name: string): WriteCell {
  const write = scalarWriter(name)
  return function* (json, at, out) {
    requirePlain(name, json, at)
    const end = yield* overValue(json, at)
    if (isNull(json, at)) writeNull(out)
    else if (end - at <= SLICE_BYTES) write(json, at, end, out)
    else yield* writeLongText(json, at, end, out)
    return end
  }
}

function requirePlain(name: string, json: Buffer, at: number): void {
  if (json[at] === OPEN_ARRAY || json[at] === OPEN_OBJECT) throw new Unreadable(`a ${name} with several parts`)
}

/** BigQuery usually sends a NULL array as an empty array. So a NULL array is always written as an empty array. */
function arrayWriter(element: WriteCell): WriteCell {
  return function* (json, at, out, pace) {
    out.byte(OPEN_ARRAY)
    let end = at
    if (isNull(json, at)) end = endOfValue(json, at)
    else if (!isArray(json, at)) throw new Unreadable('an invalid array')
    else {
      let each = firstOf(json, at)
      end = each === null ? skipSpace(json, at + 1) : at
      for (let n = 0; each !== null; n++) {
        if (n > 0) out.byte(COMMA)
        const written = element(json, valueOf(json, each, V), out, pace)
        end = endAfter(json, each, typeof written === 'number' ? written : yield* written)
        if (pace.isDue(end)) yield* out.nextSlice()
        each = nextOf(json, end)
      }
      end = skipSpace(json, end) + 1
    }
    out.byte(CLOSE_ARRAY)
    return end
  }
}

function structWriter(type: ColumnType, hasLongText: boolean): WriteCell {
  const write = cellsWriter(type.fields, keysOf(type), hasLongText)
  return (json, at, out, pace) => (isNull(json, at) ? writeNullAt(json, at, out) : write(json, at, out, pace))
}

function keysOf({ fields }: ColumnType): readonly Buffer[] {
  return uniqueNames(fields.map(({ field }) => field)).map((key) => Buffer.from(`${JSON.stringify(key)}:`))
}

/**
 * A repeated name gets the first free ending of _1, _2 …. An empty name becomes _field_N, where N is its position from
 * 1.
 */
function uniqueNames(names: readonly string[]): readonly string[] {
  const taken = new Set(names)
  const used = new Set<string>()
  /** For each name, the first ending that may be free. */
  const next = new Map<string, number>()
  return names.map((name, n) => {
    let key = name === '' ? `_field_${n + 1}` : name
    const base = key
    let again = next.get(base) ?? 1
    for (; used.has(key) || (key !== name && taken.has(key)); again++) key = `${base}_${again}`
    next.set(base, again)
    used.add(key)
    return key
  })
}

/** Like writeLong(), without yielding. */
function writeShort(
  json: Buffer,
  start: number,
  cells: readonly WriteShort[],
  keys: readonly Buffer[] | null,
  out: JsonBytes,
): number {
  const list = openList(json, start, keys, out)
  let each = firstOf(json, list)
  let end = list + 1
  for (const [n, write] of cells.entries()) {
    if (each === null) throw new Unreadable('a row with too few cells')
    writeKey(n, keys, out)
    end = endAfter(json, each, write(json, valueOf(json, each, V), out))
    each = nextOf(json, end)
  }
  if (each !== null) throw new Unreadable('a row with too many cells')
  out.byte(keys === null ? CLOSE_ARRAY : CLOSE_OBJECT)
  return endAfter(json, start, skipSpace(json, end) + 1)
}

interface LongCells {
  readonly cells: readonly WriteCell[]
  readonly keys: readonly Buffer[] | null
  readonly out: JsonBytes
  readonly pace: SlicePace
}

/** Writes the row or struct at `start`, and returns the position after it. */
function* writeLong(json: Buffer, start: number, { cells, keys, out, pace }: LongCells): Generator<undefined, number> {
  const list = openList(json, start, keys, out)
  let each = firstOf(json, list)
  let end = list + 1
  for (const [n, write] of cells.entries()) {
    if (each === null) throw new Unreadable('a row with too few cells')
    writeKey(n, keys, out)
    const written = write(json, valueOf(json, each, V), out, pace)
    end = endAfter(json, each, typeof written === 'number' ? written : yield* written)
    if (pace.isDue(end)) yield* out.nextSlice()
    each = nextOf(json, end)
  }
  if (each !== null) throw new Unreadable('a row with too many cells')
  out.byte(keys === null ? CLOSE_ARRAY : CLOSE_OBJECT)
  return endAfter(json, start, skipSpace(json, end) + 1)
}

/** Writes the opening bracket or brace, and returns the position of the array of cells. */
function openList(json: Buffer, start: number, keys: readonly Buffer[] | null, out: JsonBytes): number {
  const list = valueOf(json, start, F)
  if (!isArray(json, list)) throw new Unreadable('a row without cells')
  out.byte(keys === null ? OPEN_ARRAY : OPEN_OBJECT)
  return list
}

function writeKey(n: number, keys: readonly Buffer[] | null, out: JsonBytes): void {
  if (n > 0) out.byte(COMMA)
  const key = keys?.[n]
  if (key === undefined) return
  key.copy(out.room(key.length), out.length)
  out.length += key.length
}

/**
 * Returns the end of the object at `start`. `end` is the end of one of its values, usually of the last one. If another
 * value follows, the object is scanned again.
 */
function endAfter(json: Buffer, start: number, end: number): number {
  const at = skipSpace(json, end)
  return json[at] === CLOSE_OBJECT ? at + 1 : endOfValue(json, start)
}

const NULL = Buffer.from('null')

function writeNull(out: JsonBytes): void {
  NULL.copy(out.room(4), out.length)
  out.length += 4
}

function writeNullAt(json: Buffer, at: number, out: JsonBytes): number {
  writeNull(out)
  return endOfValue(json, at)
}
