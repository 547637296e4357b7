// The facts that introspection captures for the guard, the runner and the description, in addition to collections and
// paths. They are stored as JSON with the catalog, so they are plain data. If CAPTURE_VERSION has changed, the
// datasource must be introspected again.

export const CAPTURE_VERSION = 1

export interface MongoCapture {
  readonly version: number
  /** The first three numbers of buildInfo.versionArray: [6, 0, 5]. */
  readonly serverVersion: readonly [number, number, number]
  /** The version as the server writes it: 6.0.5, 9.0.0-alpha0. */
  readonly versionText: string
  readonly database: string
}

export type CollectionKind = 'collection' | 'view' | 'timeseries'

/** CatalogTable.detail of a collection. */
export interface MongoTableDetail {
  readonly kind: CollectionKind
  readonly capped: boolean
  /** The number of documents, also for views. Null if counting took too long or was not allowed. */
  readonly documents: number | null
  /**
   * The first path of each index that serves any equality: an ascending or descending index that is not partial,
   * sparse, hidden or wildcard, and has no collation.
   */
  readonly indexedPaths: readonly string[]
  /** False if the sample had more paths or deeper paths than are listed. */
  readonly complete: boolean
  /**
   * False if the collection compares texts byte by byte. True if it has a default collation, or may have one. Absent in
   * catalogs of earlier versions.
   */
  readonly collated?: boolean
}

/** CatalogColumn.detail of a path. */
export interface MongoColumnDetail {
  /**
   * BSON type aliases, each with the number of sampled values. An array on the path is transparent: the path continues
   * in its elements.
   */
  readonly types: Readonly<Record<string, number>>
  /** The share of the sampled documents that have the path, from 0 to 1. */
  readonly presence: number
  /**
   * The average number of elements of the arrays at the path in the sample. Absent if the sample had no array there.
   */
  readonly items?: number
  /** Set if the sample had an array inside an array of the path. */
  readonly nested?: true
  /** True if the path is a top-level field. An exposure saved with `columns: null` lists the top-level fields. */
  readonly top: boolean
}
