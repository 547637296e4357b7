// Whose address it is: for signing in, for links, and for what the audit says of both.
import type { AccountId } from '../ids.ts'
import type { Store } from '../store/open.ts'

/** The account of an address in lower case; null for none. */
export async function accountBy(store: Pick<Store, 'db'>, email: string | undefined): Promise<AccountId | null> {
  if (email === undefined) return null
  const row = await store.db.selectFrom('accounts').select('id').where('email', '=', email).executeTakeFirst()
  return row?.id ?? null
}
