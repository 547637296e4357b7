// Watches whether the store's PostgreSQL server answers. If the server stops, freezes or becomes unreachable, calls
// fail within seconds. While the server is known to be down, calls fail immediately.
import { setImmediate } from 'node:timers/promises'
import type { Socket } from 'node:net'
import type { PostgresPool, PostgresPoolClient, PostgresQueryResult } from 'kysely'
import type { Client, ClientConfig, Pool, PoolClient } from 'pg'
import { AppError } from '../errors.ts'

export interface ServerLog {
  info(detail: object, message: string): void
  warn(detail: object, message: string): void
}

export interface StoreServerOptions {
  readonly makePool: () => Pool
  readonly makeClient: (config: ClientConfig) => Client
  readonly log?: ServerLog | undefined
}

/** If a call gets no answer within this time, a new connection probes the server. */
const SUSPECT_MS = 1_000
/** A server that does not answer a probe within this time is down. */
const PROBE_MS = 1_500
/** How often running calls are checked, and how often a server that is down is probed. */
const LOOK_MS = 200
const CALL_MS = 20_000

interface Call {
  readonly since: number
  readonly fail: (error: AppError) => void
}

export class StoreServer implements PostgresPool {
  readonly #options: StoreServerOptions
  readonly #calls = new Set<Call>()
  readonly #clients = new WeakMap<PoolClient, PostgresPoolClient>()
  #pool: Pool
  #sockets = new Set<Socket>()
  #probing = false
  #downSince: number | null = null
  #timer: NodeJS.Timeout | undefined
  #isBounded = false
  #isEnded = false

  constructor(options: StoreServerOptions) {
    this.#options = options
    this.#pool = this.#newPool()
  }

  get options(): object {
    return this.#pool.options
  }

  /** False while the server is known to be down. */
  get isAvailable(): boolean {
    return this.#downSince === null
  }

  /** Sets a deadline for later calls. Call this after the migrations, which may take long. */
  bound(): void {
    this.#isBounded = true
  }

  async connect(): Promise<PostgresPoolClient> {
    const client = await this.#watched(
      () => this.#pool.connect(),
      (late) => late.release(true),
    )
    let watched = this.#clients.get(client)
    if (watched === undefined) this.#clients.set(client, (watched = this.#watchedClient(client)))
    return watched
  }

  async query(text: string, values: readonly unknown[]): Promise<readonly unknown[]> {
    const client = await this.connect()
    try {
      return (await client.query(text, values)).rows
    } finally {
      client.release()
    }
  }

  async end(): Promise<void> {
    this.#isEnded = true
    clearInterval(this.#timer)
    const ended = this.#pool.end()
    if (!this.isAvailable) this.#cut(this.#sockets)
    // A server that vanished never closes its side of a connection.
    await ended
  }

  #watchedClient(client: PoolClient): PostgresPoolClient {
    const pool = this.#pool
    const query = async <R>(text: string, values: readonly unknown[]): Promise<PostgresQueryResult<R>> => {
      const result: unknown = await this.#watched(() => client.query(text, [...values]))
      return resultOf<R>(result)
    }
    return {
      query: (text: unknown, values?: readonly unknown[]): never => {
        if (typeof text !== 'string') throw new TypeError('the store uses no cursors')
        // Kysely's interface has two signatures. Kysely uses only the one with a query text.
        // oxlint-disable-next-line typescript/consistent-type-assertions
        return query(text, values ?? []) as never
      },
      release: (discard?: boolean) => client.release(discard === true || pool !== this.#pool),
    }
  }

  /** Fails when the deadline expires, or when the server is found to be down. */
  async #watched<T>(start: () => Promise<T>, late?: (result: T) => void): Promise<T> {
    if (this.#downSince !== null) throw unavailable()
    const { promise, reject } = Promise.withResolvers<never>()
    promise.catch(() => undefined)
    const call: Call = { since: performance.now(), fail: reject }
    this.#calls.add(call)
    this.#timer ??= this.#look()
    const work = start()
    try {
      return await Promise.race([work, promise])
    } catch (error) {
      // Nobody waits for this call any more. If it opens a connection later, close that connection.
      work.then(late, () => undefined)
      if (!isLost(error)) throw error
      void this.#probe()
      throw unavailable(error)
    } finally {
      this.#calls.delete(call)
    }
  }

  #look(): NodeJS.Timeout {
    const timer = setInterval(() => {
      const now = performance.now()
      if (this.#downSince === null && this.#calls.size === 0) {
        clearInterval(timer)
        this.#timer = undefined
        return
      }
      let oldest = now
      for (const call of this.#calls) {
        oldest = Math.min(oldest, call.since)
        if (this.#isBounded && now - call.since > CALL_MS) call.fail(unavailable())
      }
      if (this.#downSince !== null || (this.#isBounded && now - oldest > SUSPECT_MS)) void this.#probe()
    }, LOOK_MS)
    timer.unref()
    return timer
  }

  /** Opens a new connection to find out whether the server is up. */
  async #probe(): Promise<void> {
    if (this.#probing || this.#isEnded) return
    this.#probing = true
    try {
      const answers = await this.#answers()
      if (answers) this.#isUp()
      else this.#isDown()
    } finally {
      this.#probing = false
    }
  }

  async #answers(): Promise<boolean> {
    const client = this.#options.makeClient({})
    client.on('error', () => undefined)
    const seen = { done: false, answers: false }
    const asked = client
      .connect()
      .then(() => client.query('select 1'))
      .then(
        () => Object.assign(seen, { done: true, answers: true }),
        (error: unknown) => Object.assign(seen, { done: true, answers: !isLost(error) }),
      )
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, PROBE_MS)))
    await Promise.race([asked, late])
    clearTimeout(timer)
    // The answer may have arrived while the event loop was busy, so read it before deciding.
    for (let turns = 0; turns < 3 && !seen.done; turns++) await setImmediate()
    streamOf(client)?.destroy()
    return seen.answers
  }

  #isUp(): void {
    if (this.#downSince === null) return
    const downMs = Math.round(performance.now() - this.#downSince)
    this.#downSince = null
    this.#options.log?.info({ downMs }, 'the store answers again')
  }

  #isDown(): void {
    if (this.#downSince !== null || this.#isEnded) return
    this.#downSince = performance.now()
    this.#options.log?.warn({ calls: this.#calls.size }, 'the store does not answer; calls fail until it does')
    // Connections to a frozen or unreachable server may never work again, so open a new pool.
    const [pool, sockets] = [this.#pool, this.#sockets]
    this.#sockets = new Set()
    this.#pool = this.#newPool()
    for (const call of this.#calls) call.fail(unavailable())
    pool.end().catch(() => undefined)
    this.#cut(sockets)
    this.#timer ??= this.#look()
  }

  #newPool(): Pool {
    const pool = this.#options.makePool()
    const sockets = this.#sockets
    // Without listeners, an error of a connection would end the process.
    pool.on('error', () => undefined)
    pool.on('connect', (client) => {
      // The query on this connection fails too, and its caller handles that error.
      client.on('error', () => undefined)
      const socket = streamOf(client)
      if (socket === null) return
      sockets.add(socket)
      socket.once('close', () => sockets.delete(socket))
    })
    return pool
  }

  #cut(sockets: ReadonlySet<Socket>): void {
    for (const socket of sockets) socket.destroy()
  }
}

function streamOf(client: object): Socket | null {
  const connection: unknown = 'connection' in client ? client.connection : null
  if (typeof connection !== 'object' || connection === null || !('stream' in connection)) return null
  const { stream } = connection
  return isSocket(stream) ? stream : null
}

function isSocket(value: unknown): value is Socket {
  return typeof value === 'object' && value !== null && 'destroy' in value && 'once' in value
}

/** The library's result has all fields that Kysely reads. */
function resultOf<R>(result: unknown): PostgresQueryResult<R> {
  // oxlint-disable-next-line typescript/consistent-type-assertions
  return result as PostgresQueryResult<R>
}

/**
 * Returns true if the error is about the connection and not about the statement. In the classes 08 and 57P, the server
 * closes the connection or is starting. 25006 means that it has become a standby.
 */
function isLost(error: unknown): boolean {
  if (!(error instanceof Error) || error instanceof AppError) return false
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  if (code === '') return /^(?:Connection terminated|Client has encountered|Client was closed)/.test(error.message)
  if ('severity' in error) return /^08|^57P|^25006$/.test(code)
  return 'errno' in error || 'syscall' in error || code.startsWith('ERR_SOCKET')
}

const RETRY_AFTER_SECONDS = 1

/** A change in progress may have been stored. */
function unavailable(cause?: unknown): AppError {
  return new AppError(
    'STORE_UNAVAILABLE',
    'The store of the service does not answer. Try again in a moment. If this was a change, check first whether it was stored.',
    { extra: { retryAfter: RETRY_AFTER_SECONDS }, cause },
  )
}
