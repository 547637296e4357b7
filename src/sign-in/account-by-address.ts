import type { AccountId } from '../ids.ts'
import type { Store } from '../store/open.ts'

/** `email` must be in lower case. */
export async function accountBy(store: Pick<Store, 'db'>, email: string | undefined): Promise<AccountId | null> {
  if (email === undefined) return null
  const row = await store.db.selectFrom('accounts').select('id').where('email', '=', email).executeTakeFirst()
  return row?.id ?? null
}
