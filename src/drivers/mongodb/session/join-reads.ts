// Estimates the number of documents that joins read, because explain does not include them. A joined collection is read
// once for each incoming document, or only once if the join does not depend on the document. The reads of a join inside
// a join multiply. Limits, unwinds and unions change the number of documents.
import { isArray, isDocument, type Bson, type BsonDocument } from '../confined-query.ts'

/** A joined collection. */
export interface Joined {
  readonly documents: number
  readonly indexedPaths: readonly string[]
}

export interface Reckoning {
  readonly joined: (collection: string) => Promise<Joined>
  /** For each $unwind, by its printed stage: how many documents it creates from one document. */
  readonly unwinds: ReadonlyMap<BsonDocument, number>
  /** True if the documents that $unionWith reads must be counted. False if the plan includes them. */
  readonly countsUnions: boolean
}

interface Passed {
  /** The number of documents that leave the stages. */
  readonly rows: number
  /** The number of documents that joins read. */
  readonly reads: number
}

/** Assumed number of documents that match one value of a field that is not unique. */
const FOUND = 10
/** Assumed number of rounds of a $graphLookup without maxDepth. */
const ROUNDS = 10

/**
 * Estimates the number of documents that joins read. `perDocument` is true inside a $lookup that runs again for each
 * document.
 */
export async function joinReads(
  pipeline: readonly BsonDocument[],
  rows: number,
  at: Reckoning,
  perDocument = false,
): Promise<Passed> {
  let passed: Passed = { rows, reads: 0 }
  for (const stage of pipeline) {
    const next = await stagePassed(stage, passed.rows, at, perDocument)
    passed = { rows: next.rows, reads: passed.reads + next.reads }
  }
  return passed
}

async function stagePassed(stage: BsonDocument, rows: number, at: Reckoning, perDocument: boolean): Promise<Passed> {
  const [[name, value] = ['', null]] = Object.entries(stage)
  const fields = isDocument(value) ? value : {}
  switch (name) {
    case '$limit':
      return { rows: Math.min(rows, Number(value)), reads: 0 }
    case '$sample':
      return { rows: Math.min(rows, Number(fields['size'])), reads: 0 }
    case '$count':
      return { rows: Math.min(rows, 1), reads: 0 }
    case '$bucketAuto':
      // A later $unwind of arrays in the buckets makes as many documents again.
      return { rows: gathers(fields['output']) ? rows : Math.min(rows, Number(fields['buckets'])), reads: 0 }
    case '$unwind':
      return { rows: rows * (at.unwinds.get(stage) ?? 1), reads: 0 }
    case '$densify':
      return densified(fields, rows)
    case '$facet':
      return await faceted(fields, rows, at, perDocument)
    case '$unionWith':
      return await unioned(fields, rows, at, perDocument)
    case '$lookup':
      return await lookedUp(fields, rows, at, perDocument)
    case '$graphLookup':
      return await graphRead(fields, rows, at)
    default:
      return { rows, reads: 0 }
  }
}

/** Accumulators whose value is an array with values of many documents. */
const GATHERING = new Set(
  '$addToSet $bottomN $concatArrays $firstN $lastN $maxN $minN $push $setUnion $topN'.split(' '),
)

function gathers(outputs: Bson | undefined): boolean {
  if (!isDocument(outputs)) return false
  return Object.values(outputs).some(
    (output) => isDocument(output) && Object.keys(output).some((n) => GATHERING.has(n)),
  )
}

const SECOND = 1_000
const UNITS: Readonly<Record<string, number>> = {
  millisecond: 1,
  second: SECOND,
  minute: 60 * SECOND,
  hour: 3_600 * SECOND,
  day: 86_400 * SECOND,
  week: 7 * 86_400 * SECOND,
  month: 28 * 86_400 * SECOND,
  quarter: 90 * 86_400 * SECOND,
  year: 365 * 86_400 * SECOND,
}
/** The maximum number of documents that $densify creates, by the server's default. */
const DENSIFIED_MAX = 500_000

/**
 * Estimates $densify. With constant bounds, the number of documents is known. Otherwise the server's limit is assumed.
 */
function densified(fields: BsonDocument, rows: number): Passed {
  const { range } = fields
  const { step, bounds, unit } = isDocument(range) ? range : {}
  const ends = isArray(bounds) ? bounds.map(numberIn) : []
  const [from = Number.NaN, to = Number.NaN] = ends
  const each = numberIn(step ?? null) * (typeof unit === 'string' ? (UNITS[unit] ?? 1) : 1)
  const made = Math.abs((to - from) / each)
  return { rows: rows + (Number.isFinite(made) ? Math.min(made, DENSIFIED_MAX) : DENSIFIED_MAX), reads: 0 }
}

function numberIn(value: Bson): number {
  if (typeof value === 'number') return value
  if (typeof value !== 'object' || value === null || !('of' in value)) return Number.NaN
  const of: unknown = value.of
  if (typeof of !== 'object' || of === null) return Number.NaN
  return 'milliseconds' in of ? Number(of.milliseconds) : 'value' in of ? Number(of.value) : Number.NaN
}

async function faceted(fields: BsonDocument, rows: number, at: Reckoning, perDocument: boolean): Promise<Passed> {
  let reads = 0
  for (const branch of Object.values(fields)) reads += (await joinReads(stagesOf(branch), rows, at, perDocument)).reads
  return { rows: 1, reads }
}

async function unioned(fields: BsonDocument, rows: number, at: Reckoning, perDocument: boolean): Promise<Passed> {
  const { documents } = await at.joined(String(fields['coll']))
  const inner = await joinReads(stagesOf(fields['pipeline']), documents, at, perDocument)
  return { rows: rows + inner.rows, reads: inner.reads + (at.countsUnions || perDocument ? documents : 0) }
}

async function lookedUp(fields: BsonDocument, rows: number, at: Reckoning, within: boolean): Promise<Passed> {
  const { from, foreignField } = fields
  // $documents reads from the outer document only.
  if (typeof from !== 'string') return { rows, reads: 0 }
  const { documents, indexedPaths } = await at.joined(from)
  const byField = typeof foreignField === 'string'
  const isIndexed = byField && indexedPaths.includes(foreignField)
  const found = byField ? Math.min(documents, foreignField === '_id' ? 1 : FOUND) : documents
  const perDocument = within || byField || isDocument(fields['let'])
  const inner = await joinReads(stagesOf(fields['pipeline']), found, at, perDocument)
  const each = (isIndexed ? Math.min(1, documents) : documents) + inner.reads
  return { rows, reads: perDocument ? rows * each : each }
}

/** Estimates $graphLookup. Without an index, each round reads the whole collection. */
async function graphRead(fields: BsonDocument, rows: number, at: Reckoning): Promise<Passed> {
  const { documents, indexedPaths } = await at.joined(String(fields['from']))
  const rounds = Math.min(
    documents,
    Number.isNaN(numberIn(fields['maxDepth'] ?? null)) ? ROUNDS : numberIn(fields['maxDepth'] ?? null) + 1,
  )
  const isIndexed = indexedPaths.includes(String(fields['connectToField']))
  return { rows, reads: rows * rounds * (isIndexed ? Math.min(1, documents) : documents) }
}

function stagesOf(pipeline: Bson | undefined): readonly BsonDocument[] {
  return isArray(pipeline) ? pipeline.filter(isDocument) : []
}
