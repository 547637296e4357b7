// Defines the sealed query that the MongoDB guard passes to the runner: one aggregate or find of plain values. A Scalar
// contains a value that JSON cannot express. to-bson.ts converts a Scalar to a class of the client library, so the
// guard needs no library.
import type { CollectionKind } from './captured-facts.ts'

/** The Extended JSON wrappers that a body may contain (docs/guard/mongodb.md), after validation. */
export type ScalarValue =
  | { readonly kind: '$oid'; readonly hex: string }
  /** Milliseconds since 1970, in the range of a JavaScript Date. */
  | { readonly kind: '$date'; readonly milliseconds: number }
  | { readonly kind: '$numberInt'; readonly value: number }
  | { readonly kind: '$numberLong'; readonly value: bigint }
  /** The value may be NaN or infinite. */
  | { readonly kind: '$numberDouble'; readonly value: number }
  /** A decimal that Decimal128 holds exactly. */
  | { readonly kind: '$numberDecimal'; readonly text: string }
  | { readonly kind: '$binary'; readonly base64: string; readonly subType: number }
  | { readonly kind: '$uuid'; readonly text: string }
  /** `options` are sorted and unique letters from i, m, s, u and x. */
  | { readonly kind: '$regularExpression'; readonly pattern: string; readonly options: string }
  | { readonly kind: '$timestamp'; readonly t: number; readonly i: number }
  | { readonly kind: '$minKey' }
  | { readonly kind: '$maxKey' }

/** A BSON value that is not a document, an array or plain JSON. A caller's JSON cannot imitate a Scalar. */
export class Scalar {
  readonly of: ScalarValue

  constructor(of: ScalarValue) {
    this.of = of
  }
}

export type Bson = null | boolean | number | string | Scalar | readonly Bson[] | BsonDocument

/** The keys have the order in which they are sent. They are never `__proto__`, `_bsontype` or `toBSON`. */
export interface BsonDocument {
  readonly [name: string]: Bson
}

export function isDocument(value: Bson | undefined): value is BsonDocument {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Scalar)
}

export function isArray(value: Bson | undefined): value is readonly Bson[] {
  return Array.isArray(value)
}

/** Another collection that the pipeline reads. `explain` does not include its cost. */
/**
 * The length of an array in which $group, $bucketAuto or $facet gathers documents: as many as it has read. The factor
 * stays in products and sums of lengths, and is above the length of every other array.
 */
export const GATHERED = 2 ** 40

export interface Join {
  readonly stage: '$lookup' | '$unionWith' | '$graphLookup'
  readonly collection: string
  /** The path of this collection by which the stage finds documents. Null if the whole collection is read. */
  readonly foreignField: string | null
  /**
   * True if the collection is read again for each outer document: by $graphLookup, or by $lookup with outer fields or
   * variables.
   */
  readonly perDocument: boolean
}

/** A collection that the query reads, as introspected (CatalogTable.detail), for the cost estimate. */
export interface ReadCollection {
  readonly name: string
  readonly kind: CollectionKind
  /** The number of documents at introspection, also for views. Null if they were not counted. */
  readonly documents: number | null
  readonly indexedPaths: readonly string[]
}

/** The maximum number of rows of an answer that the server sends in one message. */
export const SMALL_ROWS_MAX = 1_000

/** The parts of a find command. */
export interface Find {
  readonly filter: BsonDocument
  readonly sort: BsonDocument | null
  readonly skip: Bson
  readonly limit: number
  /** The projection, which includes exposed paths only. */
  readonly projection: BsonDocument
}

export interface MongoQuery {
  readonly database: string
  readonly collection: string
  /** The confined pipeline. Its last stage is a $limit of rowCap + 1. */
  readonly pipeline: readonly BsonDocument[]
  /**
   * The pipeline with its sort at a position where an index can serve the sort. This form is tried first. It returns
   * the same rows or fails.
   */
  readonly early: readonly BsonDocument[] | null
  /** The equivalent find command, which is sent instead of `pipeline`. Null if the pipeline is sent as an aggregate. */
  readonly find: Find | null
  /** The maximum number of rows in the answer. */
  readonly rowCap: number
  /** The top-level names that the query or the exposure lists, in order. The documents may have other names. */
  readonly columns: readonly string[]
  readonly joins: readonly Join[]
  /**
   * For each $unwind stage, how many documents it creates from one document. The number is an estimate if the array is
   * stored. GATHERED stands for all documents that a stage has gathered in the array.
   */
  readonly unwinds: ReadonlyMap<BsonDocument, number>
  /** The collection of the query, then the joined collections. Each collection occurs once. */
  readonly reads: readonly ReadCollection[]
  /** Returns the query as sent to the database, as a string. */
  readonly printed: () => string
  /** Returns the known fields of the result documents, as a string for comparison. */
  readonly outline: () => string
}
