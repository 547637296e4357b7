// What a plan said, remembered for a minute: a look-up in a collection that is larger than the cost limit then takes one
// trip instead of two. Only for an equality on the first path of an index that holds every document: such a query has a plan
// by that index whatever the value is, and a server that has one does not scan. An index may be dropped, hence the minute.
import { isDocument, Scalar, type Bson, type BsonDocument, type MongoQuery } from '../query.ts'

const REMEMBERED_MS = 60_000
const REMEMBERED_MAX = 1_000

/** Look-ups whose plan scanned nothing, and when that was seen. */
export type Lookups = Map<string, number>

/** The look-up that a query begins with: collection, path and kind of value. Null where it is none, or reads more. */
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

/** What its plan would read: nothing is remembered but nothing. */
export function remember(lookups: Lookups, lookup: string | null, cost: number): void {
  if (lookup === null || cost !== 0) return
  if (lookups.size >= REMEMBERED_MAX) lookups.clear()
  lookups.set(lookup, performance.now())
}

/** Of one value or {$eq: value}; null for others. A text is told from a number, as collations make a difference. */
function kindOf(value: Bson | undefined): string | null {
  if (value instanceof Scalar) return value.of.kind === '$regularExpression' ? null : value.of.kind
  if (isDocument(value)) {
    const { $eq: equal, ...others } = value
    return Object.keys(others).length > 0 || isDocument(equal) ? null : kindOf(equal)
  }
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? typeof value : null
}
