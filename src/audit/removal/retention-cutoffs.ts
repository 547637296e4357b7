import { inSlices } from '../../event-loop-slices.ts'
import { asId, type TeamId } from '../../ids.ts'
import type { Store } from '../../store/open.ts'
import type { Seal } from '../chain/seal.ts'

export interface PruneDeps {
  readonly store: Pick<Store, 'db' | 'dialect' | 'commit'>
  readonly seal: Seal
  readonly now: () => number
  readonly retentionDays: (teamId: TeamId | null) => Promise<number>
  readonly log?: { error(detail: object, message: string): void } | undefined
}

const DAY_MS = 86_400_000

/** The key null is for rows without a team. */
export type Cutoffs = ReadonlyMap<TeamId | null, string>

export async function cutoffs(deps: PruneDeps): Promise<Cutoffs> {
  const found = new Map<TeamId | null, string>()
  const pause = inSlices()
  for (const team of [null, ...(await teamsOf(deps.store, 'audit')), ...(await teamsOf(deps.store, 'audit_packs'))]) {
    if (found.has(team)) continue
    // SQLite answers synchronously, so let other requests run.
    await pause()
    found.set(team, new Date(deps.now() - (await deps.retentionDays(team)) * DAY_MS).toISOString())
  }
  return found
}

/** Uses the index to go from team to team, because `distinct` would read every row. */
async function teamsOf(store: Pick<Store, 'db'>, table: 'audit' | 'audit_packs'): Promise<readonly TeamId[]> {
  const teams: TeamId[] = []
  const pause = inSlices()
  for (;;) {
    await pause()
    const next = await store.db
      .selectFrom(table)
      .select('team_id')
      .where('team_id', '>', teams.at(-1) ?? asId<TeamId>(''))
      .orderBy('team_id')
      .limit(1)
      .executeTakeFirst()
    if (next === undefined || next.team_id === null) return teams
    teams.push(next.team_id)
  }
}
