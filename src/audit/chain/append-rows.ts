// Appends rows to a chain. Most rows are linked to the previous row when they are written. Rows of changes, and rows
// that count several calls, are stored with a seal of their own and linked later. A row with a wrong seal was changed
// by hand, and is not linked.
import type { AuditId } from '../../ids.ts'
import type { Position } from './chains.ts'
import type { Writing } from './locked-transaction.ts'
import { sameSeal, textOf, type Content, type Seal } from './seal.ts'

export interface Placed {
  readonly row: Content
  readonly chain: string
  readonly seq: number
  readonly link: string
}

export class ChainEnd {
  readonly chain: string
  readonly #seal: Seal
  #seq: number
  #link: string

  constructor(seal: Seal, position: Position) {
    this.#seal = seal
    this.chain = position.chain
    this.#seq = position.head_seq
    this.#link = position.head_link
  }

  place(row: Content): Placed {
    const link = this.#seal.link(this.#link, this.chain, this.#seq + 1, textOf(row))
    return { row, chain: this.chain, seq: this.#advance(link), link }
  }

  /** Returns the row's link. */
  placeLine(text: Uint8Array): string {
    const link = this.#seal.linkOf(this.#link, this.chain, this.#seq + 1, text)
    this.#advance(link)
    return link
  }

  #advance(link: string): number {
    this.#link = link
    return ++this.#seq
  }

  get head(): Pick<Position, 'head_seq' | 'head_link'> {
    return { head_seq: this.#seq, head_link: this.#link }
  }
}

export interface Linked {
  /** Rows that need no further work: linked now, linked before, or `foreign`. */
  readonly settled: readonly AuditId[]
  /** Rows that are not in the store. Their transaction was rolled back, or is still open. */
  readonly unseen: readonly AuditId[]
  /** Rows that were inserted or changed by hand before they were linked. They stay as they are. */
  readonly foreign: readonly AuditId[]
  readonly count: number
}

const IDS_PER_SELECT = 200

/** Skips rows that are not in the store, are already linked, or were changed by hand. */
export async function linkStored(
  { tx, locked }: Writing,
  seal: Seal,
  end: ChainEnd,
  ids: readonly AuditId[],
): Promise<Linked> {
  const settled: AuditId[] = []
  const foreign: AuditId[] = []
  let count = 0
  for (let from = 0; from < ids.length; from += IDS_PER_SELECT) {
    const part = ids.slice(from, from + IDS_PER_SELECT)
    const rows = await locked(tx.selectFrom('audit').selectAll().where('id', 'in', part).orderBy('id')).execute()
    for (const row of rows) {
      settled.push(row.id)
      if (row.seq !== null) continue
      if (!sameSeal(seal.alone(row), row.link)) {
        foreign.push(row.id)
        continue
      }
      const { chain, seq, link } = end.place(row)
      await tx.updateTable('audit').set({ chain, seq, link }).where('id', '=', row.id).execute()
      count++
    }
  }
  const found = new Set(settled)
  return { settled, unseen: ids.filter((id) => !found.has(id)), foreign, count }
}

/**
 * Adds the counts if the store already has a row with the same id. Returns the rows that could not be added, because
 * the stored row is already linked or was changed by hand.
 */
export async function countInto(
  { tx, locked }: Writing,
  seal: Seal,
  chain: string,
  folded: readonly Content[],
): Promise<readonly Content[]> {
  const late: Content[] = []
  // All processes lock rows in the order of their ids, so they cannot deadlock.
  for (const row of folded.toSorted((a, b) => (a.id < b.id ? -1 : 1))) {
    const stored = await locked(tx.selectFrom('audit').selectAll().where('id', '=', row.id)).executeTakeFirst()
    if (stored === undefined) {
      await tx
        .insertInto('audit')
        .values({ ...row, chain, seq: null, link: seal.alone(row) })
        .execute()
    } else if (stored.seq === null && sameSeal(seal.alone(stored), stored.link)) {
      const times = stored.times + row.times
      const link = seal.alone({ ...stored, times })
      await tx.updateTable('audit').set({ times, link }).where('id', '=', row.id).execute()
    } else late.push(row)
  }
  return late
}
