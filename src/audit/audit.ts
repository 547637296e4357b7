// The audit records every change, and every call that reached a datasource, including refused calls. Rows of calls are
// written in batches, so that calls do not wait. If the store cannot keep up, no row is dropped: `behind` becomes true,
// and the service must refuse new queries.
import { setTimeout } from 'node:timers/promises'
import type { Transaction } from 'kysely'
import type { ClockDoubt } from '../clock-doubt.ts'
import { AppError, STATUS } from '../errors.ts'
import type { AuditId, TeamId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import type { Tables } from '../store/tables.ts'
import { sealWith, type Seal } from './chain/seal.ts'
import type { Changed } from './recorded-changes.ts'
import { pruneUsage, readUsage, type UsageLine } from './usage-by-day.ts'
import { placeOf, readAll, readOne, readPage, type AuditAsk, type AuditItem, type AuditPage } from './reading/page.ts'
import type { AuditScope, Key } from './reading/row-filter.ts'
import { reasonOf } from './refusal-reason.ts'
import { endedTeams, keepTeam } from './removal/ended-teams.ts'
import { pruneRows } from './removal/prune.ts'
import { readSlots, type UsageSlot } from './usage-by-hour.ts'
import { RowMaker, type AuditedCall, type AuditEntry, type AuditPlace } from './make-rows.ts'
import { Writer, type WaitingRows, type WriterLog } from './writing/writer.ts'

export interface Audit extends AsyncDisposable {
  /** True if the waiting rows are too many, too large or too old. */
  readonly behind: boolean
  /** False if the last write failed. */
  readonly writes: boolean
  readonly waiting: WaitingRows
  readonly totals: { readonly rows: number; readonly failures: number }
  /** Records a change in its transaction `tx`. `what` must not contain secrets. */
  change(tx: Transaction<Tables>, call: AuditedCall, at: AuditPlace, what: Changed): Promise<void>
  /**
   * Returns the id of the row, which is in the store within a second, unless a write fails. Calls refused with
   * RATE_LIMITED go to folded() instead.
   */
  record(call: AuditedCall, entry: AuditEntry): AuditId
  /**
   * Records an event that a caller can repeat without limit, such as a refused call. One row counts the similar events
   * of a caller within a minute, and has the fields of the first event. Events are similar if they have the same team,
   * action and code. Answers must also have the same datasource.
   */
  folded(call: AuditedCall, entry: AuditEntry): AuditId
  /**
   * Records a refused or failed call, once per error object. Do not use this for errors whose text may contain a query,
   * because teams may redact queries.
   */
  refused(call: AuditedCall, at: AuditPlace, error: unknown): void
  /**
   * Must be called when a team is deleted. Its audit rows stay until they are `retentionDays` old. The next prune()
   * deletes its usage counters, which are too many for this transaction.
   */
  teamEnded(tx: Transaction<Tables>, teamId: TeamId, retentionDays: number): Promise<void>
  flush(): Promise<void>
  /**
   * Returns a page of a team's rows, newest first. Throws INVALID_REQUEST for an invalid cursor. Like all methods that
   * read, it writes the waiting rows first, and throws OVERLOADED if this fails.
   */
  page(teamId: TeamId, ask: AuditAsk, signal?: AbortSignal): Promise<AuditPage>
  /** Returns null if the team has no such row within the scope. */
  one(teamId: TeamId, id: AuditId, scope: AuditScope): Promise<AuditItem | null>
  /**
   * Returns the position of a row in the order of time, even if the row is removed, because its id contains the time.
   * Throws INVALID_REQUEST if the id is not a UUID v7.
   */
  place(teamId: TeamId, id: AuditId): Promise<Key>
  /** Returns all rows within the scope, newest first, in batches. */
  all(teamId: TeamId, scope: AuditScope, signal?: AbortSignal): AsyncIterable<readonly AuditItem[]>
  /** Yields how many queries a team made on each day since `from` (YYYY-MM-DD, UTC), newest first. */
  usage(teamId: TeamId, from: string, signal: AbortSignal): AsyncIterable<readonly UsageLine[]>
  /** Yields how many queries a team made in each hour since the day `from`. */
  slots(teamId: TeamId, from: string, signal: AbortSignal): AsyncIterable<readonly UsageSlot[]>
  /** Removes expired rows, old usage counters, and the usage counters of deleted teams. */
  prune(): Promise<void>
}

interface Deps {
  readonly store: Pick<Store, 'db' | 'dialect' | 'append' | 'commit' | 'settled'>
  readonly key: Uint8Array
  readonly log?: WriterLog
  /** The argument null means the rows without a team. If this function is missing, no row is removed. */
  readonly retentionDays?: (teamId: TeamId | null) => Promise<number>
  readonly now?: () => number
  /** While the clock may be wrong, no row is removed. */
  readonly clock?: ClockDoubt
}

/** Larger batches cost less per row, but rows must be in the store within a second. */
const FLUSH_MS = 500
const RETRY_MS = 1_000
/** How long a closing process retries its last write, with the pause below. */
const LAST_TRIES_MS = 3_000
const LAST_RETRY_MS = 200
const RETRY_AFTER_SECONDS = 2
const FIRST_PRUNE_MS = 60_000
/**
 * A killed process may leave rows that are not linked to a chain. The next process links ("adopts") them when it
 * starts, and again after this time. By then, no transaction of the killed process can still commit.
 */
const ADOPT_AGAIN_MS = 180_000
const DAY_MS = 86_400_000

/** Disposing the audit writes all waiting rows. */
export function openAudit(deps: Deps): Audit {
  return new ChainedAudit(deps)
}

class ChainedAudit implements Audit {
  readonly #deps: Deps
  readonly #now: () => number
  readonly #rows: RowMaker
  readonly #seal: Seal
  readonly #writer: Writer
  readonly #recorded = new WeakSet<object>()
  #adoptions: number[]
  #timer: NodeJS.Timeout | undefined
  #timerAt = 0
  #timerFor = 0
  /** After a failed write, the next one does not start before this time. */
  #notBefore = 0
  #pruning: NodeJS.Timeout | undefined
  #tail: Promise<void> = Promise.resolve()
  #writes = true
  /** When to adopt rows of killed processes: at the start, once more, and before old rows are removed. */
  #failures = 0

  constructor(deps: Deps) {
    this.#deps = deps
    this.#now = deps.now ?? Date.now
    this.#rows = new RowMaker(this.#now)
    this.#seal = sealWith(deps.key)
    const renamed = this.#rows.renamed.bind(this.#rows)
    this.#writer = new Writer({ store: deps.store, seal: this.#seal, now: this.#now, renamed, log: deps.log })
    this.#adoptions = [this.#now(), this.#now() + ADOPT_AGAIN_MS]
    this.#arm(FLUSH_MS)
    if (deps.retentionDays !== undefined) this.#pruneIn(FIRST_PRUNE_MS)
  }

  get behind(): boolean {
    return this.#writer.behind
  }

  get writes(): boolean {
    return this.#writes
  }

  get waiting(): WaitingRows {
    return this.#writer.waiting
  }

  get totals(): Audit['totals'] {
    return { rows: this.#writer.written, failures: this.#failures }
  }

  async change(tx: Transaction<Tables>, call: AuditedCall, at: AuditPlace, what: Changed): Promise<void> {
    await this.#writer.insert(tx, this.#rows.of(call, { ...at, ...what, outcome: 'ANSWERED' }))
    this.#arm(FLUSH_MS)
  }

  record(call: AuditedCall, entry: AuditEntry): AuditId {
    if (entry.code === 'RATE_LIMITED') return this.folded(call, entry)
    const row = this.#rows.of(call, entry)
    this.#writer.push(row)
    this.#arm(FLUSH_MS)
    return row.id
  }

  folded(call: AuditedCall, entry: AuditEntry): AuditId {
    const row = this.#rows.ofMinute(call, entry)
    this.#writer.fold(row)
    this.#arm(FLUSH_MS)
    return row.id
  }

  refused(call: AuditedCall, at: AuditPlace, error: unknown): void {
    if (typeof error === 'object' && error !== null) {
      if (this.#recorded.has(error)) return
      this.#recorded.add(error)
    }
    const code = error instanceof AppError ? error.code : 'INTERNAL'
    this.record(call, { ...at, outcome: outcomeOf(code), code, ...reasonOf(error) })
  }

  async teamEnded(tx: Transaction<Tables>, teamId: TeamId, retentionDays: number): Promise<void> {
    await keepTeam(tx, teamId, retentionDays)
  }

  flush(): Promise<void> {
    return this.#flush(false)
  }

  async page(teamId: TeamId, ask: AuditAsk, signal?: AbortSignal): Promise<AuditPage> {
    await this.#upToDate()
    return await readPage(this.#deps.store, teamId, ask, signal)
  }

  async one(teamId: TeamId, id: AuditId, scope: AuditScope): Promise<AuditItem | null> {
    await this.#upToDate()
    return await readOne(this.#deps.store, teamId, id, scope)
  }

  async place(teamId: TeamId, id: AuditId): Promise<Key> {
    await this.#upToDate()
    return await placeOf(this.#deps.store, teamId, id)
  }

  async *all(teamId: TeamId, scope: AuditScope, signal?: AbortSignal): AsyncIterable<readonly AuditItem[]> {
    await this.#upToDate()
    yield* readAll(this.#deps.store, teamId, scope, signal)
  }

  async *usage(teamId: TeamId, from: string, signal: AbortSignal): AsyncIterable<readonly UsageLine[]> {
    await this.#upToDate()
    yield* readUsage(this.#deps.store, teamId, from, signal)
  }

  async *slots(teamId: TeamId, from: string, signal: AbortSignal): AsyncIterable<readonly UsageSlot[]> {
    await this.#upToDate()
    yield* readSlots(this.#deps.store, teamId, from, signal)
  }

  async prune(): Promise<void> {
    const { store, log, retentionDays } = this.#deps
    if (retentionDays === undefined) return
    const why = this.#deps.clock?.reason() ?? null
    if (why !== null) return log?.warn({ why }, 'audit: nothing is removed, because the clock may be wrong')
    this.#adoptions.push(this.#now())
    await this.flush()
    const ended = await endedTeams(store)
    await pruneRows({
      store,
      seal: this.#seal,
      now: this.#now,
      retentionDays: async (teamId) =>
        (teamId === null ? undefined : ended.get(teamId)) ?? (await retentionDays(teamId)),
      log,
    })
    await pruneUsage(store, this.#now())
    this.#writer.logHead()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#timer)
    clearTimeout(this.#pruning)
    await this.#writeLast()
    this.#writer.logHead()
  }

  /** Throws an Error with one sentence if rows are lost. */
  async #writeLast(): Promise<void> {
    const until = performance.now() + LAST_TRIES_MS
    for (;;) {
      try {
        return await this.#flush(true)
      } catch (error) {
        const { rows } = this.waiting
        // Nothing is lost: all rows are in the store, and the next process links those that are not linked yet.
        if (rows === 0) return this.#logFailure(error, 'the last write failed')
        if (performance.now() > until) {
          this.#deps.log?.error({ err: error, rows }, 'audit: rows are lost, because the store cannot be written')
          throw new Error(`${rows} audit rows are lost, because the store could not be written before the end.`, {
            cause: error,
          })
        }
        await setTimeout(LAST_RETRY_MS)
      } finally {
        clearTimeout(this.#timer)
      }
    }
  }

  /** The next read includes all waiting rows. Throws OVERLOADED. */
  async #upToDate(): Promise<void> {
    try {
      await this.flush()
    } catch (cause) {
      throw new AppError('OVERLOADED', 'The audit cannot be written at the moment. Try again later.', {
        extra: { retryAfter: RETRY_AFTER_SECONDS },
        cause,
      })
    }
  }

  #flush(closing: boolean): Promise<void> {
    const written = this.#tail.then(async () => {
      try {
        // The next process adopts the rows of killed processes.
        if (!closing) await this.#adopt()
        await this.#writer.drain(closing)
        this.#writes = true
      } catch (error) {
        this.#writes = false
        this.#failures++
        throw error
      }
    })
    this.#tail = written.catch(() => undefined)
    return written
  }

  async #adopt(): Promise<void> {
    const due = this.#adoptions.filter((at) => at <= this.#now())
    if (due.length === 0) return
    await this.#writer.adopt()
    this.#adoptions = this.#adoptions.filter((at) => !due.includes(at))
  }

  /** The first removal comes soon after the start, because a process may run for less than a day. */
  #pruneIn(ms: number): void {
    this.#pruning = globalThis.setTimeout(() => {
      this.#pruneIn(DAY_MS)
      this.prune().catch((error: unknown) => this.#logFailure(error, 'prune failed and will be retried'))
    }, ms)
    this.#pruning.unref()
  }

  #arm(ms: number): void {
    // Saves reading the clock for every row.
    if (this.#timer !== undefined && this.#timerFor <= ms) return
    const now = performance.now()
    const at = Math.max(now + ms, this.#notBefore)
    if (this.#timer !== undefined && this.#timerAt <= at) return
    clearTimeout(this.#timer)
    this.#timerAt = at
    this.#timerFor = ms
    this.#timer = globalThis.setTimeout(() => {
      this.#timer = undefined
      this.flush().then(
        () => this.#armAgain(),
        (error: unknown) => {
          this.#logFailure(error, 'write failed and will be retried')
          this.#notBefore = performance.now() + RETRY_MS
          this.#arm(RETRY_MS)
        },
      )
    }, at - now)
    this.#timer.unref()
  }

  #armAgain(): void {
    const due = Math.min(this.#writer.dueIn ?? Infinity, ...this.#adoptions.map((at) => at - this.#now()))
    if (due !== Infinity) this.#arm(Math.max(RETRY_MS, due))
  }

  #logFailure(error: unknown, what: string): void {
    this.#deps.log?.error({ err: error }, `audit: ${what}`)
  }
}

const DENYING: ReadonlySet<number> = new Set([403, 404, 429])
const DENIED: ReadonlySet<string> = new Set(
  Object.entries(STATUS).flatMap(([code, status]) => (DENYING.has(status) ? [code] : [])),
)

export function outcomeOf(code: string): 'DENIED' | 'FAILED' {
  return DENIED.has(code) ? 'DENIED' : 'FAILED'
}
