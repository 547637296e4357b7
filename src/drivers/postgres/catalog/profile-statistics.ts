// Reads the server's statistics of a column (pg_stats), and combines them with a sample. The statistics are as old as
// the last ANALYZE.
import { z } from 'zod'
import { compare, isOrdered } from '../../profile-from-sample.ts'
import type { ColumnProfile, Scalar } from '../../driver.ts'
import { scalarAt, type ReadColumn } from './profile-columns.ts'

/** One row of pg_stats, with values as an answer shows them. */
export interface Statistics {
  readonly nullFrac: number
  /** n_distinct as in pg_stats: a negative number is a fraction of the rows, and 0 means unknown. */
  readonly distinct: number
  readonly correlation: number | null
  readonly common: readonly { readonly value: Scalar; readonly share: number }[]
  readonly ends: readonly Scalar[]
  /** The maximum number of rows that ANALYZE reads: 300 times the statistics target. */
  readonly analysed: number
}

const Texts = z.array(z.string())
const Numbers = z.array(z.number())
const Ends = z.array(z.string().nullable())
const VALUE_CHARS = 64
const VALUES_MAX = 50
/** The lowest correlation at which a column counts as ordered: its values ascend or descend with the rows on disk. */
const IN_ORDER = 0.999

/** Reads the rows of statisticsSql(). */
export function readStatistics(
  rows: readonly (readonly (string | null)[])[],
  columns: readonly ReadColumn[],
): ReadonlyMap<string, Statistics> {
  const writers = new Map(columns.map((column) => [column.name, column.write]))
  return new Map(
    rows.flatMap((row) => {
      const [name, nulls, distinct, correlation, values, shares, ends, analysed] = row
      const write = writers.get(name ?? '')
      if (write === undefined || write === null || name === undefined || name === null) return []
      const scalar = (text: string | null): Scalar[] => {
        const bytes = Buffer.from(text ?? '')
        const value = text === null ? undefined : scalarAt(write, bytes, 0, bytes.length)
        return value === undefined ? [] : [value]
      }
      const frequencies = Numbers.parse(JSON.parse(shares ?? '[]'))
      const common = Texts.parse(JSON.parse(values ?? '[]')).flatMap((text, n) =>
        scalar(text).map((value) => ({ value, share: frequencies[n] ?? 0 })),
      )
      const read: Statistics = {
        nullFrac: Number(nulls),
        distinct: Number(distinct),
        correlation: correlation === null || correlation === undefined ? null : Number(correlation),
        common,
        ends: Ends.parse(JSON.parse(ends ?? '[]')).flatMap(scalar),
        analysed: Number(analysed),
      }
      return [[name, read] as const]
    }),
  )
}

/** Combines the profile of a sample with the statistics. If the sample has all rows, only their order is added. */
export function together(
  seen: ColumnProfile,
  known: Statistics | undefined,
  whole: { readonly rows: number | null; readonly complete: boolean },
): ColumnProfile {
  if (known === undefined) return seen
  const signals = [...seen.signals, ...inOrder(seen, known)]
  if (whole.complete) return { ...seen, signals }
  const rows = whole.rows ?? known.analysed
  const isSure = seen.nullFrac === null || (known.nullFrac > 0 && known.nullFrac < 1)
  return {
    ...seen,
    nullFrac: isSure ? known.nullFrac : seen.nullFrac,
    distinctCount: distinctOf(known, rows) ?? seen.distinctCount,
    values: known.common.length > 0 ? commonOf(known, rows) : seen.values,
    range: rangeOf(seen, known),
    signals,
  }
}

function inOrder({ distinctCount }: ColumnProfile, { correlation }: Statistics): string[] {
  if (correlation === null || distinctCount === null || distinctCount < 3) return []
  if (correlation >= IN_ORDER) return ['ascends in the order rows are stored']
  return correlation <= -IN_ORDER ? ['descends in the order rows are stored'] : []
}

function distinctOf({ distinct }: Statistics, rows: number): number | null {
  if (distinct === 0) return null
  return Math.round(distinct > 0 ? distinct : -distinct * rows)
}

/** Returns how often common values occur in the rows that ANALYZE read, which are at most all rows of the table. */
function commonOf({ common, analysed }: Statistics, rows: number): NonNullable<ColumnProfile['values']> {
  return common
    .filter(({ value }) => typeof value !== 'string' || value.length <= VALUE_CHARS)
    .slice(0, VALUES_MAX)
    .map(({ value, share }) => ({ value, share, rows: Math.round(share * Math.min(analysed, rows)) }))
}

function rangeOf(seen: ColumnProfile, { common, ends }: Statistics): ColumnProfile['range'] {
  if (seen.range === null) return null
  let { min, max } = seen.range
  for (const value of [...ends, ...common.map((each) => each.value)]) {
    if (!isOrdered(value, seen.kind)) continue
    if (compare(value, min) < 0) min = value
    if (compare(value, max) > 0) max = value
  }
  return { min, max }
}
