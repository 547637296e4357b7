// A code of an authenticator signs in once: the library takes the same one again for as long as its time has not passed
// (RFC 6238 §5.2 forbids that), so what was used is kept in the store until then.
import { hash } from 'node:crypto'
import { z } from 'zod'
import { AppError } from '../errors.ts'
import { asId, type AccountId } from '../ids.ts'
import type { Store } from '../store/open.ts'

/** Longer than a code can be used: its own half minute, one before and one after. */
const KEPT_MS = 120_000

const SignedIn = z.object({ token: z.string(), user: z.object({ id: z.string(), twoFactorEnabled: z.boolean() }) })

/**
 * Takes note of a code that was right and made a session. Throws UNAUTHENTICATED, and ends that session, where the code
 * was used before. One that only switched the factor on may sign in too: who is there to see it has just set it up.
 */
export async function useCodeOnce(store: Store, code: string, response: Response, now: number): Promise<void> {
  const { token, user } = SignedIn.parse(await response.clone().json())
  const madeSession = response.headers.getSetCookie().some((line) => /session_token=[^;]/.test(line))
  if (!madeSession || !user.twoFactorEnabled) return
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
