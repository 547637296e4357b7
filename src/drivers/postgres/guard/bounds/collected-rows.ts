// Bounds what a query collects in memory from rows. PostgreSQL spills sorts, joins and groups to disk, but array_agg()
// and similar aggregates, ARRAY(SELECT …), the hash tables of EXCEPT, INTERSECT and NOT IN, and the rows of a recursive
// UNION stay in memory without a limit. Only the database knows how many rows there are: a planner's estimate is easily
// misled. The printed text therefore adds up the bytes of each collected row in one counter for the whole query, a
// setting of the transaction, and fails when the sum exceeds the limit.
import { AGGREGATES } from '../allowed/allowed-functions.ts'
import { words, type Node, type SelectStmt, type Struct } from '../allowed/allowed-nodes.ts'
import type { Field } from '../walk/from-items.ts'
import { failure } from './argument-bounds.ts'
import { call, cast, constant, either, onlyIf, operator, selectFrom, TRUE, whole } from '../node-builders.ts'
import { columnRef, distinctNames, newAlias, type Walk } from '../walk/scope.ts'

/** The maximum number of bytes that a query may collect. */
const COLLECTED_MAX = 268_435_456
/** The bytes that each collected row takes besides its values. */
const ROW_BYTES = 40
/** The further bytes of a row in a hash table. */
const HASH_BYTES = 56
/** How many times the size of its text a value may take: a growing text is copied, and jsonb has larger parts. */
const TEXT_TIMES = 2
const JSONB_TIMES = 4
/** The bytes that an element, a key or a container takes while jsonb is built. */
const JSONB_PART_BYTES = 96
/** The prefix of the settings of the transaction that count. */
const SETTINGS = 'vitrine'
/** The setting that holds the bytes collected so far. */
const COUNTER = `${SETTINGS}.collected`

/** Aggregates that keep one value, or none. */
const KEEPS_ONE =
  /^(any_value|avg|bit_.*|bool_.*|corr|count|covar_.*|every|max|min|mode|percentile_.*|range_intersect_agg|regr_.*|stddev.*|sum|var.*)$/

/** Returns whether the aggregate keeps the values of all rows. */
export function collects(name: string): boolean {
  return AGGREGATES.has(name) && !KEEPS_ONE.test(name)
}

/**
 * Returns the call of a collecting aggregate with its values counted. `call` is confined. The condition that counts must
 * not be in a sub-select: PostgreSQL evaluates one that does not depend on the row only once.
 */
export function countedCall(walk: Walk, name: string, call: Struct<'FuncCall'>, sets: number): Struct<'FuncCall'> {
  const [first, ...others] = call.args ?? []
  if (!first) return call
  const rest = others.map((value) => bytesOf(name, value))
  // PostgreSQL requires that ORDER BY of a DISTINCT aggregate repeats the argument as it is written.
  const isKept = call.over ?? (call.agg_distinct && call.agg_order)
  if (!isKept && !(first.ColumnRef ?? first.A_Const ?? first.ParamRef)) {
    const alias = newAlias(walk, 't', name)
    const measured = measuredQuery(alias, name, first)
    const condition = counts(name, [numberOf(measuredIn(alias)), ...rest], sets)
    return { ...call, args: [measured, ...others], agg_filter: both(call.agg_filter, condition) }
  }
  const condition = counts(name, [bytesOf(name, first), ...rest], sets)
  // The filter of a window function may contain no aggregate, so the value itself depends on the count.
  if (call.over) return { ...call, args: [onlyIf(condition, first), ...others] }
  return { ...call, agg_filter: both(call.agg_filter, condition) }
}

/**
 * Returns a sub-select that computes a value once and stores its size in a setting. The filter of the aggregate adds this
 * size for the next row. The value is not printed twice: each level of nested queries would double the text and the work,
 * and a volatile value would differ. OFFSET 0 keeps PostgreSQL from merging the inner sub-select, which would compute the
 * value twice.
 */
function measuredQuery(alias: string, name: string, value: Node): Node {
  const column = columnRef(alias, 'v')
  const size = call('set_config', constant(measuredIn(alias)), cast(bytesOf(name, column), 'text'), TRUE)
  const isStored: Node = { NullTest: { arg: size, nulltesttype: 'IS_NOT_NULL' } }
  const inner: SelectStmt = {
    targetList: [{ ResTarget: { name: 'v', val: value } }],
    limitOffset: whole(0),
    limitOption: 'LIMIT_OPTION_COUNT',
    op: 'SETOP_NONE',
  }
  const subselect = selectFrom([{ ResTarget: { val: onlyIf(isStored, column) } }], inner, alias, ['v'])
  return { SubLink: { subLinkType: 'EXPR_SUBLINK', subselect: { SelectStmt: subselect } } }
}

const measuredIn = (alias: string): string => `${SETTINGS}.${alias}`

/** Returns the filter of JSON_ARRAYAGG and JSON_OBJECTAGG, with their values counted. */
export function countedFilter(filter: Node | undefined, values: readonly (Node | undefined)[], sets: number): Node {
  const bytes = values.flatMap((value) => (value ? [bytesOf('jsonb_agg', value)] : []))
  return both(filter, counts('json_arrayagg', bytes, sets))
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
  const bytes = names.map((name) => coalesced(call('pg_column_size', columnRef(alias, name))))
  const whereClause = counts(what, what.endsWith('array') ? bytes : [whole(HASH_BYTES), ...bytes])
  return { ...selectFrom(columns, query, alias, names), whereClause }
}

/** Returns whether the query refers to nothing outside itself. Generated aliases are unique. */
export function isClosed({ names: aliases }: Walk, query: SelectStmt): boolean {
  const [defined, used] = [new Set<string>(), new Set<string>()]
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
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
  return used.isSubsetOf(defined)
}

function bytesOf(name: string, value: Node): Node {
  if (value.A_Const) return whole((value.A_Const.sval?.sval?.length ?? ROW_BYTES) * 4)
  if (name === 'string_agg') return operator('*', coalesced(call('octet_length', value)), whole(TEXT_TIMES))
  const isJson = name.startsWith('json') && !value.ParamRef
  const text = coalesced(call('octet_length', cast(isJson ? call('to_json', value) : value, 'text')))
  if (isJson && name.startsWith('jsonb')) return operator('+', operator('*', text, whole(JSONB_TIMES)), partsOf(value))
  if (isJson) return operator('*', text, whole(TEXT_TIMES))
  return operator('+', text, coalesced(call('pg_column_size', value)))
}

/** Returns the bytes of the parts of a value while jsonb is built from it: each element, key and container is a struct. */
function partsOf(value: Node): Node {
  const written = cast(call('to_json', value), 'text')
  const marks = call('translate', written, constant(',:[{'), constant(''))
  const count = operator('-', call('octet_length', written), call('octet_length', marks))
  return coalesced(operator('*', count, whole(JSONB_PART_BYTES)))
}

/** Returns a condition that adds the bytes to the counter and is true, or fails the query. */
function counts(what: string, bytes: readonly Node[], sets = 1): Node {
  const before = numberOf(COUNTER)
  const row = bytes.reduce((all, each) => operator('+', all, each), whole(ROW_BYTES))
  const sum = operator('+', before, sets === 1 ? row : operator('*', row, whole(sets)))
  const after = cast(call('set_config', constant(COUNTER), cast(sum, 'text'), TRUE), 'int8')
  // The failing branch calls set_config() too, so that the planner does not compute it in advance.
  const found = call('set_config', constant(COUNTER), setting(COUNTER), TRUE)
  const result = operator('=', failure({ what, size: found, most: COLLECTED_MAX }), whole(0))
  return either(operator('>', after, whole(COLLECTED_MAX)), result, TRUE)
}

function both(filter: Node | undefined, condition: Node): Node {
  return filter ? { BoolExpr: { boolop: 'AND_EXPR', args: [filter, condition] } } : condition
}

/** Reads a setting as a number. It is NULL in a new session and '' after an earlier transaction: '0' in front makes both 0. */
function numberOf(name: string): Node {
  return cast(call('concat', constant('0'), setting(name)), 'int8')
}

function setting(name: string): Node {
  return call('current_setting', constant(name), TRUE)
}

function coalesced(value: Node): Node {
  return { CoalesceExpr: { args: [value, whole(0)] } }
}
