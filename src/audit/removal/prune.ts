// Removes rows that are older than their team's retention. A signed gap replaces removed rows in a chain. A row that
// does not fit its chain was changed by hand, and stays, so that `audit verify` can report it. Rows without a chain are
// removed by age only.
import { setImmediate } from 'node:timers/promises'
import type { Transaction } from 'kysely'
import { asId, type AuditId } from '../../ids.ts'
import type { Store } from '../../store/open.ts'
import type { Tables } from '../../store/tables.ts'
import { readRegistry, writeRegistry } from '../chain/chains.ts'
import { addGap, gapEndingAt, isRemoved } from '../chain/gaps.ts'
import { linkBefore } from '../chain/link-before.ts'
import { writing } from '../chain/locked-transaction.ts'
import { sameSeal, textOf, type Seal, type Stored } from '../chain/seal.ts'
import { headOf } from '../make-rows.ts'
import { rowsWithin, sizeOfRow } from '../reading/portion-size.ts'
import { cutoffs, type PruneDeps } from './retention-cutoffs.ts'
import { prunePacks } from './prune-packs.ts'

const ROWS_AT_A_TIME = 200
/** One transaction removes rows up to this size. It reads and hashes them, which takes a few milliseconds. */
const BYTES_AT_A_TIME = 1 << 19

/** Also removes old packs, and chains without rows. */
export async function pruneRows(deps: PruneDeps): Promise<void> {
  const before = await cutoffs(deps)
  const latest = [...before.values()].sort().at(-1)
  if (latest === undefined) return
  let after = asId<AuditId>('')
  for (;;) {
    const rows = await oldRows(deps.store, latest, after)
    const last = rows.at(-1)
    if (last === undefined) break
    after = last.id
    let old = rows.filter((row) => row.at < (before.get(row.team_id) ?? ''))
    while (old.length > 0) {
      const count = rowsWithin(
        old.map((row) => row.size),
        BYTES_AT_A_TIME,
      )
      await remove(deps, old.slice(0, count))
      old = old.slice(count)
      // SQLite answers synchronously, so let other requests run.
      await setImmediate()
    }
    if (rows.length < ROWS_AT_A_TIME) break
    await setImmediate()
  }
  await prunePacks(deps, before, latest)
  await forgetChains(deps)
}

/** Ids increase over time, so the index on the id is enough. */
async function oldRows(store: Pick<Store, 'db'>, before: string, after: AuditId) {
  return await store.db
    .selectFrom('audit')
    .select(['id', 'at', 'team_id', sizeOfRow])
    .where('id', '>', after)
    .where('id', '<', asId<AuditId>(headOf(Date.parse(before))))
    .orderBy('id')
    .limit(ROWS_AT_A_TIME)
    .execute()
}

async function remove(deps: PruneDeps, old: readonly Pick<Stored, 'id'>[]): Promise<void> {
  const ids = old.map((row) => row.id)
  const kept = await writing(deps.store, async ({ tx, locked }) => {
    const rows = await locked(tx.selectFrom('audit').selectAll().where('id', 'in', ids).orderBy('id')).execute()
    const free = rows.filter((row) => row.chain === null)
    const placed = rows
      .filter((row): row is InChain => row.chain !== null && row.seq !== null)
      .sort((a, b) => (a.chain < b.chain ? -1 : a.chain > b.chain ? 1 : a.seq - b.seq))
    const foreign: string[] = []
    for (const run of runsOf(placed)) foreign.push(...(await removeRun(tx, deps.seal, run)))
    if (free.length > 0) {
      const freeIds = free.map((row) => row.id)
      await tx.deleteFrom('audit').where('id', 'in', freeIds).where('chain', 'is', null).execute()
    }
    return foreign
  })
  if (kept.length > 0) deps.log?.error({ ids: kept }, 'audit: expired rows were changed manually and are kept')
}

type InChain = Stored & { readonly chain: string; readonly seq: number }

/** Groups rows that follow each other in one chain. */
function runsOf(rows: readonly InChain[]): readonly (readonly InChain[])[] {
  const runs: InChain[][] = []
  for (const row of rows) {
    const run = runs.at(-1)
    const last = run?.at(-1)
    if (run !== undefined && last?.chain === row.chain && last.seq + 1 === row.seq) run.push(row)
    else runs.push([row])
  }
  return runs
}

/** Returns the ids of rows that stay because they do not fit the chain. */
async function removeRun(tx: Transaction<Tables>, seal: Seal, run: readonly InChain[]): Promise<readonly string[]> {
  const [first] = run
  if (first === undefined) return []
  let before = await linkBefore(tx, seal, first.chain, first.seq)
  const foreign: string[] = []
  let fitting: InChain[] = []
  for (const row of run) {
    const fits = before !== null && sameSeal(seal.link(before, row.chain, row.seq, textOf(row)), row.link)
    // The next row is linked to the original link of this row, which is still stored even if the row was changed.
    before = row.link
    if (fits) {
      fitting.push(row)
      continue
    }
    foreign.push(row.id)
    foreign.push(...(await replace(tx, seal, fitting)))
    fitting = []
  }
  foreign.push(...(await replace(tx, seal, fitting)))
  return foreign
}

/** If a gap already covers one of the rows, removes nothing and returns the ids of all rows. */
async function replace(tx: Transaction<Tables>, seal: Seal, rows: readonly InChain[]): Promise<readonly AuditId[]> {
  const [first, last] = [rows[0], rows.at(-1)]
  if (first === undefined || last === undefined) return []
  const ids = rows.map((row) => row.id)
  if (await isRemoved(tx, first.chain, first.seq, last.seq)) return ids
  await tx.deleteFrom('audit').where('id', 'in', ids).execute()
  const until = rows.reduce((newest, row) => (row.at > newest ? row.at : newest), '')
  const { chain, seq, link } = last
  await addGap(tx, seal, { chain, first_seq: first.seq, last_seq: seq, last_link: link ?? '', until })
  return []
}

/** Deletes the oldest chains if all their rows are gone. The newest chain stays, so that numbering continues. */
async function forgetChains(deps: PruneDeps): Promise<void> {
  const { store, seal } = deps
  for (let forgotten = true; forgotten;) {
    forgotten = await writing(store, async (within) => {
      const { tx } = within
      const registry = await readRegistry(within, seal)
      if (registry === null || !registry.holds || registry.first >= registry.last) return false
      const { first } = registry
      const chain = await tx.selectFrom('audit_chains').selectAll().where('number', '=', first).executeTakeFirst()
      if (chain === undefined || !sameSeal(seal.chain(chain), chain.signature)) return false
      const gap = await gapEndingAt(tx, seal, chain.chain, chain.head_seq)
      if (gap?.first_seq !== 1) return false
      await tx.deleteFrom('audit_gaps').where('chain', '=', chain.chain).execute()
      await tx.deleteFrom('audit_chains').where('chain', '=', chain.chain).execute()
      await writeRegistry(within, seal, { ...registry, first: first + 1 })
      return true
    })
  }
}
