// What a new password ends: whatever of the account may be in somebody else's hands.
import type { AccountId } from '../ids.ts'
import type { Store } from '../store/open.ts'

/**
 * Ends the account's sessions, links and sign-ins under way. `provesAddress`: the link came by mail, to an address that
 * nobody had verified; from now on it is, and keys made before, by whoever signed up with it, are ended as well.
 */
export async function afterReset(
  store: Store,
  accountId: AccountId,
  { provesAddress, now }: { readonly provesAddress: boolean; readonly now: number },
): Promise<void> {
  await store.write(async (tx) => {
    await tx.deleteFrom('sessions').where('userId', '=', accountId).execute()
    await tx.deleteFrom('verifications').where('value', '=', accountId).execute()
    if (!provesAddress) return
    const emailVerified = store.dialect === 'postgres' ? true : 1
    await tx.updateTable('accounts').set({ emailVerified }).where('id', '=', accountId).execute()
    await tx
      .updateTable('api_keys')
      .set({ revoked_at: new Date(now).toISOString() })
      .where('account_id', '=', accountId)
      .where('revoked_at', 'is', null)
      .execute()
  })
}
