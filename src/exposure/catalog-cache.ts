// Caches the catalogs and exposures of the store. Each version of a catalog is read once, and is cut once to each
// version of the exposure. While nothing changes, callers get the same object, so a driver can use it as the key of its
// own cache. Each cache evicts the least recently used entries.
import type { Catalog } from '../drivers/driver.ts'
import type { DatasourceId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import { BoundedMap } from '../bounded-map.ts'
import { cut, type ShownTable } from './cut-catalog.ts'
import { driftOf } from './drift.ts'
import { readCatalog, readExposure } from './stored-json.ts'

/** The versions in a datasource's row. Version 0 means that there is no catalog or exposure yet. */
export interface Versions {
  readonly id: DatasourceId
  readonly catalog_version: number
  readonly exposure_version: number
}

export interface Catalogs {
  full(at: Versions): Promise<Catalog | null>
  exposed(at: Versions): Promise<Catalog | null>
  /** Returns the result of exposed() without waiting, or undefined if it is not in memory. */
  knownExposed(at: Versions): Catalog | undefined
  shown(at: Versions): Promise<readonly ShownTable[]>
  /** The catalog for which the exposure was saved. Null if there was no catalog then, or if no exposure was saved. */
  baseline(at: Versions): Promise<Catalog | null>
  exposedTableCount(at: Versions): Promise<number>
  /** Returns what the list of datasources shows about the catalog. Null before the first introspection. */
  summary(at: Versions): Promise<Summary | null>
}

interface Summary {
  readonly capturedAt: string
  readonly tableCount: number
  /** How many tables and columns have changed since the save. Null if there was no save, or no catalog then. */
  readonly driftCount: number | null
}

const ENTRIES_MAX = 200
/** For each of the three caches, in characters of plain JSON. The objects take several times as much memory. */
const CHARS_MAX = 48 * 1024 * 1024
const COUNTS_MAX = 20_000
/** Plain JSON is assumed to be this many times as long as stored JSON, which shares equal properties. */
const BUILT = 10

export function openCatalogs(deps: { readonly store: Pick<Store, 'db'> }): Catalogs {
  return new StoredCatalogs(deps.store)
}

class StoredCatalogs implements Catalogs {
  readonly #store: Pick<Store, 'db'>
  readonly #full = new BoundedMap<string, Promise<Catalog>>(ENTRIES_MAX, CHARS_MAX)
  readonly #shown = new BoundedMap<string, Promise<readonly ShownTable[]>>(ENTRIES_MAX, CHARS_MAX)
  readonly #exposed = new BoundedMap<string, Promise<Catalog>>(ENTRIES_MAX, CHARS_MAX)
  /** The catalogs of #exposed that have been loaded. */
  readonly #cuts = new WeakMap<Promise<Catalog>, Catalog>()
  readonly #counts = new BoundedMap<string, Promise<number>>(COUNTS_MAX)
  readonly #summaries = new BoundedMap<string, Promise<Summary>>(COUNTS_MAX)

  constructor(store: Pick<Store, 'db'>) {
    this.#store = store
  }

  full(at: Versions): Promise<Catalog | null> {
    if (at.catalog_version === 0) return Promise.resolve(null)
    const key = `${at.id}/${at.catalog_version}`
    return loadOnce(this.#full, key, async () => {
      const text = await this.#catalogText(at)
      return { value: readCatalog(text), weight: text.length * BUILT }
    })
  }

  shown(at: Versions): Promise<readonly ShownTable[]> {
    if (at.exposure_version === 0) return Promise.resolve([])
    const key = `${at.id}/${at.exposure_version}`
    return loadOnce(this.#shown, key, async () => {
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
    const loaded = loadOnce(this.#exposed, keyOf(at), async () => {
      const [full, shown] = await Promise.all([this.full(at), this.shown(at)])
      const value = cut(full ?? NOTHING_KNOWN, shown)
      // The cut catalog uses column objects of the full catalog, which stay in memory after the full catalog is
      // evicted. So count 300 characters for each table and column.
      const columns = value.tables.reduce((sum, table) => sum + table.columns.length, 0)
      return { value, weight: (value.tables.length + columns) * 300 }
    })
    loaded.then(
      (value) => this.#cuts.set(loaded, value),
      () => undefined,
    )
    return loaded
  }

  knownExposed(at: Versions): Catalog | undefined {
    const loaded = this.#exposed.get(keyOf(at))
    return loaded === undefined ? undefined : this.#cuts.get(loaded)
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
    return loadOnce(this.#counts, keyOf(at), async () => ({
      value: (await this.exposed(at))?.tables.length ?? 0,
      weight: 1,
    }))
  }

  summary(at: Versions): Promise<Summary | null> {
    if (at.catalog_version === 0) return Promise.resolve(null)
    return loadOnce(this.#summaries, keyOf(at), async () => {
      const full = (await this.full(at)) ?? NOTHING_KNOWN
      const then = await this.baseline(at)
      const drift = then === null ? null : await driftOf(then, full)
      const driftCount = drift === null ? null : drift.added.length + drift.removed.length + drift.retyped.length
      return { value: { capturedAt: full.capturedAt, tableCount: full.tables.length, driftCount }, weight: 1 }
    })
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

export const NOTHING_KNOWN: Catalog = { capturedAt: '', capture: null, tables: [] }

function keyOf(at: Versions): string {
  return `${at.id}/${at.catalog_version}/${at.exposure_version}`
}

/** Loads a value only once, even for concurrent callers. A failed load is not cached. */
function loadOnce<V>(
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
      if (map.get(key) === value) map.set(key, value, it.weight)
    },
    () => {
      if (map.get(key) === value) map.delete(key)
    },
  )
  return value
}
