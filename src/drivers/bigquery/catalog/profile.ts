// Profiles one table. The metadata of tables.get is free. If the job may also read bytes, a query samples the exposed
// columns. It runs like a caller's query: a dry run first, then limits on bytes, rows and time.
import { ColumnSample } from '../../profile-from-sample.ts'
import { KeySample } from '../../json-keys-from-sample.ts'
import type { Catalog, CatalogTable, ColumnProfile, Limits, ProfileBounds, Scalar, TableProfile } from '../../driver.ts'
import { AppError } from '../../../errors.ts'
import type { BigQueryTableDetail } from '../captured-facts.ts'
import { exposedOf, type Exposed, type ExposedTable } from '../guard/exposed.ts'
import { schemaStale } from '../session/failure.ts'
import { ErrorResponse } from '../session/error-response.ts'
import { endOfValue, firstOf, nextOf } from '../session/json-scan.ts'
import { runQuery, type Running } from '../session/run.ts'
import { TimeSlices } from '../session/time-slices.ts'
import { Families } from '../shard-families.ts'
import { keysIn, readColumn, sampleOf, type ReadColumn, type Sample } from './profile-query.ts'
import { readResource, type Resource } from './table-resource.ts'

/** Limits the cells of a sample. A wide table is sampled with fewer rows, but at least ROWS_MIN. */
const CELLS_MAX = 400_000
const ROWS_MIN = 500
/** Limits the JSON of all sampled rows, which is in memory at the same time. */
const ANSWER_BYTES = 16 * 1024 * 1024

const METADATA_MS = 10_000

/** Runs `work` in BigQuery with a timeout. Throws AppError. */
export type Within = <T>(timeoutMs: number, work: (at: Running) => Promise<T>) => Promise<T>

/** Throws the AppErrors of Connection.profile(). */
export async function profileTable(
  within: Within,
  table: CatalogTable,
  catalog: Catalog,
  bounds: ProfileBounds,
): Promise<TableProfile> {
  const exposed = exposedOf(catalog)
  const { own, id } = placeOf(exposed, table)
  const { detail } = own
  const { project, location } = exposed.capture
  const resource = await within(METADATA_MS, (at) => resourceOf(at, project, table.schema, id))
  const shown = table.columns.filter(({ name }) => isShown(own, name))
  const columns = shown.map(readColumn)
  const counted = isCounted(detail) ? (resource.numRows ?? null) : null
  const known = detail.family === null ? counted : table.estimatedRows
  const facts = columns.map((column, n) =>
    fact(column, shown[n]?.nullable ?? true, signalsOf(column, columns, resource)),
  )
  const read = columns.filter(({ sql }) => sql !== null)
  if (bounds.bytes === null || read.length === 0) {
    return { rowsSampled: 0, complete: false, estimatedRows: known, columns: facts }
  }
  checkSampled(detail)
  const stored = { rows: counted, bytes: resource.numBytes ?? null }
  const limits = { maxResponseBytes: ANSWER_BYTES, timeoutMs: bounds.timeoutMs, maxCost: bounds.bytes }
  const sampled = { project, location, dataset: table.schema, id, detail, ...stored }
  const look = async (chosen: readonly ReadColumn[]) => {
    const rows = Math.min(bounds.rows, Math.max(ROWS_MIN, Math.floor(CELLS_MAX / chosen.length)))
    const sample = sampleOf(sampled, chosen, rows, limits.maxCost)
    return await within(bounds.timeoutMs, (at) => readSample(at, sample, chosen, limits))
  }
  const seen = await withoutKeys(read, look)
  const complete = seen.isWhole && detail.family === null
  const whole = { rows: known, complete }
  return {
    rowsSampled: seen.rows,
    complete,
    estimatedRows: complete ? seen.rows : known,
    columns: facts.map((each) => mergeSample(each, seen.samples.get(each.name), whole)),
  }
}

interface Where {
  readonly own: ExposedTable
  /** For a family, the id of its newest shard, whose columns the catalog has. */
  readonly id: string
}

/** Throws TypeError if the catalog has no such table, and SCHEMA_STALE for a family without shards. */
function placeOf(exposed: Exposed, { schema, table }: CatalogTable): Where {
  const family = exposed.families(schema).find(({ of }) => of.table === table)
  const own = family?.of ?? exposed.tables(schema).get(table)
  if (own === undefined) throw new TypeError('a profile of a table that is not exposed')
  if (family === undefined) return { own, id: table }
  const ofFamily = new Families([family])
  const shards = exposed.ids(schema).filter((id) => ofFamily.of(id) !== null)
  const id = own.detail.newestShard ?? shards.sort().at(-1)
  if (id === undefined) throw schemaStale()
  return { own, id }
}

function isShown({ names, detail }: ExposedTable, name: string): boolean {
  return names.has(name.toLowerCase()) || detail.pseudoColumns.some((pseudo) => pseudo === name)
}

async function resourceOf(at: Running, project: string, dataset: string, id: string): Promise<Resource> {
  const path = ['projects', project, 'datasets', dataset, 'tables', id]
  try {
    return readResource(await at.rest.json({ method: 'GET', path }, at.signal))
  } catch (error) {
    throw error instanceof ErrorResponse && error.reason === 'notFound' ? schemaStale(error) : error
  }
}

function isCounted({ tableType }: BigQueryTableDetail): boolean {
  return tableType !== 'VIEW' && tableType !== 'EXTERNAL'
}

/** Returns what the metadata alone says about a column. */
function fact({ name, kind }: ReadColumn, nullable: boolean, signals: readonly string[]): ColumnProfile {
  const unknown = { distinctCount: null, values: null, range: null, sample: null }
  return { name, kind, nullFrac: nullable ? null : 0, ...unknown, signals }
}

/**
 * The date of the table's last change is a signal of one column: the partitioning column if it is exposed, or else the
 * first time column.
 */
function signalsOf(column: ReadColumn, columns: readonly ReadColumn[], resource: Resource): readonly string[] {
  const { lastModifiedTime, timePartitioning } = resource
  if (lastModifiedTime === undefined) return []
  const by = timePartitioning?.field ?? '_PARTITIONTIME'
  const bearer = columns.find(({ name }) => name === by) ?? columns.find(({ kind }) => kind === 'time')
  if (bearer !== column) return []
  return [`the table last changed on ${new Date(lastModifiedTime).toISOString().slice(0, 10)}`]
}

/**
 * Throws AppError QUERY_FAILED if the bytes of a sampling query are unknown, or if the guard or BigQuery would refuse
 * the query.
 */
function checkSampled({ tableType, closure, requirePartitionFilter }: BigQueryTableDetail): void {
  const why =
    tableType === 'EXTERNAL'
      ? 'BigQuery cannot estimate how much of an external table a sample reads.'
      : closure === null
        ? 'BigQuery did not report which tables this view reads, so it is not sampled.'
        : requirePartitionFilter
          ? 'BigQuery reads this table only with a filter on its partitioning column, so it is not sampled.'
          : null
  if (why !== null) throw new AppError('QUERY_FAILED', why)
}

interface Seen {
  readonly samples: ReadonlyMap<string, Sampled>
  readonly rows: number
  readonly isWhole: boolean
}

interface Sampled {
  readonly values: ColumnSample
  /** The keys of a JSON column. Null for other columns. */
  readonly keys: KeySample | null
}

async function readSample(
  at: Running,
  { query, isWhole }: Sample,
  columns: readonly ReadColumn[],
  limits: Omit<Limits, 'rowCap'>,
): Promise<Seen> {
  const answer = await runQuery(at, query, { ...limits, rowCap: query.rowCap })
  const samples = columns.map(({ kind, hasKeys }): Sampled => {
    return { values: new ColumnSample(kind), keys: hasKeys === true ? new KeySample() : null }
  })
  await new TimeSlices(at.signal).run(countCells(Buffer.from(answer.rows), samples))
  const named = new Map(
    columns.flatMap(({ name }, n) => (samples[n] === undefined ? [] : [[name, samples[n]] as const])),
  )
  return { samples: named, rows: answer.rowCount, isWhole: isWhole && !answer.truncated }
}

/** Counting this many cells takes some milliseconds. */
const CELLS_PER_SLICE = 1_000

/** `json` has all rows, as Connection.run() returns them. Yields between two slices. */
export function* countCells(json: Buffer, samples: readonly Sampled[]): Generator<undefined, void> {
  let cells = 0
  for (let at = firstOf(json, 0); at !== null;) {
    const end = endOfValue(json, at)
    const row = listOf(JSON.parse(json.toString('utf8', at, end)))
    for (const [n, { values, keys }] of samples.entries()) {
      const cell = scalarOf(row[n])
      // The cell of a JSON column has only keys. So only count that there is a value.
      values.add(keys === null || cell === null ? cell : undefined)
      const object = keys === null || typeof cell !== 'string' ? null : keysIn(cell)
      if (object !== null) keys?.add(object)
    }
    at = nextOf(json, end)
    cells += samples.length
    if (cells < CELLS_PER_SLICE) continue
    cells = 0
    yield
  }
}

function listOf(json: unknown): readonly unknown[] {
  return Array.isArray(json) ? json : []
}

/**
 * An emulator may lack the functions that list JSON keys. So if the query fails with QUERY_FAILED, samples only the
 * columns without JSON.
 */
async function withoutKeys(
  columns: readonly ReadColumn[],
  look: (chosen: readonly ReadColumn[]) => Promise<Seen>,
): Promise<Seen> {
  const others = columns.filter(({ hasKeys }) => hasKeys !== true)
  try {
    return await look(columns)
  } catch (error) {
    const isOfQuery = error instanceof AppError && error.code === 'QUERY_FAILED'
    if (!isOfQuery || others.length === columns.length || others.length === 0) throw error
    return await look(others)
  }
}

function scalarOf(cell: unknown): Scalar | null | undefined {
  if (cell === null || typeof cell === 'string' || typeof cell === 'number' || typeof cell === 'boolean') return cell
  return undefined
}

function mergeSample(
  known: ColumnProfile,
  seen: Sampled | undefined,
  whole: Parameters<ColumnSample['profile']>[1],
): ColumnProfile {
  if (seen === undefined) return known
  const { signals, ...values } = seen.values.profile(known.name, whole)
  const keys = seen.keys === null ? {} : { keys: seen.keys.keys() }
  return { ...values, signals: [...known.signals, ...signals], ...keys }
}
