// When old rows of a chain are removed, a signed gap replaces them. A gap has the numbers of its first and last row,
// the link of the last row, and the newest time. Adjacent gaps are merged. A chain has rows of several teams with
// different retentions, so a gap may be in the middle of a chain.
import type { Transaction } from 'kysely'
import type { Tables } from '../../store/tables.ts'
import { sameSeal, type Gap, type Seal } from './seal.ts'

export type Removed = Omit<Gap, 'signature'>

/** A gap that was changed by hand is not merged. */
export async function addGap(tx: Transaction<Tables>, seal: Seal, removed: Removed): Promise<void> {
  const { chain } = removed
  const left = await gapEndingAt(tx, seal, chain, removed.first_seq - 1)
  const right = await gapStartingAt(tx, seal, chain, removed.last_seq + 1)
  for (const gap of [left, right]) {
    if (gap === null) continue
    await tx.deleteFrom('audit_gaps').where('chain', '=', chain).where('first_seq', '=', gap.first_seq).execute()
  }
  const gap = {
    chain,
    first_seq: left?.first_seq ?? removed.first_seq,
    last_seq: right?.last_seq ?? removed.last_seq,
    last_link: right?.last_link ?? removed.last_link,
    until: [left?.until ?? '', removed.until, right?.until ?? ''].sort().at(-1) ?? removed.until,
  }
  await tx
    .insertInto('audit_gaps')
    .values({ ...gap, signature: seal.gap(gap) })
    .execute()
}

/** Returns null if there is no such gap, or if it was changed by hand. */
export async function gapEndingAt(
  tx: Transaction<Tables>,
  seal: Seal,
  chain: string,
  lastSeq: number,
): Promise<Gap | null> {
  const gap = await lastGapUpTo(tx, chain, lastSeq)
  return gap?.last_seq === lastSeq && sameSeal(seal.gap(gap), gap.signature) ? gap : null
}

/** Returns true if a gap covers a number from `first` to `last`. A row with such a number was inserted by hand. */
export async function isRemoved(tx: Transaction<Tables>, chain: string, first: number, last: number): Promise<boolean> {
  const gap = await lastGapUpTo(tx, chain, last)
  return gap !== undefined && gap.last_seq >= first
}

async function lastGapUpTo(tx: Transaction<Tables>, chain: string, seq: number): Promise<Gap | undefined> {
  return await tx
    .selectFrom('audit_gaps')
    .selectAll()
    .where('chain', '=', chain)
    .where('first_seq', '<=', seq)
    .orderBy('first_seq', 'desc')
    .limit(1)
    .executeTakeFirst()
}

async function gapStartingAt(
  tx: Transaction<Tables>,
  seal: Seal,
  chain: string,
  firstSeq: number,
): Promise<Gap | null> {
  const gap = await tx
    .selectFrom('audit_gaps')
    .selectAll()
    .where('chain', '=', chain)
    .where('first_seq', '=', firstSeq)
    .executeTakeFirst()
  return gap !== undefined && sameSeal(seal.gap(gap), gap.signature) ? gap : null
}
