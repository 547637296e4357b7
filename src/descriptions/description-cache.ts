// Caches descriptions in memory, as JSON. A cached description is valid only for the versions of the catalog, the
// exposure, the profiles and the documentation that it was rendered from. So after a change, the next reader renders
// again.
import { createHash } from 'node:crypto'
import type { DatasourceRow } from '../datasources/datasource-rows.ts'
import { BoundedMap } from '../bounded-map.ts'
import type { Catalog } from '../drivers/driver.ts'
import type { Catalogs } from '../exposure/catalog-cache.ts'
import type { Store } from '../store/open.ts'
import type { Evidence } from './collected-evidence.ts'
import { openColumnStats } from './column-stats.ts'
import type { JoinedTables } from './join-tables.ts'
import { openPublishedTexts } from './published-texts.ts'
import { renderCatalog, type NameReadings } from './render-catalog.ts'
import { renderDescription, type Described, type Part } from './render-description.ts'

export interface Rendered {
  readonly json: Buffer
  /** In bytes. */
  readonly starts: readonly number[]
  readonly etag: string
}

export interface Descriptions {
  /** Concurrent readers share one rendering. */
  of(at: Described, part: Part): Promise<Rendered>
  /** The whole catalog is for the person who chooses what to expose (GET …/catalog). */
  catalog(at: Described, full: Catalog, evidence: Evidence): Promise<Rendered>
}

interface Deps {
  readonly store: Pick<Store, 'db'>
  readonly catalogs: Catalogs
}

const ENTRIES_MAX = 500
const BYTES_MAX = 32 * 1024 * 1024
const NAMES_MAX = 50_000

export function openDescriptions(deps: Deps): Descriptions {
  return new CachedDescriptions(deps)
}

interface Entry extends Rendered {
  readonly versions: string
}

class CachedDescriptions implements Descriptions {
  readonly #deps: Deps
  readonly #read = { stats: openColumnStats(), published: openPublishedTexts() }
  readonly #rendered = new BoundedMap<string, Entry>(ENTRIES_MAX, BYTES_MAX)
  readonly #names: NameReadings = new BoundedMap(NAMES_MAX)
  /** By part, datasource and versions. */
  readonly #rendering = new Map<string, Promise<Entry>>()

  constructor(deps: Deps) {
    this.#deps = deps
  }

  of(at: Described, part: Part): Promise<Rendered> {
    return this.#cached(`${part}/${at.id}`, versionsOf(at.row), () =>
      renderDescription({ ...this.#deps, ...this.#read }, at, part),
    )
  }

  catalog(at: Described, full: Catalog, evidence: Evidence): Promise<Rendered> {
    const versions = `${versionsOf(at.row)} ${at.row.documentation_version} ${evidence.stamp}`
    const deps = { ...this.#deps, stats: this.#read.stats, names: this.#names }
    return this.#cached(`c/${at.id}`, versions, () => renderCatalog(deps, at, full, evidence))
  }

  /** `place` is the part and the datasource's id. */
  async #cached(place: string, versions: string, render: () => Promise<JoinedTables>): Promise<Rendered> {
    const cached = this.#rendered.get(place)
    if (cached?.versions === versions) return cached
    const key = `${place}/${versions}`
    const begun = this.#rendering.get(key)
    if (begun !== undefined) return await begun
    const rendering = this.#render(place, versions, render).finally(() => this.#rendering.delete(key))
    this.#rendering.set(key, rendering)
    return await rendering
  }

  async #render(place: string, versions: string, render: () => Promise<JoinedTables>): Promise<Entry> {
    const { json, starts } = await render()
    const entry = { json, starts, etag: etagOf(place.slice(0, 1), json), versions }
    this.#rendered.set(place, entry, json.length)
    return entry
  }
}

/** Returns a text that changes whenever the description may change. */
export function versionsOf(
  row: Pick<DatasourceRow, 'catalog_version' | 'exposure_version' | 'profile_version' | 'published_version' | 'name'>,
): string {
  const { catalog_version, exposure_version, profile_version, published_version, name } = row
  return JSON.stringify([catalog_version, exposure_version, profile_version, published_version, name])
}

/** The same JSON has the same ETag in every process and after every restart. */
function etagOf(part: string, json: Buffer): string {
  return `"${part}-${createHash('sha256').update(json).digest('base64url').slice(0, 27)}"`
}
