// Each process that writes audit rows has its own chain. The store has a numbered, signed list of the chains, and the
// end of each chain is signed. A signature that somebody changed is never renewed, so that `audit verify` can report
// it.
import { randomBytes } from 'node:crypto'
import type { Transaction } from 'kysely'
import { z } from 'zod'
import type { Tables } from '../../store/tables.ts'
import type { Writing } from './locked-transaction.ts'
import { sameSeal, type Chain, type Registry, type Seal } from './seal.ts'

/** The end of a chain. `number` is 0 until the chain is in the store. */
export type Position = Omit<Chain, 'signature'>

export function newChain(openedAt: string): Position {
  const chain = randomBytes(9).toString('base64url')
  return { chain, number: 0, opened_at: openedAt, head_seq: 0, head_link: '', batch: 0 }
}

/** Null if the store has no list of chains. */
export type KnownRegistry = (Registry & { readonly holds: boolean }) | null

const MARK = 'audit chains'
const Mark = z.strictObject({
  first: z.int(),
  last: z.int(),
  since: z.string(),
  before: z.int(),
  signature: z.string(),
})

/** `holds` is false if somebody has changed the list. */
export async function readRegistry({ tx, locked }: Writing, seal: Seal): Promise<KnownRegistry> {
  const row = await locked(tx.selectFrom('marks').select('value').where('name', '=', MARK)).executeTakeFirst()
  if (row === undefined) return null
  const read = Mark.safeParse(parsed(row.value))
  if (!read.success) return { first: 1, last: 0, since: '', before: 0, holds: false }
  const { signature, ...registry } = read.data
  return { ...registry, holds: sameSeal(seal.registry(registry), signature) }
}

export async function writeRegistry({ tx }: Writing, seal: Seal, registry: Registry): Promise<void> {
  const { first, last, since, before } = registry
  const value = JSON.stringify({ first, last, since, before, signature: seal.registry(registry) })
  await tx
    .insertInto('marks')
    .values({ name: MARK, value })
    .onConflict((oc) => oc.column('name').doUpdateSet({ value }))
    .execute()
}

/** If the list was changed or removed by hand, it is not signed again. */
async function nextNumber(writing: Writing, seal: Seal, openedAt: string): Promise<number> {
  // Read the chains before the list. One transaction writes the first chain and the list, so if this query finds a
  // chain, the list is visible too.
  const highest = await writing.tx
    .selectFrom('audit_chains')
    .select('number')
    .orderBy('number', 'desc')
    .executeTakeFirst()
  const registry = await readRegistry(writing, seal)
  const number = Math.max(registry?.last ?? 0, highest?.number ?? 0) + 1
  const holds = registry === null ? highest === undefined : registry.holds
  if (holds) {
    const { first, since, before } = registry ?? { first: number, since: openedAt, before: await unchained(writing.tx) }
    await writeRegistry(writing, seal, { first, last: number, since, before })
  }
  return number
}

export async function unchained(tx: Transaction<Tables>): Promise<number> {
  const { rows } = await tx
    .selectFrom('audit')
    .select(({ fn }) => fn.countAll<number>().as('rows'))
    .where('chain', 'is', null)
    .executeTakeFirstOrThrow()
  return Number(rows)
}

/** Returns null if the row of the chain is missing or was changed by hand. */
export async function readChain({ tx }: Writing, seal: Seal, chain: string): Promise<Chain | null> {
  const row = await tx.selectFrom('audit_chains').selectAll().where('chain', '=', chain).executeTakeFirst()
  return row !== undefined && sameSeal(seal.chain(row), row.signature) ? row : null
}

export async function writeChain(writing: Writing, seal: Seal, position: Position): Promise<Position> {
  const isNew = position.number === 0
  const row = isNew ? { ...position, number: await nextNumber(writing, seal, position.opened_at) } : position
  const signed = { ...row, signature: seal.chain(row) }
  const { tx } = writing
  if (isNew) await tx.insertInto('audit_chains').values(signed).execute()
  else await tx.updateTable('audit_chains').set(signed).where('chain', '=', row.chain).execute()
  return row
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
