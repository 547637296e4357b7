// Connects to the PostgreSQL server of the store, and watches whether the server answers. If the server is stopped,
// unreachable or frozen, calls must fail within seconds, and the process must not end. While the server is known to be
// down, calls fail immediately.
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

/** If a call has no answer for this long, the server is probed. */
const SUSPECT_MS = 1_000
/** The time that the server has to answer a probe, which is a new connection. */
const PROBE_MS = 1_500
/** The interval between checks of the calls, and between attempts to connect to a server that is down. */
const LOOK_MS = 200
/** The deadline of a call. Only migrations may take longer. */
const CALL_MS = 20_000

interface Call {
  readonly since: number
  readonly fail: (error: AppError) => void
}

/** Opens connections for Kysely. Each call has a deadline. */
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

  /** False from the moment a failure is confirmed until the server answers again. */
  get isAvailable(): boolean {
    return this.#downSince === null
  }

  /** Gives all later calls a deadline. Earlier calls are migrations, which may take long. */
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

  /** Runs one statement. */
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
    // A server that has vanished never closes its side, so close ours.
    if (!this.isAvailable) this.#cut(this.#sockets)
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
        // Kysely's two signatures share one function. Only the signature with a query text is used.
        // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
        return query(text, values ?? []) as never
      },
      release: (discard?: boolean) => client.release(discard === true || pool !== this.#pool),
    }
  }

  /** Fails a call when the server is found to be down, or when the call's deadline expires. */
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
      // The call was abandoned. If its result is a connection that arrives later, the connection must not leak.
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

  /** Checks the server over a new connection, one check at a time, and records whether the server answers. */
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
    // If the event loop was busy, answers may have arrived that were not read yet. Read them before deciding.
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
    // Open a new pool, because connections to a frozen or unreachable server may never work again.
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
    // Without a listener, the error of an idle connection would end the process.
    pool.on('error', () => undefined)
    pool.on('connect', (client) => {
      // The same applies to a connection in use. Its query fails too, and the caller handles that failure.
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

/** Returns the socket of a client. `connection` is not part of the library's types. */
function streamOf(client: object): Socket | null {
  const connection: unknown = 'connection' in client ? client.connection : null
  if (typeof connection !== 'object' || connection === null || !('stream' in connection)) return null
  const { stream } = connection
  return isSocket(stream) ? stream : null
}

function isSocket(value: unknown): value is Socket {
  return typeof value === 'object' && value !== null && 'destroy' in value && 'once' in value
}

/** Types the library's result for Kysely. The result has the fields that Kysely reads. */
function resultOf<R>(result: unknown): PostgresQueryResult<R> {
  // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
  return result as PostgresQueryResult<R>
}

/**
 * Returns true if the connection failed, and not the statement. In classes 08 and 57P, the server ends the connection
 * or is starting. With 25006, the server became a standby.
 */
function isLost(error: unknown): boolean {
  if (!(error instanceof Error) || error instanceof AppError) return false
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  if (code === '') return /^(?:Connection terminated|Client has encountered|Client was closed)/.test(error.message)
  if ('severity' in error) return /^08|^57P|^25006$/.test(code)
  return 'errno' in error || 'syscall' in error || code.startsWith('ERR_SOCKET')
}

const RETRY_AFTER_SECONDS = 1

/** Returns the error 503: the store cannot be reached. A change that was in progress may have been stored. */
function unavailable(cause?: unknown): AppError {
  return new AppError(
    'STORE_UNAVAILABLE',
    'The store of the service does not answer. Try again in a moment. If this was a change, check first whether it was stored.',
    { extra: { retryAfter: RETRY_AFTER_SECONDS }, cause },
  )
}
