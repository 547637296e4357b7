// Runs what the guard confined: a dry run that must agree with the guard, then the same text once, bounded in bytes and
// time. A job that nobody waits for any more is cancelled.
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { AppError } from '../../../errors.ts'
import type { Limits, Rows } from '../../driver.ts'
import type { JsonBytes } from '../../json-bytes.ts'
import { noAnswer } from '../../no-answer.ts'
import { timeLeft } from '../../time-left.ts'
import type { BigQueryQuery } from '../query.ts'
import { orAborted } from './abort.ts'
import { bytesOf, checkCost, dryRun, judge, type Judging, type Place } from './dry-run.ts'
import { Unreadable } from './exchange.ts'
import { cancelled, isDeadline } from './failure.ts'
import { Refused } from './refused.ts'
import type { Rest } from './rest.ts'
import { readPage, Result, type Page } from './result.ts'
import { runFailure } from './run-failure.ts'
import { Turns } from './turns.ts'
import { dryRunFailure } from './said.ts'

export interface Running {
  readonly rest: Rest
  readonly place: Place
  readonly judging: Judging
  readonly signal: AbortSignal
  /** Takes what goes on after the caller has gone; the connection's owner waits for it. */
  readonly inBackground: (work: Promise<unknown>) => void
  /** Where rows are written. */
  readonly out: JsonBytes
}

/** The first answer names the job, by which it can be cancelled: so it is not waited for longer than this. */
const FIRST_WAIT_MS = 2_000
const NEXT_WAIT_MS = 10_000
/** What an answer may take beyond the wait it was asked for. */
const SLOW_MS = 5_000
const CANCEL_MS = 5_000
/** How long a caller whose time is over waits to hear that the job has ended. */
const CONFIRM_MS = 1_500
/** BigQuery cuts a page at 10 MB, counted before it is JSON. */
const PAGE_BYTES_MAX = 32 * 1024 * 1024
const PAGES_MAX = 1_000
/** Between two looks at a job whose answers come at once, as no BigQuery's do; doubled each time, up to the last. */
const PAUSE_MS = [20, 1_000] as const

/** Bytes that the query would read. Throws AppError as runQuery() does, but for the cost. */
export async function estimateQuery(at: Running, query: BigQueryQuery, limits: Limits): Promise<number> {
  try {
    const answer = await dryRun(at.rest, at.place, query, at.signal)
    judge(query, answer, at.judging)
    return bytesOf(answer) ?? 0
  } catch (error) {
    at.signal.throwIfAborted()
    throw dryRunFailure(asTold(error, at.judging), query, limits.maxCost)
  }
}

/** Throws AppError, as Connection.run() says. */
export async function runQuery(at: Running, query: BigQueryQuery, limits: Limits): Promise<Rows> {
  const left = timeLeft(limits.timeoutMs)
  checkCost(await estimateQuery(at, query, limits), limits.maxCost)
  const job = new Job(at, query, limits, left)
  try {
    const result = new Result({ rowCap: query.rowCap, bytesMax: limits.maxResponseBytes }, query.names, at.out)
    let page = await job.start()
    const turns = new Turns(at.signal)
    for (let pages = 1; await result.add(page, turns); pages++) {
      if (pages >= PAGES_MAX) throw new Unreadable('an answer of too many pages')
      page = await job.page(page.pageToken, result.wanted)
    }
    return result.finish()
  } catch (error) {
    const isLate = at.signal.aborted && isDeadline(at.signal)
    const ended = job.abandon(isLate)
    if (ended !== null && isLate) throw await toldOf(ended, error)
    at.signal.throwIfAborted()
    throw error instanceof AppError ? error : runFailure(asTold(error, at.judging), limits.maxCost)
  }
}

/** Whether the job has ended, as far as is known within a moment: the caller's time is over already. */
async function toldOf(ended: Promise<boolean>, cause: unknown): Promise<AppError> {
  const moment = new AbortController()
  try {
    const known = await Promise.race([ended, sleep(CONFIRM_MS, false, { signal: moment.signal })])
    return known ? cancelled(cause) : noAnswer(cause)
  } finally {
    moment.abort()
  }
}

/** BigQuery says that a job was ended by a cancel or by its time limit. */
function isStopped(error: unknown): boolean {
  return error instanceof Refused && (error.reason === 'stopped' || error.reason === 'timeout')
}

/** An emulator has one reason for whatever it cannot do: the query's own, then. */
function asTold(error: unknown, { lenient }: Judging): unknown {
  if (!lenient || !(error instanceof Refused) || error.reason !== 'jobInternalError') return error
  return new Refused(error.status, 'invalidQuery', error.said)
}

/** One query's work in BigQuery. */
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

  /** The first complete page. */
  async start(): Promise<Page> {
    const { signal } = this.#at
    this.#started = this.#post()
    const page = await orAborted(this.#started, signal)
    return page.isComplete ? page : await this.page(null, this.#query.rowCap + 1)
  }

  /** The page behind the token; waits until the job is complete. */
  async page(token: string | null, wanted: number): Promise<Page> {
    const { rest, place, signal } = this.#at
    if (this.#known === null) throw new Unreadable('an answer without its job')
    const { id, location } = this.#known
    for (let pause: number = PAUSE_MS[0]; ; pause = Math.min(pause * 2, PAUSE_MS[1])) {
      const asked = performance.now()
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
      if (performance.now() - asked < pause) await sleep(pause, undefined, { signal })
    }
  }

  /**
   * Cancels what may still work; an answer that is under way is waited for in the background, since it names the job. The
   * promise tells whether the job was seen to have ended, which is looked for where somebody `asks`; null where there is
   * no job.
   */
  abandon(asks: boolean): Promise<boolean> | null {
    if (this.#started === null || this.#isOver) return null
    const named = this.#known === null ? this.#started : Promise.resolve()
    const ended = named.then(() => this.#cancel(asks), isStopped)
    const told = ended.catch(() => false)
    this.#at.inBackground(told)
    return told
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
      // Sent again, it is the same job.
      requestId: randomUUID(),
      formatOptions: { useInt64Timestamp: true },
    }
    const path = ['projects', place.billingProject, 'queries']
    // A caller who hangs up ends the retries, not the answer that would name the job.
    const whole = AbortSignal.timeout(left + FIRST_WAIT_MS + SLOW_MS)
    return await this.#read(await rest.bytes({ method: 'POST', path, body, bytesMax: PAGE_BYTES_MAX }, signal, whole))
  }

  async #read(bytes: Buffer): Promise<Page> {
    try {
      // The signal does not end it: the page names the job that has to be cancelled then.
      const page = await readPage(bytes, new Turns(null))
      if (page.job !== null) this.#known = { id: page.job.id, location: page.job.location ?? this.#at.place.location }
      this.#isOver = page.isComplete
      return page
    } catch (error) {
      // A job that has failed is over; what cannot be read may belong to one that works.
      this.#isOver = !(error instanceof Unreadable)
      throw error
    }
  }

  /** True where the job was seen to have ended. */
  async #cancel(asks: boolean): Promise<boolean> {
    if (this.#isOver || this.#known === null) return this.#isOver
    const { rest, place } = this.#at
    const { id, location } = this.#known
    const path = ['projects', place.billingProject, 'jobs', id, 'cancel']
    const whole = AbortSignal.timeout(CANCEL_MS)
    await rest.json({ method: 'POST', path, query: { location } }, whole)
    return asks && (await this.#hasEnded(id, location, whole))
  }

  /** A cancel is only a wish: the job itself says when it has ended. */
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
      return (await readPage(bytes, new Turns(whole))).isComplete
    } catch (error) {
      return isStopped(error)
    }
  }
}
