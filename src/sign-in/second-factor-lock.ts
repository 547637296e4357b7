// The library handles codes of a second factor with two gaps. It checks its lock before it counts a code, so concurrent
// codes exceed the limit. And it accepts a code again while the code is valid, which RFC 6238 §5.2 forbids. So this
// file counts codes before they are checked, and stores used codes.
import type { Transaction } from 'kysely'
import { z } from 'zod'
import { AppError } from '../errors.ts'
import { asId, type AccountId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import type { Tables } from '../store/tables.ts'
import { isoTime, storedTime } from '../store/better-auth-times.ts'
import { tooManyTries } from '../auth/attempt-counter.ts'
import { sessionMadeBy } from './cookies.ts'
import { CODE_LIFE_MS, markUsed, useOnce } from './consume-second-factor-code.ts'

/**
 * After this many wrong codes in a row, the second factor is locked (NIST SP 800-63B §5.2.2). Codes from devices that
 * passed this factor before are not counted.
 */
const CODES_MAX = 10
export const LOCKED_MS = 900_000

/** The tenth code in a row locks the second factor, unless it is correct. Throws RATE_LIMITED while it is locked. */
export async function countCode(store: Store, accountId: AccountId, now: number): Promise<void> {
  const time = (ms: number) => storedTime(store.dialect, ms)
  const lockedUntil = await store.append(async (tx) => {
    const own = tx.updateTable('second_factors').where('userId', '=', accountId)
    // The update locks the row until the transaction ends, so concurrent codes are counted one after the other.
    const counted = await own
      .where((eb) => eb.or([eb('lockedUntil', 'is', null), eb('lockedUntil', '<=', time(now))]))
      .set((eb) => ({
        // An expired lock starts a new count.
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

/** Null if there is no lock or no second factor. */
async function lockOf(tx: Transaction<Tables>, accountId: AccountId): Promise<string | Date | null> {
  const factors = tx.selectFrom('second_factors').select('lockedUntil')
  return (await factors.where('userId', '=', accountId).executeTakeFirst())?.lockedUntil ?? null
}

export async function forgetCodes(store: Store, accountId: AccountId): Promise<void> {
  await store.append((tx) =>
    tx
      .updateTable('second_factors')
      .set({ failedVerificationCount: 0, lockedUntil: null })
      .where('userId', '=', accountId)
      .execute(),
  )
}

export function wrongCode(): AppError {
  return new AppError('UNAUTHENTICATED', 'The code is wrong or was used before.', {
    extra: { reason: 'INVALID_CODE' },
  })
}

export function noChallenge(): AppError {
  return new AppError('UNAUTHENTICATED', 'No sign-in is waiting for a code. Sign in with your password first.', {
    extra: { reason: 'INVALID_TWO_FACTOR_COOKIE' },
  })
}

const Verified = z.object({ user: z.object({ id: z.string(), twoFactorEnabled: z.boolean() }) })

/**
 * Marks the code as used after the library accepted it. Returns true if the code turned the factor on, and then ends
 * the sessions that were created without it. If the code was used before, or if another request turned the factor on
 * first, ends only the new session and throws UNAUTHENTICATED.
 */
export async function afterCode(store: Store, code: string, response: Response, now: number): Promise<boolean> {
  const made = sessionMadeBy(response)
  const { user } = Verified.parse(await response.clone().json())
  const accountId = asId<AccountId>(user.id)
  // The answer describes the account before this code.
  const switchedOn = made !== null && !user.twoFactorEnabled
  const isAccepted = await store.write(async (tx) => {
    const isUnused = await markUsed(tx, accountId, code, now)
    const isAccepted = isUnused && (!switchedOn || (await isFirst(tx, accountId, now)))
    const sessions = tx.deleteFrom('sessions').where('userId', '=', accountId)
    if (!isAccepted && made !== null) await sessions.where('token', '=', made).execute()
    if (isAccepted && switchedOn) await sessions.where('token', '!=', made).execute()
    return isAccepted
  })
  if (!isAccepted) throw wrongCode()
  return switchedOn
}

/** Returns false if another request turned the factor on first, with another code. */
async function isFirst(tx: Transaction<Tables>, accountId: AccountId, now: number): Promise<boolean> {
  const factors = tx.selectFrom('second_factors').select('id').where('userId', '=', accountId)
  const factor = await factors.executeTakeFirst()
  const turn = { until: now + CODE_LIFE_MS, now }
  return factor !== undefined && (await useOnce(tx, accountId, `switched on ${factor.id}`, turn))
}
