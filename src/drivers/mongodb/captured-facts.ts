// Introspection stores these facts for the guard, the runner and the description, besides collections and paths. They
// are stored as JSON with the catalog, so they are plain data. A datasource whose capture has another CAPTURE_VERSION
// must be introspected again.

export const CAPTURE_VERSION = 1

export interface MongoCapture {
  readonly version: number
  /** The first three numbers of buildInfo.versionArray, for example [6, 0, 5]. */
  readonly serverVersion: readonly [number, number, number]
  /** As the server writes it, for example 6.0.5 or 9.0.0-alpha0. */
  readonly versionText: string
  readonly database: string
}

export type CollectionKind = 'collection' | 'view' | 'timeseries'

/** The field `detail` of a CatalogTable that is a collection. */
export interface MongoTableDetail {
  readonly kind: CollectionKind
  readonly capped: boolean
  /** Also counted for views. Null if counting took too long or was not allowed. */
  readonly documents: number | null
  /**
   * The first path of each index that can serve any equality: the index is ascending or descending, and not partial,
   * sparse, hidden or wildcard, and it has no collation.
   */
  readonly indexedPaths: readonly string[]
  /** False if the sample had more paths or deeper paths than the catalog lists. */
  readonly complete: boolean
  /**
   * False if the collection compares texts byte by byte. True if it has a default collation, or may have one. Absent in
   * catalogs of earlier versions.
   */
  readonly collated?: boolean
}

/** The field `detail` of a CatalogColumn that is a path. */
export interface MongoColumnDetail {
  /**
   * The number of sampled values of each type. The keys are BSON type aliases. If an array is on the path, the path
   * continues in its elements.
   */
  readonly types: Readonly<Record<string, number>>
  /** The share of the sampled documents that have the path, from 0 to 1. */
  readonly presence: number
  /** How many elements the arrays at the path had in the sample, on average. Absent if there was no array. */
  readonly items?: number
  /** The sample had an array inside an array of the path. */
  readonly nested?: true
  /** True for a top-level field. An exposure that is saved with `columns: null` has all top-level fields. */
  readonly top: boolean
}
