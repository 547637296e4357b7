// A connection that one caller uses at a time: a session with a deadline and cancellation. If a statement is given up,
// the database cancels it, and the session is not used again.
import { setTimeout as sleep } from 'node:timers/promises'
import type { AppError } from '../../../errors.ts'
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
  TestStep,
} from '../../driver.ts'
import { reportOf } from '../../test-report.ts'
import type { Login } from './connect.ts'
import { gaveUp, noAnswer } from '../../abandoned-query-errors.ts'
import { failure, isCancelled, timedOut } from './failure.ts'
import { grade } from '../catalog/grade-login.ts'
import { introspect, INTROSPECTION_QUERIES } from '../catalog/introspect.ts'
import { profileTable } from '../catalog/profile.ts'
import { profiledTable } from '../catalog/profile-columns.ts'
import { BufferPool, type JsonBytes } from '../../json-bytes.ts'
import type { PostgresQuery } from '../confined-query.ts'
import { ask, estimateQuery, readInto, runQuery, type Known, type Running } from './run.ts'
import type { Session } from './session.ts'
import { NO_ROWS, type Sink } from './wire.ts'

// The service's own deadline is this much later than the server's timeout. It applies if the server does not end the
// statement.
const GRACE_MS = 500
// How long a caller waits for the server to confirm a cancel request.
const SEEN_MS = 500
// The first and the longest pause between two checks whether the server still runs a statement that was given up.
const LOOK_MS = [1_000, 10_000] as const
// The timeout of one catalog query. A catalog may be large.
const ASK_MS = 60_000
const buffers = new BufferPool()

const STATEMENT_POOLING: TestStep = {
  name: 'pooler',
  status: 'FAIL',
  message: 'The pooler in front of the database pools statements, so it allows no READ ONLY transaction.',
  remedy: 'Set pool_mode to transaction or session, or connect to the database directly.',
  field: 'port',
}

/** A logged-in connection. The connections of a datasource share the caches that `known` returns. */
export class PostgresConnection implements Connection {
  readonly #login: Login
  readonly #known: () => Known
  readonly #session: Session
  /** Set when a cancel request is sent. It might cancel a later statement, so the session runs none. */
  #cancelling: Promise<void> | null = null
  /** The timer for the deadline, or for failing the request after a cancel request. */
  #timer: NodeJS.Timeout | undefined
  #deadlineMs = 0
  #isAtWork = false
  /** Why a statement was given up. */
  #why: AppError | null = null

  constructor(login: Login, known: () => Known) {
    this.#login = login
    this.#known = known
    this.#session = login.session
  }

  get usable(): boolean {
    return this.#session.wire.usable && this.#cancelling === null
  }

  run(confined: Confined, limits: Limits, stop: Stop): Promise<Rows> {
    const query = unseal<PostgresQuery>(confined, 'POSTGRES')
    const out = buffers.take()
    return this.#within(limits.timeoutMs + GRACE_MS, stop, () => runQuery(this.#running(), query, limits, out), out)
  }

  estimate(confined: Confined, limits: Limits, stop: Stop): Promise<Estimate> {
    const query = unseal<PostgresQuery>(confined, 'POSTGRES')
    return this.#within(limits.timeoutMs + GRACE_MS, stop, () => estimateQuery(this.#running(), query, limits))
  }

  introspect(signal: AbortSignal, progress?: (done: number, total: number) => void): Promise<Catalog> {
    let asked = 0
    const counted: typeof this.ask = async (sql, within) => {
      const rows = await this.ask(sql, within)
      progress?.(++asked, INTROSPECTION_QUERIES)
      return rows
    }
    return introspect(counted, signal).catch((error: unknown) => {
      throw failure(error)
    })
  }

  async profile(
    table: CatalogTable,
    exposed: Catalog,
    bounds: ProfileBounds,
    signal: AbortSignal,
  ): Promise<TableProfile> {
    const { timeoutMs } = bounds
    const captured = profiledTable(table, exposed)
    const read = (sql: string, sink: Sink): Promise<void> =>
      this.#within(timeoutMs + GRACE_MS, signal, () => readInto(this.#running(), sql, captured, timeoutMs, sink))
    const { wire } = this.#session
    return profileTable({ read, isUsable: () => wire.usable }, table, exposed, bounds)
  }

  async test(exposed: Catalog | null, signal: AbortSignal): Promise<TestReport> {
    const started = performance.now()
    await this.ask('SELECT 1', signal)
    const latencyMs = performance.now() - started
    const steps = await grade((sql, within) => this.ask(sql, within), exposed, signal)
    if (!(await this.#keepsTransaction(signal))) steps.push(STATEMENT_POOLING)
    return reportOf(steps, latencyMs, this.#session.server.versionText)
  }

  /** Runs a statement that the service itself writes, with only pg_catalog on the search_path. Returns rows as text. */
  ask(sql: string, signal: AbortSignal): Promise<(string | null)[][]> {
    return this.#within(ASK_MS + GRACE_MS, signal, () => ask(this.#session, sql, ASK_MS))
  }

  ended(signal: AbortSignal): Promise<void> | null {
    return this.#session.wire.isQuiet ? null : this.#seenToEnd(signal)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#cancelling
    clearTimeout(this.#timer)
    this.#session.wire.close()
  }

  /** Returns false behind a pooler that ends each transaction with the request (pool_mode=statement). */
  async #keepsTransaction(signal: AbortSignal): Promise<boolean> {
    const pinned = { searchPath: [], timeoutMs: ASK_MS }
    const asked = { text: 'SELECT 1', params: [], reads: [] }
    const session = this.#session
    try {
      await this.#within(ASK_MS + GRACE_MS, signal, async () => {
        await session.explain(asked, Buffer.alloc(0), Buffer.alloc(0), pinned, NO_ROWS)
        await session.end(pinned)
      })
      return true
    } catch (error) {
      const { cause } = error instanceof Error ? error : {}
      if (cause instanceof Error && /statement pooling/.test(cause.message)) return false
      throw error
    }
  }

  #running(): Running {
    return { session: this.#session, known: this.#known() }
  }

  /**
   * Runs the work, which writes into `out`. When the deadline passes or `stop` aborts, cancels the statement in the
   * database and closes the session. After the deadline, waits a moment for the server to confirm the cancellation.
   */
  async #within<T>(deadlineMs: number, stop: Stop, work: () => Promise<T>, out: JsonBytes | null = null): Promise<T> {
    if (stop.aborted) throw gaveUp(stop)
    this.#why = null
    this.#begin(deadlineMs)
    const onAbort = (): void => {
      if (isTime(stop.reason)) this.#giveUp(gaveUp(stop))
      else this.#session.wire.fail(gaveUp(stop))
    }
    stop.addEventListener('abort', onAbort)
    try {
      return await work()
    } catch (error) {
      const failed = failure(error)
      throw this.#why === null ? failed : isCancelled(failed) ? timedOut(failed) : this.#why
    } finally {
      this.#isAtWork = false
      if (this.#why !== null) clearTimeout(this.#timer)
      stop.removeEventListener('abort', onAbort)
      if (out !== null) buffers.release(out)
      // For example, the server may still send rows of an answer that was cut.
      if (!this.usable) this.#end()
    }
  }

  /** Starts the deadline. The timer is reused, so after the last work it fires once without effect. */
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
    this.#why ??= error
    this.#cancelling ??= this.#login.cancel()
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#session.wire.fail(error), SEEN_MS)
    this.#deadlineMs = 0
  }

  /** Cancels the statement, and closes the session when the server has answered. */
  #end(): void {
    this.#cancelling ??= this.#login.cancel()
    const { wire } = this.#session
    void this.#cancelling.then(() => wire.untilQuiet()).then(() => wire.close())
  }

  /**
   * Waits until the server has answered or closed the connection. Because the network may lose the answer, also asks
   * over another session whether the process still runs a statement. Ends early if the signal aborts.
   */
  async #seenToEnd(signal: AbortSignal): Promise<void> {
    const { wire } = this.#session
    const { promise: stopped, resolve } = Promise.withResolvers<undefined>()
    const stop = (): void => resolve(undefined)
    signal.addEventListener('abort', stop)
    const over = Promise.race([wire.untilQuiet(), stopped])
    try {
      for (
        let pauseMs: number = LOOK_MS[0];
        !wire.isQuiet && !signal.aborted;
        pauseMs = Math.min(pauseMs * 2, LOOK_MS[1])
      ) {
        await Promise.race([over, sleep(pauseMs, undefined, { ref: false })])
        if (!wire.isQuiet && !signal.aborted && (await Promise.race([over, this.#isGone(signal)])) === true) return
      }
    } finally {
      signal.removeEventListener('abort', stop)
    }
  }

  /** Returns true if the process runs no statement any more, and false if it does or the server does not answer. */
  async #isGone(signal: AbortSignal): Promise<boolean> {
    try {
      return !(await this.#login.isRunning(signal))
    } catch {
      return false
    }
  }
}

function isTime(reason: unknown): boolean {
  return reason instanceof DOMException && reason.name === 'TimeoutError'
}
