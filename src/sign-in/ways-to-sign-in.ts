// An account signs in with a password, passkeys or accounts at providers. The last of these cannot be removed.
import type { Kysely } from 'kysely'
import type { Provider } from '../config.ts'
import { AppError } from '../errors.ts'
import type { AccountId, PasskeyId } from '../ids.ts'
import type { PasskeyTable, Tables } from '../store/tables.ts'
import { isoTime } from '../store/better-auth-times.ts'

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
  readonly providers: readonly ShownProvider[]
}

export interface ShownProvider {
  readonly provider: Provider['id']
  readonly name: string
  readonly label: string | null
  readonly createdAt: string
  /** False if the operator has removed the provider. */
  readonly offered: boolean
}

interface Offered {
  readonly all: readonly Pick<Provider, 'id' | 'name'>[]
}

const NAMES: Readonly<Record<Provider['id'], string>> = { github: 'GitHub', google: 'Google', oidc: 'single sign-on' }

export async function waysOf(db: Kysely<Tables>, accountId: AccountId, offered: Offered): Promise<Ways> {
  const methods = await db
    .selectFrom('sign_in_methods')
    .select(['providerId', 'password', 'label', 'createdAt'])
    .where('userId', '=', accountId)
    .orderBy('providerId')
    .execute()
  return {
    password: methods.some((method) => method.providerId === 'credential' && method.password !== null),
    passkeys: (await passkeysOf(db, accountId)).map(shownPasskey),
    providers: methods.flatMap((method) => shownProvider(method, offered)),
  }
}

/** Throws CONFLICT if no way to sign in is left. Call this after a removal, in the same transaction. */
export async function requireAnotherWay(db: Kysely<Tables>, accountId: AccountId, offered: Offered): Promise<void> {
  const { password, passkeys, providers } = await waysOf(db, accountId, offered)
  if (password || passkeys.length > 0 || providers.some((provider) => provider.offered)) return
  throw new AppError('CONFLICT', 'This is the last way to sign in to your account. Add another one first.', {
    extra: { reason: 'LAST_WAY' },
  })
}

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

/** Returns a list with the provider of a sign-in method. The list is empty for a password. */
function shownProvider(
  row: { readonly providerId: string; readonly label: string | null; readonly createdAt: string | Date },
  { all }: Offered,
): readonly ShownProvider[] {
  const { providerId: id, label, createdAt } = row
  if (id !== 'github' && id !== 'google' && id !== 'oidc') return []
  const offered = all.find((provider) => provider.id === id)
  const name = offered?.name ?? NAMES[id]
  return [{ provider: id, name, label, createdAt: isoTime(createdAt), offered: offered !== undefined }]
}
