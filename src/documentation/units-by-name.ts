// The name of a numeric column may contain the column's unit, such as `_ms`.
import type { CatalogColumn } from '../drivers/driver.ts'

const NUMBER = /int|numeric|decimal|float|double|real|number|serial|bson/i

const UNITS: readonly (readonly [RegExp, string])[] = [
  [/(?:^|_)(?:ms|millis|milliseconds)$/, 'In milliseconds.'],
  [/(?:^|_)(?:us|micros|microseconds)$/, 'In microseconds.'],
  [/(?:^|_)(?:ns|nanos)$/, 'In nanoseconds.'],
  [/(?:^|_)(?:sec|secs|seconds)$/, 'In seconds.'],
  [/(?:^|_)(?:mins|minutes)$/, 'In minutes.'],
  [/(?:^|_)hours$/, 'In hours.'],
  [/(?:^|_)days$/, 'In days.'],
  [/(?:^|_)cents$/, 'In cents: divide by 100 for the amount.'],
  [/(?:^|_)(usd|eur|gbp|chf|jpy|cad|aud|sek|nok|dkk|pln|inr|brl|cny)$/, 'In $1.'],
  [/(?:^|_)(?:pct|percent|percentage)$/, 'In percent.'],
  [/(?:^|_)(?:bps)$/, 'In basis points.'],
  [/(?:^|_)(?:bytes)$/, 'In bytes.'],
  [/(?:^|_)(?:kb|kib)$/, 'In kilobytes.'],
  [/(?:^|_)(?:mb|mib)$/, 'In megabytes.'],
  [/(?:^|_)(?:gb|gib)$/, 'In gigabytes.'],
  [/(?:^|_)(?:mm)$/, 'In millimetres.'],
  [/(?:^|_)(?:cm)$/, 'In centimetres.'],
  [/(?:^|_)(?:km)$/, 'In kilometres.'],
  [/(?:^|_)(?:meters|metres)$/, 'In metres.'],
  [/(?:^|_)(?:kg)$/, 'In kilograms.'],
  [/(?:^|_)(?:grams)$/, 'In grams.'],
  [/(?:^|_)(?:celsius|temp_c)$/, 'In degrees Celsius.'],
  [/(?:^|_)(?:fahrenheit|temp_f)$/, 'In degrees Fahrenheit.'],
]

/** Returns null if the column is not numeric or its name contains no unit. */
export function meaningOf({ name, type }: Pick<CatalogColumn, 'name' | 'type'>): string | null {
  const words = snake(name)
  if (NUMBER.test(type)) {
    for (const [form, unit] of UNITS) {
      const found = form.exec(words)
      if (found !== null) return unit.replace('$1', (found[1] ?? '').toUpperCase())
    }
  }
  return null
}

/** `durationMs` and `trip.durationMs` become `duration_ms`. */
function snake(name: string): string {
  const last = name.split('.').at(-1) ?? name
  return last.replaceAll(/(\p{Ll}|\d)(\p{Lu})/gu, '$1_$2').toLowerCase()
}
