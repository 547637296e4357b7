// What stands in a chain in place of rows that were removed for their age: from where to where, the link that the next
// row is bound to, signed. Gaps that touch become one, so a chain whose rows all grow old has a single one at its start.
import type { Transaction } from 'kysely'
import type { Tables } from '../../store/tables.ts'
import { sameSeal, type Gap, type Seal } from './seal.ts'

export type Removed = Omit<Gap, 'signature'>

/** Notes the removed rows, together with the gaps they touch. A gap that was changed by hand is left as it is. */
export async function addGap(tx: Transaction<Tables>, seal: Seal, removed: Removed): Promise<void> {
  const { chain } = removed
  const left = await gapEndingAt(tx, seal, chain, removed.first_seq - 1)
  const right = await gapAt(tx, seal, chain, removed.last_seq + 1)
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

/** The gap whose last row this was; null where there is none, or it was changed by hand. */
export async function gapEndingAt(
  tx: Transaction<Tables>,
  seal: Seal,
  chain: string,
  lastSeq: number,
): Promise<Gap | null> {
  const gap = await gapBegunBy(tx, chain, lastSeq)
  return gap?.last_seq === lastSeq && sameSeal(seal.gap(gap), gap.signature) ? gap : null
}

/** Whether one of these rows was removed before: what stands there now was put there by hand. */
export async function isRemoved(tx: Transaction<Tables>, chain: string, first: number, last: number): Promise<boolean> {
  const gap = await gapBegunBy(tx, chain, last)
  return gap !== undefined && gap.last_seq >= first
}

/** The last one that begins there or before. */
async function gapBegunBy(tx: Transaction<Tables>, chain: string, seq: number): Promise<Gap | undefined> {
  return await tx
    .selectFrom('audit_gaps')
    .selectAll()
    .where('chain', '=', chain)
    .where('first_seq', '<=', seq)
    .orderBy('first_seq', 'desc')
    .limit(1)
    .executeTakeFirst()
}

async function gapAt(tx: Transaction<Tables>, seal: Seal, chain: string, firstSeq: number): Promise<Gap | null> {
  const gap = await tx
    .selectFrom('audit_gaps')
    .selectAll()
    .where('chain', '=', chain)
    .where('first_seq', '=', firstSeq)
    .executeTakeFirst()
  return gap !== undefined && sameSeal(seal.gap(gap), gap.signature) ? gap : null
}
