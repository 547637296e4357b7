// Uses a code of a second factor up where the library asks for none: to switch the factor off, to see its secret, to renew
// its backup codes, to end it with a new password. A code that was used here signs nobody in, and the other way round.
import { hash } from 'node:crypto'
import type { Transaction } from 'kysely'
import type { AccountId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import type { Tables } from '../store/tables.ts'
import type { Library } from './library.ts'

/** A second factor that is on. */
export interface Factor {
  readonly id: string
  readonly accountId: AccountId
  /** Encrypted by the library. */
  readonly secret: string
  readonly backupCodes: string
}

/** The second factor of an account; null where none is on. */
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
    .where('accounts.twoFactorEnabled', '=', store.dialect === 'postgres' ? true : 1)
    .executeTakeFirst()
  return row === undefined ? null : { ...row, accountId }
}

/** True once for each code; count the try before. */
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
  const backupCodes = await library.sealBackupCodes(codes.filter((each) => each !== code))
  const used = await store.append((tx) =>
    tx
      .updateTable('second_factors')
      .set({ backupCodes })
      .where('id', '=', factor.id)
      // Of two that read the same list one writes it.
      .where('backupCodes', '=', factor.backupCodes)
      .executeTakeFirst(),
  )
  return used.numUpdatedRows === 1n
}

/** Longer than a code can be used: its own half minute, one before and one after. */
const KEPT_MS = 120_000

/** False for a code that was used before (RFC 6238 §5.2: a code is accepted once). */
export async function markUsed(
  tx: Transaction<Tables>,
  account_id: AccountId,
  code: string,
  now: number,
): Promise<boolean> {
  await tx.deleteFrom('used_codes').where('until', '<', new Date(now).toISOString()).execute()
  const kept = await tx
    .insertInto('used_codes')
    .values({ account_id, code_hash: hash('sha256', code.trim()), until: new Date(now + KEPT_MS).toISOString() })
    .onConflict((oc) => oc.doNothing())
    .executeTakeFirst()
  return kept.numInsertedOrUpdatedRows === 1n
}
