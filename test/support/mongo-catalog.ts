// For tests without a server: a MongoDB catalog as the service has it after introspection, without the hidden paths.
import type { Catalog } from '../../src/drivers/driver.ts'

export interface CatalogOptions {
  readonly version?: readonly number[]
  readonly database?: string
  /** The kinds of collections that are not plain ones. */
  readonly kinds?: ReadonlyMap<string, string>
  readonly documents?: number
  readonly indexedPaths?: readonly string[]
  /** The length of each array in the sample. Without this, there is no sample. */
  readonly arrays?: Readonly<Record<string, number>>
  /** The types of paths in the sample. Needs `arrays`. */
  readonly types?: Readonly<Record<string, string>>
  /** True if the collections have a default collation. */
  readonly collated?: boolean
}

export function mongoCatalog(
  exposed: Readonly<Record<string, readonly string[]>>,
  {
    version = [8, 3, 0],
    database = 'shop',
    kinds = new Map(),
    documents,
    indexedPaths = [],
    arrays,
    types = {},
    collated = false,
  }: CatalogOptions = {},
): Catalog {
  const detail = {
    kind: 'collection',
    capped: false,
    documents: documents ?? null,
    indexedPaths,
    complete: true,
    collated,
  }
  const column = { type: 'bson', nullable: true, primaryKey: false, references: null, description: null }
  const sampled = (name: string) => {
    const items = arrays?.[name]
    const type = types[name]
    return {
      types: type === undefined ? {} : { [type]: 10 },
      presence: 1,
      top: !name.includes('.'),
      ...(items === undefined ? {} : { items }),
    }
  }
  return {
    capturedAt: '2026-01-01T00:00:00.000Z',
    capture: { version: 1, serverVersion: version, versionText: version.join('.'), database },
    tables: Object.entries(exposed).map(([table, paths]) => ({
      schema: database,
      table,
      kind: kinds.get(table) ?? 'collection',
      description: null,
      estimatedRows: null,
      warnings: [],
      detail,
      columns: paths.map((name) => ({
        name,
        ...column,
        unexposable: null,
        detail: arrays === undefined ? null : sampled(name),
      })),
    })),
  }
}
