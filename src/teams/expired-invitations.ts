// Deletes invitations that have expired. Otherwise a manager could fill the table, because only pending invitations
// are limited.
import type { ClockDoubt } from '../clock-doubt.ts'
import { deleteInPortions } from '../store/delete-in-portions.ts'
import type { Store } from '../store/open.ts'

/** They are deleted at most this often, after an invitation. */
const PRUNE_MS = 3_600_000

interface Deps {
  readonly store: Store
  /** While the clock may be wrong, all invitations are kept. */
  readonly clock: ClockDoubt
  readonly now: () => number
}

export function expiredInvitations({ store, clock, now }: Deps): { prune(): void } {
  let prunedAt = -Infinity
  return {
    prune() {
      const at = now()
      if (at - prunedAt < PRUNE_MS || clock.reason() !== null) return
      prunedAt = at
      store.later(() => deleteExpired(store, at))
    },
  }
}

/** A used invitation stays while its member has not opened the team, because endInvitationsBy() removes this member. */
async function deleteExpired(store: Store, at: number): Promise<void> {
  await deleteInPortions(store, 'invitations', ({ eb, and, or, not, exists, selectFrom }) =>
    and([
      eb('expires_at', '<=', new Date(at).toISOString()),
      or([
        eb('used_at', 'is', null),
        not(
          exists(
            selectFrom('memberships')
              .innerJoin('accounts', 'accounts.id', 'memberships.account_id')
              .select('accounts.id')
              .whereRef('accounts.email', '=', 'invitations.email')
              .whereRef('memberships.team_id', '=', 'invitations.team_id')
              .where('memberships.status', '=', 'INVITED'),
          ),
        ),
      ]),
    ]),
  )
}
