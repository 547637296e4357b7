import type { WireParam, WireParams } from '../../support/bigquery-evaluator.ts'
import { readType, toMessage, type Type } from './types.ts'
import { toValue } from './values.ts'
import type { Message } from './zetasql.ts'

/** Matches a string literal, a name in backquotes, or a question mark. */
const PART = /(?:[rRbB]{0,2})(?:'''[^]*?'''|"""[^]*?"""|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")|`[^`]*`|\?/g

/**
 * The evaluator of 2023 binds parameters only by name, so this gives names to positional parameters. Tests therefore do
 * not show how BigQuery treats `?`.
 */
export function byName(
  sql: string,
  params: WireParams,
): { readonly sql: string; readonly params: readonly WireParam[] } {
  const { parameterMode, queryParameters = [] } = params
  if (parameterMode !== 'POSITIONAL') return { sql, params: queryParameters }
  let place = 0
  const named = sql.replace(PART, (part) => (part === '?' ? `@place_${place++}` : part))
  return { sql: named, params: queryParameters.map((each, n) => ({ ...each, name: `place_${n}` })) }
}

export function parameterOptions(params: readonly WireParam[]): Message {
  return { query_parameters: params.map((each) => ({ name: each.name, type: toMessage(typeOf(each)) })) }
}

export function parameterValues(params: readonly WireParam[]): Message[] {
  return params.map((each) => ({ name: each.name, value: toValue(typeOf(each), heldBy(each)) }))
}

function typeOf({ parameterType: { type, arrayType } }: WireParam): Type {
  return arrayType === undefined ? readType(type) : { kind: 'array', of: readType(arrayType.type) }
}

function heldBy({ parameterType, parameterValue: { value, arrayValues } }: WireParam): unknown {
  const read = (text: string | null | undefined, type: string) => (type === 'BOOL' ? text === 'true' : text)
  const { type, arrayType } = parameterType
  if (arrayType !== undefined) return arrayValues?.map((each) => read(each.value, arrayType.type))
  return value === null ? null : read(value, type)
}
