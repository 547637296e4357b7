// Finds what a caller may read: the exposed collections by name, each with the projection that the guard injects. Built
// once for each catalog. Throws TypeError for a catalog of another kind of database.
import type { Tree } from './exposed-tree.ts'
import type { Catalog, CatalogTable } from '../../../driver.ts'
import { catalogLookup } from '../../../catalog-lookup.ts'
import { didYouMean, nearest } from '../../../nearest.ts'
import { Barrier } from './barrier.ts'
import type { MongoCapture } from '../../captured-facts.ts'
import { isDetail } from '../read-collections.ts'
import { SMALL, STORED, stored, type Extent } from '../bounds/value-size.ts'
import { withoutGaps } from './close-gaps.ts'
import type { BsonDocument } from '../../confined-query.ts'
import { closed, isPlace, WHOLE, type Shape } from './document-shape.ts'
import type { Hint } from '../refusals/refusal.ts'

export interface ExposedCollection {
  readonly database: string
  readonly name: string
  /**
   * The value of the injected $project. It includes the exposed paths that are not below another exposed path, and
   * never excludes a path.
   */
  readonly projection: BsonDocument
  readonly tree: Tree
  /** What the sample shows about the values at the paths. */
  readonly extents: ReadonlyMap<string, Extent>
  /** The exposed top-level fields, in the order of the catalog. */
  readonly tops: readonly string[]
  /** True for a view or a time series. The server puts its own stages before the guard's stages. */
  readonly rewritten: boolean
  /** True for a time series, and for a view of one. */
  readonly isSeries: boolean
  /** False only if texts are known to be compared byte by byte. */
  readonly collated: boolean
}

export interface Exposed {
  readonly server: readonly number[]
  readonly versionText: string
  collection(name: string): ExposedCollection | undefined
  /** Returns a hint with the exposed collections. The most similar name comes first. */
  hint(name: string): Hint
}

/** Cached for each catalog object. */
export const exposedOf: (catalog: Catalog) => Exposed = catalogLookup('MongoDB', isCapture, build)

function build(catalog: Catalog, capture: MongoCapture): Exposed {
  const collections = new Map<string, ExposedCollection>()
  for (const table of catalog.tables) {
    const isOurs = table.schema === capture.database && !table.table.startsWith('system.')
    const made = isOurs ? collectionOf(table) : null
    if (made) collections.set(table.table, made)
  }
  const names = [...collections.keys()]
  const some = names.length > 30 ? `${names.slice(0, 30).join(', ')} …` : names.join(', ')
  return {
    server: capture.serverVersion,
    versionText: capture.versionText,
    collection: (name) => collections.get(name),
    hint: (name) => {
      if (names.length === 0) return { text: 'No collection is exposed.', near: [] }
      const near = nearest(name, names)
      const listed = `Exposed collections: ${some}.`
      return { text: near.length === 0 ? listed : `${didYouMean(near)} ${listed}`, near }
    },
  }
}

function isCapture(value: unknown): value is MongoCapture {
  return (
    typeof value === 'object' &&
    value !== null &&
    'serverVersion' in value &&
    'versionText' in value &&
    'database' in value
  )
}

function collectionOf(table: CatalogTable): ExposedCollection | null {
  const root = new Map<string, Branch | null>()
  const paths = table.columns.filter((column) => column.unexposable === null).map((column) => column.name.split('.'))
  for (const path of paths) if (path.every(isExposable)) add(root, path)
  if (root.size === 0) return null
  const projection = Object.fromEntries(leaves(root, '').map((path) => [path, 1]))
  return {
    database: table.schema,
    name: table.table,
    projection: root.has('_id') ? projection : { ...projection, _id: 0 },
    tree: root,
    extents: extentsOf(table),
    tops: [...root.keys()],
    rewritten: table.kind === 'view' || table.kind === 'time-series collection',
    isSeries: table.kind === 'time-series collection' || (isDetail(table.detail) && table.detail.ofSeries === true),
    collated: !isDetail(table.detail) || table.detail.collated !== false,
  }
}

/** The lengths of arrays come from the sampled documents. */
function extentsOf(table: CatalogTable): ReadonlyMap<string, Extent> {
  return new Map(
    table.columns.map(({ name, detail }) => [
      name,
      isSmall(detail) ? SMALL : stored(itemsOf(name, detail), isFlat(detail)),
    ]),
  )
}

const SMALL_TYPES = new Set('bool date decimal double int long null objectId timestamp'.split(' '))

/** True if the sample has only small values, such as numbers and dates. */
function isSmall(detail: unknown): boolean {
  const types: unknown = typeof detail === 'object' && detail !== null && 'types' in detail ? detail.types : undefined
  const names = typeof types === 'object' && types !== null ? Object.keys(types) : []
  return names.length > 0 && names.every((name) => SMALL_TYPES.has(name))
}

/**
 * Returns the length of the arrays in the sample. Returns null if there was no array, and undefined if there is no
 * sample.
 */
function itemsOf(name: string, detail: unknown): number | null | undefined {
  // The value of _id cannot be an array.
  if (name === '_id') return null
  if (typeof detail !== 'object' || detail === null || !('types' in detail)) return undefined
  return 'items' in detail && typeof detail.items === 'number' ? detail.items : null
}

/** True if the arrays in the sample contain no arrays. */
function isFlat(detail: unknown): boolean {
  return typeof detail === 'object' && detail !== null && 'types' in detail && !('nested' in detail)
}

interface Branch extends Map<string, Branch | null> {}

/** True if a projection can contain the name. */
function isExposable(component: string): boolean {
  return (
    component !== '' &&
    component !== '__proto__' &&
    !component.startsWith('$') &&
    !component.includes('\0') &&
    !isPlace(component)
  )
}

function add(tree: Branch, [name, ...below]: readonly string[]): void {
  if (name === undefined) return
  const known = tree.get(name)
  if (known === null) return
  if (below.length === 0) {
    tree.set(name, null)
    return
  }
  const branch: Branch = known ?? new Map()
  tree.set(name, branch)
  add(branch, below)
}

function leaves(tree: Tree, prefix: string): string[] {
  return [...tree].flatMap(([name, below]) => (below === null ? [prefix + name] : leaves(below, `${prefix}${name}.`)))
}

/**
 * Returns the shape of a document after the injected projection. If the document is in a field, `as` is the name of the
 * field.
 */
export function shapeOf(collection: ExposedCollection, barrier: Barrier, as?: string): Shape {
  const kids = new Map<string, Shape>()
  const { tree, extents } = collection
  for (const [name, below] of tree) {
    const cut = below === null ? [] : [{ raise: () => barrier.raise(as ?? name) }]
    kids.set(name, partShape(name, below, { cut, extents }))
  }
  return closed(kids)
}

function partShape(
  path: string,
  tree: Tree | null,
  all: Pick<Shape, 'cut'> & Pick<ExposedCollection, 'extents'>,
): Shape {
  const extent = all.extents.get(path) ?? STORED
  if (tree === null) return { ...WHOLE, extent, isStored: true }
  const kids = new Map<string, Shape>()
  for (const [name, below] of tree) kids.set(name, partShape(`${path}.${name}`, below, all))
  return { kids, open: false, cut: all.cut, extent }
}

/** Makes a barrier whose projection is not yet placed. */
export function barrierOf(
  { tops, tree, rewritten, projection: exposed }: ExposedCollection,
  pipeline: BsonDocument[],
  projection = exposed,
): Barrier {
  const [first = '_id'] = tops
  const barrier = new Barrier(pipeline, { $project: projection }, first)
  const cut = rewritten ? tree : []
  for (const [name, below] of cut) if (below !== null) barrier.compute(name, withoutGaps(`$${name}`, below))
  return barrier
}
