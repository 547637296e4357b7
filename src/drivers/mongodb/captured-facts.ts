// The facts that introspection stores with the catalog, besides collections and paths. They are stored as JSON, so they
// are plain data. If the stored facts have another CAPTURE_VERSION, the datasource must be introspected again.

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
   * The first path of each index that can serve any equality filter. Such an index is ascending or descending. It is
   * not partial, sparse, hidden or wildcard, and has no collation.
   */
  readonly indexedPaths: readonly string[]
  /** False if the sample had more paths or deeper paths than the catalog can hold. */
  readonly complete: boolean
  /**
   * False if the collection compares texts byte by byte. True if it has a default collation, or may have one. Absent in
   * catalogs of earlier versions.
   */
  readonly collated?: boolean
  /** True for a view of a time series. Absent in catalogs of earlier versions. */
  readonly ofSeries?: boolean
}

/** The field `detail` of a CatalogColumn that is a path. */
export interface MongoColumnDetail {
  /**
   * The number of sampled values of each type. The keys are BSON type aliases. The path `a.b` continues in the elements
   * of an array at `a`.
   */
  readonly types: Readonly<Record<string, number>>
  /** The share of the sampled documents that have the path, from 0 to 1. */
  readonly presence: number
  /** The mean length of the sampled arrays at the path. Absent if there was no array. */
  readonly items?: number
  /** An array at the path had another array as an element. */
  readonly nested?: true
  /** True for a top-level field. An exposure that is saved with `columns: null` has all top-level fields. */
  readonly top: boolean
}
