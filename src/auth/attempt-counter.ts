// Rate limits for attempts, such as wrong passwords. The limits slow down guessing, and bound the cost of hashing
// passwords. The counters are in the store, so that several processes share them.
import { hash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { sql, type Transaction } from 'kysely'
import { AppError } from '../errors.ts'
import { deleteInPortions } from '../store/delete-in-portions.ts'
import type { Store } from '../store/open.ts'
import type { Tables } from '../store/tables.ts'

export interface Allowance {
  /** What is attempted and by whom, as `kind: who`. The store contains the kind, and a hash of the key. */
  readonly key: string
  readonly limit: number
  readonly windowMs: number
}

export interface Attempts {
  /**
   * Counts an attempt against each limit, in this order. Stops at a limit that is used up, and throws RATE_LIMITED with
   * `retryAfter` in whole seconds. During the next second, attempts against that limit are refused without being
   * counted.
   */
  spend(allowances: readonly Allowance[]): Promise<void>
  allows(allowances: readonly Allowance[]): Promise<boolean>
  /** Resets the counters of these keys after an attempt succeeded. */
  clear(keys: readonly string[]): Promise<void>
}

/** Expired windows are deleted at most this often, after an attempt. */
const PRUNE_MS = 60_000
/**
 * If a kind has more windows, those with the fewest attempts are deleted, so that a flood cannot fill the disk. Such a
 * flood cannot delete a window that is nearly used up, or a window of another kind.
 */
const WINDOWS_MAX = 20_000
/** How long a used-up limit is cached, so that a flood of attempts cannot keep the disk busy. */
const CACHED_MS = 1_000
const CACHED_MAX = 1_000

const PREFIX = 'attempt:'

const HASH_LENGTH = 64
/** The stored key without its hash. SQLite has an index on this expression (migration 0027). */
const kindIn = (dialect: Store['dialect']) =>
  dialect === 'sqlite'
    ? sql<string>`substr(key, 1, length(key) - ${sql.lit(HASH_LENGTH)})`
    : sql<string>`left(key, ${sql.lit(-HASH_LENGTH)})`

interface UsedUp {
  readonly key: string
  readonly endsAt: number
}

async function deleteExcess(store: CounterStore, kind: string): Promise<void> {
  const isKind = sql<boolean>`${kindIn(store.dialect)} = ${kindOf(kind)}`
  const first = await store.db
    .selectFrom('counters')
    .select(['points', 'expire'])
    .where(isKind)
    .orderBy('points', 'desc')
    .orderBy('expire', 'desc')
    .offset(WINDOWS_MAX)
    .limit(1)
    .executeTakeFirst()
  if (first === undefined) return
  const { points, expire } = first
  await deleteInPortions(store, 'counters', (eb) =>
    eb.and([isKind, eb(eb.refTuple('points', 'expire'), '<=', eb.tuple(points, expire))]),
  )
}

type CounterStore = Pick<Store, 'db' | 'dialect' | 'append' | 'commit' | 'later'>

export function attempts(store: CounterStore, now: () => number = Date.now): Attempts {
  let prunedAt = -Infinity
  /** The kinds of the attempts since the last deletion. Only these kinds have new windows. */
  const kinds = new Set<string>()
  const prune = (at: number) => {
    if (at - prunedAt < PRUNE_MS) return
    prunedAt = at
    const grown = [...kinds]
    kinds.clear()
    store.later(async () => {
      await deleteInPortions(store, 'counters', (eb) =>
        eb.and([eb('expire', '<=', at), eb('key', 'like', `${PREFIX}%`)]),
      )
      for (const kind of grown) {
        // SQLite answers synchronously, so let other requests run.
        await setImmediate()
        await deleteExcess(store, kind)
      }
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
  const usedUpBy = async (allowances: readonly Allowance[], at: number): Promise<UsedUp | null> => {
    if (allowances.length === 0) return null
    for (const { key } of allowances) {
      const usedUp = cachedWindow(key, at)
      if (usedUp !== null) return usedUp
    }
    for (const { key } of allowances) kinds.add(key.slice(0, key.indexOf(':')))
    prune(at)
    // The refusal is thrown after the transaction, because an error inside would undo the count.
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

/** Rounds `waitMs` up to whole seconds. */
export function tooManyTries(waitMs: number, extra: Readonly<Record<string, unknown>> = {}): AppError {
  const retryAfter = Math.max(1, Math.ceil(waitMs / 1000))
  return new AppError('RATE_LIMITED', `Too many attempts. Wait ${retryAfter} s.`, { extra: { retryAfter, ...extra } })
}

/** Returns the first window that is used up. One statement for each key, so that concurrent attempts cannot race. */
async function counted(tx: Transaction<Tables>, allowances: readonly Allowance[], at: number): Promise<UsedUp | null> {
  for (const { key, limit, windowMs } of allowances) {
    const first = { points: 1, expire: at + windowMs }
    const window = await tx
      .insertInto('counters')
      .values({ key: keyOf(key), ...first })
      .onConflict((oc) =>
        oc.column('key').doUpdateSet((eb) => {
          // Also reset a window that ends in the far future, because the clock was wrong.
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

/** Keys contain e-mail and network addresses, so hash them. The kind stays readable, to count windows by kind. */
function keyOf(key: string): string {
  return `${kindOf(key.slice(0, key.indexOf(':')))}${hash('sha256', key)}`
}

function kindOf(kind: string): string {
  return `${PREFIX}${kind}:`
}
