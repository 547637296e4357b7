// What a changed password ends beside other sessions.
import { z } from 'zod'
import { asId, type AccountId } from '../ids.ts'
import type { Store } from '../store/open.ts'

const Changed = z.object({ user: z.object({ id: z.string() }) })

/** Ends links, and sign-ins with the old password that wait for a code. */
export async function endWaiting(store: Store, response: Response): Promise<void> {
  const { user } = Changed.parse(await response.clone().json())
  await store.write((tx) => tx.deleteFrom('verifications').where('value', '=', asId<AccountId>(user.id)).execute())
}
