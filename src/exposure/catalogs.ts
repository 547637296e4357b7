// The stored catalogs and exposures, read once a version and cut once a pair of versions: while nothing changed, the
// same object is answered, so that a driver may hang its own index on it. Bounded by what was used last.
import type { Catalog } from '../drivers/driver.ts'
import type { DatasourceId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import { BoundedMap } from '../bounded-map.ts'
import { cut, type ShownTable } from './cut.ts'
import { readCatalog, readExposure } from './stored.ts'

/** Which catalog and which exposure: a datasource's row fits. Version 0: none yet. */
export interface Versions {
  readonly id: DatasourceId
  readonly catalog_version: number
  readonly exposure_version: number
}

export interface Catalogs {
  /** Everything introspected; null before the first introspection. */
  full(at: Versions): Promise<Catalog | null>
  /** What is exposed of it; null before the first introspection. */
  exposed(at: Versions): Promise<Catalog | null>
  /** The exposure as saved; empty before the first. */
  shown(at: Versions): Promise<readonly ShownTable[]>
  /** What was known when the exposure was saved; null where there is no exposure, or nothing was known then. */
  baseline(at: Versions): Promise<Catalog | null>
  /** How many tables are exposed and still there. */
  exposedTableCount(at: Versions): Promise<number>
}

const ENTRIES_MAX = 200
/** Of a catalog as JSON with each column whole; the objects take a few times that. */
const CHARS_MAX = 48 * 1024 * 1024
const COUNTS_MAX = 20_000
/** A stored catalog, where columns that are alike are written once, is about a tenth of that. */
const BUILT = 10

export function openCatalogs(deps: { readonly store: Pick<Store, 'db'> }): Catalogs {
  return new StoredCatalogs(deps.store)
}

class StoredCatalogs implements Catalogs {
  readonly #store: Pick<Store, 'db'>
  readonly #full = new BoundedMap<string, Promise<Catalog>>(ENTRIES_MAX, CHARS_MAX)
  readonly #shown = new BoundedMap<string, Promise<readonly ShownTable[]>>(ENTRIES_MAX, CHARS_MAX)
  readonly #exposed = new BoundedMap<string, Promise<Catalog>>(ENTRIES_MAX, CHARS_MAX)
  readonly #counts = new BoundedMap<string, Promise<number>>(COUNTS_MAX)

  constructor(store: Pick<Store, 'db'>) {
    this.#store = store
  }

  full(at: Versions): Promise<Catalog | null> {
    if (at.catalog_version === 0) return Promise.resolve(null)
    const key = `${at.id}/${at.catalog_version}`
    return held(this.#full, key, async () => {
      const text = await this.#catalogText(at)
      return { value: readCatalog(text), weight: text.length * BUILT }
    })
  }

  shown(at: Versions): Promise<readonly ShownTable[]> {
    if (at.exposure_version === 0) return Promise.resolve([])
    const key = `${at.id}/${at.exposure_version}`
    return held(this.#shown, key, async () => {
      const { tables } = await this.#store.db
        .selectFrom('exposures')
        .select('tables')
        .where('datasource_id', '=', at.id)
        .where('version', '=', at.exposure_version)
        .executeTakeFirstOrThrow()
      return { value: readExposure(tables), weight: tables.length }
    })
  }

  exposed(at: Versions): Promise<Catalog | null> {
    if (at.catalog_version === 0) return Promise.resolve(null)
    return held(this.#exposed, keyOf(at), async () => {
      const [full, shown] = await Promise.all([this.full(at), this.shown(at)])
      const value = cut(full ?? NOTHING_KNOWN, shown)
      // A cut shares its columns with the full catalog, and keeps them when that is let go.
      const columns = value.tables.reduce((sum, table) => sum + table.columns.length, 0)
      return { value, weight: (value.tables.length + columns) * 300 }
    })
  }

  async baseline(at: Versions): Promise<Catalog | null> {
    if (at.exposure_version === 0) return null
    const saved = await this.#store.db
      .selectFrom('exposures')
      .innerJoin('catalogs', (join) =>
        join
          .onRef('catalogs.datasource_id', '=', 'exposures.datasource_id')
          .onRef('catalogs.version', '=', 'exposures.catalog_version'),
      )
      .select('catalogs.version')
      .where('exposures.datasource_id', '=', at.id)
      .where('exposures.version', '=', at.exposure_version)
      .executeTakeFirst()
    return saved === undefined ? null : await this.full({ ...at, catalog_version: saved.version })
  }

  exposedTableCount(at: Versions): Promise<number> {
    if (at.catalog_version === 0 || at.exposure_version === 0) return Promise.resolve(0)
    return held(this.#counts, keyOf(at), async () => ({
      value: (await this.exposed(at))?.tables.length ?? 0,
      weight: 1,
    }))
  }

  async #catalogText(at: Versions): Promise<string> {
    const { catalog } = await this.#store.db
      .selectFrom('catalogs')
      .select('catalog')
      .where('datasource_id', '=', at.id)
      .where('version', '=', at.catalog_version)
      .executeTakeFirstOrThrow()
    return catalog
  }
}

/** Of a database that was never introspected. */
export const NOTHING_KNOWN: Catalog = { capturedAt: '', capture: null, tables: [] }

function keyOf(at: Versions): string {
  return `${at.id}/${at.catalog_version}/${at.exposure_version}`
}

/** Loads once, also for those who ask at once; a load that failed is forgotten. */
function held<V>(
  map: BoundedMap<string, Promise<V>>,
  key: string,
  load: () => Promise<{ readonly value: V; readonly weight: number }>,
): Promise<V> {
  const known = map.get(key)
  if (known !== undefined) return known
  const loaded = load()
  const value = loaded.then((it) => it.value)
  map.set(key, value)
  loaded.then(
    (it) => {
      // The weight is known only now.
      if (map.get(key) === value) map.set(key, value, it.weight)
    },
    () => {
      if (map.get(key) === value) map.delete(key)
    },
  )
  return value
}
