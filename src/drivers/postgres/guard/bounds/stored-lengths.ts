// Prints a limit on the length of stored values, for a query that makes many copies of them (made-values.ts). The
// sub-select of each table gets a condition that fails the query at the first row with a longer value. The condition has
// the form … IS NOT NULL, of which the planner expects that nearly all rows meet it.
import type { TypeName } from '../../captured-facts.ts'
import type { Node, Struct } from '../allowed/allowed-nodes.ts'
import type { Exposed } from '../exposed.ts'
import { call, either, onlyIf, operator, whole } from '../node-builders.ts'
import { bytesAsText, failure, isMore, bigOctets, type Bound } from './argument-bounds.ts'
import type { Lengths } from '../walk/scope.ts'

/** A column of a table, as its sub-select prints it. */
export interface PrintedColumn {
  readonly node: Node
  readonly type: TypeName
}

/** Returns the condition that no value of a row is longer. Undefined if no column may be so long. */
export function noLongerThan(
  exposed: Exposed,
  columns: readonly PrintedColumn[],
  { storedMax, digitsMax }: Lengths,
): Node | undefined {
  const conditions = [
    storedMax === undefined
      ? undefined
      : noneMore(
          columns.flatMap((each) => lengthOf(exposed, each)),
          storedMax,
        ),
    digitsMax === undefined
      ? undefined
      : noneMore(
          columns.flatMap((each) => digitsOf(exposed, each)),
          digitsMax,
        ),
  ].filter((each) => each !== undefined)
  return conditions.length === 2 ? { BoolExpr: { boolop: 'AND_EXPR', args: conditions } } : conditions[0]
}

function noneMore(sizes: readonly Node[], most: number): Node | undefined {
  const [only, second] = sizes
  if (!only) return undefined
  const size: Node = second ? { MinMaxExpr: { op: 'IS_GREATEST', args: sizes } } : only
  const bound: Bound = { what: 'stored_value', size, most }
  const checked = either(isMore(bound), failure(bound), whole(0))
  return { NullTest: { arg: checked, nulltesttype: 'IS_NOT_NULL' } }
}

/** A value of another type may take this many times the bytes of its text. */
const TEXT_TIMES = 4

/** A number with fewer bytes, and between these ends, is short. Compression makes others shorter. */
const SHORT_NUMBER = 48
const ENDS = ['1e300', '-1e300'] as const

/** Returns the digits of a number, or NULL for a short one: most need not be written as text. */
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

function lengthOf(exposed: Exposed, { node, type }: PrintedColumn): Node[] {
  const below = belowDomains(exposed, type)
  if (below === undefined || below === 'numeric') return []
  // The length of a text is known without reading the text.
  if (TEXTS.has(below)) return [bigOctets(node)]
  return [operator('*', bytesAsText(node), whole(TEXT_TIMES))]
}

/**
 * What the type of a stored column says about its values: `fixed` are short, `text` are strings, `numeric` are numbers.
 * Operators that compare values of `freed` free what they have decompressed. `other` is every other type.
 */
export type StoredKind = 'fixed' | 'numeric' | 'text' | 'freed' | 'other'

const KINDS = new WeakMap<object, StoredKind>()

/** Records the type of a column in the sub-select that reads its table. */
export function noteStored(exposed: Exposed, { ColumnRef: ref }: Node, type: TypeName): void {
  if (!ref) return
  const below = belowDomains(exposed, type)
  const isFreed = below?.startsWith('_') === true || FREED.has(below ?? '')
  const kind = TEXTS.has(below ?? '') ? 'text' : below === 'numeric' ? 'numeric' : isFreed ? 'freed' : 'other'
  KINDS.set(ref, below === undefined ? 'fixed' : kind)
}

/** Returns what noteStored() has recorded. Undefined for a reference that does not read a table itself. */
export function storedKind(ref: Struct<'ColumnRef'>): StoredKind | undefined {
  return KINDS.get(ref)
}

const TEXTS: ReadonlySet<string> = new Set(['text', 'varchar', 'bpchar', 'bytea'])
const FREED: ReadonlySet<string> = new Set(['jsonb', 'bit', 'varbit', 'tsvector'])
/** Types whose values are short. */
const SHORT: ReadonlySet<string> = new Set([
  ...['bool', 'char', 'int2', 'int4', 'int8', 'float4', 'float8', 'money', 'oid', 'xid', 'xid8', 'name', 'uuid'],
  ...['date', 'time', 'timetz', 'timestamp', 'timestamptz', 'interval', 'inet', 'cidr', 'macaddr', 'macaddr8'],
  ...['point', 'box', 'circle', 'line', 'lseg', 'pg_lsn', 'tid'],
  ...['int4range', 'int8range', 'daterange', 'tsrange', 'tstzrange'],
])

/**
 * Returns the name of a type without its domains, with its schema if that is not pg_catalog. Returns undefined for a type
 * whose values are short.
 */
function belowDomains(exposed: Exposed, type: TypeName): string | undefined {
  if (type.schema === 'pg_catalog') return SHORT.has(type.name) ? undefined : type.name
  const captured = exposed.type(type.schema, type.name)
  if (captured?.kind === 'enum') return undefined
  if (captured?.kind === 'domain' && captured.of) return belowDomains(exposed, captured.of)
  return `${type.schema}.${type.name}`
}
