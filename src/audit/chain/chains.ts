// The chains of a store. Each process that writes has its own chain. Chains are numbered without gaps, and the end of
// each chain is signed. A manually changed signature is never renewed, so that `audit verify` can report the change.
import { randomBytes } from 'node:crypto'
import type { Transaction } from 'kysely'
import { z } from 'zod'
import type { Tables } from '../../store/tables.ts'
import type { Writing } from './locked-transaction.ts'
import { sameSeal, type Chain, type Registry, type Seal } from './seal.ts'

/** The end of a process's chain. `number` is 0 until the chain is in the store. */
export type Position = Omit<Chain, 'signature'>

/** Creates an empty chain. It gets its number when its first rows are written. */
export function newChain(openedAt: string): Position {
  const chain = randomBytes(9).toString('base64url')
  return { chain, number: 0, opened_at: openedAt, head_seq: 0, head_link: '', batch: 0 }
}

/** The list of chains, from its row in the store. Null if the row does not exist. */
export type KnownRegistry = (Registry & { readonly holds: boolean }) | null

const MARK = 'audit chains'
const Mark = z.strictObject({
  first: z.int(),
  last: z.int(),
  since: z.string(),
  before: z.int(),
  signature: z.string(),
})

/** Reads the list of chains. `holds` is false if the list was changed manually. */
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

/**
 * Adds the next chain number to the signed list and returns the number. Never signs a changed list, or a new list in
 * place of a removed one.
 */
async function nextNumber(writing: Writing, seal: Seal, openedAt: string): Promise<number> {
  // The chains are read before the list. The process that starts the first chain writes both in one transaction, so a
  // visible chain implies a visible list.
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

/** Counts the rows outside all chains. */
export async function unchained(tx: Transaction<Tables>): Promise<number> {
  const { rows } = await tx
    .selectFrom('audit')
    .select(({ fn }) => fn.countAll<number>().as('rows'))
    .where('chain', 'is', null)
    .executeTakeFirstOrThrow()
  return Number(rows)
}

/** Returns the chain's row, or null if it is missing or was changed manually. */
export async function readChain({ tx }: Writing, seal: Seal, chain: string): Promise<Chain | null> {
  const row = await tx.selectFrom('audit_chains').selectAll().where('chain', '=', chain).executeTakeFirst()
  return row !== undefined && sameSeal(seal.chain(row), row.signature) ? row : null
}

/** Signs and stores the new end of the chain. A new chain gets its number. */
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
