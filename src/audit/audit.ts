// The audit records callers, actions, datasources and outcomes. It covers every call that reached a datasource and
// every change, including refused ones. The row of a call is written in a batch, off the hot path. The row of a change
// is written in the change's transaction. While the process runs, no row is dropped: if the store cannot keep up,
// `behind` is true, and the query path must refuse queries.
import { setTimeout } from 'node:timers/promises'
import type { Transaction } from 'kysely'
import type { ClockDoubt } from '../clock-doubt.ts'
import { AppError, STATUS } from '../errors.ts'
import type { AuditId, TeamId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import type { Tables } from '../store/tables.ts'
import { sealWith, type Seal } from './chain/seal.ts'
import type { Changed } from './recorded-changes.ts'
import { forgetUsage, pruneUsage, readUsage, type UsageLine } from './usage-by-day.ts'
import { placeOf, readAll, readOne, readPage, type AuditAsk, type AuditItem, type AuditPage } from './reading/page.ts'
import type { AuditScope, Key } from './reading/row-filter.ts'
import { reasonOf } from './refusal-reason.ts'
import { endedTeams, keepTeam } from './removal/ended-teams.ts'
import { pruneRows } from './removal/prune.ts'
import { readSlots, type UsageSlot } from './usage-by-hour.ts'
import { RowMaker, type AuditedCall, type AuditEntry, type AuditPlace } from './make-rows.ts'
import { Writer, type WaitingRows, type WriterLog } from './writing/writer.ts'

export interface Audit extends AsyncDisposable {
  /** True if too many rows or bytes wait in memory, or if a row waits too long. New queries are then refused. */
  readonly behind: boolean
  /** False if the last write failed. The write is retried every second. */
  readonly writes: boolean
  readonly waiting: WaitingRows
  /** For the metrics: the number of rows that this process wrote, and the number of writes that failed. */
  readonly totals: { readonly rows: number; readonly failures: number }
  /** Records a change in `tx`, the transaction of the change. `what` must not contain secrets. */
  change(tx: Transaction<Tables>, call: AuditedCall, at: AuditPlace, what: Changed): Promise<void>
  /**
   * Records a call. The row is written within a second, together with others, unless a write fails. The caller never
   * waits for it. A call that was refused with RATE_LIMITED is recorded by folded(). Returns the id of the row.
   */
  record(call: AuditedCall, entry: AuditEntry): AuditId
  /**
   * Like record(), for events that a caller can repeat without limit. One row counts similar events of a caller within
   * a minute, and has the fields of the first of them. In a team, all refusals are similar, and so are all answers of
   * one action on one datasource. Without a team, all events with the same action and code are similar.
   */
  folded(call: AuditedCall, entry: AuditEntry): AuditId
  /**
   * Records a refused or failed call or change, with outcome, code and reason from the error. An error is recorded only
   * once, by the innermost function, which knows most about it. Must not be used for an error that may quote a query,
   * because the team may redact queries.
   */
  refused(call: AuditedCall, at: AuditPlace, error: unknown): void
  /**
   * Handles the deletion of a team: deletes its usage counters, and keeps each of its rows until the row is
   * `retentionDays` old.
   */
  teamEnded(tx: Transaction<Tables>, teamId: TeamId, retentionDays: number): Promise<void>
  /** Writes all rows recorded before the call. */
  flush(): Promise<void>
  /**
   * Returns a page of a team's rows, newest first. All rows recorded before the call are visible. Throws
   * INVALID_REQUEST for an invalid cursor. Like every other method that reads, throws OVERLOADED if waiting rows cannot
   * be written.
   */
  page(teamId: TeamId, ask: AuditAsk, signal?: AbortSignal): Promise<AuditPage>
  /** Returns one row of a team, or null if the team has no such row within the scope. */
  one(teamId: TeamId, id: AuditId, scope: AuditScope): Promise<AuditItem | null>
  /**
   * Returns the position of a row. If the row was removed, computes the position from its id. Throws INVALID_REQUEST
   * for an id that is not a UUID v7.
   */
  place(teamId: TeamId, id: AuditId): Promise<Key>
  /** Returns all rows of a team within the scope, newest first, in batches. */
  all(teamId: TeamId, scope: AuditScope, signal?: AbortSignal): AsyncIterable<readonly AuditItem[]>
  /** Returns a team's query counts since the day `from` (YYYY-MM-DD, UTC), oldest first. */
  usage(teamId: TeamId, from: string): Promise<readonly UsageLine[]>
  /** Yields a team's query counts by hour since the day `from` (YYYY-MM-DD, UTC), in batches. */
  slots(teamId: TeamId, from: string, signal: AbortSignal): AsyncIterable<readonly UsageSlot[]>
  /** Removes rows older than their team's retention, and old usage counters. The audit also does this once a day. */
  prune(): Promise<void>
}

interface Deps {
  readonly store: Pick<Store, 'db' | 'dialect' | 'append' | 'commit' | 'settled'>
  /** 32 bytes, derived from the root key for the audit only. Rows are sealed with it. */
  readonly key: Uint8Array
  readonly log?: WriterLog
  /**
   * Returns the retention of a team, or of rows without a team (null). If this function is absent, no row is pruned.
   */
  readonly retentionDays?: (teamId: TeamId | null) => Promise<number>
  readonly now?: () => number
  /** While the clock is doubted, no row is removed. If absent, the clock is trusted. */
  readonly clock?: ClockDoubt
}

/** Rows must be in the store within a second. Larger batches cost less per row. */
const FLUSH_MS = 500
/** The pause after a failed write. */
const RETRY_MS = 1_000
/** How long a closing process retries the last write. */
const LAST_TRIES_MS = 3_000
/** The pause after a failed write of a closing process. */
const LAST_RETRY_MS = 200
const RETRY_AFTER_SECONDS = 2
/** The time from the start to the first pruning. */
const FIRST_PRUNE_MS = 60_000
/**
 * Rows of stopped processes are adopted at the start, and again after this time. By then, no transaction of a stopped
 * process can still commit.
 */
const ADOPT_AGAIN_MS = 180_000
const DAY_MS = 86_400_000

/** Opens the audit on the store. Disposing the audit writes all waiting rows. */
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
  /** The times at which to adopt rows of stopped processes: at the start, once more, and before each prune. */
  #adoptions: number[]
  #timer: NodeJS.Timeout | undefined
  #timerAt = 0
  /** The delay that the timer was set with. */
  #timerFor = 0
  /** After a failure, no write starts before this time. */
  #notBefore = 0
  #pruning: NodeJS.Timeout | undefined
  #tail: Promise<void> = Promise.resolve()
  #writes = true
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
    await forgetUsage(tx, teamId)
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

  async usage(teamId: TeamId, from: string): Promise<readonly UsageLine[]> {
    await this.#upToDate()
    return await readUsage(this.#deps.store, teamId, from)
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

  /** Writes the last rows. Throws an Error of one sentence if rows are lost. */
  async #writeLast(): Promise<void> {
    const until = performance.now() + LAST_TRIES_MS
    for (;;) {
      try {
        return await this.#flush(true)
      } catch (error) {
        const { rows } = this.waiting
        // No row is lost: the next start adds rows that are not yet in a chain to one.
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

  /** Writes all waiting rows, so that an answer includes all rows recorded before the call. Throws OVERLOADED. */
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

  /** Runs flushes one after the other. */
  #flush(closing: boolean): Promise<void> {
    const written = this.#tail.then(async () => {
      try {
        // At the end, only the own rows matter: another process adopts the others.
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

  /** Schedules a prune. The first one runs soon after the start, because a process may live less than a day. */
  #pruneIn(ms: number): void {
    this.#pruning = globalThis.setTimeout(() => {
      this.#pruneIn(DAY_MS)
      this.prune().catch((error: unknown) => this.#logFailure(error, 'prune failed and will be retried'))
    }, ms)
    this.#pruning.unref()
  }

  /** Schedules a write after `ms`, unless an earlier one is scheduled. */
  #arm(ms: number): void {
    // The comparison avoids reading the clock for every row.
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

  /** Schedules a write for the time when the next rows can be linked or adopted. */
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

/** Returns DENIED for a code with status 403, 404 or 429, and FAILED for any other code. */
export function outcomeOf(code: string): 'DENIED' | 'FAILED' {
  return DENIED.has(code) ? 'DENIED' : 'FAILED'
}
