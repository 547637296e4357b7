// A MongoDB connection: a client with a deadline and cancellation. An abandoned query is ended in the database, and its
// client is never used again.
import { setTimeout as sleep } from 'node:timers/promises'
import type * as mongodb from 'mongodb'
import type { Confined } from '../../confined.ts'
import { unseal } from '../../confined.ts'
import type { Stop } from '../../stop.ts'
import type {
  Catalog,
  CatalogTable,
  Connection,
  Estimate,
  Limits,
  ProfileBounds,
  Rows,
  TableProfile,
  TestReport,
} from '../../driver.ts'
import { reportOf } from '../../test-report.ts'
import { AppError } from '../../../errors.ts'
import { JsonBytes } from '../../json-bytes.ts'
import type { Login } from './connect.ts'
import { gaveUp, noAnswer } from '../../abandoned-query-errors.ts'
import { failure, isLost } from './failure.ts'
import { grade } from '../catalog/grade-login.ts'
import { introspect } from '../catalog/introspect.ts'
import { profileCollection } from '../catalog/profile.ts'
import type { MongoQuery } from '../confined-query.ts'
import { borrow, type Loan } from './borrowed-socket.ts'
import { CommandWriter } from './write-command.ts'
import { estimateQuery, runQuery, type Borrowed, type Known, type Running } from './run.ts'

// The server may ignore its timeout. Our own deadline is later by this time.
const GRACE_MS = 500
const TEST_MS = 15_000
const INTROSPECT_MS = 30 * 60_000
const KILL_MS = 3_000
/**
 * After work was abandoned, we check whether the server still runs it. This is the first and the longest pause between
 * two checks.
 */
const LOOK_MS = [100, 5_000] as const
const OUT_BYTES = 16 * 1024
const OUT_KEPT_BYTES = 4 * 1024 * 1024

/** All connections of a datasource share the caches that `known` returns. */
export class MongoConnection implements Connection {
  readonly #login: Login
  readonly #known: () => Known
  readonly #session: mongodb.ClientSession | null
  readonly #collections = new Map<string, mongodb.Collection>()
  #out = new JsonBytes(OUT_BYTES)
  /** Set when the client can no longer be used. Resolves when the server was asked to end running work. */
  #ending: Promise<void> | null = null
  /** True if work was abandoned. The server may still run it. */
  #isAbandoned = false
  /** The borrowed connection, which is kept from query to query. */
  #loan: (Loan & Borrowed) | null = null
  /** The timer is refreshed for each piece of work, so after the last one it fires once without effect. */
  #timer: NodeJS.Timeout | undefined
  #deadlineMs = 0
  #isAtWork = false
  #why: AppError | null = null
  /** Aborts work that uses the client library. Created only for this work. */
  #ended: AbortController | null = null

  constructor(login: Login, known: () => Known) {
    this.#login = login
    this.#known = known
    this.#session = login.hasSessions ? login.client.startSession() : null
  }

  get usable(): boolean {
    return this.#ending === null
  }

  run(confined: Confined, limits: Limits, stop: Stop): Promise<Rows> {
    const query = unseal<MongoQuery>(confined, 'MONGODB')
    return this.#within(limits.timeoutMs + GRACE_MS, stop, (at) => runQuery(at, query, limits))
  }

  estimate(confined: Confined, limits: Limits, stop: Stop): Promise<Estimate> {
    const query = unseal<MongoQuery>(confined, 'MONGODB')
    return this.#within(limits.timeoutMs + GRACE_MS, stop, (at) => estimateQuery(at, query, limits))
  }

  introspect(signal: AbortSignal, progress?: (done: number, total: number) => void): Promise<Catalog> {
    return this.#within(INTROSPECT_MS, signal, ({ signal: ended }) => introspect(this.#login, ended, progress))
  }

  profile(table: CatalogTable, exposed: Catalog, bounds: ProfileBounds, signal: AbortSignal): Promise<TableProfile> {
    return this.#within(bounds.timeoutMs + GRACE_MS, signal, (at) => profileCollection(at, table, exposed, bounds))
  }

  test(exposed: Catalog | null, signal: AbortSignal): Promise<TestReport> {
    return this.#within(TEST_MS, signal, async ({ signal: ended }) => {
      const started = performance.now()
      await this.#login.db.command({ ping: 1 }, { signal: ended })
      const latencyMs = performance.now() - started
      return reportOf(await grade(this.#login, exposed, ended), latencyMs, this.#login.versionText)
    })
  }

  ended(signal: AbortSignal): Promise<void> | null {
    return this.#isAbandoned ? this.#seenToEnd(signal) : null
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#timer)
    const { client } = this.#login
    if (this.#ending === null) {
      this.#giveBack()
      return await client.close()
    }
    await this.#ending
    await client.close(true).catch(() => undefined)
  }

  #running(): Running {
    if (this.#out.bytes.length > OUT_KEPT_BYTES) this.#out = new JsonBytes(OUT_BYTES)
    const signal = (): AbortSignal => this.#signal()
    return {
      login: this.#login,
      known: this.#known(),
      session: this.#session,
      get signal() {
        return signal()
      },
      borrowed: () => (this.#loan?.isDue === false ? this.#loan : this.#borrow()),
      collections: this.#collections,
      out: this.#out,
    }
  }

  #signal(): AbortSignal {
    this.#ended ??= new AbortController()
    if (this.#why !== null) this.#ended.abort(this.#why)
    return this.#ended.signal
  }

  async #borrow(): Promise<Borrowed> {
    this.#giveBack()
    const loan = await borrow(this.#login, this.#signal())
    this.#loan = Object.assign(loan, { writer: new CommandWriter(this.#login, this.#session, loan.readPreference) })
    return this.#loan
  }

  #giveBack(): void {
    const loan = this.#loan
    this.#loan = null
    loan?.giveBack()
  }

  /**
   * Runs work until its deadline, or until `stop` aborts. The work is then ended in the database, and the client is
   * closed.
   */
  async #within<T>(deadlineMs: number, stop: Stop, work: (at: Running) => Promise<T>): Promise<T> {
    if (stop.aborted) throw gaveUp(stop)
    if (!this.usable) throw new AppError('DATASOURCE_UNAVAILABLE', 'The connection to the database was lost.')
    this.#why = null
    this.#ended = null
    this.#begin(deadlineMs)
    const onAbort = (): void => this.#giveUp(gaveUp(stop))
    stop.addEventListener('abort', onAbort)
    try {
      return await work(this.#running())
    } catch (error) {
      const failed: AppError = this.#why ?? failure(error)
      if (isLost(failed)) this.#end(false)
      throw failed
    } finally {
      this.#isAtWork = false
      stop.removeEventListener('abort', onAbort)
      this.#out.forget()
    }
  }

  #begin(deadlineMs: number): void {
    this.#isAtWork = true
    if (this.#timer !== undefined && this.#deadlineMs === deadlineMs) {
      this.#timer.refresh()
      return
    }
    clearTimeout(this.#timer)
    this.#deadlineMs = deadlineMs
    this.#timer = setTimeout(() => {
      if (this.#isAtWork) this.#giveUp(noAnswer())
    }, deadlineMs)
    this.#timer.unref()
  }

  #giveUp(error: AppError): void {
    if (this.#why !== null) return
    this.#why = error
    // Only the borrowed connection is abandoned. The second connection of the pool ends the session.
    if (this.#loan?.wire.isWorking === true) this.#loan.wire.abandon(error)
    else this.#giveBack()
    this.#end(true)
    this.#ended?.abort(error)
  }

  /**
   * Stops the use of the client. If work is running, its session is ended. Closing the sockets is not enough, because
   * the server would stop the work only when it next checks them.
   */
  #end(isWorking: boolean): void {
    this.#isAbandoned ||= isWorking
    this.#ending ??= isWorking && this.#session !== null ? this.#kill(this.#session) : Promise.resolve()
  }

  /** Resolves when the server has answered the abandoned command, and no longer lists work of the session. */
  async #seenToEnd(signal: AbortSignal): Promise<void> {
    const { promise: stopped, resolve } = Promise.withResolvers<undefined>()
    const stop = (): void => resolve(undefined)
    signal.addEventListener('abort', stop)
    try {
      await this.#ending
      await Promise.race([this.#loan?.wire.untilQuiet(), stopped])
      for (let pauseMs: number = LOOK_MS[0]; await this.#isListed(signal);) {
        await Promise.race([sleep(pauseMs, undefined, { ref: false }), stopped])
        pauseMs = Math.min(pauseMs * 2, LOOK_MS[1])
      }
    } finally {
      signal.removeEventListener('abort', stop)
    }
  }

  /** True if the server lists an operation of this session. False if the login may not ask. */
  async #isListed(signal: AbortSignal): Promise<boolean> {
    if (this.#session === null || signal.aborted) return false
    const { client } = this.#login
    const pipeline = [{ $currentOp: { allUsers: false } }, { $match: { 'lsid.id': this.#session.id?.id } }]
    try {
      const command = { aggregate: 1, pipeline, cursor: {} }
      const within = { signal: AbortSignal.any([signal, AbortSignal.timeout(KILL_MS)]) }
      const answer = await client.db('admin').command(command, { ...within, readPreference: client.readPreference })
      const cursor: unknown = answer['cursor']
      if (typeof cursor !== 'object' || cursor === null || !('firstBatch' in cursor)) return false
      return Array.isArray(cursor.firstBatch) && cursor.firstBatch.length > 0
    } catch {
      return false
    }
  }

  async #kill(session: mongodb.ClientSession): Promise<void> {
    try {
      const signal = AbortSignal.timeout(KILL_MS)
      await this.#login.client.db('admin').command({ killSessions: [session.id] }, { signal })
    } catch {
      // If the command to end the session fails, maxTimeMS still ends the query.
    }
  }
}
