// The guards look up the names of a query in an exposed catalog. Each guard has its own look-up, because the kinds of
// database resolve names differently. This file has what the look-ups share.
import { AppError } from '../errors.ts'
import type { Catalog } from './driver.ts'

/**
 * Returns a function that returns the look-up of a catalog, and builds it once for each catalog object. The service
 * keeps using the same catalog object as long as nothing changes. Throws TypeError for a catalog of another kind of
 * database, and the errors of `build`.
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

/** Throws AppError SCHEMA_STALE if the catalog comes from another version of the service. */
export function checkVersion(capture: { readonly version: number }, wanted: number, subject: 'database' | 'project') {
  if (capture.version === wanted) return
  throw new AppError(
    'SCHEMA_STALE',
    `This ${subject} was introspected by another version of the service. An administrator must introspect it again.`,
  )
}

const LISTED_MAX = 30

/** Returns a sentence that lists the exposed tables. `nameOf` returns the name of a table as a caller must type it. */
export function listedTables<Table>(tables: readonly Table[], nameOf: (table: Table) => string): string {
  if (tables.length === 0) return 'No table is exposed here.'
  const more = tables.length > LISTED_MAX ? ` and ${tables.length - LISTED_MAX} more` : ''
  return `Exposed tables: ${tables.slice(0, LISTED_MAX).map(nameOf).join(', ')}${more}.`
}

/** Returns whether the value is an object with this field. The field must have this type and not be null. */
export function hasField(value: unknown, key: string, type: 'number' | 'string' | 'object'): boolean {
  if (typeof value !== 'object' || value === null) return false
  const field: unknown = Object.getOwnPropertyDescriptor(value, key)?.value
  return typeof field === type && field !== null
}
