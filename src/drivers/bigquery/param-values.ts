// Checks the value of one parameter against its type, and writes it as a string for BigQuery's REST API. An invalid
// value is refused before anything is sent.
import type { Param } from '../driver.ts'

/** A scalar or an array of scalars, as `queryParameters` needs it. */
export type BoundValue =
  | { readonly parameterType: { readonly type: string }; readonly parameterValue: { readonly value: string | null } }
  | {
      readonly parameterType: { readonly type: 'ARRAY'; readonly arrayType: { readonly type: string } }
      readonly parameterValue: { readonly arrayValues: readonly { readonly value: string }[] }
    }

type Scalar = Exclude<Param, object> | null

/** The message says which values are accepted. */
export class InvalidValue extends Error {
  override readonly name = 'InvalidValue'
}

const ALIASES: Readonly<Record<string, string>> = {
  INT: 'INT64',
  SMALLINT: 'INT64',
  INTEGER: 'INT64',
  BIGINT: 'INT64',
  TINYINT: 'INT64',
  BYTEINT: 'INT64',
  DECIMAL: 'NUMERIC',
  BIGDECIMAL: 'BIGNUMERIC',
  BOOLEAN: 'BOOL',
}

/** In characters. A longer number, date or interval has needless digits. */
const LENGTH_MAX = 120

const DATE = String.raw`(\d{4})-(\d{1,2})-(\d{1,2})`
const TIME = String.raw`([01]?\d|2[0-3]):([0-5]?\d):([0-5]?\d|60)(?:\.\d{1,6})?`
const ZONE = String.raw`(?:Z|[+-]\d{1,2}(?::?\d{2})?| ?[A-Za-z][\w/+-]{0,60})?`

/** For each type: checks a value and writes it as a string. Throws InvalidValue. */
const WRITERS: Readonly<Record<string, (value: boolean | number | string) => string>> = {
  BOOL: (value) => {
    if (typeof value === 'boolean') return String(value)
    return matching(value, /^(?:true|false)$/i, 'true or false').toLowerCase()
  },
  INT64: (value) => {
    const text = matching(value, /^[+-]?\d{1,19}$/, 'a whole number')
    if (BigInt.asIntN(64, BigInt(text)) !== BigInt(text)) throw new InvalidValue('a whole number of 64 bits')
    return text
  },
  FLOAT64: (value) =>
    matching(value, /^(?:[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,4})?|[+-]?inf(?:inity)?|nan)$/i, 'a number'),
  NUMERIC: (value) => decimal(value, 29, 9),
  BIGNUMERIC: (value) => decimal(value, 39, 38),
  STRING: (value) => string(value, 'a string'),
  BYTES: (value) =>
    matching(
      string(value, 'base64'),
      /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/,
      'base64',
      Infinity,
    ),
  DATE: (value) => dated(value, new RegExp(`^${DATE}$`), 'a date as 2024-01-31'),
  TIME: (value) => matching(value, new RegExp(`^${TIME}$`), 'a time as 23:59:59.999999'),
  DATETIME: (value) => dated(value, new RegExp(`^${DATE}(?:[ T]${TIME})?$`), 'a date and time as 2024-01-31 23:59:59'),
  TIMESTAMP: (value) =>
    dated(value, new RegExp(`^${DATE}(?:[ Tt]${TIME})?${ZONE}$`), 'an instant as 2024-01-31T23:59:59Z'),
  INTERVAL: (value) =>
    matching(
      value,
      /^(?:[+-]?\d{1,5}-\d{1,2}) [+-]?\d{1,7} [+-]?\d{1,8}:\d{1,2}:\d{1,2}(?:\.\d{1,6})?$/,
      'an interval as 1-2 3 4:5:6',
    ),
  GEOGRAPHY: (value) => matching(string(value, 'WKT'), /^[\w ().,+-]+$/, 'WKT, as POINT(1 2)', Infinity),
  JSON: (value) => {
    if (typeof value !== 'string') return String(value)
    if (json(value) === undefined) throw new InvalidValue('JSON as a string')
    return value
  },
}

const TYPES = `${Object.keys(WRITERS).join(', ')} and ARRAY<…> of them`

/**
 * A parameter without a type gets BOOL, INT64, FLOAT64 or STRING by its value, and STRING for null. Throws
 * InvalidValue.
 */
export function bind(param: Param): BoundValue {
  if (typeof param !== 'object' || param === null) return scalar(untyped(param), param)
  const written = param.type.trim().toUpperCase()
  const element = /^ARRAY\s*<\s*(\w+)\s*>$/.exec(written)?.[1]
  if (element === undefined) return scalar(typeNamed(written), param.value)
  return array(typeNamed(element), param.value)
}

function typeNamed(written: string): string {
  const type = Object.hasOwn(ALIASES, written) ? (ALIASES[written] ?? written) : written
  if (!Object.hasOwn(WRITERS, type)) throw new InvalidValue(`a type that a parameter may have: ${TYPES}`)
  return type
}

function untyped(value: Scalar): string {
  switch (typeof value) {
    case 'boolean':
      return 'BOOL'
    case 'number':
      return Number.isInteger(value) ? 'INT64' : 'FLOAT64'
    default:
      return 'STRING'
  }
}

function scalar(type: string, value: Scalar): BoundValue {
  return { parameterType: { type }, parameterValue: { value: value === null ? null : write(type, value) } }
}

/**
 * The value of a parameter is a scalar, so an array is given as a string with a JSON array. Its numbers keep all their
 * digits.
 */
function array(type: string, value: Scalar): BoundValue {
  const why = `a JSON array of ${type} as a string, without null`
  const elements = typeof value === 'string' ? json(value) : undefined
  if (!Array.isArray(elements)) throw new InvalidValue(why)
  const arrayValues = elements.map((element: unknown) => {
    if (element instanceof ExactNumber) return { value: exact(type, element) }
    if (!isScalar(element)) throw new InvalidValue(why)
    return { value: write(type, element) }
  })
  return { parameterType: { type: 'ARRAY', arrayType: { type } }, parameterValue: { arrayValues } }
}

/** A number as it was written, because JSON.parse may round it. */
class ExactNumber {
  readonly source: string

  constructor(source: string) {
    this.source = source
  }
}

/** Returns the number as it was written. If the type accepts only strings, write() throws for the number 0. */
function exact(type: string, { source }: ExactNumber): string {
  write(type, 0)
  return write(type, source)
}

function isScalar(value: unknown): value is boolean | number | string {
  return typeof value === 'boolean' || typeof value === 'number' || typeof value === 'string'
}

function write(type: string, value: boolean | number | string): string {
  const writer = WRITERS[type]
  if (writer === undefined) throw new TypeError(`no writer for ${type}`)
  return writer(value)
}

function string(value: boolean | number | string, wanted: string): string {
  if (typeof value !== 'string') throw new InvalidValue(wanted)
  return value
}

/** Throws InvalidValue if the value is no number or string that matches `form`. */
function matching(value: boolean | number | string, form: RegExp, wanted: string, lengthMax = LENGTH_MAX): string {
  const text = String(value)
  if (typeof value === 'boolean' || text.length > lengthMax || !form.test(text)) throw new InvalidValue(wanted)
  return text
}

function decimal(value: boolean | number | string, whole: number, scale: number): string {
  const wanted = `a decimal of at most ${whole} digits before the point and ${scale} after it`
  const text = matching(value, /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,2})?$/, wanted)
  const [mantissa = '', exponent = '0'] = text.replace(/^[+-]/, '').toLowerCase().split('e')
  const [before = '', behind = ''] = mantissa.split('.')
  const moved = Number(exponent)
  if (before.replace(/^0+/, '').length + moved > whole || behind.replace(/0+$/, '').length - moved > scale) {
    throw new InvalidValue(wanted)
  }
  return text
}

/** The first three groups of `form` must be a valid calendar day. */
function dated(value: boolean | number | string, form: RegExp, wanted: string): string {
  const text = matching(string(value, wanted), form, wanted)
  const [, year, month, day] = form.exec(text) ?? []
  const parts = [year, month, day].map(Number)
  const [y = 0, m = 0, d = 0] = parts
  const at = new Date(0)
  at.setUTCFullYear(y, m - 1, d)
  if (y < 1 || at.getUTCMonth() !== m - 1 || at.getUTCDate() !== d) throw new InvalidValue(wanted)
  return text
}

/** A number that is not a safe integer becomes an ExactNumber. Returns undefined for invalid JSON. */
function json(text: string): unknown {
  try {
    return JSON.parse(text, (_key, value: unknown, written?: { source?: string }) =>
      typeof value === 'number' && !Number.isSafeInteger(value) ? new ExactNumber(written?.source ?? '') : value,
    )
  } catch {
    return undefined
  }
}
