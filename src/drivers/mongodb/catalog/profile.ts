// Profiles one collection: a bounded sample of its documents, cut to the exposed paths by the guard's own projection
// before anything leaves the server.
import { setTimeout as wait } from 'node:timers/promises'
import type * as mongodb from 'mongodb'
import type { Catalog, CatalogTable, ProfileBounds, TableProfile } from '../../driver.ts'
import { AppError } from '../../../errors.ts'
import { timeLeft } from '../../time-left.ts'
import { barrierOf, exposedOf } from '../guard/exposed.ts'
import { toBson } from '../session/to-bson.ts'
import type { BsonDocument } from '../query.ts'
import { takeBatch } from '../session/take-batch.ts'
import { schemaStale } from '../session/failure.ts'
import { count, isThere, shared, type Running } from '../session/run.ts'
import { Documents } from './profile-documents.ts'

/** Values looked at in one collection; one of many paths is sampled by fewer documents. */
const CELLS_MAX = 400_000
const ROWS_MIN = 500
/** Of projected documents that are read: what is large is sampled by fewer. */
const BYTES_MAX = 48 * 1024 * 1024
const BATCH = 250
/** And values: what is looked at without others having their turn. */
const BATCH_CELLS = 10_000
/** From so many times the sample on, the server picks at random without looking at every document. */
const PICKED_FROM = 20

/** Throws SCHEMA_STALE where the collection is gone, and what the client library throws. */
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
  const columns = documents.profiles({ rows: known, complete })
  return { rowsSampled: documents.count, complete, estimatedRows: complete ? documents.count : known, columns }
}

/** Some documents at random: by the server's own cursor where they are few of many, else by the toss of a coin each. */
function picked(known: number, rows: number): BsonDocument[] {
  if (known > rows * PICKED_FROM) return [{ $sample: { size: rows } }]
  return [{ $match: { $expr: { $lt: [{ $rand: {} }, (0.95 * rows) / known] } } }, { $limit: rows }]
}

/** False where there was more than is read. */
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
    throw new AppError('QUERY_FAILED', 'The database sent a document that is no BSON.', { cause: error })
  } finally {
    await cursor.close().catch(() => undefined)
  }
}

/** Rests after each turn for as long as the turn took: others go first. */
async function resting(work: Generator<undefined, void>): Promise<void> {
  for (let isDone = false; !isDone;) {
    const began = performance.now()
    isDone = work.next().done === true
    await wait(performance.now() - began)
  }
}
