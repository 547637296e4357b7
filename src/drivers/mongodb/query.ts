// What the MongoDB guard hands to the runner, behind the seal: one aggregate of plain values. What JSON cannot say stands
// in a Scalar; the driver turns it into the client library's own class, so the guard needs none.
import type { CollectionKind } from './capture.ts'

/** The Extended JSON wrappers that a body may hold (docs/guard/mongodb.md), each checked to its exact form. */
export type ScalarValue =
  | { readonly kind: '$oid'; readonly hex: string }
  /** Milliseconds since 1970, within what a JavaScript Date can say. */
  | { readonly kind: '$date'; readonly milliseconds: number }
  | { readonly kind: '$numberInt'; readonly value: number }
  | { readonly kind: '$numberLong'; readonly value: bigint }
  /** May be NaN or infinite. */
  | { readonly kind: '$numberDouble'; readonly value: number }
  /** A decimal text that Decimal128 takes exactly. */
  | { readonly kind: '$numberDecimal'; readonly text: string }
  | { readonly kind: '$binary'; readonly base64: string; readonly subType: number }
  | { readonly kind: '$uuid'; readonly text: string }
  /** Options sorted, each at most once, out of i m s u x. */
  | { readonly kind: '$regularExpression'; readonly pattern: string; readonly options: string }
  | { readonly kind: '$timestamp'; readonly t: number; readonly i: number }
  | { readonly kind: '$minKey' }
  | { readonly kind: '$maxKey' }

/** One BSON value that is neither a document, an array nor plain JSON. A caller's JSON can never look like one. */
export class Scalar {
  readonly of: ScalarValue

  constructor(of: ScalarValue) {
    this.of = of
  }
}

export type Bson = null | boolean | number | string | Scalar | readonly Bson[] | BsonDocument

/** Keys in the order to be sent; never `__proto__`, `_bsontype` or `toBSON`. */
export interface BsonDocument {
  readonly [name: string]: Bson
}

export function isDocument(value: Bson | undefined): value is BsonDocument {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Scalar)
}

export function isArray(value: Bson | undefined): value is readonly Bson[] {
  return Array.isArray(value)
}

/** A further collection that the pipeline reads: `explain` says nothing of its cost. */
export interface Join {
  readonly stage: '$lookup' | '$unionWith' | '$graphLookup'
  readonly collection: string
  /** The path that each outer document is looked up by; null where the whole collection is read. */
  readonly foreignField: string | null
  /** Read anew for each outer document ($lookup with fields or variables of the outer document, $graphLookup). */
  readonly perDocument: boolean
}

/** A collection that the query reads, as introspection found it (CatalogTable.detail): what its cost is reckoned by. */
export interface ReadCollection {
  readonly name: string
  readonly kind: CollectionKind
  /** Documents at introspection, views too; null where they were not counted. */
  readonly documents: number | null
  readonly indexedPaths: readonly string[]
}

export interface MongoQuery {
  readonly database: string
  readonly collection: string
  /** Confined; its last stage is a $limit of rowCap + 1. */
  readonly pipeline: readonly BsonDocument[]
  /** The same with its sort where an index can serve it, to be tried first: it answers alike, or fails. */
  readonly early: readonly BsonDocument[] | null
  /** Rows to answer at most. */
  readonly rowCap: number
  /** Top-level names that the query fixes, in their order; documents may hold further ones. `_id` stands where written. */
  readonly columns: readonly string[]
  readonly joins: readonly Join[]
  /** How many documents an $unwind makes of one, by its stage in the pipeline: estimated where the array is stored. */
  readonly unwinds: ReadonlyMap<BsonDocument, number>
  /** The collection itself first, then every other one of the joins, once each. */
  readonly reads: readonly ReadCollection[]
  /** What the database is sent, as a text. */
  readonly printed: () => string
  /** What is known of the documents that it answers, as a text to be compared. */
  readonly outline: () => string
}
