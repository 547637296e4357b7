// Function calls: by list, printed as "pg_catalog"."f" or with the schema of the known extension they belong to, so that
// no function that a user made can answer instead.
import { EXTENSION_FUNCTIONS, EXTENSION_OUT_COLUMNS, EXTENSION_SINCE, TYPES } from './allowed.ts'
import { boundedArguments } from './call-arguments.ts'
import type { CapturedExtension } from '../capture.ts'
import { FUNCTIONS_ELSEWHERE } from './elsewhere.ts'
import type { Exposed } from './exposed.ts'
import { expression, optional } from './expression.ts'
import { AGGREGATES, FROM_ROW_TYPE, FUNCTIONS, OUT_COLUMNS, RETURNS_ROWS, SINCE } from './functions.ts'
import { functionHint } from './hints.ts'
import { word, words, type Node, type Struct } from './nodes.ts'
import { typedArguments } from './params.ts'
import { refusedFunction, refusedStatement, type Refusal } from './refusal.ts'
import type { Level, SqlType, Typed, Walk } from './scope.ts'
import { withConfiguration, withDictionary } from './text-search.ts'
import { extensionOf, fieldsOf, mayBeText } from './type-names.ts'
import { sortKeys, window } from './windows.ts'

/** A call, confined, with what FROM must know of the columns it returns. */
export interface Called extends Typed {
  readonly name: string
  /** Names of OUT parameters; empty where its one column has none of its own. */
  readonly out: readonly string[]
}

/** A call inside an expression. Throws Refusal. */
export function call(walk: Walk, level: Level, node: Struct<'FuncCall'>): Typed {
  const asCast = castWritten(node)
  if (asCast) return expression(walk, level, { TypeCast: asCast })
  const called = callOf(walk, level, node)
  if (called.name !== 'pg_typeof') return called
  // regtype would print with the search_path's eyes; as text it is the same for all.
  const text = { names: [word('pg_catalog'), word('text')], typemod: -1 }
  return { node: { TypeCast: { arg: called.node, typeName: text } }, type: null }
}

/** uuid('…') where PostgreSQL has no such function: the same as a cast. */
function castWritten(node: Struct<'FuncCall'>): Struct<'TypeCast'> | undefined {
  const written = words(node.funcname)
  const name = written.at(-1) ?? ''
  const { args = [], location } = node
  const [arg] = args
  const isPlain = !(node.agg_order ?? node.agg_filter ?? node.over ?? node.agg_distinct ?? node.func_variadic)
  const isBuiltIn = written.length === 1 || (written.length === 2 && written[0] === 'pg_catalog')
  if (!arg || args.length > 1 || !isPlain || !isBuiltIn || FUNCTIONS.has(name) || !TYPES.has(name)) return undefined
  const to = { names: [word('pg_catalog'), word(name)], typemod: -1 }
  return arg.NamedArgExpr ? undefined : { arg, typeName: to, ...(location !== undefined && { location }) }
}

/** A call, wherever it stands. Throws Refusal. */
export function callOf(walk: Walk, level: Level, node: Struct<'FuncCall'>): Called {
  const written = words(node.funcname)
  const name = written.at(-1) ?? ''
  // Before its arguments: of DATEADD(day, 1, x) the function is what is wrong, not the column day.
  if (!mayBeCalled(walk.exposed, name)) throw unknownFunction(walk.exposed, written, node.location)
  const isAggregate = AGGREGATES.has(name) && !node.over
  if (isAggregate) level.aggregates += 1
  const given = argumentsOf(walk, name, node).map((arg) =>
    // pg_typeof(pg_typeof(x)) is regtype: only the outer one becomes text.
    isTypeOf(name, arg) ? callOf(walk, level, arg.FuncCall) : argument(walk, level, arg),
  )
  const args = typedArguments(name, given)
  const types = args.map((arg) => arg.type)
  const found = findFunction(walk.exposed, written, types, node.location)
  const nodes = args.map((arg) => arg.node)
  const [first = null] = types
  const isText = mayBeText(walk.exposed, first)
  const printed = found.schema === 'pg_catalog' ? boundedArguments(name, node, nodes, isText) : nodes
  if (RETURNS_ROWS.has(name)) walk.rowFunctions += 1
  const funcname = [word(found.schema), word(name)]
  const rest = modifiers(walk, level, node)
  if (isAggregate) level.aggregates -= 1
  const confined: Node = {
    FuncCall: {
      funcname,
      ...(printed.length > 0 && { args: printed }),
      ...rest,
      ...(node.over && { over: window(walk, level, node.over) }),
      funcformat: 'COERCE_EXPLICIT_CALL',
    },
  }
  return { node: confined, name, out: found.out, type: resultType(walk.exposed, name, found.out, types, node) }
}

function mayBeCalled({ capture }: Exposed, name: string): boolean {
  if (FUNCTIONS.has(name) || name === 'ts_rewrite') return true
  return capture.extensions.some((extension) => extension.trusted && extension.functions.includes(name))
}

/** The arguments as written, but for names that the server would look up. Throws Refusal. */
function argumentsOf(walk: Walk, name: string, { args = [], location }: Struct<'FuncCall'>): readonly Node[] {
  const named = withDictionary(walk.exposed.extension('unaccent'), name, args, location)
  return withConfiguration(name, named, location)
}

function isTypeOf(name: string, arg: Node): arg is Node & { readonly FuncCall: Struct<'FuncCall'> } {
  return name === 'pg_typeof' && words(arg.FuncCall?.funcname).at(-1) === 'pg_typeof'
}

function argument(walk: Walk, level: Level, node: Node): Typed {
  const named = node.NamedArgExpr
  if (!named) return expression(walk, level, node)
  if (!named.arg || !named.name) throw refusedStatement('=>', named.location)
  const inner = expression(walk, level, named.arg)
  return { node: { NamedArgExpr: { arg: inner.node, name: named.name, argnumber: -1 } }, type: inner.type }
}

function modifiers(walk: Walk, level: Level, node: Struct<'FuncCall'>): Partial<Struct<'FuncCall'>> {
  return {
    ...(node.agg_order && { agg_order: sortKeys(walk, level, node.agg_order) }),
    ...optional(walk, level, 'agg_filter', node.agg_filter),
    ...(node.agg_within_group && { agg_within_group: true as const }),
    ...(node.agg_star && { agg_star: true as const }),
    ...(node.agg_distinct && { agg_distinct: true as const }),
    ...(node.func_variadic && { func_variadic: true as const }),
  }
}

interface Found {
  readonly schema: string
  readonly out: readonly string[]
}

/** Whose function a name means, over arguments of these types. Throws Refusal. */
function findFunction(
  exposed: Exposed,
  written: readonly string[],
  types: readonly (SqlType | null)[],
  at: number | undefined,
): Found {
  const name = written.at(-1) ?? ''
  const schema = written.length > 1 ? written.at(-2) : undefined
  if (written.length > 2) throw unknownFunction(exposed, written, at)
  if (schema !== 'pg_catalog') {
    const extension = ofExtension(exposed, schema, name, types, written, at)
    if (extension) return extension
  }
  if ((schema === undefined || schema === 'pg_catalog') && isListed(name, types.length)) {
    const since = SINCE.get(name) ?? SINCE.get(`${name}/${types.length}`)
    checkVersion(exposed, since, written, at)
    return { schema: 'pg_catalog', out: OUT_COLUMNS.get(name) ?? [] }
  }
  throw unknownFunction(exposed, written, at)
}

function unknownFunction(exposed: Exposed, written: readonly string[], at: number | undefined): Refusal {
  return refusedFunction(written.join('.'), at, functionHint(exposed, written.at(-1) ?? ''))
}

/** ts_rewrite with two arguments runs the SQL that is the second. */
function isListed(name: string, arity: number): boolean {
  return FUNCTIONS.has(name) || (name === 'ts_rewrite' && arity === 3)
}

function ofExtension(
  exposed: Exposed,
  schema: string | undefined,
  name: string,
  types: readonly (SqlType | null)[],
  written: readonly string[],
  at: number | undefined,
): Found | undefined {
  const owners = new Set(types.map((type) => extensionOf(exposed, type)))
  for (const extension of exposed.capture.extensions) {
    if (schema !== undefined && extension.schema !== schema) continue
    if (!extension.functions.includes(name)) continue
    // A name that PostgreSQL has too means the extension's only over a value of the extension's own type.
    const isOwn = owners.has(extension.name)
    if (schema === undefined && !isOwn && FUNCTIONS.has(name)) continue
    if (!isCallable(extension, name)) {
      if (isOwn) throw unknownFunction(exposed, written, at)
      continue
    }
    checkVersion(exposed, EXTENSION_SINCE.get(`${extension.name}.${name}`), written, at)
    return { schema: extension.schema, out: EXTENSION_OUT_COLUMNS.get(`${extension.name}.${name}`) ?? [] }
  }
  return undefined
}

/** One that somebody's own function shadows could be answered by that. */
function isCallable(extension: CapturedExtension, name: string): boolean {
  return (
    extension.trusted &&
    !extension.shadowed.includes(name) &&
    EXTENSION_FUNCTIONS.get(extension.name)?.has(name) === true
  )
}

function checkVersion(
  exposed: Exposed,
  since: number | undefined,
  written: readonly string[],
  at: number | undefined,
): void {
  if (since === undefined || since <= exposed.major) return
  const name = written.at(-1) ?? ''
  const advice = FUNCTIONS_ELSEWHERE.get(name)
  const needs = `${name}() needs PostgreSQL ${since}, this server is ${exposed.major}`
  throw refusedFunction(written.join('.'), at, advice === undefined ? needs : `${needs}. ${advice}`)
}

/** Functions whose result has the type of their first argument. */
const LIKE_FIRST: ReadonlySet<string> = new Set([
  ...['any_value', 'first_value', 'lag', 'last_value', 'lead', 'max', 'min', 'mode', 'nth_value'],
  ...['array_append', 'array_cat', 'array_remove', 'array_replace', 'array_reverse', 'array_sample', 'array_shuffle'],
  ...['array_sort', 'trim_array'],
])

/** What is known of the result's type: enough to take a field of it. */
function resultType(
  exposed: Exposed,
  name: string,
  out: readonly string[],
  types: readonly (SqlType | null)[],
  node: Struct<'FuncCall'>,
): SqlType | null {
  if (out.length > 1) return { kind: 'row', columns: out.map((column) => ({ name: column, type: null })) }
  if (RETURNS_TSVECTOR.has(name)) return TSVECTOR
  const [first] = types
  if (!first) {
    if (FROM_ROW_TYPE.has(name)) throw refusedFunction(name, node.location, ROW_TYPE_HINT)
    return null
  }
  if (FROM_ROW_TYPE.has(name)) {
    if (!fieldsOf(exposed, first)) throw refusedFunction(name, node.location, ROW_TYPE_HINT)
    return first
  }
  if (name === 'array_agg') return first.kind === 'array' ? first : { kind: 'array', of: first }
  if (name === 'unnest') return unnested(first)
  return LIKE_FIRST.has(name) ? first : null
}

const TSVECTOR: SqlType = { kind: 'named', schema: 'pg_catalog', name: 'tsvector' }
const RETURNS_TSVECTOR: ReadonlySet<string> = new Set([
  ...['array_to_tsvector', 'json_to_tsvector', 'jsonb_to_tsvector', 'to_tsvector'],
  ...['setweight', 'strip', 'ts_delete', 'ts_filter'],
])

/** What unnest() returns: an array's elements, a tsvector's lexemes. */
function unnested(type: SqlType): SqlType | null {
  if (type.kind === 'array') return type.of
  if (type.kind !== 'named' || type.schema !== 'pg_catalog' || type.name !== 'tsvector') return null
  return { kind: 'row', columns: ['lexeme', 'positions', 'weights'].map((name) => ({ name, type: null })) }
}

const ROW_TYPE_HINT =
  'Its first argument must be of a composite type: NULL::that_type. For plain columns use jsonb_to_record(…) AS t(a int, b text).'
