// The one place that decides what of a column's values may be kept: values that many rows share and that are nobody's,
// the ends of what is not personal, and counts. What it does not let through is written nowhere.
import type { CatalogColumn, CatalogTable, ColumnProfile, TableProfile } from '../drivers/driver.ts'
import { lookOf } from '../drivers/looks.ts'
import { isPersonalName } from './personal.ts'
import { signalsOf } from './signals.ts'
import type { KeptColumn, KeptKey, KeptProfile } from './stored.ts'

/** A value that fewer rows share may tell of one of them. */
const ROWS_MIN = 5
/** Columns of more distinct values are no categories. */
const DISTINCT_MAX = 50
const CHARS_MAX = 64
/** Of the texts, from which on a column is one of such. */
const PERSONAL_SHARE = 0.2
const LOOK_SHARE = 0.5

const PERSONAL_LOOKS: ReadonlySet<string> = new Set(['email', 'phone', 'iban', 'card', 'nationalId', 'ipAddress'])

/** By column: true or false where a person said so, else null or nothing. */
export type Marks = ReadonlyMap<string, boolean | null>

/**
 * What of a profile may be kept, of the columns of `table` alone: that is the exposed one as it stands when this is
 * written.
 */
export function auditText(profile: TableProfile, table: CatalogTable, marks: Marks, capturedAt: string): KeptProfile {
  const columns = new Map(table.columns.map((column) => [column.name, column]))
  return {
    schema: table.schema,
    table: table.table,
    capturedAt,
    rowsSampled: profile.rowsSampled,
    complete: profile.complete,
    columns: profile.columns.flatMap((seen) => {
      const column = columns.get(seen.name)
      return column === undefined ? [] : [keptColumn(seen, column, table, marks.get(seen.name) ?? null, profile)]
    }),
  }
}

function keptColumn(
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

/** By its name, or because what was seen of it looks so. Values that are known but were not looked at are taken for personal. */
function isPersonal(seen: ColumnProfile, table: string): boolean {
  if (isPersonalName({ table, column: seen.name, kind: seen.kind })) return true
  const looks = Object.entries(seen.sample?.looks ?? {})
  const share = looks.reduce((sum, [look, part]) => sum + (PERSONAL_LOOKS.has(look) ? part : 0), 0)
  if (share >= PERSONAL_SHARE || (seen.sample?.looks['freeText'] ?? 0) >= PERSONAL_SHARE) return true
  const isUnseen = (seen.sample?.count ?? 0) === 0 && (seen.values?.length ?? 0) > 0
  return isUnseen && (seen.kind === 'text' || seen.kind === 'other')
}

/** Null where they are no categories. A value that by itself looks personal is left out, unless a person said otherwise. */
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
 * Keys may be data, as in a map from e-mail addresses: those that few objects share, and those that look like anything
 * but a name, are left out. If most of many keys are, the rest tells of rows too. Null where none is left.
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
 * Whole numbers of nine digits and more, nearly each of its own, as telephone and identity numbers are, under a name that says
 * nothing: an end of their range may be a person's. Of a key it is not.
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

const MOSTLY = 0.9
const LONG = /^\d{9}/

function isUnique({ sample }: ColumnProfile): boolean {
  return sample !== null && sample.count > 1 && sample.distinct === sample.count
}

/** What at least half of the texts look like. */
function lookAt({ kind, sample }: ColumnProfile): string | null {
  if (kind !== 'text' && kind !== 'other') return null
  const found = Object.entries(sample?.looks ?? {}).find(([, share]) => share >= LOOK_SHARE)
  return found?.[0] ?? null
}

/** Four digits tell enough; what is not quite 0 or 1 never reads so. */
function rounded(share: number | null): number | null {
  if (share === null || share === 0 || share === 1) return share
  return Math.min(0.9999, Math.max(0.0001, Math.round(share * 10_000) / 10_000))
}
