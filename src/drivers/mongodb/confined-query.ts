// The query that the guard passes to the runner: one aggregate or find of plain values. A value that JSON cannot
// express is a Scalar. The guard needs no client library, because to-bson.ts converts a Scalar to a class of the
// library.
import type { CollectionKind } from './captured-facts.ts'

/** The Extended JSON wrappers that a body may contain (docs/guard/mongodb.md), after their validation. */
export type ScalarValue =
  | { readonly kind: '$oid'; readonly hex: string }
  /** Milliseconds since 1970, in the range of a JavaScript Date. */
  | { readonly kind: '$date'; readonly milliseconds: number }
  | { readonly kind: '$numberInt'; readonly value: number }
  | { readonly kind: '$numberLong'; readonly value: bigint }
  /** May be NaN or infinite. */
  | { readonly kind: '$numberDouble'; readonly value: number }
  | { readonly kind: '$numberDecimal'; readonly text: string }
  | { readonly kind: '$binary'; readonly base64: string; readonly subType: number }
  | { readonly kind: '$uuid'; readonly text: string }
  /** `options` are letters of i, m, s, u and x, sorted, each at most once. */
  | { readonly kind: '$regularExpression'; readonly pattern: string; readonly options: string }
  | { readonly kind: '$timestamp'; readonly t: number; readonly i: number }
  | { readonly kind: '$minKey' }
  | { readonly kind: '$maxKey' }

/** A class, because no JSON of a caller can look like an instance of it. */
export class Scalar {
  readonly of: ScalarValue

  constructor(of: ScalarValue) {
    this.of = of
  }
}

export type Bson = null | boolean | number | string | Scalar | readonly Bson[] | BsonDocument

/** The keys are sent in this order. They are never `__proto__`, `_bsontype` or `toBSON`. */
export interface BsonDocument {
  readonly [name: string]: Bson
}

export function isDocument(value: Bson | undefined): value is BsonDocument {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Scalar)
}

export function isArray(value: Bson | undefined): value is readonly Bson[] {
  return Array.isArray(value)
}

/** Returns the elements of an array, or the values of a document's fields. Other values have none. */
export function partsIn(value: Bson | undefined): readonly Bson[] {
  return isArray(value) ? value : isDocument(value) ? Object.values(value) : []
}

/**
 * Stands for the length of an array in which $group, $bucketAuto or $facet may gather all documents that they read. It
 * is larger than any real length, so that products and sums still show it.
 */
export const GATHERED = 2 ** 40

/** Another collection that the pipeline reads. `explain` does not include its cost. */
export interface Join {
  readonly stage: '$lookup' | '$unionWith' | '$graphLookup'
  readonly collection: string
  /** The path of the joined collection by which the stage finds documents. Null if it reads the whole collection. */
  readonly foreignField: string | null
  /**
   * True if the collection is read again for each outer document. $graphLookup does this, and so does a $lookup with
   * outer fields or variables.
   */
  readonly perDocument: boolean
}

/** The facts of introspection about a collection that the query reads, for the cost estimate. */
export interface ReadCollection {
  readonly name: string
  readonly kind: CollectionKind
  /** The number at introspection, also for views. Null if the documents were not counted. */
  readonly documents: number | null
  readonly indexedPaths: readonly string[]
}

/** The maximum number of rows that the server sends in one message. */
export const SMALL_ROWS_MAX = 1_000

export interface Find {
  readonly filter: BsonDocument
  readonly sort: BsonDocument | null
  readonly skip: Bson
  readonly limit: number
  /** Includes only exposed paths. */
  readonly projection: BsonDocument
}

export interface MongoQuery {
  readonly database: string
  readonly collection: string
  /** The last stage is a $limit of rowCap + 1. */
  readonly pipeline: readonly BsonDocument[]
  /**
   * The same pipeline with an earlier sort, which an index can serve. It is tried first. It returns the same rows, or
   * fails.
   */
  readonly early: readonly BsonDocument[] | null
  /** A find command that returns the same rows, and is sent instead of `pipeline`. Null if an aggregate is sent. */
  readonly find: Find | null
  readonly rowCap: number
  /** Top-level names, in the order of the query or the exposure. The documents may have more names. */
  readonly columns: readonly string[]
  readonly joins: readonly Join[]
  /**
   * The number of documents that each $unwind makes from one document. For a stored array, this is an estimate.
   * GATHERED stands for all documents that a stage has gathered in the array.
   */
  readonly unwinds: ReadonlyMap<BsonDocument, number>
  /** The collection of the query, then the joined collections. Each occurs once. */
  readonly reads: readonly ReadCollection[]
  /** Returns the query as it is sent to the database. */
  readonly printed: () => string
  /** Returns the known fields of the result documents, as a string that can be compared. */
  readonly outline: () => string
}
