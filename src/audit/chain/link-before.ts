// Finds the link of the row, pack or gap before a position in a chain.
import type { Transaction } from 'kysely'
import type { Tables } from '../../store/tables.ts'
import { gapEndingAt } from './gaps.ts'
import type { Seal } from './seal.ts'

/** Returns null if the row, pack or gap is missing, and '' before the first row. */
export async function linkBefore(
  tx: Transaction<Tables>,
  seal: Seal,
  chain: string,
  seq: number,
): Promise<string | null> {
  if (seq === 1) return ''
  const gap = await gapEndingAt(tx, seal, chain, seq - 1)
  if (gap !== null) return gap.last_link
  const row = await tx
    .selectFrom('audit')
    .select('link')
    .where('chain', '=', chain)
    .where('seq', '=', seq - 1)
    .executeTakeFirst()
  if (row !== undefined) return row.link
  const pack = await tx
    .selectFrom('audit_packs')
    .select(['last_seq', 'last_link'])
    .where('chain', '=', chain)
    .where('first_seq', '<', seq)
    .orderBy('first_seq', 'desc')
    .limit(1)
    .executeTakeFirst()
  return pack?.last_seq === seq - 1 ? pack.last_link : null
}
