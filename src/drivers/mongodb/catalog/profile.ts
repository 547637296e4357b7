// Profiles one collection from a bounded sample of its documents. The guard's projection reduces the documents to the
// exposed paths before they leave the server.
import { setTimeout as wait } from 'node:timers/promises'
import type * as mongodb from 'mongodb'
import type { Catalog, CatalogTable, ProfileBounds, TableProfile } from '../../driver.ts'
import { AppError } from '../../../errors.ts'
import { timeLeft } from '../../time-left.ts'
import { barrierOf, exposedOf } from '../guard/documents/exposed.ts'
import { toBson } from '../session/to-bson.ts'
import type { BsonDocument } from '../confined-query.ts'
import { takeBatch } from '../session/read-cursor-batch.ts'
import { schemaStale } from '../session/failure.ts'
import { count, isThere, shared, type Running } from '../session/run.ts'
import { Documents } from './profile-documents.ts'

/**
 * The maximum number of values in the sample, unless ROWS_MIN documents already have more. For a collection with many
 * paths, fewer documents are sampled.
 */
const CELLS_MAX = 400_000
const ROWS_MIN = 500
/** The maximum number of bytes of projected documents: large documents are sampled in smaller numbers. */
const BYTES_MAX = 48 * 1024 * 1024
const BATCH = 250
/** The maximum number of values in a batch, unless ten documents already have more. */
const BATCH_CELLS = 10_000
/**
 * MongoDB's limit: $sample picks from a collection of more than this many times the sample size without reading all
 * documents.
 */
const PICKED_FROM = 20

/**
 * Profiles a collection. Throws SCHEMA_STALE if the collection no longer exists, and the errors of the client library.
 */
export async function profileCollection(
  at: Running,
  table: CatalogTable,
  catalog: Catalog,
  bounds: ProfileBounds,
): Promise<TableProfile> {
  const collection = exposedOf(catalog).collection(table.table)
  if (collection === undefined) throw new TypeError('a profile of a collection that is not exposed')
  const left = timeLeft(bounds.timeoutMs)
  const known = table.kind === 'view' ? null : await count(at, table.table, left())
  const rows = Math.min(bounds.rows, Math.max(ROWS_MIN, Math.floor(CELLS_MAX / Math.max(1, table.columns.length))))
  const isAll = known === null || known <= rows * 1.2
  const pipeline: BsonDocument[] = isAll ? [{ $limit: rows + 1 }] : picked(known, rows)
  barrierOf(collection, pipeline).place()
  const documents = new Documents(table.columns)
  const batchSize = Math.max(10, Math.min(BATCH, Math.floor(BATCH_CELLS / Math.max(1, table.columns.length))))
  const isWhole = await readAll(at, table.table, pipeline, { maxTimeMS: left(), batchSize }, documents)
  if (documents.count === 0 && !(await isThere(at, table.table, left()))) throw schemaStale()
  const complete = isAll && isWhole && documents.count <= rows
  const columns = await resting(documents.profiles({ rows: known, complete }))
  return { rowsSampled: documents.count, complete, estimatedRows: complete ? documents.count : known, columns }
}

/**
 * Returns the stages that pick random documents: $sample for a small part of a large collection, otherwise $rand for
 * each document.
 */
function picked(known: number, rows: number): BsonDocument[] {
  if (known > rows * PICKED_FROM) return [{ $sample: { size: rows } }]
  return [{ $match: { $expr: { $lt: [{ $rand: {} }, (0.95 * rows) / known] } } }, { $limit: rows }]
}

/** Returns false if the data exceeded the limit on bytes. */
async function readAll(
  at: Running,
  name: string,
  pipeline: readonly BsonDocument[],
  limits: { readonly maxTimeMS: number; readonly batchSize: number },
  into: Documents,
): Promise<boolean> {
  const stages: mongodb.Document[] = pipeline.map((stage) => toBson(at.login.library, stage))
  const options = { raw: true, ...limits, allowDiskUse: false, comment: 'vitrine' } as const
  const cursor = at.login.db.collection(name).aggregate(stages, { ...shared(at), ...options })
  let bytes = 0
  try {
    while (await cursor.hasNext()) {
      const batch = takeBatch(cursor)
      await resting(into.addAll(batch))
      bytes += batch.length
      if (bytes > BYTES_MAX) return false
    }
    return true
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw new AppError('QUERY_FAILED', 'The database sent a document that is not valid BSON.', { cause: error })
  } finally {
    await cursor.close().catch(() => undefined)
  }
}

/** Pauses after each slice for as long as the slice took, so that other requests are served. */
async function resting<T>(work: Generator<undefined, T>): Promise<T> {
  for (;;) {
    const began = performance.now()
    const step = work.next()
    if (step.done === true) return step.value
    await wait(performance.now() - began)
  }
}
