// JSON.parse rounds a number with many digits. If the number is a query parameter, the query would search for another
// value than the caller wrote. This file finds such parameters.
import { invalidRequest, type AppError } from '../errors.ts'

/** A number that does not match is exact: it has at most 15 digits and an exponent of two digits. */
const SUSPECT = /[\d.]{16}|[eE][-+]?\d{3}/
/** A longer number counts as rounded, because the shortest text of any double is shorter, even without an exponent. */
const LENGTH_MAX = 400

/** Null if no parameter was rounded. `text` must be short and valid JSON. */
export function roundedParams(text: string): AppError | null {
  const rounded = roundedNumbers(text)
  if (rounded === null) return null
  const body: unknown = JSON.parse(text, function (this: object, key, value: unknown, written?: { source?: string }) {
    if (typeof value === 'number') rounded.note(this, key, value, written?.source ?? '')
    return value
  })
  return rounded.refusal(body)
}

/** For a body that is parsed in slices. Returns null if no parameter can be rounded. */
export function roundedNumbers(text: string): RoundedNumbers | null {
  return text.includes('"params"') && SUSPECT.test(text) ? new RoundedNumbers() : null
}

class RoundedNumbers {
  readonly #all: { readonly holder: object; readonly key: string }[] = []

  note(holder: object, key: string, value: number, source: string): void {
    if (isRounded(value, source)) this.#all.push({ holder, key })
  }

  refusal(body: unknown): AppError | null {
    if (this.#all.length === 0) return null
    const names = holdersIn(body)
    const details: string[] = []
    for (const { holder, key } of this.#all) {
      const name = names.get(holder)
      if (name !== undefined) details.push(`params.${(name ?? key).slice(0, NAME_MAX)}: ${WHY}`)
      if (details.length >= DETAILS_MAX) break
    }
    return details.length === 0 ? null : invalidRequest(details)
  }
}

const DETAILS_MAX = 50

const NAME_MAX = 60
const WHY =
  'has more digits than a JSON number holds: write it as a string with its type, {"type": "NUMERIC", "value": "0.1…"}'

/** Returns the objects that contain parameters (`params` and each {type, value}), with the names of the parameters. */
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

/** Ignores integers, because the driver refuses all integers beyond 2^53. */
function isRounded(value: number, source: string): boolean {
  if (!/[.eE]/.test(source)) return false
  return source.length > LENGTH_MAX || significant(source) !== significant(String(value))
}

/** Returns the digits without sign and outer zeros, and an exponent. Equal numbers give equal texts. */
function significant(decimal: string): string {
  const [mantissa = '', exponent = '0'] = decimal.toLowerCase().replace(/^-/, '').split('e')
  const [whole = '', part = ''] = mantissa.split('.')
  const digits = (whole + part).replace(/^0+/, '')
  if (digits === '') return '0'
  let end = digits.length
  while (digits[end - 1] === '0') end--
  return `${digits.slice(0, end)}e${Number(exponent) - part.length + digits.length - end}`
}
