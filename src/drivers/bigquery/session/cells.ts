// The cells of a row, {f: [{v: …}, …]}, to a JSON array: arrays and structs by their schema, since the form of a value says
// nothing of its type. Only over bytes that json-scan's endOfValue() went over.
import type { ColumnType } from '../capture.ts'
import type { JsonBytes } from '../../json-bytes.ts'
import { Unreadable } from './exchange.ts'
import { endOfValue, firstOf, isArray, isNull, nextOf, skipSpace, valueOf } from './json-scan.ts'
import { scalarWriter } from './scalars.ts'

/** Writes the value that begins at `at`; answers where it ends. */
type WriteCell = (json: Buffer, at: number, out: JsonBytes) => number

const COMMA = 0x2c
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d]
const F = 0x66
const V = 0x76

/** Writes the row that begins at `at`; answers where it ends. Throws Unreadable for one of another shape. */
export type WriteRow = (json: Buffer, at: number, out: JsonBytes) => number

export function rowWriter(columns: readonly ColumnType[]): WriteRow {
  const cells = columns.map(cellWriter)
  return (json, at, out) => writeCells(json, at, cells, null, out)
}

function cellWriter(type: ColumnType): WriteCell {
  const single = type.name === 'STRUCT' ? structWriter(type) : plainWriter(type.name)
  return type.repeated ? arrayWriter(single) : single
}

function plainWriter(name: string): WriteCell {
  const write = scalarWriter(name)
  return (json, at, out) => {
    const end = endOfValue(json, at)
    if (isNull(json, at)) writeNull(out)
    else if (json[at] === OPEN_ARRAY || json[at] === OPEN_OBJECT) throw new Unreadable(`a ${name} of many parts`)
    else write(json, at, end, out)
    return end
  }
}

/** An array that is NULL arrives as an empty one, mostly; it is shown as one always. */
function arrayWriter(element: WriteCell): WriteCell {
  return (json, at, out) => {
    out.byte(OPEN_ARRAY)
    let end = at
    if (isNull(json, at)) end = endOfValue(json, at)
    else if (!isArray(json, at)) throw new Unreadable('an array that is none')
    else {
      let each = firstOf(json, at)
      end = each === null ? skipSpace(json, at + 1) : at
      for (let n = 0; each !== null; n++) {
        if (n > 0) out.byte(COMMA)
        end = behind(json, each, element(json, valueOf(json, each, V), out))
        each = nextOf(json, end)
      }
      end = skipSpace(json, end) + 1
    }
    out.byte(CLOSE_ARRAY)
    return end
  }
}

function structWriter(type: ColumnType): WriteCell {
  const fields = type.fields.map(cellWriter)
  const keys = keysOf(type.fields.map(({ field }) => field)).map((key) => Buffer.from(`${JSON.stringify(key)}:`))
  return (json, at, out) => {
    if (!isNull(json, at)) return writeCells(json, at, fields, keys, out)
    writeNull(out)
    return endOfValue(json, at)
  }
}

/** A name that comes again gets _1, _2 …; an empty one is _field_N, N its place from 1. */
function keysOf(names: readonly string[]): readonly string[] {
  const taken = new Set(names)
  const used = new Set<string>()
  return names.map((name, n) => {
    let key = name === '' ? `_field_${n + 1}` : name
    const base = key
    for (let again = 1; used.has(key) || (key !== name && taken.has(key)); again++) key = `${base}_${again}`
    used.add(key)
    return key
  })
}

function writeCells(
  json: Buffer,
  start: number,
  cells: readonly WriteCell[],
  keys: readonly Buffer[] | null,
  out: JsonBytes,
): number {
  const list = valueOf(json, start, F)
  if (!isArray(json, list)) throw new Unreadable('a row without cells')
  out.byte(keys === null ? OPEN_ARRAY : OPEN_OBJECT)
  let each = firstOf(json, list)
  let end = list + 1
  for (const [n, write] of cells.entries()) {
    if (each === null) throw new Unreadable('a row with too few cells')
    if (n > 0) out.byte(COMMA)
    const key = keys?.[n]
    if (key !== undefined) {
      key.copy(out.room(key.length), out.length)
      out.length += key.length
    }
    end = behind(json, each, write(json, valueOf(json, each, V), out))
    each = nextOf(json, end)
  }
  if (each !== null) throw new Unreadable('a row with too many cells')
  out.byte(keys === null ? CLOSE_ARRAY : CLOSE_OBJECT)
  return behind(json, start, skipSpace(json, end) + 1)
}

/** Behind the object that begins at `start`, whose value of interest ended at `end`: mostly the only one. */
function behind(json: Buffer, start: number, end: number): number {
  const at = skipSpace(json, end)
  return json[at] === CLOSE_OBJECT ? at + 1 : endOfValue(json, start)
}

const NULL = Buffer.from('null')

function writeNull(out: JsonBytes): void {
  NULL.copy(out.room(4), out.length)
  out.length += 4
}
