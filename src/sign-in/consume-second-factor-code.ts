// Checks a code of the second factor for actions for which the library needs none: turning the factor off, showing its
// secret, renewing backup codes, and ending the factor with a new password. Every code works only once, here or at
// sign-in.
import { hash } from 'node:crypto'
import type { Transaction } from 'kysely'
import type { AccountId } from '../ids.ts'
import { storedFlag } from '../store/better-auth-booleans.ts'
import type { Store } from '../store/open.ts'
import type { Tables } from '../store/tables.ts'
import type { Library } from './sign-in-library.ts'

export interface Factor {
  readonly id: string
  readonly accountId: AccountId
  readonly secret: string
  readonly backupCodes: string
}

/** Returns null if the second factor is not on. */
export async function factorOf(
  store: Pick<Store, 'db' | 'dialect'>,
  accountId: AccountId | null,
): Promise<Factor | null> {
  if (accountId === null) return null
  const row = await store.db
    .selectFrom('second_factors')
    .innerJoin('accounts', 'accounts.id', 'second_factors.userId')
    .select(['second_factors.id', 'second_factors.secret', 'second_factors.backupCodes'])
    .where('second_factors.userId', '=', accountId)
    .where('accounts.twoFactorEnabled', '=', storedFlag(store.dialect, true))
    .executeTakeFirst()
  return row === undefined ? null : { ...row, accountId }
}

/** Returns true only once for each code. Count the attempt first. */
export async function useCode(
  deps: { readonly store: Store; readonly library: Library },
  factor: Factor,
  code: string,
  now: number,
): Promise<boolean> {
  const { store, library } = deps
  if (await library.isCode(factor.secret, code)) {
    return await store.append((tx) => markUsed(tx, factor.accountId, code, now))
  }
  const codes = await library.openBackupCodes(factor.backupCodes)
  if (!codes.includes(code)) return false
  const backupCodes = await library.sealBackupCodes(codes.filter((other) => other !== code))
  const used = await store.append((tx) =>
    tx
      .updateTable('second_factors')
      .set({ backupCodes })
      .where('id', '=', factor.id)
      // If two requests read the same list, only one can update it.
      .where('backupCodes', '=', factor.backupCodes)
      .executeTakeFirst(),
  )
  return used.numUpdatedRows === 1n
}

/** How long a used code is stored. A code is valid in its own step of 30 s, and in the steps before and after. */
export const CODE_LIFE_MS = 120_000

/** Returns false if the code was used before (RFC 6238 §5.2 allows one use). */
export async function markUsed(
  tx: Transaction<Tables>,
  accountId: AccountId,
  code: string,
  now: number,
): Promise<boolean> {
  return await useOnce(tx, accountId, code.trim(), { until: now + CODE_LIFE_MS, now })
}

/** Returns true only once for each text of an account. The text is stored until `until`. */
export async function useOnce(
  tx: Transaction<Tables>,
  account_id: AccountId,
  text: string,
  { until, now }: { readonly until: number; readonly now: number },
): Promise<boolean> {
  await tx.deleteFrom('used_codes').where('until', '<', new Date(now).toISOString()).execute()
  const inserted = await tx
    .insertInto('used_codes')
    .values({ account_id, code_hash: hash('sha256', text), until: new Date(until).toISOString() })
    .onConflict((oc) => oc.doNothing())
    .executeTakeFirst()
  return inserted.numInsertedOrUpdatedRows === 1n
}
