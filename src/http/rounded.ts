// Finds query parameters whose numbers JSON.parse would round. Binding a rounded number would query for another value
// than the caller wrote.
import { invalidRequest, type AppError } from '../errors.ts'

/** A number without these patterns is exact: at most 15 digits and a two-digit exponent. */
const SUSPECT = /[\d.]{16}|[eE][-+]?\d{3}/
/** The shortest text of every double is shorter, even without an exponent. */
const LENGTH_MAX = 400

/** A refusal that names each rounded parameter; null if there is none. `text` is valid JSON. */
export function roundedParams(text: string): AppError | null {
  if (!text.includes('"params"') || !SUSPECT.test(text)) return null
  const rounded: { readonly holder: unknown; readonly key: string }[] = []
  const body: unknown = JSON.parse(text, function (this: unknown, key, value: unknown, written?: { source?: string }) {
    if (typeof value === 'number' && isRounded(value, written?.source ?? '')) rounded.push({ holder: this, key })
    return value
  })
  if (rounded.length === 0) return null
  const names = holdersIn(body)
  const details = rounded.flatMap(({ holder, key }) => {
    const name = names.get(holder)
    return name === undefined ? [] : [`params.${(name ?? key).slice(0, NAME_MAX)}: ${WHY}`]
  })
  return details.length === 0 ? null : invalidRequest(details)
}

const NAME_MAX = 60
const WHY =
  'has more digits than a JSON number holds: write it as a string with its type, {"type": "NUMERIC", "value": "0.1…"}'

/** The objects that hold parameter values, by name: `params` itself (null) and each {type, value} in it. */
function holdersIn(body: unknown): ReadonlyMap<unknown, string | null> {
  const params: unknown = isObject(body) ? Reflect.get(body, 'params') : null
  if (!isObject(params)) return new Map()
  return new Map<unknown, string | null>([
    [params, null],
    ...Object.entries(params).map(([name, it]) => [it, name] as const),
  ])
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

/** Whole numbers are checked where parameters are read: numbers beyond 2^53 are refused, rounded or not. */
function isRounded(value: number, source: string): boolean {
  if (!/[.eE]/.test(source)) return false
  return source.length > LENGTH_MAX || significant(source) !== significant(String(value))
}

/** A decimal without its sign and outer zeros, so that equal numbers have equal texts. */
function significant(decimal: string): string {
  const [mantissa = '', exponent = '0'] = decimal.toLowerCase().replace(/^-/, '').split('e')
  const [whole = '', part = ''] = mantissa.split('.')
  const digits = (whole + part).replace(/^0+/, '')
  if (digits === '') return '0'
  let end = digits.length
  while (digits[end - 1] === '0') end--
  return `${digits.slice(0, end)}e${Number(exponent) - part.length + digits.length - end}`
}
