// Limits how long a collected value may be where the query computes with it. A collected value is one that a query
// builds from many rows, for example by string_agg(). It may have 256 MB (collected-rows.ts), and a call may take 40
// times its argument: string_to_array() of 60 MB took 2.5 GB. So this file records how long each value may be, and
// prints a check of each argument that may be too long. A value that is only returned, or only asked for its length, is
// not checked.
import { RETURNS_ROWS } from '../allowed/allowed-functions.ts'
import type { Found } from '../allowed/function-lookup.ts'
import { isNode, words, type Node, type SelectStmt, type Struct } from '../allowed/allowed-nodes.ts'
import { EXTENSION_COLLECTS } from '../allowed/types-and-extensions.ts'
import type { Field, SqlType, Typed } from '../walk/from-items.ts'
import { call, selectFrom, subSelect, whole } from '../node-builders.ts'
import { columnRef, distinctNames, newAlias, type Level, type Walk } from '../walk/scope.ts'
import { givesRows, steadily, unlessAny, type Bound } from './argument-bounds.ts'
import { collects, isAggregate, isClosed, isCollecting } from './collected-rows.ts'
import { runsOf, withRuns } from './mark-runs.ts'
import { remembered } from './printed-size.ts'
import { returnsShort } from './spatial.ts'

/** The limit in bytes for arguments of functions, operators and casts of pg_catalog. */
const TAKEN_MAX = 4_194_304
/** The limit if the result is little more than a copy of the argument. */
const COPIED_MAX = 33_554_432
/** The limit for extensions and for multiranges, which cannot be cancelled. */
const EXTENSION_MAX = 1_048_576
/** The limit for texts that ICU compares: one comparison of 4 MB took 1.4 s and 480 MB. */
export const COMPARED_MAX = 4_194_304
/** The limit for st_simplify, whose time is quadratic: 30,000 points of a spiral took 0.7 s, and no cancel ends it. */
const SIMPLIFIED_MAX = 524_288
/** The limit for a value, if steps of the plan keep several copies of it. */
export const KEPT_MAX = 67_108_864
/** The name of the bound in error messages (failure-hint.ts). */
export const COLLECTED_VALUE = 'collected_value'

/** The maximum number of bytes of an expression's value. 0 means that no part of it is collected. */
const KNOWN = new WeakMap<Node, number>()
/** Values that may be printed twice, because PostgreSQL computes them only once for a row. */
const ONCE = new WeakSet<Node>()

/** Records how long the value of a node may be. `made` are the expressions behind a column. */
export function withCollected(node: Node, bytes: number, made?: readonly Node[]): Node {
  KNOWN.set(node, bytes)
  if (made?.every((each) => ONCE.has(each) || (each.ColumnRef !== undefined && collectedIn(each) === 0))) ONCE.add(node)
  return node
}

/** Records that PostgreSQL computes an output of a sub-select once, and copies it to no other place. */
export function computedOnce(output: Node): void {
  ONCE.add(output)
}

/** Returns those expressions that PostgreSQL may copy to each place that reads the column. */
export function copiedInto(made: readonly Node[] | undefined): readonly Node[] | undefined {
  return made?.filter((each) => !ONCE.has(each))
}

/** Returns the greater limit of two columns, for the column that UNION or USING makes of them. */
export function maxCollected(one: Field | undefined, other: Field | undefined): number {
  return Math.max(one?.collected ?? Infinity, other?.collected ?? Infinity)
}

/** Returns whether a column of a recursive query stays short in each iteration, because its type is short. */
export function staysShort({ type, made = [] }: Field): boolean {
  return (
    isShort(type) ||
    (made.length > 0 && made.every((each) => (each.A_Const?.ival ?? each.A_Const?.boolval) !== undefined))
  )
}

/** Returns whether the query collects values. */
export const mayCollect = remembered((part) => {
  if ('JsonArrayAgg' in part || 'JsonObjectAgg' in part || 'JsonArrayQueryConstructor' in part) return true
  if ('subLinkType' in part && part.subLinkType === 'ARRAY_SUBLINK') return true
  if (!('funcname' in part) || !Array.isArray(part.funcname)) return undefined
  const name = words(part.funcname).at(-1) ?? ''
  return collects(name) || EXTENSION_COLLECTS.has(name) ? true : undefined
})

/** Returns whether the query is recursive: each iteration may make a value longer. */
export const mayRepeat = remembered((part) => ('recursive' in part && part.recursive === true ? true : undefined))

/** Returns how many bytes an expression's value may have. Returns 0 if no part of it was collected from rows. */
export function collectedIn(node: Node): number {
  const known = KNOWN.get(node)
  if (known !== undefined) return known
  const bytes = computed(node)
  KNOWN.set(node, bytes)
  return bytes
}

function computed(node: Node): number {
  if (node.ColumnRef ?? node.JsonArrayAgg ?? node.JsonObjectAgg ?? node.JsonArrayQueryConstructor) return Infinity
  if (node.BoolExpr ?? node.NullTest ?? node.BooleanTest ?? node.GroupingFunc ?? node.JsonIsPredicate) return 0
  if (node.SubLink) return ofSubLink(node.SubLink)
  if (node.CaseExpr) {
    const results = (node.CaseExpr.args ?? []).map(({ CaseWhen: when }) => when?.result)
    return Math.max(...[...results, node.CaseExpr.defresult].map((each) => (each ? collectedIn(each) : 0)))
  }
  if (node.CoalesceExpr) return most(node.CoalesceExpr.args)
  if (node.MinMaxExpr) return most(node.MinMaxExpr.args)
  if (node.A_Indirection) return node.A_Indirection.arg ? collectedIn(node.A_Indirection.arg) : 0
  const sum = Object.values(node).reduce(
    (all: number, part: unknown) => all + (isNode(part) ? collectedIn(part) : 0),
    0,
  )
  const isKnown = Object.keys(node).every((key) => KEEPS_LENGTH.has(key) || !/^[A-Z]/.test(key))
  return sum === 0 || isKnown ? sum : Infinity
}

/** Nodes whose values are as long as their parts together. The value of any other node may be longer. */
const KEEPS_LENGTH: ReadonlySet<string> = new Set(['A_ArrayExpr', 'CollateClause', 'List', 'NamedArgExpr', 'RowExpr'])

function most(nodes: readonly Node[] = []): number {
  return Math.max(0, ...nodes.map(collectedIn))
}

function ofSubLink({ subLinkType }: Struct<'SubLink'>): number {
  return subLinkType === 'EXPR_SUBLINK' || subLinkType === 'ARRAY_SUBLINK' ? Infinity : 0
}

// Functions, operators and casts: which arguments are checked, and how long the result may be.

const list = (text: string): ReadonlySet<string> => new Set(text.split(/\s+/).filter((name) => name !== ''))

/** Functions that read an argument of any length, and return a short value. */
const ASKS = list(`
  array_dims array_length array_lower array_ndims array_upper bit_length cardinality char_length character_length count
  jsonb_array_length jsonb_typeof length num_nonnulls num_nulls octet_length pg_typeof textlen`)
/** Functions that return one of their arguments. */
const RETURNS_ARGUMENT = list('any_value first_value lag last_value lead max min nth_value')
/** Functions whose result has about the length of their arguments. */
const COPIES = list(`
  array_append array_cat array_prepend array_remove btrim concat initcap left lower ltrim overlay reverse right rtrim
  split_part substr substring text unnest upper`)
/** Functions that copy their arguments and put other values in between. */
const FILLS = list('array_to_string concat_ws replace')
/** Functions that return a short value. Their arguments are checked. */
const SHORT = list(`
  array_position ascii avg bool_and bool_or date_part extract get_byte json_array_length json_typeof jsonb_exists
  jsonb_path_exists md5 position regexp_count regexp_instr regexp_like sha224 sha256 sha384 sha512 similarity
  starts_with strpos sum to_number ts_rank ts_rank_cd word_similarity`)

/** The arguments of a function after the check, and how long its result may be. */
export interface Taken {
  readonly args: readonly Typed[]
  readonly result: number
}

/** Returns the arguments of a call, with checks of those that may be too long. Throws Refusal. */
export function takenBy(
  walk: Walk,
  level: Level,
  name: string,
  given: readonly Typed[],
  {
    extension,
    isCollecting,
    at,
  }: {
    readonly extension: Found['extension'] | undefined
    readonly isCollecting: boolean
    readonly at: number | undefined
  },
): Taken {
  const isExtension = extension !== undefined
  const all = walk.collects ? given.map(({ node }) => collectedIn(node)) : []
  const longest = Math.max(0, ...all)
  if (isCollecting) return { args: given, result: hasRows(level) ? Infinity : longest }
  if (longest === 0 || (!isExtension && ASKS.has(name))) return { args: given, result: 0 }
  if (!isExtension && RETURNS_ARGUMENT.has(name)) return { args: given, result: longest }
  const copies = !isExtension && COPIES.has(name)
  const args = given.map((arg) => noLonger(walk, level, arg, limitOf(name, extension), at))
  if (SHORT.has(name) || (extension === 'postgis' && returnsShort(name))) return { args, result: 0 }
  const sum = args.reduce((bytes, { node }) => bytes + collectedIn(node), 0)
  if (RETURNS_ROWS.has(name)) return { args, result: hasShortElements(name, given) ? 0 : sum }
  return { args, result: copies ? sum : Infinity }
}

function limitOf(name: string, extension: string | undefined): number {
  if (extension === 'postgis') return name === 'st_simplify' ? SIMPLIFIED_MAX : TAKEN_MAX
  if (extension !== undefined) return EXTENSION_MAX
  return COPIES.has(name) || FILLS.has(name) ? COPIED_MAX : TAKEN_MAX
}

/** Returns whether an aggregate at this level reads more than one row. */
function hasRows({ shown, parent }: Level): boolean {
  return shown.length > 0 || parent !== null
}

const TEXTS = /^(?:text|varchar|bpchar)$/
const FIXED =
  /^(?:bool|int[248]|float[48]|numeric|oid|date|timetz|time|timestamptz|timestamp|interval|uuid|money|inet|cidr|macaddr8?)$/

function hasShortElements(name: string, [array]: readonly Typed[]): boolean {
  return name === 'unnest' && array?.type?.kind === 'array' && isShort(array.type.of)
}

function isShort(type: SqlType | null): boolean {
  return type?.kind === 'named' && type.schema === 'pg_catalog' && FIXED.test(type.name)
}

/** Returns the operand of a cast, checked if it may be too long, and how long the result may be. Throws Refusal. */
export function takenByCast(
  walk: Walk,
  level: Level,
  from: Typed,
  { names, arrayBounds = [] }: Struct<'TypeName'>,
  at: number | undefined,
): { readonly arg: Typed; readonly result: number } {
  const bytes = walk.collects ? collectedIn(from.node) : 0
  if (bytes === 0) return { arg: from, result: 0 }
  const [to = '', schema] = words(names).toReversed()
  const isBuiltIn = schema === undefined || schema === 'pg_catalog'
  const isArray = arrayBounds.length > 0 || to.startsWith('_')
  if (isBuiltIn && !isArray && (TEXTS.test(to) || to === 'json')) {
    if (isTextual(from)) return { arg: from, result: bytes }
    return { arg: noLonger(walk, level, from, COPIED_MAX, at), result: Infinity }
  }
  const isSlow = !isBuiltIn || to.endsWith('multirange')
  const arg = noLonger(walk, level, from, isSlow ? EXTENSION_MAX : TAKEN_MAX, at)
  return { arg, result: isBuiltIn && !isArray && FIXED.test(to) ? 0 : Infinity }
}

/** Returns whether a cast of the value to text returns the value unchanged. */
function isTextual({ node, type }: Typed): boolean {
  if (type?.kind === 'named') return type.schema === 'pg_catalog' && (TEXTS.test(type.name) || type.name === 'json')
  return TEXTUAL.has(words(node.FuncCall?.funcname).at(-1) ?? '')
}

const TEXTUAL = list(`
  array_to_json json_agg json_build_array json_build_object json_object json_object_agg row_to_json string_agg to_json`)

/** Operators that read operands of any length, because they only compare bytes. */
const EQUALS = /^(?:=|<>)$/
/** Operators that return a part of their left operand. */
const PARTS = /^(?:->>?|#>>?)$/
const TRUTHS = /^(?:[<>]=?|!?~~?\*?|@>|<@|\?[|&]?|&&|@@|@\?|\^@)$/

/** Returns an operand, with a check if it may be too long. `schema` is the operator's. Throws Refusal. */
export function takenByOperator<T extends Typed>(
  walk: Walk,
  level: Level,
  [schema, symbol]: readonly [string | undefined, string],
  operand: T,
  at: number | undefined,
): T {
  // Without a schema, the operator may be an extension's. Values of an extension's type are checked when they are made.
  const mayBeBuiltIn = schema === undefined || schema === 'pg_catalog'
  if (mayBeBuiltIn && EQUALS.test(symbol)) return operand
  const limit = mayBeBuiltIn && symbol === '||' ? COPIED_MAX : schema === 'pg_catalog' ? TAKEN_MAX : EXTENSION_MAX
  return noLonger(walk, level, operand, limit, at)
}

/** Returns the query of ANY or ALL, with checks of its columns if the operator requires them. Throws Refusal. */
export function takenFromRows(
  walk: Walk,
  level: Level,
  operator: readonly [string | undefined, string],
  { node, outputs }: { readonly node: SelectStmt; readonly outputs: readonly Field[] },
  at: number | undefined,
): SelectStmt {
  if (!walk.collects) return node
  const alias = newAlias(walk, 't', 'the rows of ANY')
  const names = distinctNames(outputs.map(({ name }) => name))
  const columns = outputs.map(({ type, collected = Infinity }, index): Typed => {
    return { node: withCollected(columnRef(alias, names[index] ?? ''), collected, []), type }
  })
  const taken = columns.map((column) => takenByOperator(walk, level, operator, column, at))
  if (taken.every((each, index) => each === columns[index])) return node
  const targetList = taken.map(({ node: val }, index): Node => ({ ResTarget: { name: names[index] ?? '', val } }))
  return selectFrom(targetList, node, alias, names)
}

/** Returns how long the result of an operator may be. */
export function madeByOperator(symbol: string, left: Node | undefined, right: Node): number {
  if (EQUALS.test(symbol) || TRUTHS.test(symbol)) return 0
  const bytes = left ? collectedIn(left) : 0
  return PARTS.test(symbol) ? bytes : bytes + collectedIn(right)
}

/** Returns an array or a document that is subscripted. It is checked if PostgreSQL copies what the subscript reads. */
export function takenBySubscript(
  walk: Walk,
  level: Level,
  base: Typed,
  steps: readonly Node[],
  at: number | undefined,
): Typed {
  const isArray = base.type?.kind === 'array' || words(base.node.FuncCall?.funcname).at(-1) === 'array_agg'
  const copies = steps.some(({ A_Indices: step }) => step && (step.is_slice === true || !isArray))
  return copies ? noLonger(walk, level, base, TAKEN_MAX, at) : base
}

/** Returns a value that a function of SQL/JSON reads, with a check if it may be too long. Throws Refusal. */
export function takenAsJson(walk: Walk, level: Level, value: Typed, at: number | undefined): Typed {
  return noLonger(walk, level, value, TAKEN_MAX, at)
}

/**
 * Returns a value, with a check if it may be too long for steps that compare it or keep it several times. The check
 * stands where the value is made, because any place that reads the value may sort it. Throws Refusal.
 */
export function checkedOnce<T extends Typed>(walk: Walk, level: Level, typed: T, at: number | undefined): T {
  const { comparedMax, keptMax } = walk
  const limits = [
    comparedMax < Infinity && makesText(typed.node) ? comparedMax : Infinity,
    keptMax < Infinity && collectsRows(typed.node) ? keptMax : Infinity,
  ]
  const limit = Math.min(...limits)
  return limit < Infinity ? noLonger(walk, level, typed, limit, at) : typed
}

/** Returns whether the expression collects rows, and is no window function. */
function collectsRows({ FuncCall: called, SubLink: link, JsonArrayAgg: array, JsonObjectAgg: object }: Node): boolean {
  if (called) return !called.over && isCollecting(called)
  const json = array ?? object
  return json ? !json.constructor?.over : link?.subLinkType === 'ARRAY_SUBLINK'
}

/** Functions that return an array or a document. ICU compares its parts one by one. */
const MAKES_PARTS = /^(?:array_(?!to_string$)|json|to_json|row_to_json|(?:unnest|st_collect|st_makeline)$)/

function makesText(node: Node): boolean {
  const { FuncCall: called, A_Expr: expr, TypeCast: cast } = node
  if (called) {
    const name = words(called.funcname).at(-1) ?? ''
    return !MAKES_PARTS.test(name) && !RETURNS_ARGUMENT.has(name)
  }
  if (expr) return /^(?:\|\||->>|#>>)$/.test(words(expr.name).at(-1) ?? '')
  if (cast) return isTextName(cast.typeName)
  const json = node.JsonObjectConstructor ?? node.JsonArrayConstructor ?? node.JsonFuncExpr ?? node.JsonSerializeExpr
  const output = json?.output ?? (node.JsonArrayAgg ?? node.JsonObjectAgg)?.constructor?.output
  return output ? isTextName(output.typeName) : (node.JsonSerializeExpr ?? node.JsonFuncExpr) !== undefined
}

function isTextName(type: Struct<'TypeName'> | undefined): boolean {
  return !type?.arrayBounds && TEXTS.test(words(type?.names).at(-1) ?? '')
}

// Prints the checks. A value that would be printed twice is computed once, in a sub-select: otherwise each level of
// nested calls would double it. A plain column may be printed twice.

/** Returns the value with a check: the query fails if the value is longer than the limit. Throws Refusal. */
function noLonger<T extends Typed>(walk: Walk, level: Level, typed: T, limit: number, at: number | undefined): T {
  const { node } = typed
  if (!walk.collects || collectedIn(node) <= limit) return typed
  const { CollateClause: collate, NamedArgExpr: named, RowExpr: row } = node
  if (row?.args) {
    const args = row.args.map((arg) => noLonger(walk, level, { node: arg, type: null }, limit, at).node)
    return { ...typed, node: { RowExpr: { ...row, args } } }
  }
  if (collate?.arg) {
    const arg = noLonger(walk, level, { node: collate.arg, type: typed.type }, limit, at).node
    return { ...typed, node: withCollected({ CollateClause: { ...collate, arg } }, limit) }
  }
  if (named?.arg) {
    const arg = noLonger(walk, level, { node: named.arg, type: typed.type }, limit, at).node
    return { ...typed, node: withCollected({ NamedArgExpr: { ...named, arg } }, limit) }
  }
  const isShorter = (value: Node): Bound => ({
    what: COLLECTED_VALUE,
    size: call('pg_column_size', value),
    most: limit,
  })
  const measured = withCollected(measure(walk, level, node, isShorter, at), limit)
  return { ...typed, node: walk.exposed.comparesByIcu ? withRuns(measured, runsOf(node)) : measured }
}

/** Returns the value with a check: the query fails if the value exceeds the bound. Throws Refusal. */
export function measure(
  walk: Walk,
  level: Level,
  node: Node,
  boundOf: (value: Node) => Bound,
  at: number | undefined,
): Node {
  const isShorter = (value: Node): Node => unlessAny(boundOf(value), value, at)
  if (ONCE.has(node) || givesRows(node)) return isShorter(node)
  const pinned = pinnedHere(level, walk, node)
  if (!pinned) return isShorter(steadily(node, [node], boundOf(node).what, at))
  const alias = aliasIn(walk)
  const inner: SelectStmt = {
    targetList: [{ ResTarget: { name: 'v', val: pinned } }],
    limitOffset: whole(0),
    limitOption: 'LIMIT_OPTION_COUNT',
    op: 'SETOP_NONE',
  }
  const subselect = selectFrom([{ ResTarget: { val: isShorter(columnRef(alias, 'v')) } }], inner, alias, ['v'])
  const measuring = subSelect(subselect)
  MEASURING.add(measuring)
  return measuring
}

const MEASURING = new WeakSet<object>()

/** Returns whether measure() built this sub-select around an expression. */
export function isMeasuring(node: object): boolean {
  return MEASURING.has(node)
}

const ALIASES = new WeakMap<Walk, string>()

/** Returns the one alias for all checked values. With different aliases, GROUP BY would not find equal expressions. */
function aliasIn(walk: Walk): string {
  const alias = ALIASES.get(walk) ?? newAlias(walk, 't', 'a measured value')
  ALIASES.set(walk, alias)
  return alias
}

/**
 * Returns an expression with the same value inside a sub-select, or undefined if there is none. An aggregate that reads
 * no column would belong to the sub-select, so it gets a filter that reads a column of the outer query. A window
 * function has no such form, and GROUP BY does not find its expressions in sub-selects.
 */
function pinnedHere(level: Level, walk: Walk, node: Node): Node | undefined {
  if (hasWindow(node)) return undefined
  const { FuncCall: own } = node
  if (own && isAggregate(own) && isClosed(walk, own)) {
    const column = level.shown.flatMap(({ items }) => items.flatMap(({ columns }) => columns.slice(0, 1)))[0]
    if (!column) return undefined
    const reads: Node = { NullTest: { arg: column.read(), nulltesttype: 'IS_NULL' } }
    const always: Node = { NullTest: { arg: reads, nulltesttype: 'IS_NOT_NULL' } }
    const filters = own.agg_filter ? [always, own.agg_filter] : [always]
    return { FuncCall: { ...own, agg_filter: { BoolExpr: { boolop: 'AND_EXPR', args: filters } } } }
  }
  if ((level.phase !== 'output' && level.phase !== 'group') || level.aggregates > 0) return node
  const { aggregates, columns } = partsOf(node)
  if (aggregates.some((each) => isClosed(walk, each))) return undefined
  return level.groupsExpressions && columns ? undefined : node
}

/** Returns whether the value contains a window function outside of sub-selects. */
export const hasWindow = remembered((part) => ('SubLink' in part ? false : 'over' in part ? true : undefined))

/** Returns the aggregates of an expression, and whether it reads columns outside of them. Skips sub-selects. */
function partsOf(node: Node): { readonly aggregates: readonly Node[]; readonly columns: boolean } {
  const aggregates: Node[] = []
  let columns = false
  const seen = new Set<object>()
  const visit = (part: unknown): void => {
    if (!isNode(part) || seen.has(part) || part.SubLink) return
    seen.add(part)
    if (part.ColumnRef) columns = true
    else if ((part.FuncCall && isAggregate(part.FuncCall)) || part.JsonArrayAgg || part.JsonObjectAgg)
      aggregates.push(part)
    else Object.values(part).forEach(visit)
  }
  visit(node)
  return { aggregates, columns }
}
