// What the library leaves open about codes of a second factor. It looks at its lock first and counts afterwards, so that of
// many codes at once more are checked than it means to; and it takes a code again for as long as its time has not passed
// (RFC 6238 §5.2 forbids that). Here a code is counted before it is looked at, and one that was used is kept until then.
import type { Transaction } from 'kysely'
import { z } from 'zod'
import { AppError } from '../errors.ts'
import { asId, type AccountId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import type { Tables } from '../store/tables.ts'
import { isoTime } from '../store/times.ts'
import { tooManyTries } from '../auth/attempt-counter.ts'
import { sessionMadeBy } from './cookies.ts'
import { markUsed } from './use-code.ts'

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
export async function forgetCodes(store: Store, accountId: AccountId): Promise<void> {
  await store.append((tx) =>
    tx
      .updateTable('second_factors')
      .set({ failedVerificationCount: 0, lockedUntil: null })
      .where('userId', '=', accountId)
      .execute(),
  )
}

/** In the library's words. */
export function wrongCode(): AppError {
  return new AppError('UNAUTHENTICATED', 'The code is not right, or was used before.', {
    extra: { reason: 'INVALID_CODE' },
  })
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
 * What comes after a code that was right, also one that switches the factor on: it is taken note of, and the sessions made
 * without the factor end. Answers whether it switched the factor on. Throws UNAUTHENTICATED for a code that was used
 * before, and ends the new session.
 */
export async function afterCode(store: Store, code: string, response: Response, now: number): Promise<boolean> {
  const made = sessionMadeBy(response)
  const { user } = Verified.parse(await response.clone().json())
  const accountId = asId<AccountId>(user.id)
  // The answer shows the account as it was before this code.
  const switchedOn = made !== null && !user.twoFactorEnabled
  const isNew = await store.write(async (tx) => {
    const kept = await markUsed(tx, accountId, code, now)
    const sessions = tx.deleteFrom('sessions').where('userId', '=', accountId)
    if (!kept && made !== null) await sessions.where('token', '=', made).execute()
    if (switchedOn) await sessions.where('token', '!=', made).execute()
    return kept
  })
  if (!isNew) throw wrongCode()
  return switchedOn
}
