// Rate limits for attempts: a fixed window per key, counted in the store before the attempt, across all processes. The
// limits slow down guessing and bound the cost of password hashing. They never reveal whether an account exists.
import { hash } from 'node:crypto'
import type { Transaction } from 'kysely'
import { AppError } from '../errors.ts'
import type { Store } from '../store/open.ts'
import type { Tables } from '../store/tables.ts'

/** A limit that one attempt counts against. */
export interface Allowance {
  /** Caller and action, stored as a hash. */
  readonly key: string
  readonly limit: number
  readonly windowMs: number
}

export interface Attempts {
  /**
   * Counts one attempt against each limit in order, and stops at the first exhausted limit. For a second after a
   * refusal, further attempts against that limit are refused without being counted. Throws RATE_LIMITED with
   * `retryAfter` in whole seconds if a limit is exhausted.
   */
  spend(allowances: readonly Allowance[]): Promise<void>
  /** Like spend(), but returns false instead of throwing. */
  allows(allowances: readonly Allowance[]): Promise<boolean>
  /** Resets the counters of these keys, after an attempt succeeded. */
  clear(keys: readonly string[]): Promise<void>
}

/** The minimum interval between deletions of expired windows. An attempt triggers the deletion. */
const PRUNE_MS = 60_000
/**
 * The maximum number of windows, so that a flood cannot fill the disk. Above it, the windows that end soonest are
 * deleted.
 */
const WINDOWS_MAX = 100_000
/** How long an exhausted limit is cached in memory, so that a flood cannot keep the disk busy. */
const CACHED_MS = 1_000
const CACHED_MAX = 1_000

const PREFIX = 'attempt:'

/** An exhausted window. */
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
        .selectFrom('counters')
        .select('expire')
        .where('key', 'like', `${PREFIX}%`)
        .orderBy('expire', 'desc')
        .offset(WINDOWS_MAX)
        .limit(1)
        .executeTakeFirst()
      await db
        .deleteFrom('counters')
        .where('key', 'like', `${PREFIX}%`)
        .where('expire', '<=', Math.max(at, last?.expire ?? at))
        .execute()
    })
  }
  const known = new Map<string, { readonly since: number; readonly endsAt: number }>()
  const cachedWindow = (key: string, at: number): UsedUp | null => {
    const found = known.get(key)
    const isFresh = found !== undefined && at >= found.since && at < Math.min(found.since + CACHED_MS, found.endsAt)
    return isFresh ? { key, endsAt: found.endsAt } : null
  }
  const remember = ({ key, endsAt }: UsedUp, since: number) => {
    if (known.size >= CACHED_MAX) known.clear()
    known.set(key, { since, endsAt })
  }
  /** Counts one attempt. Returns the window that refuses it, or null. */
  const usedUpBy = async (allowances: readonly Allowance[], at: number): Promise<UsedUp | null> => {
    if (allowances.length === 0) return null
    for (const { key } of allowances) {
      const usedUp = cachedWindow(key, at)
      if (usedUp !== null) return usedUp
    }
    prune(at)
    // A refused attempt counts too. An error inside the transaction would undo the count, so the error is thrown
    // afterwards.
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
      await store.append((tx) => tx.deleteFrom('counters').where('key', 'in', keys.map(keyOf)).execute())
      for (const key of keys) known.delete(key)
    },
  }
}

/** Returns the refusal. `waitMs` is rounded up to whole seconds, at least one. */
export function tooManyTries(waitMs: number, extra: Readonly<Record<string, unknown>> = {}): AppError {
  const retryAfter = Math.max(1, Math.ceil(waitMs / 1000))
  return new AppError('RATE_LIMITED', `Too many attempts. Wait ${retryAfter} s.`, { extra: { retryAfter, ...extra } })
}

/**
 * Counts the attempt in one window after the other. Stops at the first exhausted window and returns it, or returns
 * null. Runs one statement per key, so that concurrent attempts cannot race.
 */
async function counted(tx: Transaction<Tables>, allowances: readonly Allowance[], at: number): Promise<UsedUp | null> {
  for (const { key, limit, windowMs } of allowances) {
    const first = { points: 1, expire: at + windowMs }
    const window = await tx
      .insertInto('counters')
      .values({ key: keyOf(key), ...first })
      .onConflict((oc) =>
        oc.column('key').doUpdateSet((eb) => {
          // Resets windows that a wrong clock placed in the far future.
          const isOver = eb
            .case()
            .when(eb.or([eb('counters.expire', '<=', at), eb('counters.expire', '>', at + 2 * windowMs)]))
          return {
            points: isOver
              .then(first.points)
              .else(eb('counters.points', '+', 1))
              .end(),
            expire: isOver.then(first.expire).else(eb.ref('counters.expire')).end(),
          }
        }),
      )
      .returning(['points', 'expire'])
      .executeTakeFirstOrThrow()
    if (window.points > limit) return { key, endsAt: window.expire }
  }
  return null
}

/** Returns the key as stored: a hash, because keys contain e-mail and network addresses. */
function keyOf(key: string): string {
  return PREFIX + hash('sha256', key)
}
