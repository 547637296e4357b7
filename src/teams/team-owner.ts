// The account that owns a team. The teams of an owner share the turns of slow work. Otherwise an account could get more
// turns by making more teams.
import type { TeamId } from '../ids.ts'
import type { Store } from '../store/open.ts'

export interface TeamOwner {
  readonly account: string
  /** The teams of the account take turns. */
  readonly team: TeamId
}

/** Cached until the next write to the store. Of several owners, counts always the same one. */
export function ownerOfTeam(store: Pick<Store, 'db' | 'recall'>, teamId: TeamId): Promise<TeamOwner> {
  return store.recall(`owner ${teamId}`, async () => {
    const row = await store.db
      .selectFrom('memberships')
      .select((eb) => eb.fn.min('account_id').as('account'))
      .where('team_id', '=', teamId)
      .where('role', '=', 'OWNER')
      .where('status', '=', 'ACTIVE')
      .executeTakeFirst()
    return { account: row?.account ?? '', team: teamId }
  })
}

/** Returns undefined if the owner is not cached. Does not wait. */
export function knownOwnerOfTeam(store: Pick<Store, 'known'>, teamId: TeamId): TeamOwner | undefined {
  return store.known<TeamOwner>(`owner ${teamId}`)
}
