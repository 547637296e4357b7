// Runs a query twice: through the guard on the full database, and without a guard on a copy that lacks the hidden data.
// The results must be equal.
import assert from 'node:assert/strict'
import { BSON, type Db, type Document } from 'mongodb'
import { AppError } from '../../../src/errors.ts'
import { unseal } from '../../../src/drivers/confined.ts'
import type { Catalog, Limits } from '../../../src/drivers/driver.ts'
import { confine } from '../../../src/drivers/mongodb/guard/confine.ts'
import { parseEjson } from '../../../src/drivers/mongodb/guard/body/parse-ejson.ts'
import { fieldsOf } from '../../../src/drivers/mongodb/session/write-command.ts'
import { toBson } from '../../../src/drivers/mongodb/session/to-bson.ts'
import type { BsonDocument, MongoQuery } from '../../../src/drivers/mongodb/confined-query.ts'
import { readBody } from '../../../src/drivers/mongodb/guard/body/read-body.ts'
import { unpackQuery, packQuery } from '../../../src/drivers/mongodb/guard/query-transfer.ts'
import { mongoCatalog } from '../../support/mongo-catalog.ts'
import { checkCached } from './cached.ts'
import { EXPOSED, FULL, isDocument } from './fixture.ts'

const LIMITS: Limits = { rowCap: 1000, maxResponseBytes: 8 << 20, timeoutMs: 15_000, maxCost: 1e6 }

// A query that times out on a busy machine shows nothing about the guard, so the timeout is long.
const OPTIONS = { maxTimeMS: 60_000, promoteValues: false, bsonRegExp: true, enableUtf8Validation: false } as const

const KINDS = new Map([
  ['gauge', 'time-series collection'],
  ['people_view', 'view'],
  ['people_made', 'view'],
])

export type Outcome =
  | {
      readonly kind: 'answered'
      readonly documents: readonly Document[]
      readonly query: MongoQuery
      /** True if the answer came from the early form of the query. An early form sorts before it projects. */
      readonly early: boolean
    }
  | {
      readonly kind: 'refused'
      readonly code: string
      readonly why: string
      readonly blocked?: { kind: string; name: string }
    }
  | { readonly kind: 'failed'; readonly why: string; readonly query?: MongoQuery }

export const catalog = (version: readonly number[]): Catalog =>
  mongoCatalog(EXPOSED, { version, database: FULL, kinds: KINDS })

export function judge(exposed: Catalog, body: unknown): MongoQuery | Extract<Outcome, { kind: 'refused' }> {
  try {
    const verdict = confine(readBody(body), exposed, LIMITS)
    if (verdict.kind === 'confined') return unseal<MongoQuery>(verdict.query, 'MONGODB')
    if (verdict.kind === 'malformed') return { kind: 'refused', code: 'INVALID_QUERY', why: verdict.why }
    if (verdict.hint === '') throw new Error('a refusal without a hint')
    return { kind: 'refused', code: 'QUERY_DENIED', why: `${verdict.why} ${verdict.hint}`, blocked: verdict.blocked }
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    return { kind: 'refused', code: error.code, why: error.message }
  }
}

/** Like the service, first runs the early form of the query if there is one. */
export async function ask(full: Db, exposed: Catalog, body: unknown, checks = { cache: true }): Promise<Outcome> {
  const query = judge(exposed, body)
  if (checks.cache) checkCached(exposed, body, JSON.stringify(body).length, 2)
  if ('kind' in query) return query
  await checkSent(query)
  const answered = async (form: readonly BsonDocument[]): Promise<readonly Document[]> => {
    const pipeline = form.map((stage) => toBson({ BSON }, stage))
    return await full.collection(query.collection).aggregate(pipeline, OPTIONS).toArray()
  }
  const early = query.early === null ? null : await answered(query.early).catch(() => null)
  try {
    const documents = early ?? (await answered(query.pipeline))
    await checkFind(full, query, documents)
    return { kind: 'answered', documents, query, early: early !== null }
  } catch (error) {
    if (error instanceof assert.AssertionError) throw error
    return { kind: 'failed', why: String(error), query }
  }
}

/** A query must not change when a guard thread packs and sends it, and the main thread unpacks it. */
export async function checkSent(query: MongoQuery): Promise<void> {
  const { printed, outline, unwinds, ...plain } = await unpackQuery(structuredClone(packQuery(query)), () => Promise.resolve())
  assert.deepEqual({ ...query, ...plain }, query)
  assert.deepEqual([...unwinds], [...query.unwinds])
  assert.equal(printed(), query.printed())
  assert.equal(outline(), query.outline())
}

/** For some queries, a find command is sent instead of a pipeline. It must return the same documents. */
async function checkFind(full: Db, { collection, find }: MongoQuery, documents: readonly Document[]): Promise<void> {
  if (find === null) return
  const fields = toBson({ BSON }, Object.fromEntries(fieldsOf(find)))
  const { maxTimeMS, ...reading } = OPTIONS
  const answer = await full.command({ find: collection, ...fields, batchSize: 1_001, maxTimeMS }, reading)
  assert.ok(equal(answer['cursor'].firstBatch, documents), JSON.stringify(find))
}

export interface Body {
  readonly collection: string
  readonly filter?: Document
  readonly pipeline?: readonly Document[]
}

/** Runs the query without a guard on the copy that lacks the hidden data. Returns null if the engine refuses it. */
export async function unguarded(
  bare: Db,
  { collection, filter = {}, pipeline = [] }: Body,
): Promise<readonly Document[] | null> {
  const stages = [...(Object.keys(filter).length === 0 ? [] : [{ $match: filter }]), ...pipeline]
  try {
    const lifted = stages.map((stage) => toBson({ BSON }, parseEjson(stage) as BsonDocument))
    return await bare.collection(collection).aggregate(lifted, OPTIONS).toArray()
  } catch {
    return null
  }
}

/**
 * Compares two lists of documents. Their order counts only with `ordered`. With `loose`, the order of array elements
 * does not count. Numbers are compared by value.
 */
export function equal(
  some: readonly Document[],
  others: readonly Document[],
  how: { ordered?: boolean; loose?: boolean } = {},
): boolean {
  const [one, other] = [some, others].map((documents) => {
    const texts = documents.map((document) => canonical(document, how.loose === true))
    return (how.ordered === true ? texts : texts.sort()).join('\n')
  })
  return one === other
}

function canonical(value: unknown, loose: boolean): string {
  if (Array.isArray(value)) {
    const texts = value.map((element) => canonical(element, loose))
    return `[${(loose ? texts.sort() : texts).join()}]`
  }
  if (isDocument(value)) {
    const names = Object.keys(value).sort()
    return `{${names.map((name) => `${JSON.stringify(name)}:${canonical(value[name], loose)}`).join()}}`
  }
  if (value instanceof BSON.Double || value instanceof BSON.Int32) return Number(value.value).toPrecision(12)
  return BSON.EJSON.stringify({ value }, { relaxed: false })
}

const SECRET = /SECRET|9000\d\d/

/** True if the outcome shows a hidden value that the body does not contain. */
export function leaks(outcome: Outcome, body: unknown): boolean {
  const text = outcome.kind === 'answered' ? BSON.EJSON.stringify([...outcome.documents]) : outcome.why
  return SECRET.test(text) && !SECRET.test(JSON.stringify(body))
}
