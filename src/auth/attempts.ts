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
   * Counts one try against each, in their order and up to the first that is used up: what is refused counts no further, and
   * within a second of that not at all. Throws RATE_LIMITED then, with `retryAfter` in whole seconds.
   */
  spend(allowances: readonly Allowance[]): Promise<void>
  /** As spend(), but says false where that throws: for what is left undone without a word. */
  allows(allowances: readonly Allowance[]): Promise<boolean>
  /** Takes the tries of these keys back: a sign-in that worked. */
  clear(keys: readonly string[]): Promise<void>
}

/** Windows that are over are removed, at most once a minute and only while somebody tries. */
const PRUNE_MS = 60_000
/** Those that end soonest are dropped when there are more: a flood must not fill the disk. */
const KEPT_MAX = 100_000
/** For so long what is used up is known without the store: a flood must not keep the disk busy either. */
const KNOWN_MS = 1_000
const KNOWN_MAX = 1_000

/** A window whose limit is past. */
interface UsedUp {
  readonly key: string
  readonly endsAt: number
}

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
  const known = new Map<string, { readonly since: number; readonly endsAt: number }>()
  const knownOf = (key: string, at: number): UsedUp | null => {
    const found = known.get(key)
    const isFresh = found !== undefined && at >= found.since && at < Math.min(found.since + KNOWN_MS, found.endsAt)
    return isFresh ? { key, endsAt: found.endsAt } : null
  }
  const remember = ({ key, endsAt }: UsedUp, since: number) => {
    if (known.size >= KNOWN_MAX) known.clear()
    known.set(key, { since, endsAt })
  }
  /** Counts one try; the window that refuses it, or null. */
  const usedUpBy = async (allowances: readonly Allowance[], at: number): Promise<UsedUp | null> => {
    if (allowances.length === 0) return null
    for (const { key } of allowances) {
      const usedUp = knownOf(key, at)
      if (usedUp !== null) return usedUp
    }
    prune(at)
    // A refused try is counted too, so the refusal is made after the transaction.
    const usedUp = await store.append((tx) => counted(tx, allowances, at), 'read committed')
    if (usedUp !== null) remember(usedUp, at)
    return usedUp
  }
  return {
    async spend(allowances) {
      const at = now()
      const usedUp = await usedUpBy(allowances, at)
      if (usedUp !== null) throw tooManyTries(usedUp.endsAt - at)
    },
    allows: async (allowances) => (await usedUpBy(allowances, now())) === null,
    async clear(keys) {
      if (keys.length === 0) return
      await store.append((tx) => tx.deleteFrom('attempts').where('key_hash', 'in', keys.map(hashOf)).execute())
      for (const key of keys) known.delete(key)
    },
  }
}

/** To whoever must wait so many milliseconds; told in whole seconds, one at the least. */
export function tooManyTries(waitMs: number, extra: Readonly<Record<string, unknown>> = {}): AppError {
  const retryAfter = Math.max(1, Math.ceil(waitMs / 1000))
  return new AppError('RATE_LIMITED', `Too many tries: wait ${retryAfter} s.`, { extra: { retryAfter, ...extra } })
}

/** The first whose limit is past; null for none. One statement a key: nobody counts between look and write. */
async function counted(tx: Transaction<Tables>, allowances: readonly Allowance[], at: number): Promise<UsedUp | null> {
  for (const { key, limit, windowMs } of allowances) {
    const first = { count: 1, ends_at: at + windowMs }
    const window = await tx
      .insertInto('attempts')
      .values({ key_hash: hashOf(key), ...first })
      .onConflict((oc) =>
        oc.column('key_hash').doUpdateSet((eb) => {
          // One that ends later than any could was begun by a clock that was wrong: nobody waits for years.
          const isOver = eb
            .case()
            .when(eb.or([eb('attempts.ends_at', '<=', at), eb('attempts.ends_at', '>', at + 2 * windowMs)]))
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
    if (window.count > limit) return { key, endsAt: window.ends_at }
  }
  return null
}

/** Addresses of people are not kept in the clear. */
function hashOf(key: string): string {
  return hash('sha256', key)
}
