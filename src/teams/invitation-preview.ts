// Before signing up, the holder of an invitation token can see the invitation. Guesses are counted by network. Every
// token that cannot be accepted gets the same 404.
import { notFound } from '../errors.ts'
import type { Attempts } from '../auth/attempt-counter.ts'
import { networkOf } from '../auth/client-network.ts'
import type { Store } from '../store/open.ts'
import type { Role } from '../contract/schemas.ts'
import { hashOf } from './invitations.ts'

/** More than people need, and far too few to guess a token of 256 bits. */
const BY_ADDRESS = { limit: 60, windowMs: 60_000 }

export interface InvitationPreview {
  readonly team: string
  readonly role: Role
  readonly email: string
  /** Null if the account was deleted by an old version, which kept the invitations. */
  readonly invitedBy: string | null
  readonly expiresAt: string
}

interface Deps {
  readonly store: Pick<Store, 'db'>
  readonly tries: Pick<Attempts, 'spend'>
  readonly now?: () => number
}

/** Throws RATE_LIMITED, and NOT_FOUND if the token is unknown, used or expired. */
export async function previewInvitation(deps: Deps, token: string, address: string): Promise<InvitationPreview> {
  await deps.tries.spend([{ key: `invitation: ${networkOf(address)}`, ...BY_ADDRESS }])
  const row = await deps.store.db
    .selectFrom('invitations')
    .innerJoin('teams', 'teams.id', 'invitations.team_id')
    .leftJoin('accounts', 'accounts.id', 'invitations.invited_by')
    .select(['teams.name as team', 'invitations.role', 'invitations.email', 'accounts.name as invitedBy'])
    .select('invitations.expires_at as expiresAt')
    .where('token_hash', '=', hashOf(token))
    .where('used_at', 'is', null)
    .where('invitations.expires_at', '>', new Date((deps.now ?? Date.now)()).toISOString())
    .executeTakeFirst()
  if (row === undefined) throw notFound()
  return row
}
