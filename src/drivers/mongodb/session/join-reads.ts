// explain does not include what joins read, so this file estimates it. A joined collection is read once for each
// incoming document, or only once if the join does not depend on the document. The reads of a join inside a join
// multiply. Limits, unwinds and unions change the number of incoming documents.
import { GATHERED, isArray, isDocument, type Bson, type BsonDocument } from '../confined-query.ts'

export interface Joined {
  readonly documents: number
  readonly indexedPaths: readonly string[]
}

export interface Reckoning {
  readonly joined: (collection: string) => Promise<Joined>
  /** The number of documents that each $unwind makes from one document. The key is the printed stage. */
  readonly unwinds: ReadonlyMap<BsonDocument, number>
  /** True if the documents that $unionWith reads must be counted. False if the plan includes them. */
  readonly countsUnions: boolean
}

interface Entering {
  readonly rows: number
  /** The number of documents that the arrays of the entering documents together may have gathered. */
  readonly held: number
}

interface Passed {
  readonly rows: number
  /**
   * The number of documents that the arrays of the leaving documents together may have gathered. Absent if no stage
   * changed this.
   */
  readonly held?: number
  readonly reads: number
}

/** If a field is not unique, this many documents are assumed to match one value. */
const FOUND = 10
/** A $graphLookup without maxDepth is assumed to have this many rounds. */
const ROUNDS = 10

/** `perDocument` is true inside a $lookup that runs again for each document. */
export async function joinReads(
  pipeline: readonly BsonDocument[],
  entering: Entering,
  at: Reckoning,
  perDocument = false,
): Promise<Required<Passed>> {
  let passed = { ...entering, reads: 0 }
  for (const stage of pipeline) {
    const { rows, held = passed.held, reads } = await stagePassed(stage, passed, at, perDocument)
    passed = { rows, held, reads: passed.reads + reads }
  }
  return passed
}

async function stagePassed(
  stage: BsonDocument,
  entering: Entering,
  at: Reckoning,
  perDocument: boolean,
): Promise<Passed> {
  const [[name, value] = ['', null]] = Object.entries(stage)
  const fields = isDocument(value) ? value : {}
  const { rows } = entering
  switch (name) {
    case '$limit':
      return { rows: Math.min(rows, Number(value)), reads: 0 }
    case '$sample':
      return { rows: Math.min(rows, Number(fields['size'])), reads: 0 }
    case '$count':
      return { rows: Math.min(rows, 1), reads: 0 }
    case '$group':
      return { rows, held: Math.max(rows, entering.held), reads: 0 }
    case '$bucketAuto':
      return { rows: Math.min(rows, Number(fields['buckets'])), held: Math.max(rows, entering.held), reads: 0 }
    case '$unwind':
      return { rows: unwound(entering, at.unwinds.get(stage) ?? 1), reads: 0 }
    case '$densify':
      return densified(fields, rows)
    case '$facet':
      return await faceted(fields, entering, at, perDocument)
    case '$unionWith':
      return await unioned(fields, entering, at, perDocument)
    case '$lookup':
      return await lookedUp(fields, entering, at, perDocument)
    case '$graphLookup':
      return await graphRead(fields, rows, at)
    default:
      return { rows, reads: 0 }
  }
}

/** All arrays together hold each gathered document at most once. */
function unwound({ rows, held }: Entering, length: number): number {
  let times = length
  while (times >= GATHERED) times /= GATHERED
  return times === length ? rows * times : Math.max(rows, held) * times
}

/** True if a stage has gathered documents in an array, and another stage (or one inside it) unwinds that array. */
export function unwindsGathered(value: Bson, unwinds: Reckoning['unwinds']): boolean {
  if (isArray(value)) return value.some((each) => unwindsGathered(each, unwinds))
  if (!isDocument(value)) return false
  if ((unwinds.get(value) ?? 0) >= GATHERED) return true
  return Object.values(value).some((below) => unwindsGathered(below, unwinds))
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
/** By the server's default, $densify creates at most this many documents. */
const DENSIFIED_MAX = 500_000

/** With constant bounds, the number of documents is known. Otherwise, the server's limit is assumed. */
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

async function faceted(fields: BsonDocument, entering: Entering, at: Reckoning, perDocument: boolean): Promise<Passed> {
  let [held, reads] = [entering.held, 0]
  for (const branch of Object.values(fields)) {
    const inner = await joinReads(stagesOf(branch), entering, at, perDocument)
    held = Math.max(held, inner.rows, inner.held)
    reads += inner.reads
  }
  return { rows: 1, held, reads }
}

async function unioned(
  fields: BsonDocument,
  { rows, held }: Entering,
  at: Reckoning,
  perDocument: boolean,
): Promise<Passed> {
  const { documents } = await at.joined(String(fields['coll']))
  const inner = await joinReads(stagesOf(fields['pipeline']), { rows: documents, held }, at, perDocument)
  const reads = inner.reads + (at.countsUnions || perDocument ? documents : 0)
  return { rows: rows + inner.rows, held: held + inner.held, reads }
}

async function lookedUp(
  fields: BsonDocument,
  { rows, held }: Entering,
  at: Reckoning,
  within: boolean,
): Promise<Passed> {
  const { from, foreignField } = fields
  // $documents reads only from the outer document.
  if (typeof from !== 'string') return { rows, reads: 0 }
  const { documents, indexedPaths } = await at.joined(from)
  const byField = typeof foreignField === 'string'
  const isIndexed = byField && indexedPaths.includes(foreignField)
  const found = byField ? Math.min(documents, foreignField === '_id' ? 1 : FOUND) : documents
  const perDocument = within || byField || isDocument(fields['let'])
  const inner = await joinReads(stagesOf(fields['pipeline']), { rows: found, held }, at, perDocument)
  const each = (isIndexed ? Math.min(1, documents) : documents) + inner.reads
  // If the inner pipeline gathers documents, each document gets its own arrays.
  const gathered = inner.held > held ? rows * inner.held : held
  return { rows, held: gathered, reads: perDocument ? rows * each : each }
}

/** Without an index, each round reads the whole collection. */
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
