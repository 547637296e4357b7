// Reads the values of a query's parameters: their types, whether each value fits its type, and the text to bind. Pure.
// Only the database can check an enum's labels and other date formats.
import type { Param, Params } from '../../driver.ts'
import { invalidRequest } from '../../../errors.ts'
import type { Exposed } from './exposed.ts'
import { word, type Node } from './allowed/allowed-nodes.ts'
import type { ParamForm } from './walk/scope.ts'
import { longNumberIn } from './bounds/long-numbers.ts'
import { longQueryIn, manyLevelsIn } from './bounds/work-bounds.ts'
import { hasLongRun, RUN } from './bounds/mark-runs.ts'
import { NO_LETTERS, SLOW_DIGIT } from './bounds/joined-punctuation.ts'
import { largePatterns } from './bounds/pattern-size.ts'
import { PARAMS_MAX, PUNCTUATION_MAX } from './bounds/value-growth.ts'
import type { PostgresQuery } from '../confined-query.ts'
import { Refusal } from './refusal.ts'
import { checkSpatialText } from './allowed/srids.ts'
import type { SqlType } from './walk/from-items.ts'
import { typeNamed } from './allowed/type-names.ts'

/** One parameter: its form for the guard, and the text to bind. */
interface Bound {
  readonly form: ParamForm
  /** Equal keys mean equal forms. */
  readonly key: string
  readonly text: string | null
}

export interface BoundParams {
  readonly forms: readonly ParamForm[]
  /** Equal keys mean equal forms, and equal `bytes`. */
  readonly key: string
  /** No text has more bytes: a power of two. */
  readonly bytes: number
  readonly texts: readonly (string | null)[]
}

const NONE: BoundParams = { forms: [], key: '', bytes: PARAMS_MAX, texts: [] }

/** Reads the parameters of a request. Throws AppError INVALID_REQUEST with details. */
export function bindParams(params: Params | undefined, exposed: () => Exposed): BoundParams {
  if (params === undefined) return NONE
  if (!Array.isArray(params.values)) throw invalidRequest(['params: must be an array'])
  const details: string[] = []
  const bound: Bound[] = []
  for (const [at, value] of params.values.entries()) {
    const read = bindOne(value, exposed)
    if (typeof read === 'object') bound.push(read)
    else details.push(`params.${at}: ${read}`)
    // The hint for an unknown type takes a fraction of a millisecond, so only some values are reported.
    if (details.length === DETAILS_MAX) break
  }
  if (details.length > 0) throw invalidRequest(details)
  const longest = Math.max(SHORT, ...bound.map(({ text }) => Buffer.byteLength(text ?? '')))
  const bytes = 2 ** Math.ceil(Math.log2(longest))
  return {
    forms: bound.map(({ form }) => form),
    key: [...(bytes > SHORT ? [`${bytes} bytes`] : []), ...bound.map(({ key }) => key)].join('\0'),
    bytes,
    texts: bound.map(({ text }) => text),
  }
}

/**
 * Returns the text for each printed parameter. Throws AppError INVALID_REQUEST if a value is missing or unused, if the
 * texts together are too long, or if a regular expression is too large.
 */
export function boundTexts(
  { texts }: BoundParams,
  { slots, patterns }: Pick<PostgresQuery, 'patterns' | 'slots'>,
): readonly (string | null)[] {
  if (texts.length === 0 && slots.length === 0) return texts
  const used = new Set(slots)
  const details = [
    ...[...used].filter((slot) => slot >= texts.length).map((slot) => `params: has no value for $${slot + 1}`),
    ...texts.flatMap((_, at) => (used.has(at) ? [] : [`params.${at}: the query does not use $${at + 1}`])),
    ...largePatterns(patterns, texts).map(([at, why]) => `params.${at}: ${why}`),
  ]
  if (details.length > 0) throw invalidRequest(details.slice(0, DETAILS_MAX))
  const out = slots.map((slot) => texts[slot] ?? null)
  const bytes = out.reduce((sum, text) => sum + (text === null ? 0 : Buffer.byteLength(text)), 0)
  if (bytes > BYTES_MAX) {
    throw invalidRequest([`params: have ${bytes} bytes, counted once for each use; the limit is ${BYTES_MAX}`])
  }
  return out
}

/** The guard counts shorter texts as so long, so that most requests with the same SQL have the same key. */
const SHORT = 1_024
const DETAILS_MAX = 20
const BYTES_MAX = 1_048_576

function bindOne(value: Param, exposed: () => Exposed): Bound | string {
  if (typeof value === 'string')
    return unusable(value, exposed) ?? { form: { cast: null, type: null }, key: '', text: value }
  if (value === null) return { form: { cast: null, type: null }, key: '', text: value }
  if (typeof value === 'boolean') return builtIn('bool', String(value))
  if (typeof value === 'number') return builtIn(numberType(value), String(value))
  const named = namesOf(value.type)
  if (named === null) return `type is not the plain name of a type, such as int8, timestamptz or text[]`
  try {
    const { node, type } = typeNamed(exposed(), named)
    const text = value.value === null ? null : String(value.value)
    const wrong =
      value.value === null || text === null
        ? null
        : (misfit(type, value.value) ?? longNumberIn(text, type) ?? longQueryIn(text, type) ?? unusable(text, exposed))
    if (wrong !== null) return `is not a value of the type ${value.type}: ${wrong}`
    return { form: { cast: node, type }, key: value.type, text }
  } catch (error) {
    if (error instanceof Refusal) return error.message
    throw error
  }
}

function unusable(text: string, exposed: () => Exposed): string | null {
  return spatial(text, exposed) ?? marks(text, exposed) ?? punctuation(text) ?? levels(text, exposed)
}

/** Returns why glibc may not compare the text, or null. */
function punctuation(text: string): string | null {
  if (text.length <= DIGITS_MAX) return null
  for (const [run] of text.matchAll(NO_LETTERS)) {
    if (run.length <= DIGITS_MAX) continue
    const most = SLOW_DIGIT.test(run) ? DIGITS_MAX : PUNCTUATION_MAX
    if ([...run].length > most)
      return `has more than ${most} punctuation marks, combining marks, digits of other scripts or spaces in a row, which some collations compare too slowly`
  }
  return null
}

/** The maximum run with a digit that glibc compares slowly: 1,000 of them took 0.7 s. */
const DIGITS_MAX = 100

/** Returns why ltree may not read the text, or null. */
function levels(text: string, exposed: () => Exposed): string | null {
  const why = text.length > FEW_LEVELS ? manyLevelsIn(text) : null
  return why !== null && exposed().extension('ltree') ? why : null
}

/** A shorter text has few levels. */
const FEW_LEVELS = 2_000

/** Returns why ICU may not compare the text, or null. */
function marks(text: string, exposed: () => Exposed): string | null {
  const isLong = text.length > RUN && exposed().comparesByIcu && hasLongRun(text)
  return isLong ? `has more than ${RUN} combining marks in a row, which ICU compares too slowly` : null
}

/** Returns why the text may not become a geometry, or null. */
function spatial(text: string, exposed: () => Exposed): string | null {
  try {
    checkSpatialText(exposed, text, undefined)
    return null
  } catch (error) {
    if (error instanceof Refusal) return `${error.message}. ${error.hint}`
    throw error
  }
}

function builtIn(name: string, text: string): Bound {
  const cast = { names: [word('pg_catalog'), word(name)], typemod: -1 }
  return { form: { cast, type: { kind: 'named', schema: 'pg_catalog', name } }, key: name, text }
}

/** Returns the type of this number as a literal. */
function numberType(value: number): string {
  if (!Number.isInteger(value)) return 'numeric'
  return Math.abs(value) <= 2_147_483_647 ? 'int4' : 'int8'
}

/** SQL's names of types, as PostgreSQL's grammar reads them. */
const ALIASES: ReadonlyMap<string, string> = new Map([
  ...[
    ['int', 'int4'] as const,
    ['integer', 'int4'] as const,
    ['smallint', 'int2'] as const,
    ['bigint', 'int8'] as const,
  ],
  ...[['real', 'float4'] as const, ['float', 'float8'] as const, ['double precision', 'float8'] as const],
  ...[['decimal', 'numeric'] as const, ['dec', 'numeric'] as const, ['boolean', 'bool'] as const],
  ...[['character varying', 'varchar'] as const, ['character', 'bpchar'] as const, ['char', 'bpchar'] as const],
  ...[['timestamp with time zone', 'timestamptz'] as const, ['timestamp without time zone', 'timestamp'] as const],
  ...[['time with time zone', 'timetz'] as const, ['time without time zone', 'time'] as const],
  ...[['bit varying', 'varbit'] as const],
])
const PART = /^(?:[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*|"(?:[^"]|"")+")$/

/** Parses a type name: dotted, quoted if needed, with [] for an array. Returns null for anything else. */
function namesOf(written: string): { readonly names: readonly Node[]; readonly arrayBounds?: readonly Node[] } | null {
  let plain = written.trim()
  const isArray = plain.endsWith(']')
  while (plain.endsWith(']')) {
    const open = plain.slice(0, -1).trimEnd()
    if (!open.endsWith('[')) return null
    plain = open.slice(0, -1).trimEnd()
  }
  const bounds = isArray ? { arrayBounds: [{ Integer: { ival: -1 } }] } : {}
  const alias = ALIASES.get(plain.toLowerCase().replaceAll(/\s+/g, ' '))
  if (alias !== undefined) return { names: [word(alias)], ...bounds }
  const parts = plain.match(/"(?:[^"]|"")+"|[^."]+/g) ?? []
  if (parts.join('.') !== plain || !parts.every((part) => PART.test(part))) return null
  const names = parts.map((part) =>
    part.startsWith('"') ? part.slice(1, -1).replaceAll('""', '"') : part.toLowerCase(),
  )
  return { names: names.map(word), ...bounds }
}

type Value = boolean | number | string

/** Returns why a value does not fit a type, or null if it fits or only the database can tell. */
function misfit(type: SqlType, value: Value): string | null {
  if (type.kind !== 'named' || type.schema !== 'pg_catalog') {
    if (typeof value !== 'string') return 'write it as a string'
    return type.kind === 'array' && !/^\s*[[{]/.test(value) ? 'write an array as a string, such as {1,2,3}' : null
  }
  return (CHECKS[type.name] ?? text)(value)
}

const text = (value: Value): string | null => (typeof value === 'string' ? null : 'write it as a string')

function whole(min: bigint, max: bigint): (value: Value) => string | null {
  return (value) => {
    const digits = typeof value === 'boolean' ? '' : String(value).trim()
    if (!/^[-+]?\d{1,40}$/.test(digits)) return 'it is not a whole number'
    const number = BigInt(digits.replace(/^\+/, ''))
    return number < min || number > max ? `it is not between ${min} and ${max}` : null
  }
}

const NUMBER = /^\s*[-+]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?|inf(?:inity)?|nan)\s*$/i
function number(value: Value): string | null {
  return typeof value !== 'boolean' && NUMBER.test(String(value)) ? null : 'it is not a number'
}

const BOOLEAN = /^\s*(?:t|tr|tru|true|y|ye|yes|on|1|f|fa|fal|fals|false|n|no|of|off|0)\s*$/i
function boolean(value: Value): string | null {
  return typeof value === 'boolean' || (typeof value === 'string' && BOOLEAN.test(value)) ? null : 'it is not a boolean'
}

function uuid(value: Value): string | null {
  const digits = typeof value === 'string' ? value.trim().replace(/^\{(.*)\}$/, '$1') : ''
  return /^(?:[0-9a-f]{4}-?){7}[0-9a-f]{4}$/i.test(digits) ? null : 'it is not a UUID'
}

function json(value: Value): string | null {
  if (typeof value !== 'string') return null
  try {
    JSON.parse(value)
    return null
  } catch {
    return 'it is not valid JSON'
  }
}

/** Checks dates that begin with year, month and day. Only the database can check other formats. */
function day(value: Value): string | null {
  if (typeof value !== 'string') return 'write it as a string, such as 2024-01-31'
  const [, year = '', month = '', date = ''] = /^\s*(\d{4})-(\d{1,2})-(\d{1,2})(?!\d)/.exec(value) ?? []
  if (year === '') return value.trim() === '' ? 'it is empty' : null
  const last = new Date(Date.UTC(2000 + (Number(year) % 400), Number(month), 0)).getUTCDate()
  const fits = Number(month) >= 1 && Number(month) <= 12 && Number(date) >= 1 && Number(date) <= last
  return fits ? null : 'the day does not exist'
}

const CHECKS: Readonly<Record<string, (value: Value) => string | null>> = {
  int2: whole(-32_768n, 32_767n),
  int4: whole(-2_147_483_648n, 2_147_483_647n),
  int8: whole(-9_223_372_036_854_775_808n, 9_223_372_036_854_775_807n),
  oid: whole(0n, 4_294_967_295n),
  float4: number,
  float8: number,
  numeric: number,
  bool: boolean,
  uuid,
  json,
  jsonb: json,
  date: day,
  timestamp: day,
  timestamptz: day,
}
