// Parameters in a query's text. A parameter means what its value would mean written there: a number is typed by its size, a
// boolean is one, a string or null has no type until its place gives it one. {type, value} is a cast. What is printed holds
// $1 and casts of ours, never a value.
import { word, type Node, type Struct } from './allowed-nodes.ts'
import { refusedLimit, refusedStatement } from './refusal.ts'
import type { Level, SqlType, Typed, Walk } from './scope.ts'

/** What the guard knows of one parameter: its type, or null for one that its place decides. Plain data. */
export interface ParamForm {
  readonly cast: Struct<'TypeName'> | null
  readonly type: SqlType | null
}

/** The parameters of one text at work. */
export interface Params {
  readonly forms: readonly ParamForm[]
  /** Which of the caller's (from 0) each printed parameter is, in order. */
  readonly slots: number[]
  /** Printed numbers that a whole query shares, by the caller's. */
  readonly typed: Map<number, number>
  /** The same for one SELECT's outputs and groups. */
  readonly untyped: WeakMap<Level, Map<number, number>>
}

/** Printed parameters; the protocol takes 65,535. */
const SLOTS_MAX = 1_000

export function newParams(forms: readonly ParamForm[]): Params {
  return { forms, slots: [], typed: new Map(), untyped: new WeakMap() }
}

/** $n, as the server is to read it. Throws Refusal. */
export function parameter(walk: Walk, level: Level, { number = 0, location }: Struct<'ParamRef'>): Typed {
  if (number < 1) throw refusedStatement(`parameter $${number}`, location)
  // A parameter that was not sent is told by confine(), once the whole text is judged.
  const form = walk.params.forms[number - 1]
  if (!form?.cast) return { node: reference(untyped(walk.params, level, number)), type: null }
  const { typed } = walk.params
  const printed = typed.get(number) ?? take(walk.params, number)
  typed.set(number, printed)
  return { node: { TypeCast: { arg: reference(printed), typeName: form.cast } }, type: form.type }
}

/**
 * In a condition each place decides for itself, so `$1 IS NULL OR a = $1` works. In outputs and groups the number is one:
 * the server compares their expressions, parameters by number.
 */
function untyped(params: Params, level: Level, number: number): number {
  if (level.phase === 'from' || level.phase === 'where') return take(params, number)
  const known = params.untyped.get(level) ?? new Map<number, number>()
  params.untyped.set(level, known)
  const printed = known.get(number) ?? take(params, number)
  known.set(number, printed)
  return printed
}

function take({ slots }: Params, number: number): number {
  if (slots.length >= SLOTS_MAX) {
    throw refusedLimit('parameters', `parameters stand in more than ${SLOTS_MAX} places of the query`)
  }
  return slots.push(number - 1)
}

function reference(number: number): Node {
  return { ParamRef: { number } }
}

/**
 * A parameter that has no type as a text, for places that take anything: a literal there is a text, of a parameter the
 * server says that it cannot tell its type.
 */
export function asText(value: Typed): Typed {
  if (!value.node.ParamRef) return value
  const text = { names: [word('pg_catalog'), word('text')], typemod: -1 }
  return { node: { TypeCast: { arg: value.node, typeName: text } }, type: null }
}

/** Functions of any number of arguments of any type. */
const TAKES_ANYTHING: ReadonlySet<string> = new Set([
  ...['concat', 'concat_ws', 'count', 'format', 'json_build_array', 'json_build_object', 'json_object_agg'],
  ...['jsonb_build_array', 'jsonb_build_object', 'jsonb_object_agg', 'num_nonnulls', 'num_nulls', 'pg_collation_for'],
  ...['pg_typeof'],
])
/** Its first argument may be a configuration, which the server would look up by name. */
const LOOKS_UP_FIRST = 'ts_headline'

/** The arguments of a call with a type for parameters whose place gives none, or one that must not be. */
export function typedArguments(name: string, args: readonly Typed[]): readonly Typed[] {
  if (TAKES_ANYTHING.has(name)) return args.map(asText)
  return name === LOOKS_UP_FIRST ? args.map((arg, at) => (at === 0 ? asText(arg) : arg)) : args
}
