// The ways in which an account can sign in: its password, its passkeys, and its accounts at providers. The last one
// stays, because without it nobody can sign in.
import type { Kysely } from 'kysely'
import { AppError } from '../errors.ts'
import type { AccountId, PasskeyId } from '../ids.ts'
import type { PasskeyTable, Tables } from '../store/tables.ts'

export interface ShownPasskey {
  readonly id: PasskeyId
  readonly name: string
  readonly createdAt: string
  readonly lastUsedAt: string | null
  readonly synced: boolean
}

export interface Ways {
  readonly password: boolean
  readonly passkeys: readonly ShownPasskey[]
}

export async function waysOf(db: Kysely<Tables>, accountId: AccountId): Promise<Ways> {
  const methods = await db
    .selectFrom('sign_in_methods')
    .select(['providerId', 'password'])
    .where('userId', '=', accountId)
    .execute()
  return {
    password: methods.some((method) => method.providerId === 'credential' && method.password !== null),
    passkeys: (await passkeysOf(db, accountId)).map(shownPasskey),
  }
}

/** Throws CONFLICT if nothing is left. Call it after the removal, in its transaction. */
export async function requireAnotherWay(db: Kysely<Tables>, accountId: AccountId): Promise<void> {
  const { password, passkeys } = await waysOf(db, accountId)
  if (password || passkeys.length > 0) return
  throw new AppError('CONFLICT', 'This is the last way to sign in to your account. Add another one first.', {
    extra: { reason: 'LAST_WAY' },
  })
}

/** Oldest first. */
export async function passkeysOf(db: Kysely<Tables>, accountId: AccountId): Promise<PasskeyTable[]> {
  return await db
    .selectFrom('passkeys')
    .selectAll()
    .where('account_id', '=', accountId)
    .orderBy('created_at')
    .orderBy('id')
    .execute()
}

export function shownPasskey(row: PasskeyTable): ShownPasskey {
  return {
    id: row.id,
    name: row.name,
    createdAt: row.created_at,
    lastUsedAt: row.last_used_at,
    synced: row.synced === 1,
  }
}
