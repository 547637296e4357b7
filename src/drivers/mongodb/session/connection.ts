// One leased MongoDB connection: a client, a deadline and cancellation. An abandoned query is ended in the database first,
// and its client is never used again.
import type * as mongodb from 'mongodb'
import type { Confined } from '../../confined.ts'
import { unseal } from '../../confined.ts'
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
import { noAnswer } from '../../no-answer.ts'
import { failure, isLost } from './failure.ts'
import { grade } from '../catalog/grade.ts'
import { introspect } from '../catalog/introspect.ts'
import { profileCollection } from '../catalog/profile.ts'
import type { MongoQuery } from '../query.ts'
import { borrow, type Loan } from './loan.ts'
import { estimateQuery, runQuery, type Known, type Running } from './run.ts'

// The server's own timeout should expire first. This grace period is for a server that ignores the timeout.
const GRACE_MS = 500
const TEST_MS = 15_000
const INTROSPECT_MS = 30 * 60_000
const KILL_MS = 3_000
const OUT_BYTES = 16 * 1024
const OUT_KEPT_BYTES = 4 * 1024 * 1024

/** A logged-in client. All connections of a datasource share the caches that `known` returns. */
export class MongoConnection implements Connection {
  readonly #login: Login
  readonly #known: () => Known
  readonly #session: mongodb.ClientSession | null
  readonly #collections = new Map<string, mongodb.Collection>()
  #out = new JsonBytes(OUT_BYTES)
  #ending: Promise<void> | null = null
  /** Held from query to query. */
  #loan: Loan | null = null

  constructor(login: Login, known: () => Known) {
    this.#login = login
    this.#known = known
    this.#session = login.hasSessions ? login.client.startSession() : null
  }

  get usable(): boolean {
    return this.#ending === null
  }

  run(confined: Confined, limits: Limits, signal: AbortSignal): Promise<Rows> {
    const query = unseal<MongoQuery>(confined, 'MONGODB')
    return this.#within(limits.timeoutMs + GRACE_MS, signal, (at) => runQuery(at, query, limits))
  }

  estimate(confined: Confined, limits: Limits, signal: AbortSignal): Promise<Estimate> {
    const query = unseal<MongoQuery>(confined, 'MONGODB')
    return this.#within(limits.timeoutMs + GRACE_MS, signal, (at) => estimateQuery(at, query, limits))
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

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#ending === null) this.#giveBack()
    await (this.#ending ?? this.#login.client.close())
  }

  #running(signal: AbortSignal): Running {
    if (this.#out.bytes.length > OUT_KEPT_BYTES) this.#out = new JsonBytes(OUT_BYTES)
    return {
      login: this.#login,
      known: this.#known(),
      session: this.#session,
      signal,
      loan: () => (this.#loan?.isDue === false ? this.#loan : this.#borrow(signal)),
      collections: this.#collections,
      out: this.#out,
    }
  }

  async #borrow(signal: AbortSignal): Promise<Loan> {
    this.#giveBack()
    const loan = await borrow(this.#login, signal)
    this.#loan = loan
    return loan
  }

  #giveBack(): void {
    const loan = this.#loan
    this.#loan = null
    loan?.giveBack()
  }

  /** Runs work with a deadline and the signal. Either one ends the work in the database and closes the client. */
  async #within<T>(deadlineMs: number, signal: AbortSignal, work: (at: Running) => Promise<T>): Promise<T> {
    if (signal.aborted) throw gaveUp(signal)
    if (!this.usable) throw new AppError('DATASOURCE_UNAVAILABLE', 'The connection to the database was lost.')
    const ended = new AbortController()
    let why: AppError | null = null
    const giveUp = (error: AppError): void => {
      why = error
      // The pool has one more connection, which ends the session.
      if (this.#loan?.wire.isWorking === true) this.#loan.wire.abandon(error)
      else this.#giveBack()
      this.#end(true)
      ended.abort(error)
    }
    const onAbort = (): void => giveUp(gaveUp(signal))
    const timer = setTimeout(() => giveUp(noAnswer()), deadlineMs)
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      return await work(this.#running(ended.signal))
    } catch (error) {
      const failed = why ?? failure(error)
      if (isLost(failed)) this.#end(false)
      throw failed
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
      this.#out.forget()
    }
  }

  /** Ends the session first: after its sockets are closed, the server stops only at its next check of them. */
  #end(isWorking: boolean): void {
    const { client } = this.#login
    const kill = isWorking && this.#session !== null ? this.#kill(this.#session) : Promise.resolve()
    this.#ending ??= kill.then(() => client.close(true)).catch(() => undefined)
  }

  async #kill(session: mongodb.ClientSession): Promise<void> {
    try {
      const signal = AbortSignal.timeout(KILL_MS)
      await this.#login.client.db('admin').command({ killSessions: [session.id] }, { signal })
    } catch {
      // The query's maxTimeMS still ends it.
    }
  }
}

/** A disconnect and a deadline look the same to the database. A disconnected caller does not read the error. */
function gaveUp(signal: AbortSignal): AppError {
  const reason: unknown = signal.reason
  if (reason instanceof AppError) return reason
  return noAnswer(reason)
}
