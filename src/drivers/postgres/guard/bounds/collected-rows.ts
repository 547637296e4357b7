// Bounds what a query collects in memory from rows. PostgreSQL spills sorts, joins and groups to disk, but array_agg()
// and similar aggregates, ARRAY(SELECT …), the hash tables of EXCEPT, INTERSECT and NOT IN, and the rows of a recursive
// UNION stay in memory without a limit. Only the database knows how many rows there are: a planner's estimate is easily
// misled. The printed text therefore adds up the bytes of each collected row in one counter for the whole query, a
// setting of the transaction, and fails when the sum exceeds the limit.
import { AGGREGATES } from '../allowed/allowed-functions.ts'
import { words, type Node, type SelectStmt, type Struct } from '../allowed/allowed-nodes.ts'
import { EXTENSION_COLLECTS } from '../allowed/types-and-extensions.ts'
import type { Field, SqlType } from '../walk/from-items.ts'
import { failure, isMore, isUnsteady, wholeNumber, type Bound } from './argument-bounds.ts'
import { FRAME } from '../syntax/print.ts'
import { call, cast, constant, either, onlyIf, operator, selectFrom, TRUE, whole } from '../node-builders.ts'
import { Refusal } from '../refusal.ts'
import { remembered } from './printed-size.ts'
import { columnRef, distinctNames, newAlias, type Level, type Walk } from '../walk/scope.ts'

/** The maximum number of bytes that a query may collect. */
export const COLLECTED_MAX = 268_435_456
/** The bytes that each collected row takes besides its values. */
const ROW_BYTES = 40
/** The longest text of a numeric: 131,072 digits before the point, 16,383 after it, sign and point. */
export const NUMBER_BYTES = 147_457
/** The further bytes of a row in a hash table. */
const HASH_BYTES = 56
/** A value may take this many times the size of its text: a growing text is copied, and jsonb has larger parts. */
const TEXT_TIMES = 2
const JSONB_TIMES = 4
/** The bytes that an element, a key or a container takes while jsonb is built. */
const JSONB_PART_BYTES = 96
/** The further bytes of a geometry in an aggregate of PostGIS. */
const GEOMETRY_BYTES = 64
/** The prefix of the names of the settings that hold counts. */
const SETTINGS = 'vitrine'
/** The setting that holds the bytes collected so far. */
const COUNTER = `${SETTINGS}.collected`

/** Returns whether a part of a confined query counts what it collects. */
export const hasCounter = remembered((part) => ('sval' in part && part.sval === COUNTER ? true : undefined))

/** Aggregates whose memory does not grow with the number of rows: they keep one value or a sum, or sort on disk. */
const KEEPS_ONE =
  /^(any_value|avg|bit_.*|bool_.*|corr|count|covar_.*|every|max|min|mode|percentile_.*|range_intersect_agg|regr_.*|stddev.*|sum|var.*)$/

/** Returns whether the aggregate of pg_catalog keeps the values of all rows in memory. */
export function collects(name: string): boolean {
  return AGGREGATES.has(name) && !KEEPS_ONE.test(name)
}

/** Returns whether a function of an extension, with arguments of these types, is an aggregate that keeps all rows. */
export function collectsForExtension(name: string, types: readonly (SqlType | null)[]): boolean {
  return EXTENSION_COLLECTS.has(name) && types.length === 1 && types[0]?.kind !== 'array'
}

/** Returns whether a confined call is an aggregate that keeps the values of all rows. */
export function isCollecting(call: Struct<'FuncCall'>): boolean {
  return collects(nameOf(call)) || isCounted(call)
}

/** Returns whether a confined call is an aggregate, and no window function. */
export function isAggregate(call: Struct<'FuncCall'>): boolean {
  return !call.over && (AGGREGATES.has(nameOf(call)) || isCounted(call))
}

/** Returns whether a call of an extension is an aggregate: countedCall() has given it a FILTER, which others cannot have. */
function isCounted(call: Struct<'FuncCall'>): boolean {
  return EXTENSION_COLLECTS.has(nameOf(call)) && (call.agg_filter ?? call.over) !== undefined
}

function nameOf({ funcname }: Struct<'FuncCall'>): string {
  return words(funcname).at(-1) ?? ''
}

/**
 * Returns the call of a collecting aggregate with its values counted. `call` is confined. The condition that counts
 * must not be in a sub-select: PostgreSQL evaluates a sub-select only once if it does not depend on the row. Throws
 * Refusal.
 */
export function countedCall(
  walk: Walk,
  level: Level,
  name: string,
  call: Struct<'FuncCall'>,
  at: number | undefined,
): Struct<'FuncCall'> {
  const [first, ...others] = call.args ?? []
  if (!first) return call
  const rest = others.map((value) => bytesOf(name, value))
  // PostgreSQL requires that ORDER BY of a DISTINCT aggregate repeats the argument as it is written.
  if (call.over ?? (call.agg_distinct && call.agg_order)) {
    if (isUnsteady(first) && !hasOneSize(first)) throw unsteady(name, at)
    const bytes = [bytesOf(name, first), ...rest]
    const condition = counts(name, bytes, level.sets, frameOf(walk, name, call.over))
    // The filter of a window function may contain no aggregate, so the condition is printed around the value instead.
    if (call.over) return { ...call, args: [onlyIf(condition, first), ...others] }
    return { ...call, agg_filter: both(call.agg_filter, condition) }
  }
  const { value, bytes } = measured(walk, level, name, first)
  return {
    ...call,
    args: [value, ...others],
    agg_filter: both(call.agg_filter, counts(name, [bytes, ...rest], level.sets)),
  }
}

/** Returns a value in a form in which it is computed once, and an expression for its bytes. */
function measured(walk: Walk, level: Level, name: string, value: Node): { value: Node; bytes: Node } {
  if (value.ColumnRef ?? value.A_Const ?? value.ParamRef) return { value, bytes: bytesOf(name, value) }
  const alias = newAlias(walk, 't', name)
  return { value: measuredQuery(alias, name, value, offsetOf(level, value)), bytes: numberOf(measuredIn(alias)) }
}

/** The maximum number of rows in a frame that counts as a whole. */
const FRAME_ROWS = 1_000

/** A window frame of a constant number of rows, and the setting that holds its largest size so far. */
interface Frame {
  readonly rows: number
  readonly largest: string
}

/**
 * Returns the frame of a window if its ends are constant and it has at most FRAME_ROWS rows. PostgreSQL frees the rows
 * that leave such a frame.
 */
function frameOf(walk: Walk, name: string, over: Struct<'WindowDef'> | undefined): Frame | undefined {
  const { frameOptions = 0, startOffset, endOffset } = over ?? {}
  const is = (bit: keyof typeof FRAME): boolean => (frameOptions & FRAME[bit]) !== 0
  if (!is('rows') || is('startUnboundedPreceding') || is('endUnboundedFollowing')) return undefined
  const before = is('startOffsetPreceding') ? wholeNumber(startOffset) : 0
  const after = is('endOffsetFollowing') ? wholeNumber(endOffset) : 0
  const rows = 1 + Math.abs(before ?? Infinity) + Math.abs(after ?? Infinity)
  return rows <= FRAME_ROWS ? { rows, largest: measuredIn(newAlias(walk, 't', name)) } : undefined
}

/** Returns by how many bytes a frame exceeds its largest size so far, if each of its rows has the bytes of `row`. */
function growthOf({ rows, largest }: Frame, row: Node): Node {
  const size: Node = { MinMaxExpr: { op: 'IS_GREATEST', args: [numberOf(largest), operator('*', row, whole(rows))] } }
  const stored = cast(call('set_config', constant(largest), cast(size, 'text'), TRUE), 'int8')
  // PostgreSQL evaluates the left side first, and so reads the setting before it changes.
  return operator('+', operator('-', whole(0), numberOf(largest)), stored)
}

/** Returns whether all values of an unsteady call have the same size. */
function hasOneSize({ FuncCall: call }: Node): boolean {
  return /^(?:random|clock_timestamp|gen_random_uuid|uuidv[47])$/.test(words(call?.funcname).at(-1) ?? '')
}

function unsteady(name: string, at: number | undefined): Refusal {
  const why = `a value that differs each time cannot be collected by ${name}() in a window, or with DISTINCT and ORDER BY`
  const hint =
    'Compute the value in a sub-select, and collect its column: SELECT array_agg(x) … FROM (SELECT random() * 5 AS x …).'
  return new Refusal('limit', name, why, hint, at)
}

/**
 * Returns the OFFSET of a measured value. If the value differs each time, the OFFSET refers to a column. Otherwise
 * PostgreSQL would compute a value such as random() + 1 once for all rows.
 */
function offsetOf({ shown }: Level, value: Node): Node {
  const [column] = shown.flatMap(({ items }) => items.flatMap(({ columns }) => columns.slice(0, 1)))
  if (!column || !isUnsteady(value)) return whole(0)
  return either({ NullTest: { arg: column.read(), nulltesttype: 'IS_NULL' } }, whole(0), whole(0))
}

/**
 * Returns a sub-select that computes a value once and stores its size in a setting. The filter of the aggregate runs
 * before the value is computed, so it adds the size of the previous row's value. The value is not printed twice: each
 * level of nested queries would double the text and the work, and a volatile value would differ. OFFSET keeps
 * PostgreSQL from merging the inner sub-select, which would compute the value twice.
 */
function measuredQuery(alias: string, name: string, value: Node, limitOffset: Node): Node {
  const column = columnRef(alias, 'v')
  const size = call('set_config', constant(measuredIn(alias)), cast(bytesOf(name, column), 'text'), TRUE)
  const isStored: Node = { NullTest: { arg: size, nulltesttype: 'IS_NOT_NULL' } }
  const inner: SelectStmt = {
    targetList: [{ ResTarget: { name: 'v', val: value } }],
    limitOffset,
    limitOption: 'LIMIT_OPTION_COUNT',
    op: 'SETOP_NONE',
  }
  const subselect = selectFrom([{ ResTarget: { val: onlyIf(isStored, column) } }], inner, alias, ['v'])
  return { SubLink: { subLinkType: 'EXPR_SUBLINK', subselect: { SelectStmt: subselect } } }
}

const measuredIn = (alias: string): string => `${SETTINGS}.${alias}`

/**
 * Returns the value of JSON_ARRAYAGG or JSON_OBJECTAGG, and its filter, with its values counted. `isWindow` is true
 * with OVER. Throws Refusal.
 */
export function countedJson(
  walk: Walk,
  level: Level,
  { filter, key, value, isWindow, at }: JsonAggregate,
): { value: Node | undefined; filter: Node } {
  const name = 'json_arrayagg'
  const twice = [key, isWindow ? value : undefined]
  if (twice.some((each) => each && isUnsteady(each) && !hasOneSize(each))) throw unsteady(name, at)
  const once = value && !isWindow ? measured(walk, level, 'jsonb_agg', value) : undefined
  const bytes = [key && bytesOf('jsonb_agg', key), once?.bytes ?? (value && bytesOf('jsonb_agg', value))]
  const condition = counts(
    name,
    bytes.filter((each) => each !== undefined),
    level.sets,
  )
  return { value: once?.value ?? value, filter: both(filter, condition) }
}

interface JsonAggregate {
  readonly filter: Node | undefined
  readonly key: Node | undefined
  readonly value: Node | undefined
  readonly isWindow: boolean
  readonly at: number | undefined
}

/** Returns a query with the same rows, each of which is counted. `what` names the structure that keeps the rows. */
export function countedRows(walk: Walk, query: SelectStmt, outputs: readonly Field[], what: string): SelectStmt {
  // VALUES are in the text, and a SELECT without FROM has one row.
  if (query.valuesLists || (!query.larg && !query.fromClause?.length)) return query
  const alias = newAlias(walk, 't', what)
  const names = distinctNames(outputs.map(({ name }) => name))
  const columns = outputs.map(({ name }, at): Node => {
    // A constant stays as it is written, because its type depends on the query around it.
    const written = query.larg ? undefined : query.targetList?.[at]?.ResTarget?.val
    const isUntyped = written?.A_Const ?? written?.ParamRef
    return { ResTarget: { name, val: written && isUntyped ? written : columnRef(alias, names[at] ?? name) } }
  })
  const isArray = what.endsWith('array')
  const bytes = names.flatMap((name) => {
    const column = columnRef(alias, name)
    const size = coalesced(call('pg_column_size', column))
    // A number may be short in memory, and long when the array is written as text.
    return isArray ? [size, coalesced(call('octet_length', cast(column, 'text')))] : [size]
  })
  const whereClause = counts(what, isArray ? bytes : [whole(HASH_BYTES), ...bytes])
  return { ...selectFrom(columns, query, alias, names), whereClause }
}

/** The aliases outside a query to which it refers. */
const OUTER = new WeakMap<object, ReadonlySet<string>>()

/** Returns whether the query or the expression refers to nothing outside itself. Generated aliases are unique. */
export function isClosed({ names: aliases }: Walk, query: object): boolean {
  const [defined, used] = [new Set<string>(), new Set<string>()]
  const seen = new Set<object>()
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null || seen.has(value)) return
    seen.add(value)
    const outer = OUTER.get(value)
    if (outer) {
      for (const alias of outer) used.add(alias)
      return
    }
    if ('aliasname' in value && typeof value.aliasname === 'string') defined.add(value.aliasname)
    if ('fields' in value && Array.isArray(value.fields)) {
      const [alias, column] = words(value.fields)
      // Inside the sub-select of a table, columns are printed without an alias. An alias alone is a whole row.
      if (alias !== undefined && (column !== undefined || aliases.has(alias))) used.add(alias)
    }
    for (const part of Object.values(value)) {
      if (Array.isArray(part)) part.forEach(visit)
      else visit(part)
    }
  }
  visit(query)
  const outer = used.difference(defined)
  OUTER.set(query, outer)
  return outer.size === 0
}

function bytesOf(name: string, value: Node): Node {
  if (value.A_Const) return whole(constantBytes(value.A_Const))
  if (name === 'string_agg') return operator('*', coalesced(call('octet_length', value)), whole(TEXT_TIMES))
  const isJson = name.startsWith('json') && !value.ParamRef
  if (isJson && name.startsWith('jsonb')) return jsonbBytes(value)
  const text = coalesced(call('octet_length', cast(isJson ? call('to_json', value) : value, 'text')))
  if (isJson) return operator('*', text, whole(TEXT_TIMES))
  const bytes = operator('+', text, coalesced(call('pg_column_size', value)))
  return EXTENSION_COLLECTS.has(name) ? operator('+', bytes, whole(GEOMETRY_BYTES)) : bytes
}

/** Returns the bytes of a constant as text. A number with an exponent may be as long as a number can be. */
function constantBytes({ sval, fval }: Struct<'A_Const'>): number {
  if (fval?.fval && /e/i.test(fval.fval)) return NUMBER_BYTES
  return (sval?.sval?.length ?? fval?.fval?.length ?? ROW_BYTES) * 4
}

/** Returns the bytes of jsonb while it is built from a value: its text, and a struct for each part. */
function jsonbBytes(value: Node): Node {
  const written = cast(call('to_json', value), 'text')
  const bytes = (text: Node): Node => cast(call('octet_length', text), 'int8')
  const others = bytes(call('translate', written, constant(',:[{'), constant('')))
  // The marks are the text without the other letters: TEXT * all + PART * (all - others).
  const all = operator('*', bytes(written), whole(JSONB_TIMES + JSONB_PART_BYTES))
  return coalesced(operator('-', all, operator('*', others, whole(JSONB_PART_BYTES))))
}

/** Returns a condition that adds the bytes to the counter and is true, or fails the query. */
function counts(what: string, bytes: readonly Node[], sets = 1, frame?: Frame): Node {
  const before = numberOf(COUNTER)
  const row = bytes.reduce((all, each) => operator('+', all, each), whole(ROW_BYTES))
  const added = frame ? growthOf(frame, row) : row
  const sum = operator('+', before, sets === 1 ? added : operator('*', added, whole(sets)))
  const after = cast(call('set_config', constant(COUNTER), cast(sum, 'text'), TRUE), 'int8')
  // The failing branch calls set_config() too, so that the planner does not compute it in advance.
  const found = call('set_config', constant(COUNTER), setting(COUNTER), TRUE)
  const bound: Bound = { what, size: found, most: COLLECTED_MAX }
  return either(isMore(bound, after), operator('=', failure(bound), whole(0)), TRUE)
}

function both(filter: Node | undefined, condition: Node): Node {
  return filter ? { BoolExpr: { boolop: 'AND_EXPR', args: [filter, condition] } } : condition
}

/**
 * Reads a setting as a number. A setting is NULL in a new session, and '' after an earlier transaction. With '0' in
 * front, both are 0.
 */
function numberOf(name: string): Node {
  return cast(call('concat', constant('0'), setting(name)), 'int8')
}

function setting(name: string): Node {
  return call('current_setting', constant(name), TRUE)
}

function coalesced(value: Node): Node {
  return { CoalesceExpr: { args: [value, whole(0)] } }
}
