// Decides whether and how an answer can be drawn. The x axis is the first column with times, or else with texts, or
// else with numbers. The other numeric columns are the series, at most six.
import { isMissing, isNumeric, textOf } from './cell-text.ts'

export interface ChartShape {
  readonly kind: 'time' | 'number' | 'label'
  readonly x: string
  /** The positions on the x axis in ascending order: seconds, numbers, or the index of a label. */
  readonly xs: readonly number[]
  readonly labels: readonly string[]
  readonly series: readonly { readonly name: string; readonly values: readonly (number | null)[] }[]
}

interface Column {
  readonly name: string
  readonly dataType: string
}

const MAX_SERIES = 6
const MAX_LABELS = 60
/** Matches names of id columns, which become series only if there are no other numeric columns. */
const IDENTITY = /(?:^|_)id$/i
const TIME = /^(?:timestamp|date$|datetime)/i

/** Returns the chart. Returns null for fewer than two different x values, no numbers to draw, or over 60 labels. */
export function chartShape(columns: readonly Column[], rows: readonly (readonly unknown[])[]): ChartShape | null {
  if (rows.length < 2 || columns.length < 2) return null
  const at = xColumn(columns)
  const x = columns[at]
  if (x === undefined) return null
  const numbers = columns.map((column, n) => ({ column, n })).filter(({ column, n }) => n !== at && isNumeric(column))
  const measures = numbers.filter(({ column }) => !IDENTITY.test(column.name))
  const series = (measures.length > 0 ? measures : numbers).slice(0, MAX_SERIES)
  if (series.length === 0) return null
  const kind = kindOf(x)
  if (kind === 'label' && rows.length > MAX_LABELS) return null
  const points = rows
    .map((row, n) => ({ row, x: placeOf(kind, row[at], n) }))
    .filter((point): point is { row: readonly unknown[]; x: number } => point.x !== null)
  if (new Set(points.map((point) => point.x)).size < 2) return null
  if (kind !== 'label') points.sort((a, b) => a.x - b.x)
  return {
    kind,
    x: x.name,
    xs: points.map((point) => point.x),
    labels: kind === 'label' ? rows.map((row) => textOf(row[at])) : [],
    series: series.map(({ column, n }) => ({ name: column.name, values: points.map(({ row }) => numberOf(row[n])) })),
  }
}

function xColumn(columns: readonly Column[]): number {
  const time = columns.findIndex((column) => kindOf(column) === 'time')
  if (time >= 0) return time
  const label = columns.findIndex((column) => kindOf(column) === 'label')
  return Math.max(0, label)
}

function kindOf(column: Column): ChartShape['kind'] {
  if (TIME.test(column.dataType)) return 'time'
  return isNumeric(column) ? 'number' : 'label'
}

function placeOf(kind: ChartShape['kind'], value: unknown, n: number): number | null {
  if (kind === 'label') return n
  if (kind === 'number') return numberOf(value)
  const ms = Date.parse(textOf(value))
  return Number.isNaN(ms) ? null : ms / 1000
}

function numberOf(value: unknown): number | null {
  if (isMissing(value)) return null
  const number = Number(value)
  return Number.isFinite(number) ? number : null
}
