// On a collection above the cost limit, explain must show that a query uses an index, which takes a second round trip.
// So this file remembers for one minute that an equality filter uses an index. Only an equality on the first path of an
// index over all documents is remembered: the server uses such an index for any value, and does not scan. Entries
// expire because an index may be dropped.
import { isDocument, Scalar, type Bson, type BsonDocument, type MongoQuery } from '../confined-query.ts'

const REMEMBERED_MS = 60_000
const REMEMBERED_MAX = 1_000

/** Filters whose plan had cost 0. The value is the time when the plan was read. */
export type Lookups = Map<string, number>

/**
 * Returns the indexed filter at the start of a query: the collection, the path and the type of the value. Returns null
 * if there is none, or if the query reads other collections.
 */
export function lookupOf(query: MongoQuery, form: readonly BsonDocument[]): string | null {
  const [base] = query.reads
  const match = form[0]?.['$match']
  if (base?.kind !== 'collection' || query.joins.length > 0 || !isDocument(match)) return null
  for (const path of base.indexedPaths) {
    const kind = Object.hasOwn(match, path) ? kindOf(match[path]) : null
    if (kind !== null) return JSON.stringify([base.name, path, kind])
  }
  return null
}

export function isRemembered(lookups: Lookups, lookup: string | null): boolean {
  const at = lookup === null ? undefined : lookups.get(lookup)
  return at !== undefined && performance.now() - at < REMEMBERED_MS
}

/** Remembers a filter whose plan has cost 0. */
export function remember(lookups: Lookups, lookup: string | null, cost: number): void {
  if (lookup === null || cost !== 0) return
  if (lookups.size >= REMEMBERED_MAX) lookups.clear()
  lookups.set(lookup, performance.now())
}

/**
 * Returns the type of the value, or of the value in {$eq: value}. Returns null for any other condition. The type
 * matters, because collations apply only to strings.
 */
function kindOf(value: Bson | undefined): string | null {
  if (value instanceof Scalar) return value.of.kind === '$regularExpression' ? null : value.of.kind
  if (isDocument(value)) {
    const { $eq: equal, ...others } = value
    return Object.keys(others).length > 0 || isDocument(equal) ? null : kindOf(equal)
  }
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? typeof value : null
}
