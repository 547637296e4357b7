// Connections to BigQuery share sockets and tokens. Each call has a deadline and can be cancelled. If a caller abandons
// a job, the job is cancelled in BigQuery. Disposing the connection waits for this cancel.
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
import type { BufferPool } from '../../json-bytes.ts'
import { grade } from '../catalog/grade-login.ts'
import { introspect } from '../catalog/introspect.ts'
import { profileTable, type Within } from '../catalog/profile.ts'
import { exposedOf } from '../guard/exposed.ts'
import type { BigQueryQuery } from '../confined-query.ts'
import type { Disagreement } from './dry-run.ts'
import { gaveUp, noAnswer } from '../../abandoned-query-errors.ts'
import { failure, isDeadline, unavailable } from './failure.ts'
import type { Rest } from './rest.ts'
import { estimateQuery, runQuery, type Running } from './run.ts'
import type { Target } from './settings.ts'

const TEST_MS = 15_000
const INTROSPECT_MS = 30 * 60_000

export interface Parts {
  readonly rest: Rest
  readonly target: Target
  readonly buffers: BufferPool
  readonly alarm: (disagreement: Disagreement) => void
  readonly release: () => Promise<void>
}

export class BigQueryConnection implements Connection {
  readonly #parts: Parts
  readonly #background = new Set<Promise<unknown>>()
  #isClosed = false

  constructor(parts: Parts) {
    this.#parts = parts
  }

  get usable(): boolean {
    return !this.#isClosed
  }

  /** BigQuery itself ends a job after its `jobTimeoutMs`, and a job occupies no session. */
  ended(): null {
    return null
  }

  run(confined: Confined, limits: Limits, stop: Stop): Promise<Rows> {
    const query = unseal<BigQueryQuery>(confined, 'BIGQUERY')
    return this.#running(query, limits, stop, (at) => runQuery(at, query, limits))
  }

  estimate(confined: Confined, limits: Limits, stop: Stop): Promise<Estimate> {
    const query = unseal<BigQueryQuery>(confined, 'BIGQUERY')
    return this.#running(query, limits, stop, async (at) => ({ cost: await estimateQuery(at, query, limits) }))
  }

  introspect(signal: AbortSignal, progress?: (done: number, total: number) => void): Promise<Catalog> {
    const { rest, target } = this.#parts
    return this.#within(INTROSPECT_MS, signal, (ended) => introspect(rest, target, ended, progress))
  }

  profile(table: CatalogTable, exposed: Catalog, bounds: ProfileBounds, signal: AbortSignal): Promise<TableProfile> {
    const { capture } = exposedOf(exposed)
    const within: Within = (timeoutMs, work) => this.#running(capture, { timeoutMs }, signal, work)
    return profileTable(within, table, exposed, bounds)
  }

  test(exposed: Catalog | null, signal: AbortSignal): Promise<TestReport> {
    const { rest, target } = this.#parts
    return this.#within(TEST_MS, signal, async (ended) => {
      const started = performance.now()
      const { steps, latencyMs } = await grade(rest, target, exposed, ended)
      const version = target.emulator ? 'an emulator of BigQuery v2' : 'BigQuery v2'
      return reportOf(steps, latencyMs ?? performance.now() - started, version)
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    await Promise.allSettled(this.#background)
    await this.#parts.release()
  }

  /** `location` is the location of the tables at introspection. A location in the settings takes precedence. */
  #running<T>(
    { location }: { readonly location: string },
    { timeoutMs }: { readonly timeoutMs: number },
    stop: Stop,
    work: (at: Running) => Promise<T>,
  ): Promise<T> {
    const { rest, target, buffers, alarm } = this.#parts
    return this.#within(timeoutMs, stop, async (ended) => {
      const out = buffers.take()
      try {
        return await work({
          rest,
          place: { billingProject: target.billingProject, location: target.location ?? location },
          judging: { lenient: target.emulator, alarm },
          signal: ended,
          inBackground: (more) => this.#keep(more),
          out,
        })
      } finally {
        buffers.release(out)
      }
    })
  }

  /** When the deadline passes or `stop` aborts, the signal of `work` aborts too. */
  async #within<T>(deadlineMs: number, stop: Stop, work: (ended: AbortSignal) => Promise<T>): Promise<T> {
    if (stop.aborted) throw gaveUp(stop)
    if (this.#isClosed) throw unavailable('The connection to BigQuery was closed.')
    const ended = new AbortController()
    const timer = setTimeout(() => ended.abort(noAnswer()), deadlineMs)
    const onAbort = (): void => ended.abort(gaveUp(stop))
    stop.addEventListener('abort', onAbort)
    try {
      return await work(ended.signal)
    } catch (error) {
      // The work's own timeout error says whether the job has ended. So it is better than the deadline's error.
      const saysHowItEnded = error instanceof AppError && error.code === 'QUERY_TIMEOUT' && isDeadline(ended.signal)
      if (ended.signal.aborted && !saysHowItEnded) throw ended.signal.reason
      throw failure(error)
    } finally {
      clearTimeout(timer)
      stop.removeEventListener('abort', onAbort)
    }
  }

  #keep(work: Promise<unknown>): void {
    this.#background.add(work)
    void work.finally(() => this.#background.delete(work))
  }
}
