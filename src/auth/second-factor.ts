// What the library leaves open about codes of a second factor. It looks at its lock first and counts afterwards, so that of
// many codes at once more are checked than it means to; and it takes a code again for as long as its time has not passed
// (RFC 6238 §5.2 forbids that). Here a code is counted before it is looked at, and one that was used is kept until then.
import { hash } from 'node:crypto'
import type { Transaction } from 'kysely'
import { z } from 'zod'
import { AppError } from '../errors.ts'
import { asId, type AccountId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import type { Tables } from '../store/tables.ts'
import { isoTime } from '../store/times.ts'
import { tooManyTries } from './attempts.ts'

/** Longer than a code can be used: its own half minute, one before and one after. */
const KEPT_MS = 120_000

/** Wrong codes in a row, over all sign-ins of an account, before the factor is locked (NIST SP 800-63B §5.2.2). */
const CODES_MAX = 10
export const LOCKED_MS = 900_000

/**
 * Counts a code against the account whose sign-in waits for one, before anybody looks at it: the tenth in a row locks the
 * factor, unless it is the right one. Throws RATE_LIMITED while it is locked.
 */
export async function countCode(store: Store, accountId: AccountId, now: number): Promise<void> {
  const time = (ms: number) => (store.dialect === 'postgres' ? new Date(ms) : new Date(ms).toISOString())
  const lockedUntil = await store.append(async (tx) => {
    const own = tx.updateTable('second_factors').where('userId', '=', accountId)
    // The row is ours until the end of the transaction: nobody counts from the same number.
    const counted = await own
      .where((eb) => eb.or([eb('lockedUntil', 'is', null), eb('lockedUntil', '<=', time(now))]))
      .set((eb) => ({
        // After a lock that is over it begins anew.
        failedVerificationCount: eb
          .case()
          .when('lockedUntil', 'is', null)
          .then(eb(eb.fn.coalesce('failedVerificationCount', eb.lit(0)), '+', 1))
          .else(1)
          .end(),
        lockedUntil: null,
      }))
      .returning('failedVerificationCount as count')
      .executeTakeFirst()
    if (counted === undefined) return await lockOf(tx, accountId)
    if ((counted.count ?? 0) >= CODES_MAX) await own.set({ lockedUntil: time(now + LOCKED_MS) }).execute()
    return null
  }, 'read committed')
  if (lockedUntil === null) return
  throw tooManyTries(Date.parse(isoTime(lockedUntil)) - now, { reason: 'ACCOUNT_TEMPORARILY_LOCKED' })
}

/** Null where there is no second factor any more. */
async function lockOf(tx: Transaction<Tables>, accountId: AccountId): Promise<string | Date | null> {
  const factors = tx.selectFrom('second_factors').select('lockedUntil')
  return (await factors.where('userId', '=', accountId).executeTakeFirst())?.lockedUntil ?? null
}

/** After a code that was right: wrong ones are counted anew, and the lock that its count may have set is taken back. */
export async function forgetCodes(store: Store, response: Response): Promise<void> {
  const { user } = Verified.parse(await response.clone().json())
  const accountId = asId<AccountId>(user.id)
  await store.append((tx) =>
    tx
      .updateTable('second_factors')
      .set({ failedVerificationCount: 0, lockedUntil: null })
      .where('userId', '=', accountId)
      .execute(),
  )
}

/** In the library's words. */
export function noChallenge(): AppError {
  return new AppError(
    'UNAUTHENTICATED',
    'Sign in with your password first: there is no sign-in that waits for a code.',
    {
      extra: { reason: 'INVALID_TWO_FACTOR_COOKIE' },
    },
  )
}

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
