// Contains what the look-ups of all guards share: the check of the capture, the cache, and the sentence that lists the
// exposed tables. A look-up finds names in an exposed catalog. Each guard has its own look-up, because the kinds of
// database resolve names in different ways.
import { AppError } from '../errors.ts'
import type { Catalog } from './driver.ts'

/**
 * Returns a function that builds the look-up of a catalog. The function caches the look-up for the life of the catalog
 * object, which is reused while nothing changes. It throws TypeError for a catalog of another kind of database, and the
 * errors of `build`.
 */
export function catalogLookup<Capture, Lookup>(
  kind: string,
  isCapture: (value: unknown) => value is Capture,
  build: (catalog: Catalog, capture: Capture) => Lookup,
): (catalog: Catalog) => Lookup {
  const lookups = new WeakMap<Catalog, Lookup>()
  return (catalog) => {
    const cached = lookups.get(catalog)
    if (cached !== undefined) return cached
    if (!isCapture(catalog.capture)) throw new TypeError(`not a catalog of ${kind}`)
    const lookup = build(catalog, catalog.capture)
    lookups.set(catalog, lookup)
    return lookup
  }
}

/** Throws AppError SCHEMA_STALE if another version of the service captured the catalog. */
export function checkVersion(capture: { readonly version: number }, wanted: number, subject: 'database' | 'project') {
  if (capture.version === wanted) return
  throw new AppError(
    'SCHEMA_STALE',
    `This ${subject} was introspected by another version of the service. An administrator must introspect it again.`,
  )
}

const LISTED_MAX = 30

/** Returns the exposed tables as a sentence for a hint. `nameOf` returns a name as it must be typed. */
export function listedTables<Table>(tables: readonly Table[], nameOf: (table: Table) => string): string {
  if (tables.length === 0) return 'No table is exposed here.'
  const more = tables.length > LISTED_MAX ? ` and ${tables.length - LISTED_MAX} more` : ''
  return `Exposed tables: ${tables.slice(0, LISTED_MAX).map(nameOf).join(', ')}${more}.`
}

/** Returns whether the value is an object whose field `key` has this type and is not null. */
export function hasField(value: unknown, key: string, type: 'number' | 'string' | 'object'): boolean {
  if (typeof value !== 'object' || value === null) return false
  const field: unknown = Object.getOwnPropertyDescriptor(value, key)?.value
  return typeof field === type && field !== null
}
