// Reads the single and packed rows of a chain in the order of their numbers, up to a thousand at a time.
import { sql, type Transaction } from 'kysely'
import type { Tables } from '../../store/tables.ts'
import { describes, MARK_CHARS, unpacked, type Pack } from '../packs.ts'
import { merged } from '../reading/merge-streams.ts'
import { FIRST_PORTION, nextPortion } from '../reading/portion-size.ts'
import { sameSeal, textOf, type Stored } from './seal.ts'

export type Step =
  | {
      readonly kind: 'row'
      readonly seq: number
      readonly row: Stored
      /** The text whose hash is the link. */
      readonly text: string
      /** True if only the first characters of the link are stored, as for all rows of a pack except the last. */
      readonly isMarked: boolean
    }
  | { readonly kind: 'pack'; readonly seq: number; readonly pack: Pack; readonly holds: boolean }

/** A row comes before a pack with the same number. */
export function stepsOf(tx: Transaction<Tables>, chain: string): AsyncIterable<readonly Step[]> {
  return merged(singleSteps(tx, chain), packSteps(tx, chain), (a, b) => a.seq < b.seq)
}

export function bears({ row, isMarked }: Step & { kind: 'row' }, link: string): boolean {
  return sameSeal(isMarked ? link.slice(0, MARK_CHARS) : link, row.link)
}

/** Returns no rows if the pack is unreadable. */
export function stepsOfPack(pack: Pack): readonly Step[] {
  const rows = unpacked(pack)
  if (rows === null) return [{ kind: 'pack', seq: pack.first_seq, pack, holds: false }]
  return [
    ...rows.map(({ row, text }, index): Step => {
      return { kind: 'row', seq: pack.first_seq + index, row, text, isMarked: index < rows.length - 1 }
    }),
    { kind: 'pack', seq: pack.last_seq, pack, holds: describes(pack, rows) },
  ]
}

async function* singleSteps(tx: Transaction<Tables>, chain: string): AsyncIterable<readonly Step[]> {
  let after: Stored | null = null
  let count = FIRST_PORTION
  for (;;) {
    const rows: readonly Stored[] = await rowsBehind(tx, chain, after, count)
    yield rows.map((row) => ({ kind: 'row', seq: row.seq ?? 0, row, text: textOf(row), isMarked: false }))
    after = rows.at(-1) ?? null
    if (rows.length < count) return
    count = nextPortion(rows)
  }
}

/** Orders also by id, because two rows may have the same number if somebody dropped the unique index. */
async function rowsBehind(
  tx: Transaction<Tables>,
  chain: string,
  after: Pick<Stored, 'seq' | 'id'> | null,
  count: number,
): Promise<readonly Stored[]> {
  let rows = tx.selectFrom('audit').selectAll().where('chain', '=', chain).where('seq', 'is not', null)
  if (after !== null) {
    const { seq, id } = after
    rows = rows.where(sql<boolean>`(seq, id) > (${seq}, ${id})`)
  }
  return await rows.orderBy('seq').orderBy('id').limit(count).execute()
}

async function* packSteps(tx: Transaction<Tables>, chain: string): AsyncIterable<readonly Step[]> {
  for (let after: Pack | undefined; ;) {
    let packs = tx.selectFrom('audit_packs').selectAll().where('chain', '=', chain)
    if (after !== undefined) {
      const { first_seq, first_id } = after
      packs = packs.where(sql<boolean>`(first_seq, first_id) > (${first_seq}, ${first_id})`)
    }
    after = await packs.orderBy('first_seq').orderBy('first_id').limit(1).executeTakeFirst()
    if (after === undefined) return
    yield stepsOfPack(after)
  }
}
