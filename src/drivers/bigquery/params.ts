// Compares the parameters in a query with those that the caller sent. Their values are sent to BigQuery separately, and
// never printed into the SQL.
import { invalidRequest } from '../../errors.ts'
import type { Param, Params } from '../driver.ts'
import { lex } from './guard/lex.ts'
import { Malformed, Refusal } from './guard/refusal.ts'
import type { Token } from './guard/tokens.ts'
import { bind, InvalidValue, type BoundValue } from './param-values.ts'

export interface Bound {
  readonly parameterMode: 'NAMED' | 'POSITIONAL'
  readonly queryParameters: readonly (BoundValue & { readonly name?: string })[]
}

const NAME = /^[A-Za-z_]\w{0,127}$/

/**
 * Throws AppError INVALID_REQUEST if a parameter is missing or superfluous, or if its value does not match its type. A
 * query that the lexer refuses is left to the guard.
 */
export function checkParams(text: string, params: Params | undefined): void {
  if (params === undefined && !/[@?]/.test(text)) return
  const tokens = tokensOf(text)
  if (tokens === null) return
  const details = params === undefined ? [] : valueDetails(params)
  if (details.length === 0) details.push(...mismatches(tokens, params))
  if (details.length > 0) throw invalidRequest(details)
}

function tokensOf(text: string): readonly Token[] | null {
  try {
    return lex(text)
  } catch (error) {
    if (error instanceof Malformed || error instanceof Refusal) return null
    throw error
  }
}

/** checkParams() must have checked the parameters. Returns null if the query or the request has none. */
export function boundOf(tokens: readonly Token[], params: Params | undefined): Bound | null {
  if (params === undefined || !tokens.some(isParameter)) return null
  const { values } = params
  if (isList(values)) return { parameterMode: 'POSITIONAL', queryParameters: values.map(bind) }
  const queryParameters = [...values].map(([name, param]) => ({ name: name.toLowerCase(), ...bind(param) }))
  return { parameterMode: 'NAMED', queryParameters }
}

/** Returns the first parameter of the query that has no value, or null. Names ignore case. */
export function unbound(tokens: readonly Token[], params: Params | undefined): Token | null {
  const values = params?.values ?? []
  if (isList(values)) {
    const used = tokens.filter(isParameter)
    return used.find(({ text }, at) => text !== '?' || at >= values.length) ?? null
  }
  const names = new Set([...values.keys()].map((name) => `@${name.toLowerCase()}`))
  return tokens.find((token) => isParameter(token) && !names.has(token.text)) ?? null
}

function isParameter({ kind }: Token): boolean {
  return kind === 'parameter'
}

function isList(values: Params['values']): values is readonly Param[] {
  return Array.isArray(values)
}

function valueDetails({ values }: Params): string[] {
  const entries: Iterable<[string | number, Param]> = isList(values) ? values.entries() : values
  const details: string[] = []
  const names = new Set<string>()
  for (const [name, param] of entries) {
    const shown = String(name).slice(0, 60)
    if (typeof name === 'string') {
      if (!NAME.test(name)) details.push(`params.${shown}: is not a parameter name (letters, digits, _)`)
      else if (names.has(name.toLowerCase())) details.push(`params.${shown}: appears twice; names ignore case`)
      names.add(name.toLowerCase())
    }
    try {
      bind(param)
    } catch (error) {
      if (!(error instanceof InvalidValue)) throw error
      details.push(`params.${shown}: must be ${error.message}`)
    }
  }
  return details
}

function mismatches(tokens: readonly Token[], params: Params | undefined): string[] {
  const used = new Set(tokens.filter(isParameter).map(({ text }) => text))
  const places = tokens.filter(({ kind, text }) => kind === 'parameter' && text === '?').length
  if (places > 0 && used.size > 1) return ['params: the query contains both ? and @name; use one of them']
  const values = params?.values ?? (places > 0 ? [] : new Map<string, Param>())
  if (isList(values)) {
    if (places === values.length && used.size <= 1)
      return namesIn(used).map((name) => `params.${name}: is missing; give an object of names`)
    return [
      `params: has ${values.length} values, but the query has ${places} ?`,
      ...namesIn(used).map((name) => `params.${name}: is missing`),
    ]
  }
  if (places > 0) return [`params: must be an array of ${places} values, one for each ?`]
  const given = new Set([...values.keys()].map((name) => name.toLowerCase()))
  return [
    ...namesIn(used)
      .filter((name) => !given.has(name))
      .map((name) => `params.${name}: is missing`),
    ...[...values.keys()]
      .filter((name) => !used.has(`@${name.toLowerCase()}`))
      .map((name) => `params.${name}: is not used by the query`),
  ]
}

function namesIn(used: ReadonlySet<string>): string[] {
  return [...used].filter((text) => text !== '?').map((text) => text.slice(1))
}
