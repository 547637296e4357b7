// Limits the memory of rows that a query collects. PostgreSQL moves sorts, joins and groups to disk. But array_agg()
// and similar aggregates, ARRAY(SELECT …), the hash tables of EXCEPT, INTERSECT and NOT IN, and the rows of a recursive
// UNION stay in memory. The planner's estimate of the rows is easily misled. So the guard prints a counter into the
// query, a setting of the transaction, to which the query adds the bytes of each collected row. The query fails when
// the counter exceeds the limit.
import { AGGREGATES } from '../allowed/allowed-functions.ts'
import { words, type Node, type SelectStmt, type Struct } from '../allowed/allowed-nodes.ts'
import { EXTENSION_COLLECTS } from '../allowed/types-and-extensions.ts'
import type { Field, SqlType } from '../walk/from-items.ts'
import { failure, isMore, isUnsteady, wholeNumber, type Bound } from './argument-bounds.ts'
import { FRAME } from '../syntax/print.ts'
import { call, cast, constant, either, onlyIf, operator, selectFrom, subSelect, TRUE, whole } from '../node-builders.ts'
import { Refusal } from '../refusal.ts'
import { remembered } from './printed-size.ts'
import { columnRef, distinctNames, newAlias, type Level, type Walk } from '../walk/scope.ts'

/** The maximum number of bytes that a query may collect. */
export const COLLECTED_MAX = 268_435_456
/** The bytes that each collected row takes besides its values. */
const ROW_BYTES = 40
/** The longest text of a numeric: 131,072 digits before the point, 16,383 after it, sign and point. */
export const NUMBER_BYTES = 147_457
/** The additional bytes of a row in a hash table. */
const HASH_BYTES = 56
/** Each byte of a text is counted this many times: a growing text is copied, and jsonb has larger parts. */
const TEXT_TIMES = 2
const JSONB_TIMES = 4
/** The bytes for each element, key and container while jsonb is built. */
const JSONB_PART_BYTES = 96
/** The additional bytes of a geometry in an aggregate of PostGIS. */
const GEOMETRY_BYTES = 64
/** The prefix of the settings in printed queries. */
const SETTINGS = 'vitrine'
/** The setting that counts the bytes collected so far. */
const COUNTER = `${SETTINGS}.collected`

/** Returns true for the counter of collected rows, and undefined for another part of a query. */
export function isCounter(part: object): true | undefined {
  return 'sval' in part && part.sval === COUNTER ? true : undefined
}

/** Returns whether a part of a confined query counts collected rows. */
export const hasCounter = remembered(isCounter)

/** Aggregates whose memory does not grow with the number of rows: they keep one value or a sum, or sort on disk. */
const KEEPS_ONE =
  /^(any_value|avg|bit_.*|bool_.*|corr|count|covar_.*|every|max|min|mode|percentile_.*|range_intersect_agg|regr_.*|stddev.*|sum|var.*)$/

/** Returns whether the aggregate of pg_catalog keeps the values of all rows in memory. */
export function collects(name: string): boolean {
  return AGGREGATES.has(name) && !KEEPS_ONE.test(name)
}

/** Returns whether an extension's function, with arguments of these types, is an aggregate that keeps all rows. */
export function collectsForExtension(name: string, types: readonly (SqlType | null)[]): boolean {
  return EXTENSION_COLLECTS.has(name) && types.length === 1 && types[0]?.kind !== 'array'
}

/** Returns whether a confined call is an aggregate that keeps the values of all rows. */
export function isCollecting(call: Struct<'FuncCall'>): boolean {
  return collects(nameOf(call)) || isCounted(call)
}

/** Returns whether a confined call is an aggregate without OVER. */
export function isAggregate(call: Struct<'FuncCall'>): boolean {
  return !call.over && (AGGREGATES.has(nameOf(call)) || isCounted(call))
}

/** Returns whether an extension's call is an aggregate. countedCall() has given each aggregate a FILTER or OVER. */
function isCounted(call: Struct<'FuncCall'>): boolean {
  return EXTENSION_COLLECTS.has(nameOf(call)) && (call.agg_filter ?? call.over) !== undefined
}

function nameOf({ funcname }: Struct<'FuncCall'>): string {
  return words(funcname).at(-1) ?? ''
}

/**
 * Returns the call of a collecting aggregate with a FILTER that counts its values. `call` is confined. The condition
 * must not be in a sub-select, because PostgreSQL evaluates a sub-select that reads no column only once for all rows.
 * Throws Refusal.
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
  // With DISTINCT, PostgreSQL requires that ORDER BY repeats the argument exactly.
  if (call.over ?? (call.agg_distinct && call.agg_order)) {
    if (isUnsteady(first) && !hasOneSize(first)) throw unsteady(name, at)
    const bytes = [bytesOf(name, first), ...rest]
    const condition = counts(walk, name, bytes, level.sets, frameOf(walk, name, call.over))
    // The filter of a window function may contain no aggregate, so the condition is printed in the argument instead.
    if (call.over) return { ...call, args: [onlyIf(condition, first), ...others] }
    return { ...call, agg_filter: both(call.agg_filter, condition) }
  }
  const { value, bytes } = measured(walk, level, name, first)
  return {
    ...call,
    args: [value, ...others],
    agg_filter: both(call.agg_filter, counts(walk, name, [bytes, ...rest], level.sets)),
  }
}

/** Returns an expression that computes the value once, and an expression for the bytes of the value. */
function measured(walk: Walk, level: Level, name: string, value: Node): { value: Node; bytes: Node } {
  if (value.ColumnRef ?? value.A_Const ?? value.ParamRef) return { value, bytes: bytesOf(name, value) }
  const alias = newAlias(walk, 't', name)
  return { value: measuredQuery(alias, name, value, offsetOf(level, value)), bytes: numberOf(measuredIn(alias)) }
}

/** A window frame of at most this many rows is counted as a whole, not row by row. */
const FRAME_ROWS = 1_000

/** A window frame of a constant number of rows. `largest` is the setting with the largest size of the frame so far. */
interface Frame {
  readonly rows: number
  readonly largest: string
}

/** Returns the frame of a window if its size is constant. PostgreSQL frees the rows that leave such a frame. */
function frameOf(walk: Walk, name: string, over: Struct<'WindowDef'> | undefined): Frame | undefined {
  const { frameOptions = 0, startOffset, endOffset } = over ?? {}
  const is = (bit: keyof typeof FRAME): boolean => (frameOptions & FRAME[bit]) !== 0
  if (!is('rows') || is('startUnboundedPreceding') || is('endUnboundedFollowing')) return undefined
  const before = is('startOffsetPreceding') ? wholeNumber(startOffset) : 0
  const after = is('endOffsetFollowing') ? wholeNumber(endOffset) : 0
  const rows = 1 + Math.abs(before ?? Infinity) + Math.abs(after ?? Infinity)
  return rows <= FRAME_ROWS ? { rows, largest: measuredIn(newAlias(walk, 't', name)) } : undefined
}

/** Returns by how many bytes the frame exceeds its largest size so far. Its size is `row` bytes for each row. */
function growthOf({ rows, largest }: Frame, row: Node): Node {
  const size: Node = { MinMaxExpr: { op: 'IS_GREATEST', args: [numberOf(largest), operator('*', row, whole(rows))] } }
  const stored = cast(call('set_config', constant(largest), cast(size, 'text'), TRUE), 'int8')
  // PostgreSQL evaluates the left side first, so it reads the setting before the right side changes it.
  return operator('+', operator('-', whole(0), numberOf(largest)), stored)
}

/** Returns whether all values of a call such as random() have the same size. */
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
 * Returns the OFFSET for measuredQuery(). For a value such as random() + 1, the OFFSET refers to a column: otherwise
 * PostgreSQL would compute the value once for all rows.
 */
function offsetOf({ shown }: Level, value: Node): Node {
  const [column] = shown.flatMap(({ items }) => items.flatMap(({ columns }) => columns.slice(0, 1)))
  if (!column || !isUnsteady(value)) return whole(0)
  return either({ NullTest: { arg: column.read(), nulltesttype: 'IS_NULL' } }, whole(0), whole(0))
}

/**
 * Returns a sub-select that computes a value once and stores its size in a setting. The filter of the aggregate runs
 * before the value is computed, so it adds the size of the previous row's value. Printing the value a second time would
 * double the text at each level of nested queries, and random() would differ. OFFSET keeps PostgreSQL from merging the
 * inner sub-select, which would compute the value twice.
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
  return subSelect(subselect)
}

const measuredIn = (alias: string): string => `${SETTINGS}.${alias}`

/** Returns the value of JSON_ARRAYAGG or JSON_OBJECTAGG, and a filter that counts its bytes. Throws Refusal. */
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
    walk,
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

/** Returns the same query with a condition that counts each row. `what` names the structure that keeps the rows. */
export function countedRows(walk: Walk, query: SelectStmt, outputs: readonly Field[], what: string): SelectStmt {
  // The rows of VALUES are constants in the text. A SELECT without FROM has one row.
  if (query.valuesLists || (!query.larg && !query.fromClause?.length)) return query
  const alias = newAlias(walk, 't', what)
  const names = distinctNames(outputs.map(({ name }) => name))
  const columns = outputs.map(({ name }, at): Node => {
    // A constant without a type gets its type from the place where the query is used, so print it there.
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
  const whereClause = counts(walk, what, isArray ? bytes : [whole(HASH_BYTES), ...bytes])
  return { ...selectFrom(columns, query, alias, names), whereClause }
}

/** For each query and expression: the aliases that it refers to but does not define. */
const OUTER = new WeakMap<object, ReadonlySet<string>>()

/** Returns whether the query or expression refers to nothing outside itself. */
export function isClosed(walk: Walk, query: object): boolean {
  return outerOf(walk, query).size === 0
}

/** Returns the aliases to which the query or expression refers outside itself. Generated aliases are unique. */
export function outerOf({ names: aliases }: Walk, query: object): ReadonlySet<string> {
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
      // Columns in the sub-select of a table have no alias. A reference with an alias only is a whole row.
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
  return outer
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

/** Returns an upper limit for the bytes of a constant. A number with an exponent may be as long as any number. */
function constantBytes({ sval, fval }: Struct<'A_Const'>): number {
  if (fval?.fval && /e/i.test(fval.fval)) return NUMBER_BYTES
  return (sval?.sval?.length ?? fval?.fval?.length ?? ROW_BYTES) * 4
}

/** Returns the bytes of jsonb while it is built: its text several times, and a struct for each part. */
function jsonbBytes(value: Node): Node {
  const written = cast(call('to_json', value), 'text')
  const bytes = (text: Node): Node => cast(call('octet_length', text), 'int8')
  const others = bytes(call('translate', written, constant(',:[{'), constant('')))
  // The number of marks is the length of the text minus the length without marks.
  const all = operator('*', bytes(written), whole(JSONB_TIMES + JSONB_PART_BYTES))
  return coalesced(operator('-', all, operator('*', others, whole(JSONB_PART_BYTES))))
}

/** Returns a condition that adds the bytes to the counter setting and is true, or fails the query. */
function counts(walk: Walk, what: string, bytes: readonly Node[], sets = 1, frame?: Frame): Node {
  walk.counts = true
  const before = numberOf(COUNTER)
  const row = bytes.reduce((all, each) => operator('+', all, each), whole(ROW_BYTES))
  const added = frame ? growthOf(frame, row) : row
  const sum = operator('+', before, sets === 1 ? added : operator('*', added, whole(sets)))
  const after = cast(call('set_config', constant(COUNTER), cast(sum, 'text'), TRUE), 'int8')
  // The failing branch contains set_config(), so that the planner does not evaluate it in advance.
  const found = call('set_config', constant(COUNTER), setting(COUNTER), TRUE)
  const bound: Bound = { what, size: found, most: COLLECTED_MAX }
  return either(isMore(bound, after), operator('=', failure(bound), whole(0)), TRUE)
}

function both(filter: Node | undefined, condition: Node): Node {
  return filter ? { BoolExpr: { boolop: 'AND_EXPR', args: [filter, condition] } } : condition
}

/** Reads a setting that may be NULL (new session) or '' (after another transaction). '0' before it makes both 0. */
function numberOf(name: string): Node {
  return cast(call('concat', constant('0'), setting(name)), 'int8')
}

function setting(name: string): Node {
  return call('current_setting', constant(name), TRUE)
}

function coalesced(value: Node): Node {
  return { CoalesceExpr: { args: [value, whole(0)] } }
}
