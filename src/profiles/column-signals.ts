// Writes signals: short observations about a column, such as “mostly null”. Signals that are stored with the profile
// contain no name and no value. More signals are added when a description is rendered.
import type { CatalogColumn, ColumnProfile } from '../drivers/driver.ts'
import type { KeptColumn } from './stored-profiles.ts'

interface About {
  readonly complete: boolean
  readonly unique: boolean
  readonly look: string | null
  readonly personal: boolean
}

/**
 * If at least this share of the values is null, the column is “mostly null”. A look is a recognized form of text, such
 * as an e-mail address. If at least this share of the texts has the look, the signal omits “mostly”.
 */
const MOSTLY = 0.9
/** A signal such as “constant” needs at least this many rows. */
const ROWS_MIN = 2
/** The minimum number of sampled values for the signal “unique in the sample”. */
const UNIQUE_MIN = 100
const LONG_CHARS = 256

/** The looks of texts (drivers/recognize-text.ts), in words for people. */
export const LOOKS: Readonly<Record<string, string>> = {
  email: 'e-mail addresses',
  phone: 'telephone numbers',
  iban: 'bank account numbers',
  card: 'card numbers',
  nationalId: 'national identity numbers',
  ipAddress: 'IP addresses',
  uuid: 'UUIDs',
  url: 'URLs',
  json: 'JSON',
  date: 'dates written as text',
  number: 'numbers written as text',
  freeText: 'free text',
}

/** Returns the signals that are stored with a column's profile. */
export function signalsOf(seen: ColumnProfile, column: CatalogColumn, about: About): readonly string[] {
  return [
    ...ofNulls(seen, column),
    ...ofDistinct(seen, column, about),
    ...ofLooks(seen, about),
    // A key has these signals by definition.
    ...(column.primaryKey ? [] : seen.signals),
    ...(about.personal ? ['personal: its values are not shown'] : []),
  ]
}

function ofNulls({ nullFrac, sample }: ColumnProfile, { nullable, primaryKey }: CatalogColumn): string[] {
  if (nullFrac === null) return []
  if (nullFrac === 1) return ['always null']
  if (nullFrac >= MOSTLY) return ['mostly null']
  if (nullFrac > 0 || !nullable || primaryKey) return []
  return (sample?.count ?? 0) >= ROWS_MIN ? ['always populated although nullable'] : []
}

function ofDistinct({ sample, distinctCount, kind }: ColumnProfile, column: CatalogColumn, about: About): string[] {
  if (sample === null || sample.count < ROWS_MIN) return []
  if (distinctCount === 1) return [about.complete ? 'constant' : 'constant in the sample']
  if (!about.unique || column.primaryKey || kind === 'boolean') return []
  if (about.complete) return ['unique']
  return sample.count >= UNIQUE_MIN ? ['unique in the sample'] : []
}

function ofLooks({ sample, kind }: ColumnProfile, { look }: About): string[] {
  const signals: string[] = []
  const share = look === null ? 0 : (sample?.looks[look] ?? 0)
  const name = look === null ? undefined : LOOKS[look]
  if (name !== undefined) signals.push(share >= MOSTLY ? name : `mostly ${name}`)
  if ((kind === 'text' || kind === 'other') && (sample?.longest ?? 0) > LONG_CHARS) signals.push('holds long texts')
  return signals
}

const DAY_MS = 86_400_000
/** The values shown count as all values if they cover at least this share of the rows. */
const ALL = 0.9995

export function shownSignals(kept: KeptColumn, capturedAt: string): readonly string[] {
  const signals: string[] = []
  const isChoice = kept.values?.some(({ value }) => typeof value !== 'boolean') === true
  if (isChoice && kept.values !== null && kept.values.length > 1 && kept.values.length === kept.distinctCount) {
    const sum = kept.values.reduce((shares, { share }) => shares + share, kept.nullFrac ?? 0)
    if (sum >= ALL) signals.push('enumerated')
  }
  const newest = newestOf(kept)
  if (newest !== null) signals.push(ageOf(newest, Date.parse(capturedAt)))
  return signals
}

/** Returns the latest time of the range, in milliseconds since 1970. Null if the column contains no times. */
function newestOf({ range }: KeptColumn): number | null {
  if (range === null || typeof range.max !== 'string' || !/^\d{4}-\d{2}-\d{2}/.test(range.max)) return null
  const text = /^\d{4}-\d{2}-\d{2}$/.test(range.max) || range.max.endsWith('Z') ? range.max : `${range.max}Z`
  const ms = Date.parse(text)
  return Number.isNaN(ms) ? null : ms
}

function ageOf(newest: number, captured: number): string {
  const days = Math.floor((captured - newest) / DAY_MS)
  if (days < -1) return 'contains dates in the future'
  if (days < 1) return 'newest value was from the day of the profile'
  return `newest value was ${days} ${days === 1 ? 'day' : 'days'} old`
}
