// Who did what, to which datasource, and how it ended: every call that reached a datasource and every change, refused
// ones too. Rows of calls are written in batches off the hot path; rows of changes inside the change's transaction.
// It never drops a row: when it cannot keep up, `behind` tells the query path to shed load instead.
import type { Transaction } from 'kysely'
import { AppError, STATUS } from '../errors.ts'
import type { AuditId, TeamId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import type { Tables } from '../store/tables.ts'
import { sealWith, type Seal } from './chain/seal.ts'
import type { Changed } from './changes.ts'
import { forgetUsage, pruneUsage, readUsage, type UsageLine } from './counters.ts'
import { readAll, readOne, readPage, type AuditAsk, type AuditItem, type AuditPage } from './reading/page.ts'
import type { AuditScope } from './reading/scope.ts'
import { reasonOf } from './reason.ts'
import { endedTeams, keepTeam } from './removal/ended-teams.ts'
import { pruneRows } from './removal/prune.ts'
import { RowMaker, type AuditedCall, type AuditEntry, type AuditPlace } from './rows.ts'
import { Writer, type WriterLog } from './writing/writer.ts'

export interface Audit extends AsyncDisposable {
  /** True while more is waiting than may be kept in memory: new queries are shed until it is written. */
  readonly behind: boolean
  /** Of a change, in its own transaction: durable when the change is. `what`: never a secret. */
  change(tx: Transaction<Tables>, call: AuditedCall, at: AuditPlace, what: Changed): Promise<void>
  /** Of a call that reached a datasource: batched, written within a second, never awaited on the hot path. */
  record(call: AuditedCall, entry: AuditEntry): void
  /**
   * As record(), of what anybody could repeat at will: in a team all of an account, or key, within a minute are one row that
   * counts them, and bears the first one's action and code; of no team all of one action and code.
   */
  folded(call: AuditedCall, entry: AuditEntry): void
  /**
   * Of a call or change that was refused or failed: outcome, code and why are read from the error. One error is kept once,
   * by whoever tells it first and knows most. Not of queries: their errors may quote what a team has redacted.
   */
  refused(call: AuditedCall, at: AuditPlace, error: unknown): void
  /** Of a team that is deleted: its rows are kept for as many days as it kept them, its counts go. */
  teamEnded(tx: Transaction<Tables>, teamId: TeamId, retentionDays: number): Promise<void>
  /** Writes all that was recorded before. */
  flush(): Promise<void>
  /**
   * A team's rows, newest first, all that was recorded before among them. Throws INVALID_REQUEST for a cursor not ours,
   * and, as one(), all() and usage(), OVERLOADED while what was recorded cannot be written.
   */
  page(teamId: TeamId, ask: AuditAsk, signal?: AbortSignal): Promise<AuditPage>
  /** One row of a team; null where it has none of this id that the scope lets through. */
  one(teamId: TeamId, id: AuditId, scope: AuditScope): Promise<AuditItem | null>
  /** All of a team's rows that the scope lets through, newest first, a part at a time. */
  all(teamId: TeamId, scope: AuditScope, signal?: AbortSignal): AsyncIterable<readonly AuditItem[]>
  /** Counts of a team's queries from a day (YYYY-MM-DD, UTC) on, the oldest first. */
  usage(teamId: TeamId, from: string): Promise<readonly UsageLine[]>
  /** Removes what is older than its team keeps; runs by itself once a day. */
  prune(): Promise<void>
}

interface Deps {
  readonly store: Pick<Store, 'db' | 'dialect' | 'append' | 'commit' | 'settled'>
  /** 32 bytes, derived from the root key for nothing else: what is written is sealed with it. */
  readonly key: Uint8Array
  readonly log?: WriterLog
  /** How long a team keeps its rows, null: rows of no team; absent: nothing is pruned. */
  readonly retentionDays?: (teamId: TeamId | null) => Promise<number>
  readonly now?: () => number
}

/** What was recorded must be in the store within a second; more at a time costs less. */
const FLUSH_MS = 500
const RETRY_MS = 1_000
const RETRY_AFTER_SECONDS = 2
const FIRST_PRUNE_MS = 60_000
/** After that long a process that ended beside us has left nothing that is still to come. */
const ADOPT_AGAIN_MS = 180_000
const DAY_MS = 86_400_000

/** Opens the audit over the store; disposing writes what waits. */
export function openAudit(deps: Deps): Audit {
  return new ChainedAudit(deps)
}

class ChainedAudit implements Audit {
  readonly #deps: Deps
  readonly #now: () => number
  readonly #rows: RowMaker
  readonly #seal: Seal
  readonly #writer: Writer
  readonly #told = new WeakSet<object>()
  /** When rows of ended processes are looked for: at the start, and once more. */
  #adoptions: number[]
  #timer: NodeJS.Timeout | undefined
  #timerAt = 0
  /** For how long the timer was set. */
  #timerFor = 0
  /** After a failure the store is left alone for a while. */
  #notBefore = 0
  #pruning: NodeJS.Timeout | undefined
  #tail: Promise<void> = Promise.resolve()

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

  async change(tx: Transaction<Tables>, call: AuditedCall, at: AuditPlace, what: Changed): Promise<void> {
    await this.#writer.insert(tx, this.#rows.of(call, { ...at, ...what, outcome: 'ANSWERED' }))
    this.#arm(FLUSH_MS)
  }

  record(call: AuditedCall, entry: AuditEntry): void {
    if (entry.code === 'RATE_LIMITED') {
      this.folded(call, entry)
      return
    }
    this.#writer.push(this.#rows.of(call, entry))
    this.#arm(FLUSH_MS)
  }

  folded(call: AuditedCall, entry: AuditEntry): void {
    this.#writer.fold(this.#rows.ofMinute(call, entry))
    this.#arm(FLUSH_MS)
  }

  refused(call: AuditedCall, at: AuditPlace, error: unknown): void {
    if (typeof error === 'object' && error !== null) {
      if (this.#told.has(error)) return
      this.#told.add(error)
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

  async *all(teamId: TeamId, scope: AuditScope, signal?: AbortSignal): AsyncIterable<readonly AuditItem[]> {
    await this.#upToDate()
    yield* readAll(this.#deps.store, teamId, scope, signal)
  }

  async usage(teamId: TeamId, from: string): Promise<readonly UsageLine[]> {
    await this.#upToDate()
    return await readUsage(this.#deps.store, teamId, from)
  }

  async prune(): Promise<void> {
    const { store, log, retentionDays } = this.#deps
    if (retentionDays === undefined) return
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
    this.#writer.sayHead()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#timer)
    clearTimeout(this.#pruning)
    await this.#flush(true)
    clearTimeout(this.#timer)
    this.#writer.sayHead()
  }

  /** What is shown must be whole. */
  async #upToDate(): Promise<void> {
    try {
      await this.flush()
    } catch (cause) {
      throw new AppError(
        'OVERLOADED',
        'The service cannot write down now what was asked last. Try again in a moment.',
        {
          extra: { retryAfter: RETRY_AFTER_SECONDS },
          cause,
        },
      )
    }
  }

  /** One after the other. */
  #flush(closing: boolean): Promise<void> {
    const written = this.#tail.then(async () => {
      await this.#adopt()
      await this.#writer.drain(closing)
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

  /** Soon after the start, as no process need live for a day, and then once a day. */
  #pruneIn(ms: number): void {
    this.#pruning = setTimeout(() => {
      this.#pruneIn(DAY_MS)
      this.prune().catch((error: unknown) => this.#say(error, 'prune'))
    }, ms)
    this.#pruning.unref()
  }

  /** Writes in so many milliseconds, or sooner where that was said before. */
  #arm(ms: number): void {
    // Without asking for the time, which every row would.
    if (this.#timer !== undefined && this.#timerFor <= ms) return
    const now = performance.now()
    const at = Math.max(now + ms, this.#notBefore)
    if (this.#timer !== undefined && this.#timerAt <= at) return
    clearTimeout(this.#timer)
    this.#timerAt = at
    this.#timerFor = ms
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.flush().then(
        () => this.#armAgain(),
        (error: unknown) => {
          this.#say(error, 'write')
          this.#notBefore = performance.now() + RETRY_MS
          this.#arm(RETRY_MS)
        },
      )
    }, at - now)
    this.#timer.unref()
  }

  /** For rows whose time to be linked is still to come. */
  #armAgain(): void {
    const due = Math.min(this.#writer.dueIn ?? Infinity, ...this.#adoptions.map((at) => at - this.#now()))
    if (due !== Infinity) this.#arm(Math.max(RETRY_MS, due))
  }

  #say(error: unknown, what: string): void {
    this.#deps.log?.error({ err: error }, `audit: could not ${what}; it will be tried again`)
  }
}

/** A refusal is DENIED, what went wrong is FAILED. */
export function outcomeOf(code: string): 'DENIED' | 'FAILED' {
  const status = new Map<string, number>(Object.entries(STATUS)).get(code)
  return status === 403 || status === 404 || status === 429 ? 'DENIED' : 'FAILED'
}
