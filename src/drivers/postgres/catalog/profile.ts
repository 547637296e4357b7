// Profiles one table, some columns at a time, by a sample of its rows and the server's statistics.
import { setImmediate } from 'node:timers/promises'
import { ColumnSample } from '../../profile-from-sample.ts'
import { KeySample } from '../../json-keys-from-sample.ts'
import type { Catalog, CatalogTable, ColumnProfile, ProfileBounds, TableProfile } from '../../driver.ts'
import { AppError } from '../../../errors.ts'
import { checkCost, explainSql, planCost } from '../session/estimate.ts'
import { schemaStale } from '../session/failure.ts'
import { Texts } from '../session/result.ts'
import type { Sink } from '../session/wire.ts'
import { keysIn, readColumns, scalarAt, type ReadColumn } from './profile-columns.ts'
import { sampleSql, sizeSql, statisticsSql } from './profile-queries.ts'
import { readStatistics, together, type Statistics } from './profile-statistics.ts'

export interface Reader {
  /** Runs the statement in a READ ONLY transaction, with the timeout of the bounds. Throws AppError. */
  read(sql: string, sink: Sink): Promise<void>
  /** False if the session was abandoned. */
  isUsable(): boolean
}

/** The number of columns that one statement reads. Their distinct values stay in memory until the statement ends. */
const COLUMNS_AT_ONCE = 5
/** The maximum number of values in a sample. Of a wide table, fewer rows are read, but at least ROWS_MIN. */
const CELLS_MAX = 400_000
const ROWS_MIN = 500
/** The limit on the estimated cost of a sample of a view or foreign table. It is the default cost limit of a query. */
const PLAN_COST_MAX = 1_000_000
/** A sample reads at least this many pages on average, because a random sample of fewer pages may be empty. */
const PAGES_MIN = 20
/** A second sample reads at most this many times the pages of the first. A page may have one row instead of ROWS_A_PAGE. */
const MORE_MAX = 60
/** The assumed rows of a page if the server has no statistics. */
const ROWS_A_PAGE = 60
const TEXTS_BYTES = 32 * 1024 * 1024
const ROW_BYTES = 1024 * 1024

/** Profiles one table. Throws AppError as documented at Connection.profile(). */
export async function profileTable(
  reader: Reader,
  table: CatalogTable,
  catalog: Catalog,
  bounds: ProfileBounds,
): Promise<TableProfile> {
  const columns = readColumns(table, catalog)
  const isStored = table.kind !== 'view' && table.kind !== 'foreign table'
  const size = readSize((await texts(reader, sizeSql(table)))[0])
  const rows = Math.min(bounds.rows, Math.max(ROWS_MIN, Math.floor(CELLS_MAX / Math.max(1, columns.length))))
  let plan = isStored ? planOf(size, rows) : { percent: null, limit: rows + 1 }
  if (!isStored) await checkPlan(reader, sampleSql(table, columns, plan))
  const known = isStored ? size.rows : null
  const profiles: ColumnProfile[] = []
  let sampled = { rows: Number.POSITIVE_INFINITY, complete: true }
  for (let from = 0; from < columns.length; from += COLUMNS_AT_ONCE) {
    const some = columns.slice(from, from + COLUMNS_AT_ONCE)
    let sample = await sampleOf(reader, sampleSql(table, some, plan), some, plan)
    const better = from === 0 ? morePages(plan, sample.rows, rows) : null
    if (better !== null) {
      plan = better
      sample = await sampleOf(reader, sampleSql(table, some, plan), some, plan)
    }
    const whole = { rows: known, complete: sample.complete }
    const statistics = isStored ? await statisticsOf(reader, table, some, size.hasParts) : NO_STATISTICS
    for (const [n, { name }] of some.entries()) {
      // A column may take milliseconds of CPU time, so other requests run in between.
      await setImmediate()
      const seen = sample.columns[n]?.profile(name, whole)
      const keys = sample.keys[n]?.keys()
      if (seen === undefined) continue
      profiles.push({ ...together(seen, statistics.get(name), whole), ...(keys === undefined ? {} : { keys }) })
    }
    sampled = { rows: Math.min(sampled.rows, sample.rows), complete: sampled.complete && sample.complete }
  }
  const rowsSampled = Number.isFinite(sampled.rows) ? sampled.rows : 0
  const estimatedRows = sampled.complete ? rowsSampled : known === null ? null : Math.round(known)
  return { rowsSampled, complete: sampled.complete, estimatedRows, columns: profiles }
}

const NO_STATISTICS: ReadonlyMap<string, Statistics> = new Map()

interface Size {
  readonly pages: number
  /** An estimate: the pages now, times the rows of a page at the last ANALYZE. Null if a part was never analysed. */
  readonly rows: number | null
  readonly hasParts: boolean
}

function readSize(row: readonly (string | null)[] | undefined): Size {
  if (row === undefined) throw schemaStale()
  const [pages = 0, analysedPages = 0, tuples = 0] = row.slice(0, 3).map(Number)
  const isKnown = row[3] === 't' && analysedPages > 0
  return { pages, rows: isKnown ? (tuples / analysedPages) * pages : null, hasParts: row[4] === 't' }
}

interface Plan {
  readonly percent: number | null
  readonly limit: number
}

/** Reads all rows of a small table, and some pages of a large table. */
function planOf(size: Size, rows: number): Plan {
  const guessed = size.rows ?? size.pages * ROWS_A_PAGE
  if (guessed <= rows * 1.2) return { percent: null, limit: rows + 1 }
  // Aim at fewer rows than the limit, which would otherwise cut off rows at the end of the table.
  const percent = Math.max((90 * rows) / guessed, (100 * PAGES_MIN) / size.pages)
  return { percent: Math.min(100, Number(percent.toPrecision(6))), limit: rows }
}

/** Returns the plan for a second sample if the pages had far fewer rows than expected, otherwise null. */
function morePages({ percent, limit }: Plan, found: number, rows: number): Plan | null {
  if (percent === null || percent >= 100 || found * 2 >= rows) return null
  const more = Math.min((percent * rows) / Math.max(1, found), percent * MORE_MAX, 100)
  return { percent: Number(more.toPrecision(6)), limit }
}

async function checkPlan(reader: Reader, sql: string): Promise<void> {
  checkCost(planCost(await texts(reader, explainSql(sql))), PLAN_COST_MAX)
}

async function statisticsOf(
  reader: Reader,
  table: CatalogTable,
  columns: readonly ReadColumn[],
  inherited: boolean,
): Promise<ReadonlyMap<string, Statistics>> {
  const names = columns.filter((column) => column.write !== null).map((column) => column.name)
  if (names.length === 0) return new Map()
  return readStatistics(await texts(reader, statisticsSql(table, names, inherited)), columns)
}

interface Sampled {
  readonly columns: readonly ColumnSample[]
  /** The keys of JSON columns. */
  readonly keys: readonly (KeySample | null)[]
  readonly rows: number
  readonly complete: boolean
}

/** Reads a sample. After a timeout, returns an empty sample, because the server's statistics may still be usable. */
async function sampleOf(reader: Reader, sql: string, columns: readonly ReadColumn[], plan: Plan): Promise<Sampled> {
  const sink = new SampleSink(columns)
  try {
    await reader.read(sql, sink)
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'QUERY_TIMEOUT' || !reader.isUsable()) throw error
    return { columns: columns.map(({ kind }) => new ColumnSample(kind)), keys: [], rows: 0, complete: false }
  }
  const complete = plan.percent === null && sink.rows < plan.limit && !sink.skipped
  return { columns: sink.samples, keys: sink.keys, rows: sink.rows, complete }
}

async function texts(reader: Reader, sql: string): Promise<readonly (readonly (string | null)[])[]> {
  const sink = new Texts(TEXTS_BYTES)
  await reader.read(sql, sink)
  return sink.answers[0] ?? []
}

/** Counts the values of the sample as they arrive. Skips rows that are too large for memory. */
class SampleSink implements Sink {
  readonly isUnhurried = true
  readonly samples: readonly ColumnSample[]
  readonly keys: readonly (KeySample | null)[]
  readonly #columns: readonly ReadColumn[]
  rows = 0
  skipped = false

  constructor(columns: readonly ReadColumn[]) {
    this.#columns = columns
    this.samples = columns.map(({ kind }) => new ColumnSample(kind))
    this.keys = columns.map(({ hasKeys }) => (hasKeys === true ? new KeySample() : null))
  }

  rowBytesMax(): number {
    return ROW_BYTES
  }

  describe(): void {
    return
  }

  row(from: Buffer, start: number, end: number): boolean {
    this.rows++
    let at = start + 2
    for (const [n, { write }] of this.#columns.entries()) {
      const length = from.readInt32BE(at)
      at += 4
      if (at + length > end) throw new RangeError('a value that ends behind its row')
      const keys = this.keys[n] ?? null
      if (keys !== null) {
        this.samples[n]?.add(length < 0 ? null : undefined)
        const object = length < 0 ? null : keysIn(from.toString('utf8', at, at + length))
        if (object !== null) keys.add(object)
      } else if (write === null) this.samples[n]?.add(from[at] === 0x74 ? null : undefined)
      else this.samples[n]?.add(length < 0 ? null : scalarAt(write, from, at, at + length))
      at += Math.max(length, 0)
    }
    return true
  }

  tooLong(): boolean {
    this.skipped = true
    return true
  }
}
