// Finds the type of each column of an answer by its oid, and the function that writes its values. User-defined types
// (enums, composites, arrays of them, types of extensions) are looked up once in pg_type.
import type { BuiltinType } from './json-form-by-type.ts'
import { BUILTIN_TYPES } from './json-form-by-type.ts'
import { writeText, type WriteValue } from '../../json-bytes.ts'
import { arrayWriter, compositeWriter } from './write-nested-value.ts'
import { WRITERS } from './write-scalar-value.ts'

export interface ColumnType {
  /** The database's name for the type. An array type is named after its elements, with []. */
  readonly name: string
  readonly write: WriteValue
}

const builtin = new Map<number, ColumnType>(BUILTIN_TYPES.flatMap(builtinEntries))

function builtinEntries(type: BuiltinType): [number, ColumnType][] {
  const write = WRITERS[type.form]
  const scalar: [number, ColumnType] = [type.oid, { name: type.name, write }]
  if (type.arrayOid === 0) return [scalar]
  const list = arrayWriter(write, type.delimiter.charCodeAt(0))
  return [scalar, [type.arrayOid, { name: `${type.name}[]`, write: list }]]
}

/** The known types of one database: the built-in ones, and those that were looked up. */
export class TypeBook {
  readonly #learned = new Map<number, ColumnType>()

  find(oid: number): ColumnType | undefined {
    return builtin.get(oid) ?? this.#learned.get(oid)
  }

  /** Reads the answer to lookUpSql(). Values of a type that pg_type does not have count as text. */
  learn(asked: readonly number[], rows: readonly (readonly (string | null)[])[]): void {
    const entries = new Map<number, TypeRow>()
    for (const row of rows) readRow(row, entries)
    for (const oid of [...entries.keys(), ...asked]) this.#resolve(oid, entries, 0)
  }

  #resolve(oid: number, entries: ReadonlyMap<number, TypeRow>, depth: number): ColumnType {
    const known = this.find(oid)
    if (known !== undefined) return known
    const entry = entries.get(oid)
    const type = entry === undefined || depth > 32 ? unknownType : this.#made(entry, entries, depth)
    this.#learned.set(oid, type)
    return type
  }

  #made(entry: TypeRow, entries: ReadonlyMap<number, TypeRow>, depth: number): ColumnType {
    const of = (oid: number): ColumnType => this.#resolve(oid, entries, depth + 1)
    if (entry.isArray) {
      const element = of(entry.element)
      return { name: `${element.name}[]`, write: arrayWriter(element.write, entry.delimiter.charCodeAt(0)) }
    }
    if (entry.kind === 'd') return { name: entry.name, write: of(entry.base).write }
    if (entry.kind === 'c') {
      const attributes = entry.attributes.map(({ name, oid }) => ({ name, write: of(oid).write }))
      return { name: entry.name, write: compositeWriter(attributes) }
    }
    return { name: entry.name, write: writeText }
  }
}

const unknownType: ColumnType = { name: 'unknown', write: writeText }

interface TypeRow {
  readonly name: string
  readonly kind: string
  readonly isArray: boolean
  readonly element: number
  readonly delimiter: string
  readonly base: number
  readonly attributes: { readonly name: string; readonly oid: number }[]
}

function readRow(row: readonly (string | null)[], into: Map<number, TypeRow>): void {
  const [oid, name, kind, isArray, element, delimiter, base, attribute, attributeOid] = row
  const key = Number(oid)
  const entry = into.get(key) ?? {
    name: name ?? '',
    kind: kind ?? '',
    isArray: isArray === 't',
    element: Number(element),
    delimiter: delimiter ?? ',',
    base: Number(base),
    attributes: [],
  }
  into.set(key, entry)
  if (typeof attribute === 'string') entry.attributes.push({ name: attribute, oid: Number(attributeOid) })
}

/** Returns SQL that looks up these types and the types of their parts, with attributes in order. */
export function lookUpSql(oids: readonly number[]): string {
  const list = oids.map((oid) => String(Math.trunc(oid))).join(',')
  return `WITH RECURSIVE need(oid) AS (
  SELECT t.oid FROM pg_catalog.pg_type t WHERE t.oid IN (${list})
  UNION
  SELECT x.oid FROM need n JOIN pg_catalog.pg_type t ON t.oid = n.oid CROSS JOIN LATERAL (
    SELECT t.typelem WHERE t.typelem <> 0 UNION ALL SELECT t.typbasetype WHERE t.typbasetype <> 0 UNION ALL
    SELECT a.atttypid FROM pg_catalog.pg_attribute a
    WHERE a.attrelid = t.typrelid AND t.typrelid <> 0 AND a.attnum > 0 AND NOT a.attisdropped
  ) x(oid)
)
SELECT t.oid, t.typname, t.typtype, t.typelem <> 0 AND t.typsubscript = 'pg_catalog.array_subscript_handler'::pg_catalog.regproc,
  t.typelem, t.typdelim, t.typbasetype, a.attname, a.atttypid
FROM need n JOIN pg_catalog.pg_type t ON t.oid = n.oid
LEFT JOIN pg_catalog.pg_attribute a
  ON a.attrelid = t.typrelid AND t.typrelid <> 0 AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY t.oid, a.attnum`
}
