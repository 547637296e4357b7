// A guard thread passes a confined query to the main thread as printed stages. The main thread parses them again, so
// the database gets exactly what was printed. Parsing takes a tenth of the time of judging.
import { isArray, isDocument, Scalar, type Bson, type BsonDocument, type MongoQuery } from '../confined-query.ts'
import { parseEjson } from './body/parse-ejson.ts'
import { findOf } from './as-find.ts'
import { assembled, printedFind, printedValue } from './print.ts'

export interface PackedQuery extends Pick<
  MongoQuery,
  'database' | 'collection' | 'rowCap' | 'columns' | 'joins' | 'reads'
> {
  /** The stages of `pipeline` and `early`. Each stage occurs once. */
  readonly stages: readonly string[]
  /** Indexes into `stages`. */
  readonly pipeline: readonly number[]
  readonly early: readonly number[] | null
  readonly isFind: boolean
  /** How many documents each $unwind makes, in the order of unwindsIn(). Null if unknown. */
  readonly unwinds: readonly (number | null)[]
  readonly outline: string
}

/** The main thread yields to the event loop after this many characters. */
const CHARACTERS_AT_ONCE = 16_384

export function packQuery(query: MongoQuery): PackedQuery {
  const { database, collection, rowCap, columns, joins, reads, pipeline, early, unwinds } = query
  const stages = [...new Set([...pipeline, ...(early ?? [])])]
  const places = new Map(stages.map((stage, n) => [stage, n]))
  const placesOf = (form: readonly BsonDocument[]) => form.map((stage) => places.get(stage) ?? -1)
  return {
    ...{ database, collection, rowCap, columns, joins, reads },
    stages: stages.map(printedValue),
    pipeline: placesOf(pipeline),
    early: early && placesOf(early),
    isFind: query.find !== null,
    unwinds: unwinds.size === 0 ? [] : [...unwindsIn(stages)].map((stage) => unwinds.get(stage) ?? null),
    outline: query.outline(),
  }
}

/** Throws TypeError for data that packQuery() did not make. */
export async function unpackQuery(query: PackedQuery, turn: () => Promise<void>): Promise<MongoQuery> {
  const { database, collection, rowCap, columns, joins, reads, outline } = query
  const stages: BsonDocument[] = []
  let characters = 0
  for (const text of query.stages) {
    stages.push(stageOf(text))
    characters += text.length
    if (characters < CHARACTERS_AT_ONCE) continue
    characters = 0
    await turn()
  }
  const form = <T>(places: readonly number[], of: readonly T[]) => places.map((place) => known(of[place]))
  const texts = { pipeline: form(query.pipeline, query.stages), early: query.early && form(query.early, query.stages) }
  const pipeline = form(query.pipeline, stages)
  const find = query.isFind ? findOf(pipeline) : null
  return {
    ...{ database, collection, rowCap, columns, joins, reads, pipeline, find },
    early: query.early && form(query.early, stages),
    unwinds: unwindSizes(stages, query.unwinds),
    printed: () => (find === null ? assembled(collection, texts.pipeline, texts.early) : printedFind(collection, find)),
    outline: () => outline,
  }
}

function stageOf(text: string): BsonDocument {
  const stage = parseEjson(JSON.parse(text))
  if (!isDocument(stage)) throw new TypeError('not a stage')
  return stage
}

function known<T>(value: T | undefined): T {
  if (value === undefined) throw new TypeError('not a place of a stage')
  return value
}

function unwindSizes(
  stages: readonly BsonDocument[],
  sizes: PackedQuery['unwinds'],
): ReadonlyMap<BsonDocument, number> {
  if (sizes.length === 0) return new Map()
  const pairs = [...unwindsIn(stages)].map((stage, n) => [stage, known(sizes[n])] as const)
  return new Map(pairs.flatMap(([stage, size]) => (size === null ? [] : [[stage, size] as const])))
}

function* unwindsIn(value: Bson): Generator<BsonDocument> {
  if (typeof value !== 'object' || value === null || value instanceof Scalar) return
  if (isDocument(value) && Object.hasOwn(value, '$unwind')) yield value
  for (const below of isArray(value) ? value : Object.values(value)) yield* unwindsIn(below)
}
