// Caches the catalogs and exposures of the store. Each version of a catalog is read once, and is cut once to each
// version of the exposure. While nothing changes, callers get the same object, so a driver can use it as the key of its
// own cache. Each cache evicts the least recently used entries. Lists of datasources need only counts, which are stored.
import { setImmediate } from 'node:timers/promises'
import type { Catalog } from '../drivers/driver.ts'
import type { Store } from '../store/open.ts'
import { BoundedMap } from '../bounded-map.ts'
import { countsOf, keepCounts, readCounts, uncounted, type CatalogCounts, type Versions } from './catalog-counts.ts'
import { cut, visibleNames, type ShownTable } from './cut-catalog.ts'
import { readCatalog, readExposure } from './stored-json.ts'

export interface Catalogs {
  full(at: Versions): Promise<Catalog | null>
  exposed(at: Versions): Promise<Catalog | null>
  /** Returns the result of exposed() without waiting, or undefined if it is not in memory. */
  knownExposed(at: Versions): Catalog | undefined
  shown(at: Versions): Promise<readonly ShownTable[]>
  /** The catalog for which the exposure was saved. Null if there was no catalog then, or if no exposure was saved. */
  baseline(at: Versions): Promise<Catalog | null>
  /** In the order of `places`. Null before the first introspection. Reads no catalog if the counts are stored. */
  counts(places: readonly Versions[]): Promise<readonly (CatalogCounts | null)[]>
  /**
   * Counts the catalogs that a version of Vitrine without stored counts saved. Call this before requests are served,
   * because reading large catalogs blocks the event loop. Ends after COUNTING_MS. Then counts() counts the rest.
   */
  countMissing(): Promise<void>
}

const ENTRIES_MAX = 200
/** For each of the three caches, in characters of plain JSON. The objects take several times as much memory. */
const CHARS_MAX = 48 * 1024 * 1024
const COUNTS_MAX = 20_000
/** A start may take this much longer. A process that takes minutes to start would be ended by the startup probe. */
const COUNTING_MS = 60_000
/** Plain JSON is assumed to be this many times as long as stored JSON, which shares equal properties. */
const BUILT = 10

type CountingStore = Pick<Store, 'db' | 'commit' | 'later'>

export function openCatalogs(deps: { readonly store: CountingStore }): Catalogs {
  return new StoredCatalogs(deps.store)
}

class StoredCatalogs implements Catalogs {
  readonly #store: CountingStore
  readonly #full = new BoundedMap<string, Promise<Catalog>>(ENTRIES_MAX, CHARS_MAX)
  readonly #shown = new BoundedMap<string, Promise<readonly ShownTable[]>>(ENTRIES_MAX, CHARS_MAX)
  readonly #exposed = new BoundedMap<string, Promise<Catalog>>(ENTRIES_MAX, CHARS_MAX)
  /** The catalogs of #exposed that have been loaded. */
  readonly #cuts = new WeakMap<Promise<Catalog>, Catalog>()
  readonly #counts = new BoundedMap<string, Promise<CatalogCounts>>(COUNTS_MAX)
  #counting: Promise<unknown> = Promise.resolve()

  constructor(store: CountingStore) {
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
      const text = await this.#exposureText(at)
      return { value: readExposure(text), weight: text.length }
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
    const version = await this.#baselineVersion(at)
    return version === null ? null : await this.full({ ...at, catalog_version: version })
  }

  async #baselineVersion(at: Versions): Promise<number | null> {
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
    return saved?.version ?? null
  }

  async counts(places: readonly Versions[]): Promise<readonly (CatalogCounts | null)[]> {
    const missing = places.filter((at) => at.catalog_version !== 0 && this.#counts.get(keyOf(at)) === undefined)
    const stored = await readCounts(this.#store.db, missing)
    const all: (CatalogCounts | null)[] = []
    for (const at of places) all.push(at.catalog_version === 0 ? null : await this.#countsOf(at, stored.get(at.id)))
    return all
  }

  async countMissing(): Promise<void> {
    const until = performance.now() + COUNTING_MS
    for (const at of await uncounted(this.#store.db)) {
      if (performance.now() >= until) return
      // A damaged catalog must not prevent the start. Requests that read the catalog fail.
      await this.#countsOf(at, undefined).catch(() => undefined)
    }
  }

  #countsOf(at: Versions, stored: CatalogCounts | undefined): Promise<CatalogCounts> {
    return loadOnce(this.#counts, keyOf(at), async () => ({ value: stored ?? (await this.#counted(at)), weight: 1 }))
  }

  /** One after the other, because each catalog may take 100 MB. */
  #counted(at: Versions): Promise<CatalogCounts> {
    const counted = this.#counting.then(() => this.#count(at))
    this.#counting = counted.catch(() => undefined)
    return counted
  }

  /** Keeps no catalog in memory, because all catalogs of an older store may be counted one after the other. */
  async #count(at: Versions): Promise<CatalogCounts> {
    const full = readCatalog(await this.#catalogText(at))
    await setImmediate()
    const exposure = at.exposure_version === 0 ? [] : readExposure(await this.#exposureText(at))
    await setImmediate()
    const { size } = visibleNames(full, exposure)
    await setImmediate()
    const version = await this.#baselineVersion(at)
    const isCurrent = version === at.catalog_version
    const earlier = version === null || isCurrent ? null : { ...at, catalog_version: version }
    const baseline = earlier === null ? (isCurrent ? full : null) : readCatalog(await this.#catalogText(earlier))
    await setImmediate()
    const counts = await countsOf(full, size, baseline)
    await setImmediate()
    this.#store.later(() => this.#store.commit((tx) => keepCounts(tx, at, counts)))
    return counts
  }

  async #exposureText(at: Versions): Promise<string> {
    const { tables } = await this.#store.db
      .selectFrom('exposures')
      .select('tables')
      .where('datasource_id', '=', at.id)
      .where('version', '=', at.exposure_version)
      .executeTakeFirstOrThrow()
    return tables
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
