// The facts of introspection about the collections that a query reads, for the cost estimate.
import type { Catalog, CatalogTable } from '../../driver.ts'
import type { MongoTableDetail } from '../captured-facts.ts'
import type { ReadCollection } from '../confined-query.ts'

/** Each name occurs once, in the given order. Names that are not exposed are left out. */
export function readsOf(exposed: Catalog, names: readonly string[]): readonly ReadCollection[] {
  const tables = new Map(exposed.tables.map((table) => [table.table, table]))
  return [...new Set(names)].flatMap((name) => {
    const table = tables.get(name)
    return table === undefined ? [] : [readOf(table)]
  })
}

function readOf(table: CatalogTable): ReadCollection {
  const { detail } = table
  if (!isDetail(detail)) return { name: table.table, kind: 'view', documents: null, indexedPaths: [] }
  return { name: table.table, kind: detail.kind, documents: detail.documents, indexedPaths: detail.indexedPaths }
}

export function isDetail(detail: unknown): detail is MongoTableDetail {
  return typeof detail === 'object' && detail !== null && 'kind' in detail && 'indexedPaths' in detail
}
