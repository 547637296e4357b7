// Open connections, one pool a datasource and version of its connection: taken for one use, given back or dropped,
// closed when idle. Whoever waits too long is told OVERLOADED. `await using lease = await leases.take(…)`.
import type { ConnectOptions, Connection, Driver } from '../drivers/driver.ts'
import { AppError } from '../errors.ts'
import type { DatasourceId } from '../ids.ts'
import type { Secrets } from '../secrets.ts'
import type { Store } from '../store/open.ts'
import { deadlineOf, isTimeout } from './deadline.ts'
import { changedJustNow, overloaded } from './refusals.ts'
import { settingsFor, type DatasourceRow } from './rows.ts'

/** One connection for one use; disposing gives it back. */
export interface Lease extends AsyncDisposable {
  readonly connection: Connection
}

/** What to connect to; a Reached fits. */
export interface LeaseTarget {
  readonly id: DatasourceId
  readonly row: DatasourceRow
  readonly driver: Driver
}

export interface Leases extends AsyncDisposable {
  /**
   * Throws OVERLOADED where none gets free in time or too many wait, DATASOURCE_UNAVAILABLE where none can be made,
   * and the reason of `signal`.
   */
  take(target: LeaseTarget, signal: AbortSignal): Promise<Lease>
  /** A connection of its own, beside the pool, for what takes long or must not be an old one. */
  connect(target: LeaseTarget, signal: AbortSignal): Promise<Connection>
  /** Ends a datasource's pool: idle ones now, those in use when they come back. */
  end(id: DatasourceId): Promise<void>
}

export interface LeaseOptions {
  /** Connections a datasource, in this process. */
  readonly connectionsMax: number
  /** Who may wait for one of them. */
  readonly waitersMax: number
  readonly waitMs: number
  readonly connectMs: number
  readonly idleMs: number
  /** A session is not kept longer, so that what its server remembers of it is let go. */
  readonly ageMs: number
}

const DEFAULTS: LeaseOptions = {
  connectionsMax: 8,
  waitersMax: 512,
  waitMs: 5_000,
  connectMs: 12_000,
  idleMs: 60_000,
  ageMs: 3_600_000,
}

interface Deps {
  readonly store: Store
  readonly secrets: Secrets
  readonly connectOptions: ConnectOptions
}

export function openLeases(deps: Deps, options: Partial<LeaseOptions> = {}): Leases {
  return new PooledLeases(deps, { ...DEFAULTS, ...options })
}

class PooledLeases implements Leases {
  readonly #deps: Deps
  readonly #options: LeaseOptions
  readonly #pools = new Map<DatasourceId, Pool>()
  readonly #ending = new Set<Promise<void>>()
  #closed = false

  constructor(deps: Deps, options: LeaseOptions) {
    this.#deps = deps
    this.#options = options
  }

  async take(target: LeaseTarget, signal: AbortSignal): Promise<Lease> {
    if (this.#closed) throw overloaded('The service is shutting down.')
    return await this.#poolOf(target).take(signal)
  }

  async connect(target: LeaseTarget, signal: AbortSignal): Promise<Connection> {
    const settings = await settingsFor(this.#deps, target.row)
    using deadline = deadlineOf(signal, this.#options.connectMs)
    try {
      return await target.driver.connect(settings, this.#deps.connectOptions, deadline.signal)
    } catch (error) {
      if (error instanceof AppError || !isTimeout(deadline.signal)) throw error
      throw new AppError('DATASOURCE_UNAVAILABLE', 'The database did not answer in time.', { cause: error })
    }
  }

  async end(id: DatasourceId): Promise<void> {
    const pool = this.#pools.get(id)
    if (pool === undefined) return
    this.#pools.delete(id)
    const ended = pool.end()
    this.#ending.add(ended)
    await ended.finally(() => this.#ending.delete(ended))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true
    await Promise.all([...this.#pools.keys()].map((id) => this.end(id)))
    await Promise.all(this.#ending)
  }

  #poolOf(target: LeaseTarget): Pool {
    const version = target.row.connection_version
    const pool = this.#pools.get(target.id)
    if (pool?.version === version) return pool
    // A call that reached it just before a change must not bring the old connection back.
    if (pool !== undefined && pool.version > version) throw changedJustNow()
    if (pool !== undefined) void this.end(target.id)
    const made = new Pool(version, this.#options, (signal) => this.connect(target, signal))
    this.#pools.set(target.id, made)
    return made
  }
}

interface Held {
  readonly connection: Connection
  readonly bornAt: number
  idleSince: number
}

interface Waiter {
  readonly give: (held: Held) => void
  readonly fail: (error: unknown) => void
  /** Nobody has a connection for it, and there is room to make one. */
  readonly make: () => void
}

class Pool {
  readonly version: number
  readonly #options: LeaseOptions
  readonly #connect: (signal: AbortSignal) => Promise<Connection>
  readonly #idle: Held[] = []
  readonly #waiting = new Set<Waiter>()
  /** In use, idle or being made. */
  #count = 0
  #sweep: NodeJS.Timeout | undefined
  #ended = false

  constructor(version: number, options: LeaseOptions, connect: (signal: AbortSignal) => Promise<Connection>) {
    this.version = version
    this.#options = options
    this.#connect = connect
  }

  async take(signal: AbortSignal): Promise<Lease> {
    signal.throwIfAborted()
    // The one used last: its server's caches are warm, and the others get old enough to be closed.
    for (let held = this.#idle.pop(); held !== undefined; held = this.#idle.pop()) {
      if (held.connection.usable) return this.#lease(held)
      this.#drop(held)
    }
    if (this.#count < this.#options.connectionsMax) return this.#lease(await this.#make(signal))
    return this.#lease(await this.#wait(signal))
  }

  async end(): Promise<void> {
    this.#ended = true
    clearInterval(this.#sweep)
    for (const waiter of this.#waiting) waiter.fail(changedJustNow())
    const idle = this.#idle.splice(0)
    this.#count -= idle.length
    await Promise.all(idle.map((held) => close(held.connection)))
  }

  async #make(signal: AbortSignal): Promise<Held> {
    this.#count++
    try {
      const connection = await this.#connect(signal)
      const now = performance.now()
      return { connection, bornAt: now, idleSince: now }
    } catch (error) {
      this.#free()
      throw error
    }
  }

  #wait(signal: AbortSignal): Promise<Held> {
    if (this.#waiting.size >= this.#options.waitersMax) throw overloaded('Too many queries wait for this datasource.')
    const { promise, resolve, reject } = Promise.withResolvers<Held>()
    const leave = () => {
      this.#waiting.delete(waiter)
      clearTimeout(timer)
      signal.removeEventListener('abort', aborted)
    }
    const waiter: Waiter = {
      give: (held) => {
        leave()
        resolve(held)
      },
      fail: (error) => {
        leave()
        reject(error)
      },
      make: () => {
        leave()
        resolve(this.#make(signal))
      },
    }
    const late = () => waiter.fail(overloaded('All connections to this datasource are in use.'))
    // A query whose time ran out here never ran.
    const aborted = () => (isTimeout(signal) ? late() : waiter.fail(signal.reason))
    const timer = setTimeout(late, this.#options.waitMs)
    signal.addEventListener('abort', aborted)
    this.#waiting.add(waiter)
    return promise
  }

  #lease(held: Held): Lease {
    let given = false
    return {
      connection: held.connection,
      [Symbol.asyncDispose]: async () => {
        if (given) return
        given = true
        this.#giveBack(held)
      },
    }
  }

  #giveBack(held: Held): void {
    const now = performance.now()
    if (this.#ended || !held.connection.usable || now - held.bornAt > this.#options.ageMs) return this.#drop(held)
    const [next] = this.#waiting
    if (next !== undefined) return next.give(held)
    held.idleSince = now
    this.#idle.push(held)
    this.#sweep ??= this.#startSweep()
  }

  /** Closing is not waited for: a caller's answer does not depend on it. */
  #drop(held: Held): void {
    void close(held.connection)
    this.#free()
  }

  #free(): void {
    this.#count--
    const [next] = this.#waiting
    if (next !== undefined && !this.#ended) next.make()
  }

  #startSweep(): NodeJS.Timeout {
    const sweep = setInterval(() => this.#closeIdle(), Math.max(1, this.#options.idleMs / 2))
    sweep.unref()
    return sweep
  }

  #closeIdle(): void {
    const before = performance.now() - this.#options.idleMs
    const old = this.#idle.filter((held) => held.idleSince <= before || !held.connection.usable)
    for (const held of old) {
      this.#idle.splice(this.#idle.indexOf(held), 1)
      this.#drop(held)
    }
    if (this.#idle.length === 0) {
      clearInterval(this.#sweep)
      this.#sweep = undefined
    }
  }
}

/** A connection that cannot even be closed is gone all the same. */
async function close(connection: Connection): Promise<void> {
  try {
    await connection[Symbol.asyncDispose]()
  } catch {
    return
  }
}
