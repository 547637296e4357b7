// Confines the parameters in a query's text. A parameter means the same as its value written as a literal. The value of
// a number determines its type, a boolean is boolean, and the context determines the type of a string or null. {type,
// value} is a cast. The printed text contains parameters and casts, never a value.
import { word, type Node, type Struct } from '../allowed/allowed-nodes.ts'
import { refusedLimit, refusedStatement } from '../refusal.ts'
import type { Level, ParamForm, Params, Walk } from './scope.ts'
import type { Typed } from './from-items.ts'

/** The maximum number of printed parameters. The protocol allows 65,535. */
const SLOTS_MAX = 1_000

export function newParams(forms: readonly ParamForm[]): Params {
  return { forms, slots: [], typed: new Map(), untyped: new WeakMap() }
}

/** Confines $n. Throws Refusal. */
export function parameter(walk: Walk, level: Level, { number = 0, location }: Struct<'ParamRef'>): Typed {
  if (number < 1) throw refusedStatement(`parameter $${number}`, location)
  // confine() reports a missing value after the whole text was judged.
  const form = walk.params.forms[number - 1]
  if (!form?.cast) return { node: reference(untyped(walk.params, level, number)), type: null }
  const { typed } = walk.params
  const printed = typed.get(number) ?? take(walk.params, number)
  typed.set(number, printed)
  return { node: { TypeCast: { arg: reference(printed), typeName: form.cast } }, type: form.type }
}

/**
 * Returns the printed number of an untyped parameter. In FROM and WHERE each use gets its own number and type, so `$1
 * IS NULL OR a = $1` works. In the other clauses of a SELECT all uses share one number, because the server compares
 * outputs, groups and sort keys, and compares parameters by number.
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
    throw refusedLimit('parameters', `the query uses parameters in more than ${SLOTS_MAX} places`)
  }
  return slots.push(number - 1)
}

function reference(number: number): Node {
  return { ParamRef: { number } }
}

/**
 * Casts an untyped parameter to text, for contexts that accept any type. There, PostgreSQL reads a literal as text, but
 * cannot determine the type of a parameter.
 */
export function asText(value: Typed): Typed {
  if (!value.node.ParamRef) return value
  const text = { names: [word('pg_catalog'), word('text')], typemod: -1 }
  return { node: { TypeCast: { arg: value.node, typeName: text } }, type: null }
}

/** Functions that accept arguments of any type. */
const TAKES_ANYTHING: ReadonlySet<string> = new Set([
  ...['concat', 'concat_ws', 'count', 'format', 'json_build_array', 'json_build_object', 'json_object_agg'],
  ...['jsonb_build_array', 'jsonb_build_object', 'jsonb_object_agg', 'num_nonnulls', 'num_nulls', 'pg_collation_for'],
  ...['pg_typeof'],
])
/** The function whose first argument may be a text search configuration, which the server would look up by name. */
const LOOKS_UP_FIRST = 'ts_headline'

/** Casts the parameters among the arguments if the context gives them no type or must not decide their type. */
export function typedArguments(name: string, args: readonly Typed[]): readonly Typed[] {
  if (TAKES_ANYTHING.has(name)) return args.map(asText)
  return name === LOOKS_UP_FIRST ? args.map((arg, at) => (at === 0 ? asText(arg) : arg)) : args
}
