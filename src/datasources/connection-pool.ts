// Each datasource has one pool of database connections. When its connection settings change, a new pool replaces the
// old one. `await using lease = await leases.take(…)` leases a connection and returns it at the end of the block. If a
// caller gives up a query that the database still runs, the connection is abandoned: it keeps its place in the pool
// until the database has ended the query.
import type { ConnectionSettings, ConnectOptions, Connection, Driver } from '../drivers/driver.ts'
import type { DatasourceType } from '../drivers/datasource-type.ts'
import { AppError } from '../errors.ts'
import type { DatasourceId, TeamId } from '../ids.ts'
import type { Secrets } from '../secrets.ts'
import type { Store } from '../store/open.ts'
import { ownerOfTeam } from '../teams/team-owner.ts'
import { deadlineOf, isTimeout } from '../deadline.ts'
import { Durations, type Family } from '../metric-types.ts'
import { changedJustNow, overloaded } from './changed-or-overloaded.ts'
import { settingsFor, type DatasourceRow } from './datasource-rows.ts'

export interface Lease extends AsyncDisposable {
  readonly connection: Connection
  release(): void
}

export interface LeaseTarget {
  readonly id: DatasourceId
  readonly row: DatasourceRow
  readonly driver: Driver
}

export interface Leases extends AsyncDisposable {
  /**
   * Throws OVERLOADED if no connection becomes free within `waitMs` and `timeoutMs`, or if none is expected to. Also
   * throws OVERLOADED if too many callers wait, if the connection settings have just changed, and during a shutdown.
   * Throws DATASOURCE_UNAVAILABLE if no connection can be opened. Throws the reason of `signal` if it aborts, but
   * OVERLOADED if the reason is a timeout.
   */
  take(target: LeaseTarget, signal: AbortSignal, timeoutMs?: number): Promise<Lease>
  /** Returns null if no connection is idle. Throws OVERLOADED if the connection settings have just changed. */
  takeIdle(target: LeaseTarget): Lease | null
  /** Opens a connection outside the pool, for work that takes long or needs a new connection. */
  connect(target: LeaseTarget, signal: AbortSignal): Promise<Connection>
  try(
    target: { readonly driver: Driver; readonly settings: ConnectionSettings; readonly teamId: TeamId },
    signal: AbortSignal,
  ): Promise<Connection>
  /** Closes a datasource's pool: idle connections now, and leased connections when they are returned. */
  end(id: DatasourceId): Promise<void>
  families(): readonly Family[]
}

export interface LeaseOptions {
  readonly connectionsMax: number
  readonly waitersMax: number
  readonly waitMs: number
  readonly connectMs: number
  readonly idleMs: number
  /**
   * An older connection is closed when it is returned, because only closing frees the memory in the database server.
   */
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

/** In the moving average of the durations of use, the latest use has the weight 1 / USES_AVERAGED. */
const USES_AVERAGED = 8

/** After this time, a warning is logged, and the place of the query is no longer expected to become free soon. */
const ENDING_MS = 2_000
/** The `Retry-After` of a refusal while abandoned queries hold connections. */
const ABANDONED_RETRY_SECONDS = 10

interface Deps {
  readonly store: Store
  readonly secrets: Secrets
  readonly log: {
    info(detail: object, message: string): void
    warn(detail: object, message: string): void
  }
  readonly connectOptions: ConnectOptions
}

export function openLeases(deps: Deps, options: Partial<LeaseOptions> = {}): Leases {
  return new PooledLeases(deps, { ...DEFAULTS, ...options })
}

class PooledLeases implements Leases {
  readonly #deps: Deps
  readonly #options: LeaseOptions
  readonly #pools = new Map<DatasourceId, Pool>()
  readonly #opened: Readonly<Record<DatasourceType, Opened>> = {
    POSTGRES: newOpened(),
    MONGODB: newOpened(),
    BIGQUERY: newOpened(),
  }
  readonly #ending = new Set<Promise<void>>()
  #closed = false

  constructor(deps: Deps, options: LeaseOptions) {
    this.#deps = deps
    this.#options = options
  }

  async take(target: LeaseTarget, signal: AbortSignal, timeoutMs = Infinity): Promise<Lease> {
    if (this.#closed) throw overloaded('The service is shutting down.')
    return await this.#poolOf(target).take(signal, timeoutMs)
  }

  takeIdle(target: LeaseTarget): Lease | null {
    return this.#closed ? null : this.#poolOf(target).takeIdle()
  }

  async connect(target: LeaseTarget, signal: AbortSignal): Promise<Connection> {
    const settings = await settingsFor(this.#deps, target.row)
    return await this.try({ driver: target.driver, settings, teamId: target.row.team_id }, signal)
  }

  async try({ driver, settings, teamId }: Parameters<Leases['try']>[0], signal: AbortSignal): Promise<Connection> {
    using deadline = deadlineOf(signal, this.#options.connectMs)
    const opened = this.#opened[driver.type]
    const began = performance.now()
    try {
      const connection = await driver.connect(
        settings,
        { ...this.#deps.connectOptions, owner: await ownerOfTeam(this.#deps.store, teamId) },
        deadline.signal,
      )
      opened.took.add(performance.now() - began)
      return connection
    } catch (error) {
      opened.failed++
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

  families(): readonly Family[] {
    const all = Object.entries(this.#opened)
    const sum = (kind: string, of: (pool: Pool) => number) =>
      [...this.#pools.values()].reduce((total, pool) => total + (pool.kind === kind ? of(pool) : 0), 0)
    return [
      {
        name: 'vitrine_pool_connections',
        type: 'gauge',
        help: 'Database connections in the pools.',
        samples: () =>
          all.flatMap(([kind]) => [
            [{ kind, state: 'used' }, sum(kind, (pool) => pool.used)] as const,
            [{ kind, state: 'idle' }, sum(kind, (pool) => pool.idle)] as const,
            [{ kind, state: 'abandoned' }, sum(kind, (pool) => pool.abandoned)] as const,
          ]),
      },
      {
        name: 'vitrine_pool_waiting',
        type: 'gauge',
        help: 'Queries that wait for a connection.',
        samples: () => all.map(([kind]) => [{ kind }, sum(kind, (pool) => pool.waiting)]),
      },
      {
        name: 'vitrine_pool_connect_seconds',
        type: 'histogram',
        help: 'Time to open a connection.',
        samples: () => all.map(([kind, { took }]) => [{ kind }, took]),
      },
      {
        name: 'vitrine_pool_connect_failures_total',
        type: 'counter',
        help: 'Connections that could not be opened.',
        samples: () => all.map(([kind, { failed }]) => [{ kind }, failed]),
      },
    ]
  }

  #poolOf(target: LeaseTarget): Pool {
    const version = target.row.connection_version
    const pool = this.#pools.get(target.id)
    if (pool?.version === version) return pool
    // This caller read the datasource before the change, so it must not open the old connection again.
    if (pool !== undefined && pool.version > version) throw changedJustNow()
    if (pool !== undefined) void this.end(target.id)
    const made = new Pool(target, this.#options, this.#deps.log, (signal) => this.connect(target, signal))
    this.#pools.set(target.id, made)
    return made
  }
}

interface Opened {
  readonly took: Durations
  failed: number
}

function newOpened(): Opened {
  return { took: new Durations(), failed: 0 }
}

interface Pooled {
  readonly connection: Connection
  readonly bornAt: number
  idleSince: number
}

interface Waiter {
  readonly give: (pooled: Pooled) => void
  readonly fail: (error: unknown) => void
  readonly make: () => void
}

class PooledLease implements Lease {
  readonly connection: Connection
  readonly #giveBack: (pooled: Pooled) => void
  #pooled: Pooled | null

  constructor(pooled: Pooled, giveBack: (pooled: Pooled) => void) {
    this.connection = pooled.connection
    this.#pooled = pooled
    this.#giveBack = giveBack
  }

  release(): void {
    const pooled = this.#pooled
    this.#pooled = null
    if (pooled !== null) this.#giveBack(pooled)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.release()
  }
}

class Pool {
  readonly kind: DatasourceType
  readonly version: number
  readonly #id: DatasourceId
  readonly #log: Deps['log']
  readonly #options: LeaseOptions
  readonly #connect: (signal: AbortSignal) => Promise<Connection>
  readonly #idle: Pooled[] = []
  readonly #waiting = new Set<Waiter>()
  /** Used, idle, abandoned, or being opened. */
  #count = 0
  #abandoned = 0
  /** How many connections have been abandoned for longer than ENDING_MS. */
  #overdue = 0
  readonly #stop = new AbortController()
  #sweep: NodeJS.Timeout | undefined
  #ended = false
  #useMs = 0

  constructor(
    { id, row, driver }: LeaseTarget,
    options: LeaseOptions,
    log: Deps['log'],
    connect: (signal: AbortSignal) => Promise<Connection>,
  ) {
    this.kind = driver.type
    this.version = row.connection_version
    this.#id = id
    this.#log = log
    this.#options = options
    this.#connect = connect
  }

  get idle(): number {
    return this.#idle.length
  }

  get used(): number {
    return this.#count - this.#idle.length - this.#abandoned
  }

  get abandoned(): number {
    return this.#abandoned
  }

  get waiting(): number {
    return this.#waiting.size
  }

  async take(signal: AbortSignal, timeoutMs: number): Promise<Lease> {
    signal.throwIfAborted()
    const idle = this.takeIdle()
    if (idle !== null) return idle
    if (this.#count < this.#options.connectionsMax) return this.#lease(await this.#make(signal))
    return this.#lease(await this.#wait(signal, timeoutMs))
  }

  takeIdle(): Lease | null {
    // Take the connection that was used last, because the database has cached most for it. The remaining connections
    // become idle for long enough to be closed.
    for (let pooled = this.#idle.pop(); pooled !== undefined; pooled = this.#idle.pop()) {
      if (pooled.connection.usable) return this.#lease(pooled)
      this.#drop(pooled)
    }
    return null
  }

  async end(): Promise<void> {
    this.#ended = true
    this.#stop.abort()
    clearInterval(this.#sweep)
    for (const waiter of this.#waiting) waiter.fail(changedJustNow())
    const idle = this.#idle.splice(0)
    this.#count -= idle.length
    await Promise.all(idle.map((pooled) => close(pooled.connection)))
  }

  async #make(signal: AbortSignal): Promise<Pooled> {
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

  #wait(signal: AbortSignal, timeoutMs: number): Promise<Pooled> {
    if (this.#waiting.size >= this.#options.waitersMax)
      throw overloaded('Too many queries are waiting for this datasource.')
    const places = this.#options.connectionsMax - this.#overdue
    if (places <= 0) throw this.#allInUse()
    // Refuse a caller that is likely to wait in vain, so that it does not delay other callers.
    const expectedMs = ((this.#waiting.size + 1) * this.#useMs) / places
    if (expectedMs > Math.min(this.#options.waitMs, timeoutMs))
      throw overloaded('All connections to this datasource are in use, and none is expected to become free in time.')
    const { promise, resolve, reject } = Promise.withResolvers<Pooled>()
    const leave = () => {
      this.#waiting.delete(waiter)
      clearTimeout(timer)
      signal.removeEventListener('abort', aborted)
    }
    const waiter: Waiter = {
      give: (pooled) => {
        leave()
        resolve(pooled)
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
    const late = () => waiter.fail(this.#allInUse())
    // The query has not run yet, so a timeout here means overload and not a slow query.
    const aborted = () => (isTimeout(signal) ? late() : waiter.fail(signal.reason))
    const timer = setTimeout(late, this.#options.waitMs)
    signal.addEventListener('abort', aborted)
    this.#waiting.add(waiter)
    return promise
  }

  #lease(pooled: Pooled): Lease {
    const since = performance.now()
    return new PooledLease(pooled, (returned) => {
      const usedMs = performance.now() - since
      this.#useMs += this.#useMs === 0 ? usedMs : (usedMs - this.#useMs) / USES_AVERAGED
      this.#giveBack(returned)
    })
  }

  #giveBack(pooled: Pooled): void {
    const now = performance.now()
    if (this.#ended || !pooled.connection.usable || now - pooled.bornAt > this.#options.ageMs) return this.#drop(pooled)
    const [next] = this.#waiting
    if (next !== undefined) return next.give(pooled)
    pooled.idleSince = now
    this.#idle.push(pooled)
    this.#sweep ??= this.#startSweep()
  }

  #allInUse(): AppError {
    const n = this.#overdue
    if (n === 0) return overloaded('All connections to this datasource are in use.')
    const users = n === 1 ? 'one of them by a query' : `${n} of them by queries`
    const why = `All connections to this datasource are in use, ${users} that Vitrine gave up and the database has not yet ended.`
    return overloaded(why, ABANDONED_RETRY_SECONDS)
  }

  #drop(pooled: Pooled): void {
    const ended = pooled.connection.ended(this.#stop.signal)
    if (ended !== null) return void this.#abandon(pooled.connection, ended)
    void close(pooled.connection)
    this.#free()
  }

  /** Keeps the place in the pool until the query has ended. Otherwise the database could run out of connections. */
  async #abandon(connection: Connection, ended: Promise<void>): Promise<void> {
    const about = { kind: this.kind, datasourceId: this.#id }
    this.#abandoned++
    let overdue = 0
    const timer = setTimeout(() => {
      overdue = 1
      this.#overdue++
      this.#log.warn({ ...about, overdue: this.#overdue }, 'the database has not ended a query that was given up')
    }, ENDING_MS)
    timer.unref()
    await ended
    clearTimeout(timer)
    this.#abandoned--
    this.#overdue -= overdue
    if (overdue > 0 && !this.#ended) this.#log.info(about, 'the database has ended a query that was given up')
    void close(connection)
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
    const old = this.#idle.filter((pooled) => pooled.idleSince <= before || !pooled.connection.usable)
    for (const pooled of old) {
      this.#idle.splice(this.#idle.indexOf(pooled), 1)
      this.#drop(pooled)
    }
    if (this.#idle.length === 0) {
      clearInterval(this.#sweep)
      this.#sweep = undefined
    }
  }
}

/** If closing fails, the connection counts as closed. */
async function close(connection: Connection): Promise<void> {
  try {
    await connection[Symbol.asyncDispose]()
  } catch {
    return
  }
}
