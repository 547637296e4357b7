// Writes what waits, in batches off the hot path, each at the end of this process's chain and in one transaction with the
// chain's signed end. It never drops a row; a batch whose answer was lost is looked for before it is written again.
import { setImmediate } from 'node:timers/promises'
import type { Transaction } from 'kysely'
import type { AuditId } from '../../ids.ts'
import type { Store } from '../../store/open.ts'
import type { Tables } from '../../store/tables.ts'
import { newChain, readChain, writeChain, type Position } from '../chain/chains.ts'
import { ChainEnd, countInto, linkStored, type Linked } from '../chain/linking.ts'
import { writing, type Writing } from '../chain/locked.ts'
import type { Content, Seal } from '../chain/seal.ts'
import { addCounts } from '../counters.ts'
import { MINUTE_MS } from '../rows.ts'
import { insertPacks, insertRows } from './insert.ts'
import { Lines } from './lines.ts'
import { placeLines } from './placing.ts'

export interface WriterLog {
  error(detail: object, message: string): void
  warn(detail: object, message: string): void
  info(detail: object, message: string): void
}

export interface WriterDeps {
  readonly store: Pick<Store, 'db' | 'dialect' | 'commit' | 'settled'>
  readonly seal: Seal
  readonly now: () => number
  /** A 429 that came too late for the row of its minute, under an id of its own. */
  readonly renamed: (row: Content) => Content
  readonly log?: WriterLog | undefined
}

/** What may wait in memory; a store that writes at all never comes near it. */
const WAITING_ROWS_MAX = 20_000
const WAITING_BYTES_MAX = 64 * 1024 * 1024
/** Two megabytes each, between two drains. */
const SPARES_MAX = 8
/** Linked at a time. */
const LINKED_MAX = 1_000
/** After its minute a row of 429s is linked; a little later, as others may still count into it. */
const AFTER_MINUTE_MS = 2_000
/** How long the transaction of a change may take before it is taken for rolled back. */
const UNSEEN_MS = 60_000
/** A row without a link for so long has no process that would link it. */
const ORPHANED_MS = 120_000

interface Batch {
  readonly lines: Lines
  readonly folded: ReadonlyMap<AuditId, Content>
  readonly unlinked: readonly AuditId[]
  /** It was tried, and how that ended is not known. */
  readonly tried: boolean
}

interface Done {
  readonly position: Position
  readonly linked: Linked
}

const NOTHING: Linked = { settled: [], unseen: [], foreign: [], count: 0 }

export class Writer {
  readonly #deps: WriterDeps
  #position: Position
  /** What a batch each is made of; the last one is still written to. */
  #waiting: Lines[] = []
  /** Were written: their room is used again, by as many as the last drain took. */
  #spares: Lines[] = []
  /** 429s, one row a key and minute, by their id. */
  #folded = new Map<AuditId, Content>()
  /** Rows in the store, or on their way there, that are to be linked: from when on, and until when they may be unseen. */
  readonly #unlinked = new Map<AuditId, { readonly from: number; readonly until: number }>()
  #unfinished: Batch | null = null
  /** All that was committed is on the disk. */
  #isSettled = true

  constructor(deps: WriterDeps) {
    this.#deps = deps
    this.#position = this.#begun()
  }

  get behind(): boolean {
    let [rows, bytes] = [this.#unfinished?.lines.rows ?? 0, this.#unfinished?.lines.bytes ?? 0]
    for (const lines of this.#waiting) {
      rows += lines.rows
      bytes += lines.bytes
    }
    return rows > WAITING_ROWS_MAX || bytes > WAITING_BYTES_MAX
  }

  /** Milliseconds until something must be written; null where nothing waits. */
  get dueIn(): number | null {
    if (this.#unfinished !== null || this.#waiting.length > 0 || this.#folded.size > 0 || !this.#isSettled) return 0
    let due = Infinity
    for (const { from } of this.#unlinked.values()) due = Math.min(due, from)
    return due === Infinity ? null : Math.max(0, due - this.#deps.now())
  }

  /** Says where the chain stands, for a log that is kept elsewhere: no change of the store can take that back. */
  sayHead(): void {
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

  /** Into a transaction of somebody else; linked once that is over. */
  async insert(tx: Transaction<Tables>, row: Content): Promise<void> {
    const now = this.#deps.now()
    this.#unlinked.set(row.id, { from: now, until: now + UNSEEN_MS })
    const link = this.#deps.seal.alone(row)
    await tx
      .insertInto('audit')
      .values({ ...row, chain: this.#position.chain, seq: null, link })
      .execute()
  }

  /** Writes all that waited before. With `closing` nothing that can be linked is left without a link. */
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
      // The embedded store answers at once: others must have their turn all the same.
      if (more) await setImmediate()
    }
    if (!this.#isSettled) await this.#deps.store.settled()
    this.#isSettled = true
  }

  /** Links what processes that are gone left without a link. */
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
        // Beside the embedded store there is no other process; only a 429's minute may still be running.
        return store.dialect === 'postgres'
          ? old
          : eb.or([old, eb('code', 'is', null), eb('code', '!=', 'RATE_LIMITED')])
      })
      .execute()
    if (rows.length === 0) return
    log?.warn({ rows: rows.length }, 'audit: rows that an ended process left without a link are linked now')
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
    const done = await this.#written(batch)
    this.#unfinished = null
    if (batch.lines.rows > 0 && this.#spares.length < SPARES_MAX) this.#spares.push(batch.lines)
    this.#took(done, batch)
  }

  async #written(batch: Batch): Promise<Done> {
    try {
      return await writing(this.#deps.store, (within) => this.#write(within, batch))
    } catch (error) {
      // Only a row put in by hand can stand where the next one of ours belongs: that must not stop the audit.
      if (isTaken(error)) this.#begin('a place in this chain was taken by hand')
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
    await addCounts(within.tx, end.chain, lines.counts)
    return { position: await writeChain(within, seal, { ...position, ...end.head, batch: position.batch + 1 }), linked }
  }

  /** Where this batch begins, or ended. A chain whose row was changed by hand is left as it is, for a new one. */
  async #positionIn(
    within: Writing,
    tried: boolean,
  ): Promise<{ readonly position: Position; readonly isDone: boolean }> {
    const position = this.#position
    const kept = await readChain(within, this.#deps.seal, position.chain)
    if (tried && kept?.batch === position.batch + 1) return { position: kept, isDone: true }
    if (kept === null ? position.number === 0 : kept.batch === position.batch) return { position, isDone: false }
    return { position: this.#begin('the end of this chain was changed by hand'), isDone: false }
  }

  /** Leaves the chain as it is, for `audit verify` to find. */
  #begin(why: string): Position {
    this.#deps.log?.error({ chain: this.#position.chain }, `audit: ${why}; another is begun`)
    this.#position = this.#begun()
    return this.#position
  }

  #begun(): Position {
    return newChain(new Date(this.#deps.now()).toISOString())
  }

  #took({ position, linked }: Done, batch: Batch): void {
    const { store, log, now } = this.#deps
    const { chain, number, opened_at, head_seq, head_link, batch: written } = position
    this.#position = { chain, number, opened_at, head_seq, head_link, batch: written }
    for (const row of batch.folded.values()) {
      const from = (Math.floor(Date.parse(row.at) / MINUTE_MS) + 1) * MINUTE_MS + AFTER_MINUTE_MS
      this.#unlinked.set(row.id, { from, until: from })
    }
    for (const id of linked.settled) this.#unlinked.delete(id)
    for (const id of linked.unseen) {
      // The embedded store has one connection: whatever was under way before has ended.
      const known = this.#unlinked.get(id)
      if (store.dialect === 'sqlite' || known === undefined || known.until <= now()) this.#unlinked.delete(id)
    }
    if (linked.foreign.length > 0) log?.error({ ids: linked.foreign }, 'audit: rows were changed by hand')
  }
}

/** A unique value that is there already: SQLite's UNIQUE, PostgreSQL's unique_violation. */
function isTaken(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  return ('errcode' in error && error.errcode === 2067) || ('code' in error && error.code === '23505')
}
