// Converts parsed JSON to BSON values. An object whose only key is an Extended JSON wrapper (such as $oid) becomes a
// Scalar. A malformed wrapper is an error. All other values stay unchanged. A body is never passed to the parser of the
// client library.
import { within } from '../refusals/error-place.ts'
import { parsePattern } from './pattern-tree.ts'
import { Broken } from '../refusals/refusal.ts'
import { Scalar, type Bson, type ScalarValue } from '../../confined-query.ts'

const DATE_MAX = 8.64e15
const LONG = { min: -(2n ** 63n), max: 2n ** 63n - 1n }

type Json = Readonly<Record<string, unknown>>

/**
 * The caller must have checked the depth. Throws Broken for a malformed wrapper, and for a number that JSON rounds.
 * Throws Refusal for a regular expression that parsePattern() refuses.
 */
export function parseEjson(value: unknown): Bson {
  if (value === null || typeof value === 'boolean' || typeof value === 'string') return value
  if (typeof value === 'number') return plainNumber(value)
  if (Array.isArray(value)) return value.map((each, n) => within(value, n, () => parseEjson(each)))
  if (!isJson(value)) throw new Broken('a value is not JSON')
  const keys = Object.keys(value)
  const wrapper = keys.find((key) => Object.hasOwn(WRAPPERS, key))
  if (wrapper !== undefined) {
    return within(value, wrapper, () => new Scalar(scalar(wrapper, keys.length, value[wrapper])))
  }
  const lifted: Record<string, Bson> = {}
  for (const key of keys) lifted[key] = within(value, key, () => parseEjson(value[key]))
  return lifted
}

function plainNumber(value: number): number {
  if (!Number.isFinite(value)) throw new Broken('a number is too large for a double')
  if (Number.isInteger(value) && !Number.isSafeInteger(value) && Math.abs(value) <= 2 ** 63) {
    throw new Broken(
      'write a whole number beyond 2^53 as {"$numberLong": "…"} or {"$numberDouble": "…"}; JSON would round it',
    )
  }
  return value
}

function scalar(wrapper: string, keys: number, value: unknown): ScalarValue {
  const read = keys === 1 ? WRAPPERS[wrapper]?.(value) : undefined
  if (read === undefined)
    throw new Broken(`${wrapper} is not a well-formed Extended JSON value: write ${FORMS[wrapper]}`)
  return read
}

const FORMS: Readonly<Record<string, string>> = {
  $oid: '{"$oid": "<24 hex digits>"}',
  $date: '{"$date": "2024-05-31T12:00:00Z"} or {"$date": {"$numberLong": "<milliseconds>"}}',
  $numberInt: '{"$numberInt": "<32-bit integer>"}',
  $numberLong: '{"$numberLong": "<64-bit integer>"}',
  $numberDouble: '{"$numberDouble": "<number, Infinity, -Infinity or NaN>"}',
  $numberDecimal: '{"$numberDecimal": "<number of up to 34 digits>"}',
  $binary: '{"$binary": {"base64": "…", "subType": "00"}}',
  $uuid: '{"$uuid": "<UUID>"}',
  $regularExpression: '{"$regularExpression": {"pattern": "…", "options": "<of i m s u x>"}}',
  $timestamp: '{"$timestamp": {"t": <seconds>, "i": <counter>}}',
  $minKey: '{"$minKey": 1}',
  $maxKey: '{"$maxKey": 1}',
}

const WRAPPERS: Readonly<Record<string, (value: unknown) => ScalarValue | undefined>> = {
  $oid: (value) => (isText(value, /^[0-9a-f]{24}$/i) ? { kind: '$oid', hex: value.toLowerCase() } : undefined),
  $date: date,
  $numberInt: (value) => {
    if (!isText(value, /^-?\d{1,10}$/)) return undefined
    const number = Number(value)
    return number === (number | 0) ? { kind: '$numberInt', value: number | 0 } : undefined
  },
  $numberLong: (value) => {
    const long = longOf(value)
    return long === undefined ? undefined : { kind: '$numberLong', value: long }
  },
  $numberDouble: (value) => {
    if (!isShort(value) || !/^(?:NaN|-?Infinity|[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)$/i.test(value)) return undefined
    return { kind: '$numberDouble', value: Number(value) }
  },
  $numberDecimal: (value) => (isDecimal(value) ? { kind: '$numberDecimal', text: value } : undefined),
  $binary: binary,
  $uuid: (value) => {
    const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
    return isText(value, uuid) ? { kind: '$uuid', text: value.toLowerCase() } : undefined
  },
  $regularExpression: regularExpression,
  $timestamp: (value) => {
    const { t, i } = exactly(value, 't', 'i')
    return isUint32(t) && isUint32(i) ? { kind: '$timestamp', t, i } : undefined
  },
  $minKey: (value) => (value === 1 ? { kind: '$minKey' } : undefined),
  $maxKey: (value) => (value === 1 ? { kind: '$maxKey' } : undefined),
}

function date(value: unknown): ScalarValue | undefined {
  const long = isJson(value) && Object.keys(value).length === 1 ? longOf(value['$numberLong']) : undefined
  const milliseconds = long === undefined ? isoDate(value) : Number(long)
  if (milliseconds === undefined || !(Math.abs(milliseconds) <= DATE_MAX)) return undefined
  return { kind: '$date', milliseconds }
}

const ISO = /^(\d{4})-(\d\d)-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(Z|[+-]\d\d(?::?\d\d)?))?$/

/**
 * Returns milliseconds since 1970. A date with a time needs a zone. A date alone means midnight UTC. Returns undefined
 * for any other text, and for a day that does not exist.
 */
function isoDate(value: unknown): number | undefined {
  const parts = typeof value === 'string' ? ISO.exec(value) : null
  if (!parts) return undefined
  const [, year = '', month = '', day = '', hour = '0', minute = '0', second = '0', fraction = '', zone = 'Z'] = parts
  const midnight = new Date(0)
  midnight.setUTCFullYear(Number(year), Number(month) - 1, Number(day))
  if (midnight.getUTCMonth() !== Number(month) - 1 || Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59)
    return undefined
  const [, sign = '+', hours = '0', minutes = '0'] = /^([+-])(\d\d):?(\d\d)?$/.exec(zone) ?? []
  if (Number(hours) > 23 || Number(minutes) > 59) return undefined
  const offset = (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes))
  const clock = (Number(hour) * 60 + Number(minute) - offset) * 60_000 + Number(second) * 1000
  return midnight.getTime() + clock + Number(fraction.padEnd(3, '0').slice(0, 3))
}

/**
 * True for NaN, an infinity, and a number that Decimal128 can hold: at most 34 digits after leading zeros, and a
 * fitting exponent.
 */
function isDecimal(value: unknown): value is string {
  if (!isShort(value) || !/^(?:NaN|-?Infinity|[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,6})?)$/i.test(value)) return false
  const parts = /^[+-]?(\d*)\.?(\d*)(?:e([+-]?\d+))?$/i.exec(value)
  if (!parts) return true
  const [, whole = '', fraction = '', power = '0'] = parts
  const digits = (whole + fraction).replace(/^0+/, '')
  const exponent = Number(power) - fraction.length
  return digits.length <= 34 && exponent >= -6176 && exponent <= 6111
}

function binary(value: unknown): ScalarValue | undefined {
  const { base64, subType } = exactly(value, 'base64', 'subType')
  if (!isText(subType, /^[0-9a-f]{1,2}$/i)) return undefined
  if (!isText(base64, /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/)) return undefined
  return { kind: '$binary', base64, subType: Number.parseInt(subType, 16) }
}

function regularExpression(value: unknown): ScalarValue | undefined {
  const { pattern, options } = exactly(value, 'pattern', 'options')
  if (typeof pattern !== 'string' || !isText(options, /^[imsux]{0,5}$/)) return undefined
  parsePattern(pattern, options)
  const sorted = [...new Set(options)].sort().join('')
  return { kind: '$regularExpression', pattern, options: sorted }
}

function longOf(value: unknown): bigint | undefined {
  if (!isText(value, /^-?\d{1,19}$/)) return undefined
  const long = BigInt(value)
  return long >= LONG.min && long <= LONG.max ? long : undefined
}

/** Returns an empty object if the value does not have exactly these keys. */
function exactly(value: unknown, ...keys: readonly string[]): Json {
  return isJson(value) && Object.keys(value).length === keys.length && keys.every((key) => Object.hasOwn(value, key))
    ? value
    : {}
}

function isText(value: unknown, form: RegExp): value is string {
  return typeof value === 'string' && form.test(value)
}

/** The regular expressions above take quadratic time, so a string must be short. */
function isShort(value: unknown): value is string {
  return typeof value === 'string' && value.length <= 200
}

function isUint32(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 0xffff_ffff
}

export function isJson(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns the value of a plain or wrapped number. Returns undefined for decimals and other values. */
export function numberOf(value: Bson | undefined): number | undefined {
  if (typeof value === 'number') return value
  if (!(value instanceof Scalar)) return undefined
  const { of } = value
  return of.kind === '$numberInt' || of.kind === '$numberDouble' || of.kind === '$numberLong'
    ? Number(of.value)
    : undefined
}
