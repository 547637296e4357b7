// What introspection captures of a MongoDB server for the guard, the runner and the description, beyond collections and
// paths. It is stored as JSON with the catalog, so plain data only; another CAPTURE_VERSION must be made anew.

export const CAPTURE_VERSION = 1

export interface MongoCapture {
  readonly version: number
  /** buildInfo.versionArray's first three: [6, 0, 5]. */
  readonly serverVersion: readonly [number, number, number]
  /** As the server writes it: 6.0.5, 9.0.0-alpha0. */
  readonly versionText: string
  readonly database: string
}

export type CollectionKind = 'collection' | 'view' | 'timeseries'

/** CatalogTable.detail of a collection. */
export interface MongoTableDetail {
  readonly kind: CollectionKind
  readonly capped: boolean
  /** Documents, counted for views too (within a time); null where that took too long or was not allowed. */
  readonly documents: number | null
  /** The first path of each index that can answer an equality alone (no partial, sparse, text, hashed or wildcard one). */
  readonly indexedPaths: readonly string[]
  /** False where the sample held fields beyond the limits on paths, so more exist than are listed. */
  readonly complete: boolean
}

/** CatalogColumn.detail of a path. */
export interface MongoColumnDetail {
  /** BSON aliases seen and in how many of the sampled documents each; arrays on the way are transparent. */
  readonly types: Readonly<Record<string, number>>
  /** Share of the sampled documents that hold the path, from 0 to 1. */
  readonly presence: number
  /** Elements that its arrays hold, on average of the sampled documents; absent where none held one. */
  readonly items?: number
  /** True where the path is a top-level field: what `columns: null` is frozen into. */
  readonly top: boolean
}
