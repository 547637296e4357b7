// The written descriptions: in memory while they are asked for, in the store for whoever starts next, and written ahead
// after a change. One of other versions is never answered, so nothing here has to be in time.
import { BoundedMap } from '../exposure/bounded-map.ts'
import type { Catalogs } from '../exposure/catalogs.ts'
import type { DatasourceId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import { etagOf, keep, readKept, versionsOf, type Kept } from './kept.ts'
import { openPublished } from './documented.ts'
import { openSeen } from './known.ts'
import type { Drivers } from './reach.ts'
import { readRow } from './rows.ts'
import { writeDescription, type Described, type Part } from './written.ts'

export interface Descriptions extends AsyncDisposable {
  /** As it stands for the versions of this row; written where nobody did, once for all who ask at once. */
  of(at: Described, part: Part): Promise<Kept>
  /**
   * Writes what is exposed of a datasource as it stands now, in slices: one at a time, and one for all changes that came
   * before it is begun. Never fails; answers when it is done, so that who was answered a change finds it written.
   */
  ahead(id: DatasourceId): Promise<void>
}

interface Deps {
  readonly store: Pick<Store, 'db' | 'append'>
  readonly catalogs: Catalogs
  readonly drivers: Drivers
  readonly log?: { warn(detail: object, message: string): void }
}

const ENTRIES_MAX = 500
const BYTES_MAX = 32 * 1024 * 1024

export function openDescriptions(deps: Deps): Descriptions {
  return new WrittenDescriptions(deps)
}

interface Entry extends Kept {
  readonly versions: string
}

class WrittenDescriptions implements Descriptions {
  readonly #deps: Deps
  /** What outlasts most changes: one of the exposure alone reads none of it anew. */
  readonly #read = { seen: openSeen(), published: openPublished() }
  /** The one that was asked for last of each datasource and part. */
  readonly #written = new BoundedMap<string, Entry>(ENTRIES_MAX, BYTES_MAX)
  readonly #writing = new Map<string, Promise<Kept>>()
  /** Written ahead now, and after that: one of each a datasource. */
  readonly #ahead = new Map<DatasourceId, Promise<void>>()
  readonly #waiting = new Map<DatasourceId, Promise<void>>()
  readonly #keeping = new Map<string, () => Promise<void>>()
  #lastKept: Promise<void> = Promise.resolve()
  #closed = false

  constructor(deps: Deps) {
    this.#deps = deps
  }

  async of(at: Described, part: Part): Promise<Kept> {
    const [place, versions] = [`${part}/${at.id}`, versionsOf(at.row)]
    const known = this.#written.get(place)
    if (known?.versions === versions) return known
    const key = `${place}/${versions}`
    const begun = this.#writing.get(key)
    if (begun !== undefined) return await begun
    const making = this.#make(at, part, versions).finally(() => this.#writing.delete(key))
    this.#writing.set(key, making)
    return await making
  }

  ahead(id: DatasourceId): Promise<void> {
    const waiting = this.#waiting.get(id)
    if (waiting !== undefined) return waiting
    const begun = this.#ahead.get(id) ?? Promise.resolve()
    const done = begun.then(async () => {
      this.#waiting.delete(id)
      this.#ahead.set(id, done)
      if (!this.#closed) await this.#quietly(() => this.#writeAhead(id))
      if (this.#ahead.get(id) === done) this.#ahead.delete(id)
    })
    this.#waiting.set(id, done)
    return done
  }

  /** What was written is kept first; what was to be written ahead is not. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true
    await Promise.all([...this.#ahead.values(), ...this.#waiting.values()])
    await this.#lastKept
  }

  async #make(at: Described, part: Part, versions: string): Promise<Kept> {
    const place = { id: at.id, part, versions }
    const kept = await readKept(this.#deps.store.db, place)
    if (kept !== null) return this.#hold(place, kept)
    const json = await writeDescription({ ...this.#deps, ...this.#read }, at, part)
    const written = { json, etag: etagOf(part, json) }
    this.#keepLater(place, written)
    return this.#hold(place, written)
  }

  #hold({ id, part, versions }: Place, { json, etag }: Kept): Kept {
    const entry = { json, etag, versions }
    this.#written.set(`${part}/${id}`, entry, json.length)
    return entry
  }

  /** One after the other, the newest of each alone. */
  #keepLater(place: Place, written: Kept): void {
    const key = `${place.part}/${place.id}`
    const isWaiting = this.#keeping.has(key)
    this.#keeping.set(key, () => keep(this.#deps.store, place, written))
    if (isWaiting) return
    this.#lastKept = this.#lastKept.then(async () => {
      const work = this.#keeping.get(key)
      this.#keeping.delete(key)
      if (work !== undefined) await this.#quietly(work)
    })
  }

  async #writeAhead(id: DatasourceId): Promise<void> {
    const row = await readRow(this.#deps.store, id)
    const driver = row === undefined ? undefined : this.#deps.drivers.get(row.type)
    if (row !== undefined && driver !== undefined) await this.of({ id, row, driver }, 'e')
  }

  /** Whoever asks for it is told what is wrong. */
  async #quietly(work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (err) {
      this.#deps.log?.warn({ err }, 'a description was not written ahead, or not kept')
    }
  }
}

interface Place {
  readonly id: DatasourceId
  readonly part: Part
  readonly versions: string
}
