// Replaces a pack by a signed gap when its newest row is too old and all of its rows fit the chain.
import { setImmediate } from 'node:timers/promises'
import { asId, type AuditId } from '../../ids.ts'
import { addGap, isRemoved } from '../chain/gaps.ts'
import { linkBefore } from '../chain/link-before.ts'
import { writing } from '../chain/locked-transaction.ts'
import type { Seal } from '../chain/seal.ts'
import { bears, stepsOfPack } from '../chain/read-chain.ts'
import type { Pack } from '../packs.ts'
import { headOf } from '../make-rows.ts'
import type { Cutoffs, PruneDeps } from './retention-cutoffs.ts'

const PACKS_AT_A_TIME = 100

/** Removes expired packs. `latest` is the newest cutoff in `before`. Packs that begin later are not read. */
export async function prunePacks(deps: PruneDeps, before: Cutoffs, latest: string): Promise<void> {
  let after = asId<AuditId>('')
  for (;;) {
    const packs = await deps.store.db
      .selectFrom('audit_packs')
      .select(['first_id', 'last_at', 'team_id'])
      .where('first_id', '>', after)
      .where('first_id', '<', asId<AuditId>(headOf(Date.parse(latest))))
      .orderBy('first_id')
      .limit(PACKS_AT_A_TIME)
      .execute()
    for (const { first_id, last_at, team_id } of packs) {
      after = first_id
      if (last_at >= (before.get(team_id) ?? '')) continue
      await remove(deps, first_id)
      // SQLite answers synchronously, so let other requests run.
      await setImmediate()
    }
    if (packs.length < PACKS_AT_A_TIME) return
    await setImmediate()
  }
}

async function remove(deps: PruneDeps, id: AuditId): Promise<void> {
  const isKept = await writing(deps.store, async ({ tx, locked }) => {
    const found = locked(tx.selectFrom('audit_packs').selectAll().where('first_id', '=', id))
    const pack = await found.executeTakeFirst()
    if (pack === undefined) return false
    const { chain, first_seq, last_seq, last_link, last_at } = pack
    const before = await linkBefore(tx, deps.seal, chain, first_seq)
    if (before === null || !fits(deps.seal, before, pack)) return true
    if (await isRemoved(tx, chain, first_seq, last_seq)) return true
    await tx.deleteFrom('audit_packs').where('first_id', '=', id).execute()
    await addGap(tx, deps.seal, { chain, first_seq, last_seq, last_link, until: last_at })
    return false
  })
  if (isKept) deps.log?.error({ ids: [id] }, 'audit: an expired pack was changed manually and is kept')
}

function fits(seal: Seal, before: string, pack: Pack): boolean {
  let link = before
  for (const step of stepsOfPack(pack)) {
    if (step.kind === 'pack') return step.holds
    link = seal.link(link, pack.chain, step.seq, step.text)
    if (!bears(step, link)) return false
  }
  return false
}
