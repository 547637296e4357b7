// Who did what, to which datasource, and how it ended: every call that reached a datasource and every change, refused
// ones too. Rows of calls are written in batches off the hot path; rows of changes inside the change's transaction.
// It never drops a row: when it cannot keep up, `behind` tells the query path to shed load instead.
import { CompiledQuery, type Transaction } from 'kysely'
import { AppError, STATUS } from '../errors.ts'
import type { AuditId, TeamId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import type { Tables } from '../store/tables.ts'
import { readPage, type AuditAsk, type AuditPage } from './page.ts'
import {
  charsOf,
  insertText,
  RowMaker,
  valuesOf,
  type AuditedCall,
  type AuditEntry,
  type AuditPlace,
  type Row,
} from './rows.ts'

export interface Audit extends AsyncDisposable {
  /** True while more is waiting than may be kept in memory: new queries are shed until it is written. */
  readonly behind: boolean
  /** Of a change, in its own transaction: durable when the change is. */
  change(tx: Transaction<Tables>, call: AuditedCall, at: AuditPlace): Promise<void>
  /** Of a call that reached a datasource: batched, written within a second, never awaited on the hot path. */
  record(call: AuditedCall, entry: AuditEntry): void
  /**
   * Of a call or change that was refused or failed: outcome and code are read from the error. One error is kept once,
   * by whoever tells it first and knows most.
   */
  refused(call: AuditedCall, at: AuditPlace, error: unknown): void
  /** Writes all that was recorded before. */
  flush(): Promise<void>
  /** A team's rows, newest first, all that was recorded before among them. Throws INVALID_REQUEST for a cursor not ours. */
  page(teamId: TeamId, ask: AuditAsk): Promise<AuditPage>
  /** Removes what is older than its team keeps; runs by itself once a day. */
  prune(): Promise<void>
}

interface Deps {
  readonly store: Pick<Store, 'db' | 'dialect' | 'append'>
  readonly log?: { error(detail: object, message: string): void }
  /** How long a team keeps its rows; absent: nothing is pruned. */
  readonly retentionDays?: (teamId: TeamId) => Promise<number>
  readonly now?: () => number
}

const FLUSH_MS = 200
const RETRY_MS = 1_000
const FIRST_PRUNE_MS = 60_000
const DAY_MS = 86_400_000
/** What may wait in memory; a store that writes at all never comes near it. */
const WAITING_ROWS_MAX = 20_000
const WAITING_CHARS_MAX = 64 * 1024 * 1024
const ROWS_PER_INSERT = 64

/** Opens the audit over the store; disposing writes what waits. */
export function openAudit(deps: Deps): Audit {
  return new BatchedAudit(deps)
}

class BatchedAudit implements Audit {
  readonly #deps: Deps
  readonly #now: () => number
  readonly #rows: RowMaker
  #waiting: Row[] = []
  #waitingChars = 0
  /** 429s, one row a key and minute, by their id. */
  #folded = new Map<AuditId, Row>()
  readonly #told = new WeakSet<object>()
  #timer: NodeJS.Timeout | undefined
  #pruning: NodeJS.Timeout | undefined
  #tail: Promise<void> = Promise.resolve()

  constructor(deps: Deps) {
    this.#deps = deps
    this.#now = deps.now ?? Date.now
    this.#rows = new RowMaker(this.#now)
    if (deps.retentionDays !== undefined) this.#pruneIn(FIRST_PRUNE_MS)
  }

  get behind(): boolean {
    return this.#waiting.length > WAITING_ROWS_MAX || this.#waitingChars > WAITING_CHARS_MAX
  }

  async change(tx: Transaction<Tables>, call: AuditedCall, at: AuditPlace): Promise<void> {
    await tx
      .insertInto('audit')
      .values(this.#rows.of(call, { ...at, outcome: 'ANSWERED' }))
      .execute()
  }

  record(call: AuditedCall, entry: AuditEntry): void {
    if (entry.code === 'RATE_LIMITED') this.#fold(call, entry)
    else {
      const row = this.#rows.of(call, entry)
      this.#waiting.push(row)
      this.#waitingChars += charsOf(row)
    }
    this.#arm(FLUSH_MS)
  }

  refused(call: AuditedCall, at: AuditPlace, error: unknown): void {
    if (typeof error === 'object' && error !== null) {
      if (this.#told.has(error)) return
      this.#told.add(error)
    }
    const code = error instanceof AppError ? error.code : 'INTERNAL'
    const blocked = error instanceof AppError ? error.extra['blocked'] : undefined
    this.record(call, { ...at, outcome: outcomeOf(code), code, ...(blocked !== undefined && { blocked }) })
  }

  flush(): Promise<void> {
    const written = this.#tail.then(() => this.#drain())
    this.#tail = written.catch(() => undefined)
    return written
  }

  async page(teamId: TeamId, ask: AuditAsk): Promise<AuditPage> {
    await this.flush()
    return await readPage(this.#deps.store, teamId, ask)
  }

  async prune(): Promise<void> {
    const { store, retentionDays } = this.#deps
    if (retentionDays === undefined) return
    const teams = await store.db
      .selectFrom('audit')
      .select('team_id')
      .distinct()
      .where('team_id', 'is not', null)
      .execute()
    for (const { team_id: teamId } of teams) {
      if (teamId === null) continue
      const before = new Date(this.#now() - (await retentionDays(teamId)) * DAY_MS).toISOString()
      // A thousand at a time, so that nobody waits long for the store.
      for (;;) {
        const old = (tx: Transaction<Tables>) =>
          tx.selectFrom('audit').select('id').where('team_id', '=', teamId).where('at', '<', before).limit(1_000)
        const removed = await store.append((tx) => tx.deleteFrom('audit').where('id', 'in', old(tx)).executeTakeFirst())
        if (removed.numDeletedRows < 1_000n) break
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#timer)
    clearTimeout(this.#pruning)
    await this.flush()
    clearTimeout(this.#timer)
  }

  #fold(call: AuditedCall, entry: AuditEntry): void {
    const row = this.#rows.ofMinute(call, entry)
    const known = this.#folded.get(row.id)
    if (known === undefined) this.#folded.set(row.id, row)
    else known.times++
  }

  /** Soon after the start, as no process need live for a day, and then once a day. */
  #pruneIn(ms: number): void {
    this.#pruning = setTimeout(() => {
      this.#pruneIn(DAY_MS)
      this.prune().catch((error: unknown) => this.#say(error, 'prune'))
    }, ms)
    this.#pruning.unref()
  }

  #arm(ms: number): void {
    if (this.#timer !== undefined) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.flush().catch((error: unknown) => {
        this.#say(error, 'write')
        this.#arm(RETRY_MS)
      })
    }, ms)
    this.#timer.unref()
  }

  async #drain(): Promise<void> {
    if (this.#waiting.length === 0 && this.#folded.size === 0) return
    const rows = this.#waiting
    const folded = this.#folded
    const chars = this.#waitingChars
    this.#waiting = []
    this.#folded = new Map()
    try {
      await this.#deps.store.append((tx) => this.#write(tx, rows, folded))
      this.#waitingChars -= chars
    } catch (error) {
      this.#waiting = rows.concat(this.#waiting)
      for (const [id, row] of folded) row.times += this.#folded.get(id)?.times ?? 0
      this.#folded = new Map([...this.#folded, ...folded])
      throw error
    }
  }

  async #write(tx: Transaction<Tables>, rows: readonly Row[], folded: ReadonlyMap<AuditId, Row>): Promise<void> {
    for (let from = 0; from < rows.length; from += ROWS_PER_INSERT) {
      const part = rows.slice(from, from + ROWS_PER_INSERT)
      const text = insertText(this.#deps.store.dialect, part.length)
      await tx.executeQuery(CompiledQuery.raw(text, valuesOf(part)))
    }
    for (const row of folded.values()) {
      await tx
        .insertInto('audit')
        .values(row)
        .onConflict((oc) => oc.column('id').doUpdateSet({ times: (eb) => eb('audit.times', '+', row.times) }))
        .execute()
    }
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
