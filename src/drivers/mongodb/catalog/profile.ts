// Profiles one collection from a sample of its documents. The projection of the guard runs on the server, so only
// exposed paths leave the server.
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
 * Limits the values of a sample. If a collection has many paths, fewer documents are sampled, but at least ROWS_MIN.
 */
const CELLS_MAX = 400_000
const ROWS_MIN = 500
/** Limits the bytes of a sample after the projection. If documents are large, fewer of them are sampled. */
const BYTES_MAX = 48 * 1024 * 1024
const BATCH = 250
/** Limits the values of a batch, which has at least ten documents. */
const BATCH_CELLS = 10_000
/**
 * If a collection has more than this many times the documents of the sample, $sample picks them without reading all
 * documents.
 */
const PICKED_FROM = 20

/** Throws SCHEMA_STALE if the collection no longer exists. Throws the errors of the client library. */
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

/** Returns false if there were too many bytes. */
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

/** After each slice of the work, pauses for as long as the slice took, so that other requests are served. */
async function resting<T>(work: Generator<undefined, T>): Promise<T> {
  for (;;) {
    const began = performance.now()
    const step = work.next()
    if (step.done === true) return step.value
    await wait(performance.now() - began)
  }
}
