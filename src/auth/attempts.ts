// How often somebody may try: a fixed window a key, counted in the store before anything is tried, whichever process is
// asked. It slows guessing down and bounds what hashing passwords may cost; it never says whether an account exists.
import { hash } from 'node:crypto'
import type { Transaction } from 'kysely'
import { AppError } from '../errors.ts'
import type { Store } from '../store/open.ts'
import type { Tables } from '../store/tables.ts'

/** What one try counts against. */
export interface Allowance {
  /** Who, and what of; kept as a hash. */
  readonly key: string
  readonly limit: number
  readonly windowMs: number
}

export interface Attempts {
  /**
   * Counts one try against each, in their order and up to the first that is used up: what is refused counts no further.
   * Throws RATE_LIMITED then, with `retryAfter` in whole seconds.
   */
  spend(allowances: readonly Allowance[]): Promise<void>
  /** Takes the tries of these keys back: a sign-in that worked. */
  clear(keys: readonly string[]): Promise<void>
}

/** Windows that are over are removed, at most once a minute and only while somebody tries. */
const PRUNE_MS = 60_000
/** Those that end soonest are dropped when there are more: a flood must not fill the disk. */
const KEPT_MAX = 100_000

export function attempts(store: Pick<Store, 'append' | 'later'>, now: () => number = Date.now): Attempts {
  let prunedAt = -Infinity
  const prune = (at: number) => {
    if (at - prunedAt < PRUNE_MS) return
    prunedAt = at
    store.later(async (db) => {
      const last = await db
        .selectFrom('attempts')
        .select('ends_at')
        .orderBy('ends_at', 'desc')
        .offset(KEPT_MAX)
        .limit(1)
        .executeTakeFirst()
      await db
        .deleteFrom('attempts')
        .where('ends_at', '<=', Math.max(at, last?.ends_at ?? at))
        .execute()
    })
  }
  return {
    async spend(allowances) {
      if (allowances.length === 0) return
      const at = now()
      prune(at)
      // A refused try is counted too, so what refuses it is thrown behind the transaction.
      const endsAt = await store.append((tx) => counted(tx, allowances, at), 'read committed')
      if (endsAt === null) return
      const retryAfter = Math.max(1, Math.ceil((endsAt - at) / 1000))
      throw new AppError('RATE_LIMITED', `Too many tries: wait ${retryAfter} s.`, { extra: { retryAfter } })
    },
    async clear(keys) {
      if (keys.length === 0) return
      await store.append((tx) => tx.deleteFrom('attempts').where('key_hash', 'in', keys.map(hashOf)).execute())
    },
  }
}

/** When the window ends whose limit is past; null for none. One statement a key: nobody counts between look and write. */
async function counted(tx: Transaction<Tables>, allowances: readonly Allowance[], at: number): Promise<number | null> {
  for (const { key, limit, windowMs } of allowances) {
    const first = { count: 1, ends_at: at + windowMs }
    const window = await tx
      .insertInto('attempts')
      .values({ key_hash: hashOf(key), ...first })
      .onConflict((oc) =>
        oc.column('key_hash').doUpdateSet((eb) => {
          const isOver = eb.case().when('attempts.ends_at', '<=', at)
          return {
            count: isOver
              .then(first.count)
              .else(eb('attempts.count', '+', 1))
              .end(),
            ends_at: isOver.then(first.ends_at).else(eb.ref('attempts.ends_at')).end(),
          }
        }),
      )
      .returning(['count', 'ends_at'])
      .executeTakeFirstOrThrow()
    if (window.count > limit) return window.ends_at
  }
  return null
}

/** Addresses of people are not kept in the clear. */
function hashOf(key: string): string {
  return hash('sha256', key)
}
