// Reads the structure of a project: its datasets, tables, views and shard families, with columns and keys. All calls
// are free: lists, datasets.get, tables.get, and dry runs of views to find the tables that they read. No query runs.
import type { Catalog, CatalogTable } from '../../driver.ts'
import { CAPTURE_VERSION, type BigQueryCapture, type BigQueryTableDetail, type TableType } from '../captured-facts.ts'
import { mapConcurrently } from '../session/abortable.ts'
import { dryRun, tablesOf, type Place } from '../session/dry-run.ts'
import { accessFailure, unavailable } from '../session/failure.ts'
import { ErrorResponse } from '../session/error-response.ts'
import type { Rest } from '../session/rest.ts'
import type { Target } from '../session/settings.ts'
import { columnsOf, needsFilter, pseudoColumnsOf } from './columns.ts'
import { findDatasets } from './datasets.ts'
import { readResource, type Resource } from './table-resource.ts'
import { Size } from './catalog-size.ts'
import { findTables, newRoom, type Found, type FoundTables } from './tables.ts'

const AT_ONCE = 8
const TABLES_MAX = 10_000

/**
 * `progress` counts tables. Throws AppError DATASOURCE_UNAVAILABLE, for example if there are too many tables or
 * columns, or several locations. Throws the errors of Rest.json().
 */
export async function introspect(
  rest: Rest,
  target: Target,
  signal: AbortSignal,
  progress?: (done: number, total: number) => void,
): Promise<Catalog> {
  const { project } = target
  const { datasets, location } = await findDatasets(rest, target, signal)
  const room = newRoom()
  const found = await mapConcurrently(datasets, AT_ONCE, signal, ({ id }, ended) =>
    findTables(rest, project, id, room, ended).catch((error: unknown) => notListed(target, id, error)),
  )
  const all = found.flatMap(({ tables }) => tables)
  if (all.length > TABLES_MAX) {
    throw unavailable(`There are more than ${TABLES_MAX} tables: name the datasets to introspect in config.datasets.`)
  }
  const at = { rest, target, place: { billingProject: target.billingProject, location }, size: new Size() }
  let done = 0
  const tables = await mapConcurrently(all, AT_ONCE, signal, async (each, ended) => {
    const table = await tableOf(at, each, ended)
    progress?.(++done, all.length)
    return table
  })
  const capture: BigQueryCapture = {
    version: CAPTURE_VERSION,
    project,
    location,
    caseInsensitiveDatasets: datasets.filter((each) => each.isCaseInsensitive).map(({ id }) => id),
    tableIds: Object.fromEntries(datasets.map(({ id }, n) => [id, found[n]?.ids ?? []])),
  }
  return { capturedAt: new Date().toISOString(), tables: tables.filter((each) => each !== null), capture }
}

/**
 * A dataset that was dropped meanwhile, or whose tables may not be listed, counts as empty. But if config names the
 * dataset, throws AppError DATASOURCE_UNAVAILABLE. Rethrows every other error.
 */
function notListed(target: Target, dataset: string, error: unknown): FoundTables {
  if (!(error instanceof ErrorResponse) || !/^(notFound|accessDenied)$/.test(error.reason)) throw error
  if (target.datasets.length === 0) return { ids: [], tables: [] }
  throw unavailable(`The credentials may not list the tables of the dataset ${dataset}.`, error)
}

interface At {
  readonly rest: Rest
  readonly target: Target
  readonly place: Place
  readonly size: Size
}

/** Returns null if the table was dropped meanwhile, or if the credentials see only its name. */
async function tableOf(at: At, found: Found, signal: AbortSignal): Promise<CatalogTable | null> {
  const { project } = at.target
  const path = ['projects', project, 'datasets', found.dataset, 'tables', found.newest.id]
  let resource: Resource
  try {
    resource = readResource(await at.rest.json({ method: 'GET', path }, signal))
  } catch (error) {
    if (error instanceof ErrorResponse && /^(notFound|accessDenied)$/.test(error.reason)) return null
    throw error
  }
  at.size.add(resource)
  const { type } = found.newest
  const closure = type === 'VIEW' || type === 'MATERIALIZED_VIEW' ? await closureOf(at, found, signal) : []
  const detail: BigQueryTableDetail = {
    tableType: type,
    family: found.family,
    ...(found.family !== null && { newestShard: found.newest.id }),
    columns: resource.fields.map(({ name }) => name),
    pseudoColumns: pseudoColumnsOf(resource),
    closure,
    createdAt: resource.creationTime ?? found.newest.createdAt,
    requirePartitionFilter: needsFilter(resource),
    bytes: found.family === null && type !== 'VIEW' ? (resource.numBytes ?? null) : null,
  }
  const columns = columnsOf(resource, project)
  return {
    schema: found.dataset,
    table: found.table,
    kind: kindOf(found, resource),
    description: resource.description || null,
    estimatedRows: rowsOf(found, resource),
    columns,
    warnings: warningsOf(
      detail,
      columns.filter((column) => isTagged(column.detail)).map(({ name }) => name),
    ),
    detail,
  }
}

function isTagged(detail: unknown): boolean {
  return typeof detail === 'object' && detail !== null && Reflect.get(detail, 'policyTagged') === true
}

/** Finds the tables that a view reads, by a dry run. Returns null if BigQuery does not report them. */
async function closureOf(at: At, { dataset, newest }: Found, signal: AbortSignal): Promise<readonly string[] | null> {
  const text = `SELECT * FROM \`${at.target.project}.${dataset}.${newest.id}\``
  try {
    const answer = await dryRun(at.rest, at.place, { text, params: null }, signal)
    const isReported = answer.statistics.query.referencedTables !== undefined
    return isReported || at.target.emulator ? tablesOf(answer) : null
  } catch (error) {
    signal.throwIfAborted()
    // One broken view, or a view that the credentials may not read, must not stop the introspection.
    if (error instanceof ErrorResponse && (accessFailure(error) === null || error.reason === 'accessDenied'))
      return null
    throw error
  }
}

const KINDS: Readonly<Record<TableType, string>> = {
  TABLE: 'table',
  VIEW: 'view',
  MATERIALIZED_VIEW: 'materialized view',
  EXTERNAL: 'external table',
  SNAPSHOT: 'snapshot',
}

function kindOf({ family, newest }: Found, { timePartitioning, rangePartitioning }: Resource): string {
  if (family !== null) return 'sharded table'
  const isPartitioned = timePartitioning !== undefined || rangePartitioning !== undefined
  return newest.type === 'TABLE' && isPartitioned ? 'partitioned table' : KINDS[newest.type]
}

/** For a family, assumes that each shard has as many rows as the newest shard. */
function rowsOf({ family, shards, newest }: Found, { numRows }: Resource): number | null {
  if (numRows === undefined || newest.type === 'VIEW' || newest.type === 'EXTERNAL') return null
  return family === null ? numRows : numRows * shards
}

function warningsOf(detail: BigQueryTableDetail, tagged: readonly string[]): readonly string[] {
  const warnings: string[] = []
  if (detail.closure === null) {
    warnings.push(
      'BigQuery did not report which tables this view reads, so no query may use it. Check that the view still works.',
    )
  }
  if (detail.tableType === 'EXTERNAL') {
    warnings.push('An external table: BigQuery cannot estimate how much a query of it reads.')
  }
  if (tagged.length > 0) {
    const names = tagged.slice(0, 5).join(', ') + (tagged.length > 5 ? ' …' : '')
    warnings.push(
      `Policy tags guard ${names}: a query that names such a column fails unless the credentials have the fine-grained right to read it.`,
    )
  }
  if (detail.requirePartitionFilter) {
    warnings.push('BigQuery reads this table only with a filter on its partitioning column.')
  }
  return warnings
}
