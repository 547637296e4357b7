// Runs a confined query: checks its cost, then runs one find or aggregate. Documents stay BSON until they are written
// as JSON.
import type * as mongodb from 'mongodb'
import { AppError } from '../../../errors.ts'
import type { Estimate, Limits, Rows } from '../../driver.ts'
import type { JsonBytes } from '../../json-bytes.ts'
import { timeLeft } from '../../time-left.ts'
import { takeBatch } from './read-cursor-batch.ts'
import type { Login } from './connect.ts'
import { boundBySize, checkCost, costBound, planCost, type Sizes } from './estimate.ts'
import { failure, schemaStale } from './failure.ts'
import { ALWAYS, fieldsOf, type CommandWriter } from './write-command.ts'
import { readReply, type Batch } from './read-reply.ts'
import { runInSlices } from './write-large-value.ts'
import { isRemembered, lookupOf, remember, type Lookups } from './plan-cache.ts'
import { toBson } from './to-bson.ts'
import { SMALL_ROWS_MAX, type BsonDocument, type MongoQuery } from '../confined-query.ts'
import { Result } from './result.ts'
import { LostConnection, type Wire } from './wire.ts'

/** The caches that all connections of one datasource share for some minutes. */
export interface Known {
  readonly sizes: Map<string, { readonly documents: number | null; readonly at: number }>
  readonly lookups: Lookups
}

export interface Borrowed {
  readonly wire: Wire
  readonly writer: CommandWriter
}

export interface Running {
  readonly login: Login
  readonly known: Known
  /** The session with which a cancelled query is ended in the database. Null if the server has no sessions. */
  readonly session: mongodb.ClientSession | null
  readonly signal: AbortSignal
  readonly borrowed: () => Borrowed | Promise<Borrowed>
  /** The client would otherwise create collection objects again for each query. */
  readonly collections: Map<string, mongodb.Collection>
  /** Reused from query to query. */
  readonly out: JsonBytes
}

const SIZE_MS = 180_000
const SIZES_MAX = 1_000
const COLLECTIONS_MAX = 1_000
/**
 * The default row limit plus two. An answer of this size needs only one command
 * (docs/guard/mongodb.md#how-it-is-confined).
 */
const BATCH_MAX = SMALL_ROWS_MAX + 2

/** Throws AppError as described at Connection.run(). */
export async function runQuery(at: Running, query: MongoQuery, limits: Limits): Promise<Rows> {
  const left = timeLeft(limits.timeoutMs)
  const bound = boundBySize(query, (name) => sizeIn(at, name)) ?? (await costBound(query, sizesOf(at, left)))
  const isCheap = bound <= limits.maxCost
  const answered = async (form: readonly BsonDocument[]): Promise<Rows> => {
    const lookup = isCheap ? null : lookupOf(query, form)
    if (!isCheap && !isRemembered(at.known.lookups, lookup)) {
      const cost = await explainedCost(at, query, form, limits.maxCost, left)
      checkCost(cost, limits.maxCost, query.collection)
      remember(at.known.lookups, lookup, cost)
    }
    const small = query.rowCap <= SMALL_ROWS_MAX ? await inOneBatch(at, query, form, limits, left()) : null
    return small ?? (await inBatches(at, query, form, limits, left()))
  }
  const early = query.early === null ? null : await unlessFailed(answered(query.early))
  const rows = early ?? (await answered(query.pipeline))
  if (rows.rowCount === 0 && !(await isThere(at, query.collection, left()))) throw schemaStale()
  return rows
}

/** Returns null if the database fails the query. The other form of the query then reports the error. */
async function unlessFailed(rows: Promise<Rows>): Promise<Rows | null> {
  try {
    return await rows
  } catch (error) {
    if (failure(error).code !== 'QUERY_FAILED') throw error
    return null
  }
}

function resultOf(at: Running, query: MongoQuery, limits: Limits): Result {
  return new Result({ rowCap: query.rowCap, bytesMax: limits.maxResponseBytes }, query.columns, at.out)
}

/**
 * Returns one more than the $limit of the pipeline, so that the server sees the end within the first batch and closes
 * the cursor. A batch is in memory as a whole, so its size is limited.
 */
function batchSizeOf({ rowCap }: MongoQuery): number {
  return Math.min(rowCap + 2, BATCH_MAX)
}

/**
 * Runs the query as one command. Returns null if not all documents were in the answer (more than 16 MB), or if the
 * connection was lost.
 */
async function inOneBatch(
  at: Running,
  query: MongoQuery,
  form: readonly BsonDocument[],
  limits: Limits,
  maxTimeMS: number,
): Promise<Rows | null> {
  const { collection } = query
  let answer: Buffer
  try {
    const known = at.borrowed()
    const { wire, writer } = known instanceof Promise ? await known : known
    const batchSize = batchSizeOf(query)
    answer = await wire.exchange(writer.message({ collection, form: query.find ?? form, batchSize, maxTimeMS }))
  } catch (error) {
    // The library retries a read once, on another connection or member.
    const isLost = error instanceof LostConnection || error instanceof at.login.library.MongoNetworkError
    if (isLost && !at.signal.aborted) return null
    throw error
  }
  const { bytes, cursor } = batchOf(at, answer)
  if (cursor !== null) await closeCursor(at, collection, cursor)
  const result = resultOf(at, query, limits)
  const added = runInSlices(result.addAll(bytes), at)
  const isWanted = added instanceof Promise ? await added : added
  if (cursor !== null && isWanted) return null
  return runInSlices(result.finish(), at)
}

/**
 * An open cursor keeps the data that its sort has gathered, so it is closed. If that fails, the connection is discarded
 * and its session ends.
 */
async function closeCursor(at: Running, collection: string, cursor: bigint): Promise<void> {
  const known = at.borrowed()
  const { wire, writer } = known instanceof Promise ? await known : known
  await wire.exchange(writer.closing(collection, cursor))
}

/** Throws the server's error in the same form as the library. */
function batchOf({ login: { library } }: Running, answer: Buffer): Batch {
  try {
    const batch = readReply(answer)
    if (batch !== null) return batch
    throw new library.MongoServerError(library.BSON.deserialize(answer))
  } catch (error) {
    throw error instanceof RangeError ? invalidBson(error) : error
  }
}

function invalidBson(cause: RangeError): AppError {
  return new AppError('QUERY_FAILED', 'The database sent a document that is not valid BSON.', { cause })
}

async function inBatches(
  at: Running,
  query: MongoQuery,
  form: readonly BsonDocument[],
  limits: Limits,
  maxTimeMS: number,
): Promise<Rows> {
  const result = resultOf(at, query, limits)
  const options = { ...shared(at), raw: true, batchSize: batchSizeOf(query), maxTimeMS, ...ALWAYS }
  const cursor = collectionOf(at, query).aggregate(stages(at, form), options)
  try {
    let wanted = true
    while (wanted && (await cursor.hasNext())) {
      wanted = await runInSlices(result.addAll(takeBatch(cursor)), at)
    }
  } finally {
    await cursor.close().catch(() => undefined)
  }
  return await runInSlices(result.finish(), at)
}

/** Returns the cost by the plan, without running the query. Throws AppError like runQuery(). */
export async function estimateQuery(at: Running, query: MongoQuery, limits: Limits): Promise<Estimate> {
  const left = timeLeft(limits.timeoutMs)
  return { cost: await explainedCost(at, query, query.early ?? query.pipeline, limits.maxCost, left) }
}

function stages({ login }: Running, pipeline: readonly BsonDocument[]): mongodb.Document[] {
  return pipeline.map((stage) => toBson(login.library, stage))
}

function collectionOf(at: Running, query: MongoQuery): mongodb.Collection {
  const { collections } = at
  const known = collections.get(query.collection)
  if (known !== undefined) return known
  if (collections.size >= COLLECTIONS_MAX) collections.clear()
  const made = at.login.db.collection(query.collection)
  collections.set(query.collection, made)
  return made
}

/** Returns the options of every operation of a query. */
export function shared(at: Running): { session?: mongodb.ClientSession; signal: AbortSignal } {
  return { ...(at.session === null ? {} : { session: at.session }), signal: at.signal }
}

async function explainedCost(
  at: Running,
  query: MongoQuery,
  form: readonly BsonDocument[],
  maxCost: number,
  left: () => number,
): Promise<number> {
  const pipeline = stages(at, form)
  const { collection, find } = query
  const command =
    find === null
      ? { aggregate: collection, pipeline, cursor: {} }
      : { find: collection, ...toBson(at.login.library, Object.fromEntries(fieldsOf(find))) }
  const plan = await at.login.db.command(
    {
      explain: { ...command, allowDiskUse: false },
      verbosity: 'queryPlanner',
      maxTimeMS: left(),
      comment: ALWAYS.comment,
    },
    { ...shared(at), raw: true },
  )
  const arriving = async (leading: number, most: number): Promise<number> => {
    const counted = [...pipeline.slice(0, leading), { $limit: most }, { $count: 'n' }]
    const options = { ...shared(at), maxTimeMS: left(), allowDiskUse: false, comment: ALWAYS.comment }
    const [answer] = await collectionOf(at, query).aggregate<{ n?: unknown }>(counted, options).toArray()
    return Number(answer?.n ?? 0)
  }
  try {
    return await planCost(query, { form, plan, maxCost, sizes: sizesOf(at, left), arriving })
  } catch (error) {
    throw error instanceof RangeError ? invalidBson(error) : error
  }
}

function sizeIn({ known: { sizes } }: Running, collection: string): number | null | undefined {
  const entry = sizes.get(collection)
  return entry !== undefined && performance.now() - entry.at < SIZE_MS ? entry.documents : undefined
}

/** Counts from metadata, so no document is read. */
function sizesOf(at: Running, left: () => number): Sizes {
  const { sizes } = at.known
  return async (collection) => {
    const known = sizeIn(at, collection)
    if (known !== undefined) return known
    if (sizes.size >= SIZES_MAX) sizes.clear()
    const documents = await count(at, collection, left())
    sizes.set(collection, { documents, at: performance.now() })
    return documents
  }
}

/** Counts from metadata if possible. Returns null if the login may not count. */
export async function count(at: Running, collection: string, maxTimeMS: number): Promise<number | null> {
  try {
    const answer = await at.login.db.command({ count: collection, maxTimeMS }, shared(at))
    return typeof answer['n'] === 'number' ? answer['n'] : null
  } catch (error) {
    // The login may not be allowed to count the source of a view. Any other error occurs in the query too, which
    // reports it.
    const { code } = failure(error)
    if (code !== 'QUERY_FAILED') throw error
    return null
  }
}

/** MongoDB answers for a dropped collection like for an empty one, so this asks whether the collection exists. */
export async function isThere(at: Running, collection: string, maxTimeMS: number): Promise<boolean> {
  const command = {
    listCollections: 1,
    filter: { name: collection },
    nameOnly: true,
    authorizedCollections: true,
  }
  try {
    const answer = await at.login.db.command({ ...command, maxTimeMS }, shared(at))
    const cursor: unknown = answer['cursor']
    if (typeof cursor !== 'object' || cursor === null || !('firstBatch' in cursor)) return true
    return !Array.isArray(cursor.firstBatch) || cursor.firstBatch.length > 0
  } catch (error) {
    if (failure(error).code !== 'QUERY_FAILED') throw error
    return true
  }
}
