// Writes the waiting rows in batches. Each process has its own chain of rows. One transaction appends a batch and signs
// the new end of the chain. If the answer to a commit is lost, the writer first looks whether the batch is in the
// store.
import { setImmediate } from 'node:timers/promises'
import type { Transaction } from 'kysely'
import type { AuditId } from '../../ids.ts'
import type { Store } from '../../store/open.ts'
import type { Tables } from '../../store/tables.ts'
import { newChain, readChain, writeChain, type Position } from '../chain/chains.ts'
import { ChainEnd, countInto, linkStored, type Linked } from '../chain/append-rows.ts'
import { writing, type Writing } from '../chain/locked-transaction.ts'
import type { Content, Seal } from '../chain/seal.ts'
import { UsageBounds } from '../usage-bounds.ts'
import { addCounts } from '../usage-by-day.ts'
import { MINUTE_MS } from '../make-rows.ts'
import { insertPacks, insertRows } from './insert-rows.ts'
import { Lines } from './waiting-lines.ts'
import { placeLines } from './pack-lines.ts'

export interface WriterLog {
  error(detail: object, message: string): void
  warn(detail: object, message: string): void
  info(detail: object, message: string): void
}

export interface WriterDeps {
  readonly store: Pick<Store, 'db' | 'dialect' | 'commit' | 'settled'>
  readonly seal: Seal
  readonly now: () => number
  /** Gives a new id to a row that counts calls, if the row with the old id is already linked. */
  readonly renamed: (row: Content) => Content
  readonly log?: WriterLog | undefined
}

/** `behind` is true if more rows wait. */
const WAITING_ROWS_MAX = 20_000
const WAITING_BYTES_MAX = 64 * 1024 * 1024
/** `behind` is also true if a row waits longer, so a process that stops while its store is down loses few rows. */
const WAITING_MS_MAX = 5_000
const SPARES_MAX = 8
const LINKED_MAX = 1_000
/** Other processes may add to a row that counts calls until its minute is over. It is linked this long after. */
const AFTER_MINUTE_MS = 2_000
/** If a row is not visible after this time, its transaction is assumed to be rolled back. */
const UNSEEN_MS = 60_000
/** If a row is not linked after this time, its process is assumed to have stopped. */
const ORPHANED_MS = 120_000

/** `ms` is the age of the oldest row. A row that counts calls is included only after its write has begun. */
export interface WaitingRows {
  readonly rows: number
  readonly bytes: number
  readonly ms: number
}

interface Batch {
  readonly lines: Lines
  readonly folded: ReadonlyMap<AuditId, Content>
  readonly unlinked: readonly AuditId[]
  /** True if this batch was sent to the store before, and the result is unknown. */
  readonly tried: boolean
}

interface Done {
  readonly position: Position
  readonly linked: Linked
}

const NOTHING: Linked = { settled: [], unseen: [], foreign: [], count: 0 }

export class Writer {
  readonly #deps: WriterDeps
  readonly #bounds: UsageBounds
  #position: Position
  #waiting: Lines[] = []
  /** The batches that the last drain() wrote. New batches reuse their buffers. */
  #spares: Lines[] = []
  #folded = new Map<AuditId, Content>()
  /**
   * Rows that are in the store, or in an open transaction, but not linked yet. A row is linked after `from`, or
   * forgotten if it is not in the store at `until`.
   */
  readonly #unlinked = new Map<AuditId, { readonly from: number; readonly until: number }>()
  /** The batch that is being written, or whose write failed. */
  #unfinished: Batch | null = null
  #isSettled = true
  written = 0

  constructor(deps: WriterDeps) {
    this.#deps = deps
    this.#bounds = new UsageBounds(deps.store.dialect, deps.now)
    this.#position = this.#newPosition()
  }

  get behind(): boolean {
    const { rows, bytes, ms } = this.waiting
    return rows > WAITING_ROWS_MAX || bytes > WAITING_BYTES_MAX || ms > WAITING_MS_MAX
  }

  get waiting(): WaitingRows {
    const unfinished = this.#unfinished
    let rows = unfinished === null ? 0 : unfinished.lines.rows + unfinished.folded.size
    let bytes = unfinished?.lines.bytes ?? 0
    let since = rows === 0 ? undefined : unfinished?.lines.since
    for (const lines of this.#waiting) {
      rows += lines.rows
      bytes += lines.bytes
      since ??= lines.since
    }
    return { rows, bytes, ms: since === undefined ? 0 : performance.now() - since }
  }

  /** Null if nothing waits. */
  get dueIn(): number | null {
    if (this.#unfinished !== null || this.#waiting.length > 0 || this.#folded.size > 0 || !this.#isSettled) return 0
    let due = Infinity
    for (const { from } of this.#unlinked.values()) due = Math.min(due, from)
    return due === Infinity ? null : Math.max(0, due - this.#deps.now())
  }

  /** Keep this log on another machine as proof of the end of the chain, because the store itself can be changed. */
  logHead(): void {
    const { chain, head_seq: seq, head_link: link } = this.#position
    if (seq > 0) this.#deps.log?.info({ chain, seq, link }, 'audit: the end of the chain')
  }

  push(row: Content): void {
    let lines = this.#waiting.at(-1)
    if (lines === undefined || lines.isFull) {
      this.#waiting.push((lines = new Lines(this.#spares.pop() ?? null)))
    }
    lines.add(row)
  }

  fold(row: Content): void {
    const known = this.#folded.get(row.id)
    if (known === undefined) this.#folded.set(row.id, row)
    else this.#folded.set(row.id, { ...known, times: known.times + row.times })
  }

  /** Inserts a row in the caller's transaction. It is linked when this transaction has ended. */
  async insert(tx: Transaction<Tables>, row: Content): Promise<void> {
    const now = this.#deps.now()
    this.#unlinked.set(row.id, { from: now, until: now + UNSEEN_MS })
    const link = this.#deps.seal.alone(row)
    await tx
      .insertInto('audit')
      .values({ ...row, chain: this.#position.chain, seq: null, link })
      .execute()
    this.written++
  }

  /** Writes all rows that waited before this call. If `closing`, also links rows that would be linked later. */
  async drain(closing: boolean): Promise<void> {
    this.#spares = []
    if (this.#unfinished !== null) await this.#finish(this.#unfinished)
    let left = this.#waiting.length
    for (let more = true; more;) {
      const batch = this.#take(closing)
      if (batch === null) break
      const unlinked = this.#unlinked.size
      await this.#finish(batch)
      left--
      const progress = batch.lines.rows + batch.folded.size > 0 || this.#unlinked.size < unlinked
      more = left > 0 || (closing && progress)
      // SQLite answers synchronously, so let other requests run.
      if (more) await setImmediate()
    }
    if (!this.#isSettled) await this.#deps.store.settled()
    this.#isSettled = true
  }

  /** Finds rows that killed processes left without a link. The next batches link them. */
  async adopt(): Promise<void> {
    const { store, now, log } = this.#deps
    const orphaned = new Date(now() - ORPHANED_MS).toISOString()
    const rows = await store.db
      .selectFrom('audit')
      .select('id')
      .where('seq', 'is', null)
      .where('chain', 'is not', null)
      .where('chain', '!=', this.#position.chain)
      .where((eb) => {
        const old = eb('at', '<', orphaned)
        // With SQLite there is no other process, so all rows are linked at once, except rows whose minute may not be
        // over.
        return store.dialect === 'postgres'
          ? old
          : eb.or([old, eb('code', 'is', null), eb('code', '!=', 'RATE_LIMITED')])
      })
      .execute()
    if (rows.length === 0) return
    log?.warn({ rows: rows.length }, 'audit: linking rows that an ended process left without a link')
    for (const { id } of rows) this.#unlinked.set(id, { from: now(), until: now() })
  }

  #take(closing: boolean): Batch | null {
    const lines = this.#waiting.shift() ?? new Lines(null)
    const folded = this.#folded
    this.#folded = new Map()
    for (const row of folded.values()) lines.counts.add(row)
    const now = this.#deps.now()
    const due = [...this.#unlinked].filter(([, { from }]) => closing || from <= now).map(([id]) => id)
    const unlinked = due.slice(0, LINKED_MAX)
    if (lines.rows === 0 && folded.size === 0 && unlinked.length === 0) return null
    return { lines, folded, unlinked, tried: false }
  }

  async #finish(batch: Batch): Promise<void> {
    this.#unfinished = { ...batch, tried: true }
    this.#isSettled = false
    const done = await this.#writeBatch(batch)
    this.#unfinished = null
    this.written += batch.lines.rows + batch.folded.size
    if (batch.lines.rows > 0 && this.#spares.length < SPARES_MAX) this.#spares.push(batch.lines)
    this.#settle(done, batch)
  }

  async #writeBatch(batch: Batch): Promise<Done> {
    try {
      return await writing(this.#deps.store, (within) => this.#write(within, batch))
    } catch (error) {
      this.#bounds.forget()
      // The row at the next position was inserted by hand. Begin a new chain, so that the audit can go on.
      if (isTaken(error)) this.#beginChain('a place in this chain was taken manually')
      throw error
    }
  }

  async #write(within: Writing, batch: Batch): Promise<Done> {
    const { store, seal, renamed } = this.#deps
    const { position, isDone } = await this.#positionIn(within, batch.tried)
    if (isDone) return { position, linked: NOTHING }
    const end = new ChainEnd(seal, position)
    const late = await countInto(within, seal, end.chain, [...batch.folded.values()])
    const linked = await linkStored(within, seal, end, batch.unlinked)
    const { lines } = batch
    if (lines.rows + linked.count + batch.folded.size === 0) return { position: this.#position, linked }
    const { single, packs } = placeLines(end, lines)
    await insertPacks(within.tx, packs)
    await insertRows(within.tx, store.dialect, [...single, ...late.map((row) => end.place(renamed(row)))])
    await addCounts(within.tx, end.chain, lines.counts, this.#bounds)
    return { position: await writeChain(within, seal, { ...position, ...end.head, batch: position.batch + 1 }), linked }
  }

  /**
   * Returns the position after which the batch starts. `isDone` is true if an earlier attempt has written the batch. If
   * the row of this chain was changed by hand, starts a new chain.
   */
  async #positionIn(
    within: Writing,
    tried: boolean,
  ): Promise<{ readonly position: Position; readonly isDone: boolean }> {
    const position = this.#position
    const stored = await readChain(within, this.#deps.seal, position.chain)
    if (tried && stored?.batch === position.batch + 1) return { position: stored, isDone: true }
    if (stored === null ? position.number === 0 : stored.batch === position.batch) return { position, isDone: false }
    return { position: this.#beginChain('the end of this chain was changed manually'), isDone: false }
  }

  /** The old chain stays as it is, and `audit verify` reports it. */
  #beginChain(why: string): Position {
    this.#deps.log?.error({ chain: this.#position.chain }, `audit: ${why}; a new chain was started`)
    this.#position = this.#newPosition()
    return this.#position
  }

  #newPosition(): Position {
    return newChain(new Date(this.#deps.now()).toISOString())
  }

  #settle({ position, linked }: Done, batch: Batch): void {
    const { store, log, now } = this.#deps
    const { chain, number, opened_at, head_seq, head_link, batch: written } = position
    this.#position = { chain, number, opened_at, head_seq, head_link, batch: written }
    for (const row of batch.folded.values()) {
      const from = (Math.floor(Date.parse(row.at) / MINUTE_MS) + 1) * MINUTE_MS + AFTER_MINUTE_MS
      this.#unlinked.set(row.id, { from, until: from })
    }
    for (const id of linked.settled) this.#unlinked.delete(id)
    for (const id of linked.unseen) {
      // A row that is not in the store is forgotten after `until`. SQLite has only one connection, so the transaction
      // of the row has already ended without a commit.
      const known = this.#unlinked.get(id)
      if (store.dialect === 'sqlite' || known === undefined || known.until <= now()) this.#unlinked.delete(id)
    }
    if (linked.foreign.length > 0) log?.error({ ids: linked.foreign }, 'audit: rows were changed manually')
  }
}

/** Returns true for SQLITE_CONSTRAINT_UNIQUE of SQLite and unique_violation of PostgreSQL. */
function isTaken(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  return ('errcode' in error && error.errcode === 2067) || ('code' in error && error.code === '23505')
}
