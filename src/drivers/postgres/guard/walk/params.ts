// Confines the parameters of a query. A parameter means the same as its value written as a literal: a number has the
// type of its value, a boolean is a boolean, and a string or null gets its type from the context. {type, value} is a
// cast. The printed text contains parameters and casts, but no values.
import { word, type Node, type Struct } from '../allowed/allowed-nodes.ts'
import { refusedLimit, refusedStatement } from '../refusal.ts'
import type { Level, ParamForm, Params, Walk } from './scope.ts'
import type { Typed } from './from-items.ts'

/** The limit on uses of parameters. The protocol allows 65,535. */
const SLOTS_MAX = 1_000

export function newParams(forms: readonly ParamForm[]): Params {
  return { forms, slots: [], patterns: new Map(), typed: new Map(), untyped: new WeakMap() }
}

/** Confines one parameter. Throws Refusal. */
export function parameter(walk: Walk, level: Level, { number = 0, location }: Struct<'ParamRef'>): Typed {
  if (number < 1) throw refusedStatement(`parameter $${number}`, location)
  // confine() reports a missing value later, after it has judged the whole text.
  const form = walk.params.forms[number - 1]
  if (!form?.cast) return { node: reference(untyped(walk.params, level, number)), type: null }
  const { typed } = walk.params
  const printed = typed.get(number) ?? take(walk.params, number)
  typed.set(number, printed)
  return { node: { TypeCast: { arg: reference(printed), typeName: form.cast } }, type: form.type }
}

/**
 * Returns the number of an untyped parameter in the printed text. In FROM and WHERE, each use has its own number, and
 * so its own type: `$1 IS NULL OR a = $1` works. In the other clauses of a SELECT, all uses have one number: PostgreSQL
 * compares outputs, groups and sort keys, and parameters are equal only if their numbers are.
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

/** Casts an untyped parameter to text. Where any type is accepted, PostgreSQL finds no type for it. */
export function asText(value: Typed): Typed {
  if (!value.node.ParamRef) return value
  const text = { names: [word('pg_catalog'), word('text')], typemod: -1 }
  return { node: { TypeCast: { arg: value.node, typeName: text } }, type: null }
}

const TAKES_ANYTHING: ReadonlySet<string> = new Set([
  ...['concat', 'concat_ws', 'count', 'format', 'json_build_array', 'json_build_object', 'json_object_agg'],
  ...['jsonb_build_array', 'jsonb_build_object', 'jsonb_object_agg', 'num_nonnulls', 'num_nulls', 'pg_collation_for'],
  ...['pg_typeof'],
])
/** PostgreSQL would look up an untyped first argument as the name of a text search configuration. */
const LOOKS_UP_FIRST = 'ts_headline'

/** Casts parameters to text if the function accepts any type, or must not choose the type. */
export function typedArguments(name: string, args: readonly Typed[]): readonly Typed[] {
  if (TAKES_ANYTHING.has(name)) return args.map(asText)
  return name === LOOKS_UP_FIRST ? args.map((arg, at) => (at === 0 ? asText(arg) : arg)) : args
}
