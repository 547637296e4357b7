// Formats times, numbers, sizes and durations for people. Most times are shown relative to now.
const UNITS = [
  ['day', 86_400],
  ['h', 3_600],
  ['min', 60],
] as const

/** Returns a time like `3 min ago`, `in 2 days` or `just now`. */
export function ago(at: string, now = Date.now()): string {
  const seconds = (Date.parse(at) - now) / 1000
  const far = Math.abs(seconds)
  for (const [unit, size] of UNITS) {
    if (far < size) continue
    const n = Math.floor(far / size)
    const words = `${n} ${unit === 'day' && n !== 1 ? 'days' : unit}`
    return seconds < 0 ? `${words} ago` : `in ${words}`
  }
  return seconds > 5 ? `in ${Math.ceil(far)} s` : 'just now'
}

const EXACT = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium' })
const DAY = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric' })
const NUMBER = new Intl.NumberFormat('en-GB')

export const exact = (at: string) => EXACT.format(new Date(at))
export const day = (at: string) => DAY.format(new Date(at))
export const number = (value: number) => NUMBER.format(value)

/** Returns a count like `1 row` or `2,000 rows`. */
export const counted = (n: number, one: string, many = `${one}s`) => `${number(n)} ${n === 1 ? one : many}`

const SIZES = ['B', 'kB', 'MB', 'GB', 'TB'] as const

export function bytes(n: number): string {
  let [value, unit] = [n, 0]
  while (value >= 1000 && unit < SIZES.length - 1) [value, unit] = [value / 1000, unit + 1]
  return `${value >= 100 || unit === 0 ? Math.round(value) : value.toFixed(1)} ${SIZES[unit] ?? ''}`
}

export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`
}
