// Puts rows at the end of a chain, within the transaction that writes them. Rows of changes are in the store before they
// are linked, and so are the counting rows of 429s: until then each bears a seal of its own, without which it is not linked.
import type { AuditId } from '../../ids.ts'
import type { Position } from './chains.ts'
import type { Writing } from './locked.ts'
import { sameSeal, textOf, type Content, type Seal } from './seal.ts'

/** A row at its place. */
export interface Placed {
  readonly row: Content
  readonly chain: string
  readonly seq: number
  readonly link: string
}

/** The end of a chain while rows are put there. */
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
    return { row, chain: this.chain, seq: this.#goTo(link), link }
  }

  /** As place(), of a row that is text already; answers with its link. */
  placeLine(text: Uint8Array): string {
    const link = this.#seal.linkOf(this.#link, this.chain, this.#seq + 1, text)
    this.#goTo(link)
    return link
  }

  #goTo(link: string): number {
    this.#link = link
    return ++this.#seq
  }

  get head(): Pick<Position, 'head_seq' | 'head_link'> {
    return { head_seq: this.#seq, head_link: this.#link }
  }
}

/** What became of rows that waited for their link. */
export interface Linked {
  /** Linked now or by another process, or not to be linked. */
  readonly settled: readonly AuditId[]
  /** Not in the store: their transaction was rolled back, or has not ended. */
  readonly unseen: readonly AuditId[]
  /** Changed by hand before they could be linked: left as they are. */
  readonly foreign: readonly AuditId[]
  readonly count: number
}

const IDS_PER_SELECT = 200

/** Links those of these rows that are in the store and have no place yet. */
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
 * Counts 429s into the row of their minute, whichever process made it. Answers with those that came too late for it, as
 * it was linked meanwhile.
 */
export async function countInto(
  { tx, locked }: Writing,
  seal: Seal,
  chain: string,
  folded: readonly Content[],
): Promise<readonly Content[]> {
  const late: Content[] = []
  // In one order, as another process may count into the same.
  for (const row of folded.toSorted((a, b) => (a.id < b.id ? -1 : 1))) {
    const kept = await locked(tx.selectFrom('audit').selectAll().where('id', '=', row.id)).executeTakeFirst()
    if (kept === undefined) {
      await tx
        .insertInto('audit')
        .values({ ...row, chain, seq: null, link: seal.alone(row) })
        .execute()
    } else if (kept.seq === null && sameSeal(seal.alone(kept), kept.link)) {
      const times = kept.times + row.times
      const link = seal.alone({ ...kept, times })
      await tx.updateTable('audit').set({ times, link }).where('id', '=', row.id).execute()
    } else late.push(row)
  }
  return late
}
