// Decides which data about the values of a column may be stored (KeptColumn in stored-profiles.ts). No other file
// decides this. Values, ranges and JSON keys are stored only if the column is not personal. A value or key is stored
// only if several rows share it.
import type { CatalogColumn, CatalogTable, ColumnProfile, TableProfile } from '../drivers/driver.ts'
import { lookOf } from '../drivers/recognize-text.ts'
import { isPersonalName } from './personal-names.ts'
import { signalsOf } from './column-signals.ts'
import type { KeptColumn, KeptKey, KeptProfile } from './stored-profiles.ts'

/** A value is stored only if at least this many rows share it. A rarer value may identify a row. */
const ROWS_MIN = 5
/** If a column has more distinct values, none of its values is stored. */
const DISTINCT_MAX = 50
const CHARS_MAX = 64
/** A column is personal if at least this share of its sampled values looks personal. */
const PERSONAL_SHARE = 0.2
/** A column has a look if at least this share of its sampled texts has the look. */
const LOOK_SHARE = 0.5

/** Looks of personal data. A look is a recognized form of a text, such as an e-mail address. */
export const PERSONAL_LOOKS: ReadonlySet<string> = new Set([
  'email',
  'phone',
  'iban',
  'card',
  'nationalId',
  'ipAddress',
])

/** What people decided about a column: true for personal, false for not personal, null or absent if undecided. */
export type Marks = ReadonlyMap<string, boolean | null>

/** Returns the data of a profile that may be stored. `table` must contain only exposed columns. */
export function allowedProfile(
  profile: TableProfile,
  table: CatalogTable,
  marks: Marks,
  capturedAt: string,
): KeptProfile {
  const columns = new Map(table.columns.map((column) => [column.name, column]))
  return {
    schema: table.schema,
    table: table.table,
    capturedAt,
    rowsSampled: profile.rowsSampled,
    complete: profile.complete,
    columns: profile.columns.flatMap((seen) => {
      const column = columns.get(seen.name)
      return column === undefined ? [] : [allowedColumn(seen, column, table, marks.get(seen.name) ?? null, profile)]
    }),
  }
}

function allowedColumn(
  seen: ColumnProfile,
  column: CatalogColumn,
  table: CatalogTable,
  mark: boolean | null,
  { complete }: TableProfile,
): KeptColumn {
  const personal = mark ?? isPersonal(seen, table.table)
  const unique = isUnique(seen)
  const look = lookAt(seen)
  const keys = personal ? null : sharedKeys(seen.keys ?? null, mark === false)
  return {
    name: seen.name,
    type: column.type,
    nullFrac: rounded(seen.nullFrac),
    distinctCount: seen.distinctCount,
    values: personal ? null : shareable(seen, mark === false),
    range: personal || (mark === null && areNumbersOfPeople(seen, column)) ? null : seen.range,
    ...(keys === null ? {} : { keys }),
    personal,
    unique,
    look,
    signals: signalsOf(seen, column, { complete, unique, look, personal }),
  }
}

/**
 * Decides whether a column is personal, by its name or the look of its sampled values. A column of the kind `text` or
 * `other` is also personal if the profile lists values but none was sampled, because their look is unknown.
 */
function isPersonal(seen: ColumnProfile, table: string): boolean {
  if (isPersonalName({ table, column: seen.name, kind: seen.kind })) return true
  const looks = Object.entries(seen.sample?.looks ?? {})
  const share = looks.reduce((sum, [look, part]) => sum + (PERSONAL_LOOKS.has(look) ? part : 0), 0)
  if (share >= PERSONAL_SHARE || (seen.sample?.looks['freeText'] ?? 0) >= PERSONAL_SHARE) return true
  const isUnseen = (seen.sample?.count ?? 0) === 0 && (seen.values?.length ?? 0) > 0
  return isUnseen && (seen.kind === 'text' || seen.kind === 'other')
}

/**
 * Returns the values that may be stored: no rare values, no long values, and no values that look personal, unless a
 * person marked the column as not personal. Returns null if the column has too many distinct values, or if no value is
 * left.
 */
function shareable({ values, distinctCount }: ColumnProfile, isCleared: boolean): KeptColumn['values'] {
  if (values === null || distinctCount === null || distinctCount > DISTINCT_MAX) return null
  const kept = values.filter(({ value, rows }) => {
    if (rows < ROWS_MIN) return false
    if (typeof value !== 'string') return true
    if (value.length > CHARS_MAX) return false
    const look = lookOf(value)
    return isCleared || look === null || !(PERSONAL_LOOKS.has(look) || look === 'freeText')
  })
  if (kept.length === 0) return null
  return kept.slice(0, DISTINCT_MAX).map(({ value, share }) => ({ value, share: rounded(share) ?? 0 }))
}

/**
 * Returns the JSON keys that may be stored. A key may be data, such as an e-mail address, so rare and long keys are
 * left out, and keys with a look, unless a person marked the column as not personal. Returns null if no key is left, or
 * if there are many keys and most of them are rare.
 */
function sharedKeys(keys: (ColumnProfile['keys'] & object) | null, isCleared: boolean): readonly KeptKey[] | null {
  if (keys === null) return null
  const shared = keys.filter(({ rows }) => rows >= ROWS_MIN)
  if (keys.length > DISTINCT_MAX && shared.length * 2 < keys.length) return null
  const kept = shared.filter(({ key }) => key.length <= CHARS_MAX && (lookOf(key) === null || isCleared))
  if (kept.length === 0) return null
  return kept.slice(0, DISTINCT_MAX).map(({ key, share, types }) => ({ key, share: rounded(share) ?? 0, types }))
}

/**
 * A column with a neutral name may contain telephone or identity numbers, and then the ends of its range may identify a
 * person. Returns true if nearly all values are distinct, the ends of the range are whole numbers, and the greatest has
 * nine or more digits. Primary and foreign keys are exempt.
 */
function areNumbersOfPeople({ kind, range, sample }: ColumnProfile, column: CatalogColumn): boolean {
  if (
    kind !== 'number' ||
    sample === null ||
    sample.distinct < sample.count * MOSTLY ||
    column.primaryKey ||
    column.references !== null
  )
    return false
  return (
    range !== null && [range.min, range.max].every((end) => /^-?\d+$/.test(String(end))) && LONG.test(String(range.max))
  )
}

/** At least this share of the sampled values must be distinct. */
const MOSTLY = 0.9
const LONG = /^\d{9}/

function isUnique({ sample }: ColumnProfile): boolean {
  return sample !== null && sample.count > 1 && sample.distinct === sample.count
}

/** Returns the look that at least half of the texts have, or null. */
function lookAt({ kind, sample }: ColumnProfile): string | null {
  if (kind !== 'text' && kind !== 'other') return null
  const found = Object.entries(sample?.looks ?? {}).find(([, share]) => share >= LOOK_SHARE)
  return found?.[0] ?? null
}

/** Rounds to four digits, but never to 0 or 1. */
function rounded(share: number | null): number | null {
  if (share === null || share === 0 || share === 1) return share
  return Math.min(0.9999, Math.max(0.0001, Math.round(share * 10_000) / 10_000))
}
