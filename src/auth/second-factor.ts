// A code of an authenticator signs in once: the library takes the same one again for as long as its time has not passed
// (RFC 6238 §5.2 forbids that), so what was used is kept in the store until then.
import { hash } from 'node:crypto'
import { z } from 'zod'
import { AppError } from '../errors.ts'
import { asId, type AccountId } from '../ids.ts'
import type { Store } from '../store/open.ts'

/** Longer than a code can be used: its own half minute, one before and one after. */
const KEPT_MS = 120_000

const SignedIn = z.object({ token: z.string(), user: z.object({ id: z.string() }) })

/** True where a sign-in waits for its second factor; without that cookie no code makes a session. */
export function isChallenged(request: Request): boolean {
  return /vitrine\.two_factor=/.test(request.headers.get('cookie') ?? '')
}

/**
 * Takes note of a code that was right. Throws UNAUTHENTICATED, and ends the session that the library made for it, where
 * it was used before.
 */
export async function useCodeOnce(store: Store, code: string, answer: unknown, now: number): Promise<void> {
  const { token, user } = SignedIn.parse(answer)
  const account_id = asId<AccountId>(user.id)
  const isNew = await store.write(async (tx) => {
    await tx.deleteFrom('used_codes').where('until', '<', new Date(now).toISOString()).execute()
    const row = { account_id, code_hash: hash('sha256', code.trim()), until: new Date(now + KEPT_MS).toISOString() }
    const kept = await tx
      .insertInto('used_codes')
      .values(row)
      .onConflict((oc) => oc.doNothing())
      .executeTakeFirst()
    if (kept.numInsertedOrUpdatedRows === 1n) return true
    await tx.deleteFrom('sessions').where('token', '=', token).execute()
    return false
  })
  if (isNew) return
  throw new AppError('UNAUTHENTICATED', 'The code is not right, or was used before.', {
    extra: { reason: 'INVALID_CODE' },
  })
}
