// Limits the length of stored values that a query copies many times (made-values.ts). The sub-select of each table gets
// a condition that fails the query at the first row whose copies would take too many bytes. The condition has the form
// … IS NOT NULL, because the planner expects that nearly all rows meet it.
import type { TypeName } from '../../captured-facts.ts'
import type { Node, Struct } from '../allowed/allowed-nodes.ts'
import type { Exposed, ExposedColumn } from '../exposed.ts'
import { call, cast, either, onlyIf, operator, whole } from '../node-builders.ts'
import { bytesAsText, failure, isMore, octets, type Bound } from './argument-bounds.ts'
import { STORED_MAX, type StoredColumn, type StoredCopies } from './made-values.ts'
import type { Lengths } from '../walk/scope.ts'

/** A column of a table, as its sub-select prints it. */
export interface PrintedColumn {
  readonly node: Node
  readonly type: TypeName
  /** Undefined for a column whose values are short. */
  readonly stored: StoredColumn | undefined
}

/** Returns the condition that the values of a row are short enough, or undefined if no limit is needed. */
export function noLongerThan(
  exposed: Exposed,
  columns: readonly PrintedColumn[],
  { copies, digitsMax }: Lengths,
): Node | undefined {
  const conditions = [
    copies && withinLimit(columns, copies),
    digitsMax === undefined ? undefined : fewerDigits(exposed, columns, digitsMax),
  ].filter((each) => each !== undefined)
  return conditions.length === 2 ? { BoolExpr: { boolop: 'AND_EXPR', args: conditions } } : conditions[0]
}

/** Returns the condition that all copies of a row's values together have at most STORED_MAX bytes. */
function withinLimit(columns: readonly PrintedColumn[], copies: StoredCopies): Node | undefined {
  const copied = columns.flatMap(({ node, stored }) => {
    const count = stored && copies.of.get(stored)
    return stored && count ? [{ node, stored, count: Math.min(Math.ceil(count), STORED_MAX) }] : []
  })
  const [first] = copied
  if (!first) return undefined
  const most = Math.max(1, Math.floor(STORED_MAX * shareOf(first.stored.table, copies)))
  const sums = new Map<number, Node>()
  for (const { node, stored, count } of copied) {
    const bytes = stored.kind === 'text' ? octets(node) : bytesOf(node, most / count, copied.length)
    const size: Node = copied.length === 1 ? bytes : { CoalesceExpr: { args: [bytes, whole(0)] } }
    const sum = sums.get(count)
    sums.set(count, sum ? operator('+', sum, size) : size)
  }
  const products = [...sums].map(([count, sum]) => operator('*', cast(sum, 'int8'), whole(count)))
  return holds({ what: 'stored_value', size: products.reduce((sum, product) => operator('+', sum, product)), most })
}

/** Returns the share of the limit for one table: its share of all copies, but at least an equal share. */
function shareOf(table: object, { of, all }: StoredCopies): number {
  const tables = new Set<object>()
  let own = 0
  for (const [column, count] of of) {
    tables.add(column.table)
    if (column.table === table) own += count
  }
  return Math.min(1, Math.max(own / all, 1 / tables.size))
}

/** Compression makes a value at most this many times shorter. */
const COMPRESSED = 100

/**
 * Returns the bytes of a value without compression, which ARRAY[x] shows. A value is not read if its stored size
 * already shows that it is short enough (even if it is compressed COMPRESSED times) or too long.
 */
function bytesOf(node: Node, most: number, count: number): Node {
  const stored = call('pg_column_size', node)
  const isUnknown: Node = {
    BoolExpr: {
      boolop: 'AND_EXPR',
      args: [
        operator('>', stored, whole(Math.floor(most / count / COMPRESSED))),
        operator('<=', stored, whole(Math.floor(most))),
      ],
    },
  }
  const read = call('pg_column_size', { A_ArrayExpr: { elements: [node] } })
  return either(isUnknown, read, stored)
}

function fewerDigits(exposed: Exposed, columns: readonly PrintedColumn[], most: number): Node | undefined {
  const args = columns.flatMap((each) => digitsOf(exposed, each))
  const [only, second] = args
  if (!only) return undefined
  return holds({ what: 'stored_value', size: second ? { MinMaxExpr: { op: 'IS_GREATEST', args } } : only, most })
}

function holds(bound: Bound): Node {
  const checked = either(isMore(bound), failure(bound), whole(0))
  return { NullTest: { arg: checked, nulltesttype: 'IS_NOT_NULL' } }
}

/** A number has few digits if it has at most this many stored bytes and is between these ends. */
const SHORT_NUMBER = 48
const ENDS = ['1e300', '-1e300'] as const

/** Returns the digits of a number, or NULL for a number that is short, because most need not be written as text. */
function digitsOf(exposed: Exposed, { node, type }: PrintedColumn): Node[] {
  if (belowDomains(exposed, type) !== 'numeric') return []
  const [highest, lowest] = ENDS.map((fval): Node => ({ A_Const: { fval: { fval } } }))
  if (!highest || !lowest) return []
  const args = [
    operator('>', call('pg_column_size', node), whole(SHORT_NUMBER)),
    operator('>', node, highest),
    operator('<', node, lowest),
  ]
  return [onlyIf({ BoolExpr: { boolop: 'OR_EXPR', args } }, bytesAsText(node))]
}

const COLUMNS = new WeakMap<object, StoredColumn>()

/** Records the type of a table's column. Returns undefined if its values need no limit on copies. */
export function noteStored(
  exposed: Exposed,
  { ColumnRef: ref }: Node,
  { type, isComputed }: Pick<ExposedColumn, 'type' | 'isComputed'>,
  table: object,
): StoredColumn | undefined {
  if (!ref) return undefined
  const below = belowDomains(exposed, type)
  const isFreed = below?.startsWith('_') === true || FREED.has(below ?? '')
  const kind = TEXTS.has(below ?? '') ? 'text' : below === 'numeric' ? 'numeric' : isFreed ? 'freed' : 'other'
  const growth = Math.max(growthOf(below ?? ''), isComputed ? COMPUTED_GROWTH : 1)
  const column: StoredColumn = { kind: below === undefined ? 'fixed' : kind, table, growth, isComputed }
  COLUMNS.set(ref, column)
  return below === undefined || kind === 'numeric' ? undefined : column
}

/** Returns what noteStored() recorded, or undefined if the reference does not read a table itself. */
export function storedColumn(ref: Struct<'ColumnRef'>): StoredColumn | undefined {
  return COLUMNS.get(ref)
}

/** An expression of a view may make a value in several steps, each a little longer. */
const COMPUTED_GROWTH = 4

/** Returns StoredColumn.growth for a type. */
function growthOf(type: string): number {
  if (AS_IS.has(type)) return 1
  if (BITS.has(type)) return 8
  if (RANGES.test(type)) return 256
  return ARRAYS.test(type) ? 16 : 2
}

const AS_IS: ReadonlySet<string> = new Set(['text', 'varchar', 'bpchar', 'json', 'xml'])
const BITS: ReadonlySet<string> = new Set(['bit', 'varbit'])
/** Multiranges and arrays of ranges: each range becomes several strings of a kilobyte. */
const RANGES = /multirange$|(?:^|\.)_.*range$/
const ARRAYS = /(?:^|\.)_/
const TEXTS: ReadonlySet<string> = new Set(['text', 'varchar', 'bpchar', 'bytea'])
const FREED: ReadonlySet<string> = new Set(['jsonb', 'bit', 'varbit', 'tsvector'])
const SHORT: ReadonlySet<string> = new Set([
  ...['bool', 'char', 'int2', 'int4', 'int8', 'float4', 'float8', 'money', 'oid', 'xid', 'xid8', 'name', 'uuid'],
  ...['date', 'time', 'timetz', 'timestamp', 'timestamptz', 'interval', 'inet', 'cidr', 'macaddr', 'macaddr8'],
  ...['point', 'box', 'circle', 'line', 'lseg', 'pg_lsn', 'tid'],
  ...['int4range', 'int8range', 'daterange', 'tsrange', 'tstzrange'],
])

/** Returns the type's name, or the name of its base type. Returns undefined if values of the type are short. */
function belowDomains(exposed: Exposed, type: TypeName): string | undefined {
  if (type.schema === 'pg_catalog') return SHORT.has(type.name) ? undefined : type.name
  const captured = exposed.type(type.schema, type.name)
  if (captured?.kind === 'enum') return undefined
  if (captured?.kind === 'domain' && captured.of) return belowDomains(exposed, captured.of)
  return `${type.schema}.${type.name}`
}
