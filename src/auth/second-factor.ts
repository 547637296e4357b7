// A code of an authenticator signs in once: the library takes the same one again for as long as its time has not passed
// (RFC 6238 §5.2 forbids that), so what was used is kept in the store until then.
import { hash } from 'node:crypto'
import { z } from 'zod'
import { AppError } from '../errors.ts'
import { asId, type AccountId } from '../ids.ts'
import type { Store } from '../store/open.ts'

/** Longer than a code can be used: its own half minute, one before and one after. */
const KEPT_MS = 120_000

const Verified = z.object({ user: z.object({ id: z.string(), twoFactorEnabled: z.boolean() }) })

/**
 * What comes after a code that was right. Where it switched the factor on, sessions made without it end. Where it signed
 * somebody in, it is taken note of: throws UNAUTHENTICATED, and ends the new session, for one that was used before.
 */
export async function afterCode(store: Store, code: string, response: Response, now: number): Promise<void> {
  const made = sessionMadeBy(response)
  if (made === null) return
  const { user } = Verified.parse(await response.clone().json())
  const account_id = asId<AccountId>(user.id)
  // As it was before this code: then it was the first one.
  if (!user.twoFactorEnabled) {
    await store.write((tx) =>
      tx.deleteFrom('sessions').where('userId', '=', account_id).where('token', '!=', made).execute(),
    )
    return
  }
  const isNew = await store.write(async (tx) => {
    await tx.deleteFrom('used_codes').where('until', '<', new Date(now).toISOString()).execute()
    const row = { account_id, code_hash: hash('sha256', code.trim()), until: new Date(now + KEPT_MS).toISOString() }
    const kept = await tx
      .insertInto('used_codes')
      .values(row)
      .onConflict((oc) => oc.doNothing())
      .executeTakeFirst()
    if (kept.numInsertedOrUpdatedRows === 1n) return true
    await tx.deleteFrom('sessions').where('token', '=', made).execute()
    return false
  })
  if (isNew) return
  throw new AppError('UNAUTHENTICATED', 'The code is not right, or was used before.', {
    extra: { reason: 'INVALID_CODE' },
  })
}

/** The token of the session whose cookie an answer sets; null for none. */
function sessionMadeBy(response: Response): string | null {
  for (const line of response.headers.getSetCookie()) {
    const sent = /^(?:__Secure-)?vitrine\.session_token=([^;]+)/.exec(line)?.[1]
    if (sent !== undefined) return decodeURIComponent(sent).split('.', 1)[0] ?? null
  }
  return null
}
