// Runs a confined query: first a dry run, whose report must match the query, then the query itself with limits on bytes
// and time. An abandoned job is cancelled.
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { AppError } from '../../../errors.ts'
import type { Limits, Rows } from '../../driver.ts'
import type { JsonBytes } from '../../json-bytes.ts'
import { noAnswer } from '../../abandoned-query-errors.ts'
import { timeLeft } from '../../time-left.ts'
import type { BigQueryQuery } from '../confined-query.ts'
import { untilAborted } from './abortable.ts'
import { bytesOf, checkCost, dryRun, judge, type Judging, type Place } from './dry-run.ts'
import { Unreadable } from './http-exchange.ts'
import { cancelled, isDeadline } from './failure.ts'
import { ErrorResponse } from './error-response.ts'
import type { Rest } from './rest.ts'
import { readPage, Result, type Page } from './result.ts'
import { runFailure } from './run-failure.ts'
import { TimeSlices } from './time-slices.ts'
import { dryRunFailure } from './dry-run-failure.ts'

export interface Running {
  readonly rest: Rest
  readonly place: Place
  readonly judging: Judging
  readonly signal: AbortSignal
  /**
   * Receives work that continues after the caller has disconnected. The connection waits for this work before it
   * closes.
   */
  readonly inBackground: (work: Promise<unknown>) => void
  /** The rows are written into this buffer. */
  readonly out: JsonBytes
}

/**
 * BigQuery may wait this long for the end of the query before it sends the first response. That response has the id of
 * the job, which is needed to cancel it.
 */
const FIRST_WAIT_MS = 2_000
const NEXT_WAIT_MS = 10_000
/** A response may arrive this much later than the timeout in its request. */
const SLOW_MS = 5_000
const CANCEL_MS = 5_000
/** After the deadline, the caller waits this long for the confirmation that the job has ended. */
const CONFIRM_MS = 1_500
/** BigQuery cuts a page at 10 MB, which it measures before the page becomes JSON. */
const PAGE_BYTES_MAX = 32 * 1024 * 1024
const PAGES_MAX = 1_000
/**
 * An emulator may answer before the job has ended, so the request is repeated after a pause. Each pause is twice as long
 * as the previous one, from the first of these numbers up to the second.
 */
const PAUSE_MS = [20, 1_000] as const

/** Returns the bytes that the query would read. Throws the errors of runQuery(), but not for the cost. */
export async function estimateQuery(at: Running, query: BigQueryQuery, limits: Limits): Promise<number> {
  try {
    const answer = await dryRun(at.rest, at.place, query, at.signal)
    judge(query, answer, at.judging)
    return bytesOf(answer) ?? 0
  } catch (error) {
    at.signal.throwIfAborted()
    throw dryRunFailure(withQueryReason(error, at.judging), query, limits.maxCost)
  }
}

/** Throws the AppErrors of Connection.run(). */
export async function runQuery(at: Running, query: BigQueryQuery, limits: Limits): Promise<Rows> {
  const left = timeLeft(limits.timeoutMs)
  checkCost(await estimateQuery(at, query, limits), limits.maxCost)
  const job = new Job(at, query, limits, left)
  try {
    const result = new Result({ rowCap: query.rowCap, bytesMax: limits.maxResponseBytes }, query.names, at.out)
    let page = await job.start()
    const slices = new TimeSlices(at.signal)
    for (let pages = 1; await result.add(page, slices); pages++) {
      if (pages >= PAGES_MAX) throw new Unreadable('a result with too many pages')
      page = await job.page(page.pageToken, result.wanted)
    }
    return result.finish()
  } catch (error) {
    const isLate = at.signal.aborted && isDeadline(at.signal)
    const ended = job.abandon(isLate)
    if (ended !== null && isLate) throw await timeoutError(ended, error)
    at.signal.throwIfAborted()
    throw error instanceof AppError ? error : runFailure(withQueryReason(error, at.judging), limits.maxCost)
  }
}

/** The error says that the job has ended only if BigQuery confirms this within CONFIRM_MS. */
async function timeoutError(ended: Promise<boolean>, cause: unknown): Promise<AppError> {
  const moment = new AbortController()
  try {
    const known = await Promise.race([ended, sleep(CONFIRM_MS, false, { signal: moment.signal })])
    return known ? cancelled(cause) : noAnswer(cause)
  } finally {
    moment.abort()
  }
}

/** True if BigQuery reports that a cancel or the job's timeout has ended the job. */
function isStopped(error: unknown): boolean {
  return error instanceof ErrorResponse && (error.reason === 'stopped' || error.reason === 'timeout')
}

/**
 * An emulator reports all unsupported SQL as jobInternalError. Replaces this reason by invalidQuery. Any other error
 * stays unchanged.
 */
function withQueryReason(error: unknown, { lenient }: Judging): unknown {
  if (!lenient || !(error instanceof ErrorResponse) || error.reason !== 'jobInternalError') return error
  return new ErrorResponse(error.status, 'invalidQuery', error.googleText)
}

class Job {
  readonly #at: Running
  readonly #query: BigQueryQuery
  readonly #limits: Limits
  readonly #left: () => number
  #started: Promise<Page> | null = null
  #known: { readonly id: string; readonly location: string } | null = null
  #isOver = false

  constructor(at: Running, query: BigQueryQuery, limits: Limits, left: () => number) {
    this.#at = at
    this.#query = query
    this.#limits = limits
    this.#left = left
  }

  async start(): Promise<Page> {
    const { signal } = this.#at
    this.#started = this.#post()
    const page = await untilAborted(this.#started, signal)
    return page.isComplete ? page : await this.page(null, this.#query.rowCap + 1)
  }

  /** Waits until the job is complete. Returns the page with this token, or the first page if the token is null. */
  async page(token: string | null, wanted: number): Promise<Page> {
    const { rest, place, signal } = this.#at
    if (this.#known === null) throw new Unreadable('a result without its job')
    const { id, location } = this.#known
    for (let pause: number = PAUSE_MS[0]; ; pause = Math.min(pause * 2, PAUSE_MS[1])) {
      const requestedAt = performance.now()
      const bytes = await rest.bytes(
        {
          method: 'GET',
          path: ['projects', place.billingProject, 'queries', id],
          query: {
            location,
            maxResults: String(wanted),
            timeoutMs: String(Math.min(NEXT_WAIT_MS, this.#left())),
            'formatOptions.useInt64Timestamp': 'true',
            ...(token === null ? {} : { pageToken: token }),
          },
          bytesMax: PAGE_BYTES_MAX,
        },
        signal,
      )
      const page = await this.#read(bytes)
      if (page.isComplete) return page
      if (performance.now() - requestedAt < pause) await sleep(pause, undefined, { signal })
    }
  }

  /**
   * Cancels, in the background, a job that may still run. If the response with the job's id has not arrived, waits for
   * it first. The promise resolves to true if the job is known to have ended. After a cancel, asks BigQuery for this
   * only if `asks` is true. Returns null if no job was started, or if the job has already ended.
   */
  abandon(asks: boolean): Promise<boolean> | null {
    if (this.#started === null || this.#isOver) return null
    const named = this.#known === null ? this.#started : Promise.resolve()
    const ended = named.then(() => this.#cancel(asks), isStopped)
    const confirmed = ended.catch(() => false)
    this.#at.inBackground(confirmed)
    return confirmed
  }

  async #post(): Promise<Page> {
    const { rest, place, signal } = this.#at
    const left = this.#left()
    const body = {
      query: this.#query.text,
      ...this.#query.params,
      useLegacySql: false,
      maximumBytesBilled: String(Math.max(1, Math.floor(this.#limits.maxCost))),
      jobTimeoutMs: String(left),
      timeoutMs: Math.min(FIRST_WAIT_MS, left),
      useQueryCache: true,
      location: place.location,
      maxResults: this.#query.rowCap + 1,
      labels: { app: 'vitrine' },
      // With the same id, a retry means the same job.
      requestId: randomUUID(),
      formatOptions: { useInt64Timestamp: true },
    }
    const path = ['projects', place.billingProject, 'queries']
    // If the caller disconnects, there are no more retries, but a response is still read, because it has the job's id.
    const whole = AbortSignal.timeout(left + FIRST_WAIT_MS + SLOW_MS)
    return await this.#read(await rest.bytes({ method: 'POST', path, body, bytesMax: PAGE_BYTES_MAX }, signal, whole))
  }

  async #read(bytes: Buffer): Promise<Page> {
    try {
      // The caller may have disconnected, but the page has the id of the job, which must then be cancelled. So the page
      // is read without the caller's signal.
      const page = await readPage(bytes, new TimeSlices(null))
      if (page.job !== null) this.#known = { id: page.job.id, location: page.job.location ?? this.#at.place.location }
      this.#isOver = page.isComplete
      return page
    } catch (error) {
      // A job that has failed has ended. After an unreadable response, the job may still run.
      this.#isOver = !(error instanceof Unreadable)
      throw error
    }
  }

  /** Returns true if the job is known to have ended. */
  async #cancel(asks: boolean): Promise<boolean> {
    if (this.#isOver || this.#known === null) return this.#isOver
    const { rest, place } = this.#at
    const { id, location } = this.#known
    const path = ['projects', place.billingProject, 'jobs', id, 'cancel']
    const whole = AbortSignal.timeout(CANCEL_MS)
    await rest.json({ method: 'POST', path, query: { location } }, whole)
    return asks && (await this.#hasEnded(id, location, whole))
  }

  /** A cancel is only a request, so the job itself must report its end. */
  async #hasEnded(id: string, location: string, whole: AbortSignal): Promise<boolean> {
    const { rest, place } = this.#at
    const query = {
      location,
      maxResults: '0',
      timeoutMs: String(CONFIRM_MS),
      'formatOptions.useInt64Timestamp': 'true',
    }
    try {
      const path = ['projects', place.billingProject, 'queries', id]
      const bytes = await rest.bytes({ method: 'GET', path, query, bytesMax: PAGE_BYTES_MAX }, whole)
      return (await readPage(bytes, new TimeSlices(whole))).isComplete
    } catch (error) {
      return isStopped(error)
    }
  }
}
