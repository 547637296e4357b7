// A caller can ask whether another role, or one of the caller's own API keys, could reach a datasource. The role must
// not be higher than the caller's own. Otherwise the answer would reveal what the higher role can see.
import { z } from 'zod'
import { holds, mayEnter, type Call } from '../auth/caller.ts'
import { callerOf } from '../auth/find-caller-by-key.ts'
import type { Scope } from '../contract/route-type.ts'
import { notFound } from '../errors.ts'
import { asId, type ApiKeyId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import { roleRequired } from '../teams/require-membership.ts'
import { roleAtLeast } from '../teams/roles.ts'
import { isWithin, reaches, type Reached } from './require-reach.ts'

export const As = z.union([
  z.strictObject({ role: z.enum(['OWNER', 'ADMIN', 'MEMBER']) }),
  z.strictObject({ keyId: z.string().max(200) }),
])
export type As = z.infer<typeof As>

interface Deps {
  readonly store: Store
}

/**
 * Returns why the role or the key could not reach the datasource, or null if it could. Throws ROLE_REQUIRED for a role
 * above the caller's own, and NOT_FOUND for a key of another account.
 */
export async function barredAs(deps: Deps, call: Call, at: Reached, as: As, scope: Scope): Promise<string | null> {
  if ('role' in as) {
    if (!roleAtLeast(at.membership.role, as.role)) throw roleRequired(as.role)
    const member = { ...at.membership, role: as.role }
    return (await reaches(deps.store, member, at.row)) ? null : `The role ${as.role} cannot reach this datasource.`
  }
  return await barredByKey(deps, call, at, asId<ApiKeyId>(as.keyId), scope)
}

async function barredByKey(deps: Deps, call: Call, at: Reached, keyId: ApiKeyId, scope: Scope): Promise<string | null> {
  const key = await deps.store.db
    .selectFrom('api_keys')
    .selectAll()
    .where('id', '=', keyId)
    .where('account_id', '=', call.caller.accountId)
    .executeTakeFirst()
  if (key === undefined) throw notFound()
  const now = new Date().toISOString()
  if (key.revoked_at !== null && key.revoked_at <= now) return 'This key was revoked.'
  if (key.expires_at !== null && key.expires_at <= now) return 'This key has expired.'
  const caller = callerOf(key, call.caller.name)
  if (!holds(caller, scope)) return `This key lacks the scope ${scope}.`
  if (!mayEnter(caller, at.teamId) || !isWithin(caller, at.id)) return 'This key cannot reach this datasource.'
  return null
}
