// Deletes accounts that have not verified their address some days after the sign-up, because anybody can create
// accounts with addresses of other people. If mail is off, no address can be verified, and nothing is deleted.
import { setImmediate } from 'node:timers/promises'
import type { Audit } from '../audit/audit.ts'
import { changesOf } from '../audit/recorded-changes.ts'
import { accountTarget } from '../auth/own-account.ts'
import type { ClockDoubt } from '../clock-doubt.ts'
import { storedFlag } from '../store/better-auth-booleans.ts'
import { storedTime } from '../store/better-auth-times.ts'
import type { Store } from '../store/open.ts'
import { deleteUnverifiedIn } from './sign-up.ts'

/** How long an account may stay unverified (docs/operating.md#background-work). */
const KEPT_MS = 7 * 86_400_000
const FIRST_MS = 60_000
const EVERY_MS = 3_600_000
const FOUND_MAX = 100
const DELETED_MAX = 10

export interface UnverifiedAccounts extends AsyncDisposable {
  /** Deletes all overdue accounts. A timer also does this once an hour. */
  remove(): Promise<void>
}

interface Deps {
  readonly store: Store
  readonly audit: Pick<Audit, 'change'>
  readonly mail: { readonly isOn: boolean }
  readonly log: { warn(detail: object, message: string): void; error(detail: object, message: string): void }
  /** While the clock may be wrong, no account is deleted. */
  readonly clock: ClockDoubt
  readonly now: () => number
}

/** Works soon after the start and then every hour, until disposed. */
export function openUnverifiedAccounts(deps: Deps): UnverifiedAccounts {
  const closing = new AbortController()
  let running: Promise<void> = Promise.resolve()
  const remove = () => {
    const removed = running.then(() => removeAll(deps, closing.signal))
    running = removed.catch(() => undefined)
    return removed
  }
  const arm = (ms: number): NodeJS.Timeout =>
    setTimeout(() => {
      timer = arm(EVERY_MS)
      remove().catch((err: unknown) => deps.log.error({ err }, 'deleting unverified accounts failed'))
    }, ms).unref()
  let timer = arm(FIRST_MS)
  return {
    remove,
    async [Symbol.asyncDispose]() {
      clearTimeout(timer)
      closing.abort()
      await running
    },
  }
}

async function removeAll(deps: Deps, closing: AbortSignal): Promise<void> {
  if (!deps.mail.isOn) return
  const why = deps.clock.reason()
  if (why !== null) return deps.log.warn({ why }, 'no unverified account is deleted, because the clock may be wrong')
  for (;;) {
    const accounts = await overdue(deps)
    let deleted = 0
    for (let n = 0; n < accounts.length; n += DELETED_MAX) {
      // Lets other requests run. On SQLite, nothing else in this loop waits.
      await setImmediate()
      if (closing.aborted) return
      deleted += await removeSome(deps, accounts.slice(n, n + DELETED_MAX))
    }
    if (deleted === 0) return
  }
}

type Overdue = Awaited<ReturnType<typeof overdue>>[number]

/** Returns the oldest overdue accounts. An account in a team stays, because it was created while mail was off. */
function overdue({ store, now }: Deps) {
  return store.db
    .selectFrom('accounts')
    .select(['id', 'name'])
    .where('emailVerified', '=', storedFlag(store.dialect, false))
    .where('createdAt', '<', storedTime(store.dialect, now() - KEPT_MS))
    .where('id', 'not in', (eb) => eb.selectFrom('memberships').select('account_id'))
    .orderBy('createdAt')
    .limit(FOUND_MAX)
    .execute()
}

/** Returns how many were deleted. Accounts stay if they verified their address or joined a team in the meantime. */
async function removeSome({ store, audit }: Deps, accounts: readonly Overdue[]): Promise<number> {
  try {
    // Unlike write(), append() does not block other requests while the disk syncs. But it does not clear the cache.
    return await store.append(async (tx) => {
      let deleted = 0
      for (const { id, name } of accounts) {
        if (!(await deleteUnverifiedIn(tx, id))) continue
        deleted++
        // Links for a new password, and sign-ins that wait for a code, have no foreign key.
        await tx.deleteFrom('verifications').where('value', '=', id).execute()
        const call = { action: 'deleteUnverifiedAccount', caller: { kind: 'session', accountId: id } } as const
        await audit.change(tx, call, {}, { target: accountTarget(id, name), changes: changesOf({ name }, null) })
      }
      return deleted
    })
  } finally {
    store.forget()
  }
}
