// Lists and ends the sessions of an account, and bounds their number, so that one statement can end all of them. The
// library would list and end only the first 100 rows, and would keep expired rows forever.
import type { Kysely } from 'kysely'
import type { ClockDoubt } from '../clock-doubt.ts'
import type { AccountId, SessionId } from '../ids.ts'
import { storedTime } from '../store/better-auth-times.ts'
import { deleteInPortions } from '../store/delete-in-portions.ts'
import type { Store } from '../store/open.ts'
import type { Tables } from '../store/tables.ts'

/** The maximum number of sessions of an account. A sign-in ends the oldest ones beyond it. */
export const SESSIONS_MAX = 100
/** Expired sessions are deleted at most this often, after a sign-in. */
const PRUNE_MS = 3_600_000

interface Deps {
  readonly store: Store
  /** While the clock may be wrong, expired sessions are kept. */
  readonly clock?: ClockDoubt
  readonly now?: () => number
}

export interface SessionBound {
  /** Ends the oldest sessions of the account that has this new session, if it has too many. */
  afterSignIn(token: string): Promise<void>
}

export function boundSessions({ store, clock, now = Date.now }: Deps): SessionBound {
  let prunedAt = -Infinity
  const prune = (at: number) => {
    if (at - prunedAt < PRUNE_MS || (clock?.reason() ?? null) !== null) return
    prunedAt = at
    store.later(() => deleteInPortions(store, 'sessions', (eb) => eb('expiresAt', '<=', storedTime(store.dialect, at))))
  }
  return {
    async afterSignIn(token) {
      prune(now())
      const oldest = await oldestBeyond(store.db, token)
      if (oldest === undefined) return
      const { userId, createdAt, id } = oldest
      await deleteInPortions(store, 'sessions', (eb) =>
        eb.and([
          eb('userId', '=', userId),
          eb('token', '!=', token),
          eb(eb.refTuple('createdAt', 'id'), '<=', eb.tuple(createdAt, id)),
        ]),
      )
      await store.settled()
      store.forget()
    },
  }
}

/** Returns the newest session that is beyond the maximum. */
async function oldestBeyond(db: Kysely<Tables>, token: string) {
  return await db
    .selectFrom('sessions')
    .select(['id', 'userId', 'createdAt'])
    .where('userId', '=', (eb) =>
      eb.selectFrom('sessions as made').select('made.userId').where('made.token', '=', token),
    )
    .orderBy('createdAt', 'desc')
    .orderBy('id', 'desc')
    .offset(SESSIONS_MAX)
    .limit(1)
    .executeTakeFirst()
}

/** Returns the sessions that have not expired, oldest first. */
export async function listSessions(store: Pick<Store, 'db' | 'dialect'>, accountId: AccountId, now: number) {
  return await store.db
    .selectFrom('sessions')
    .selectAll()
    .where('userId', '=', accountId)
    .where('expiresAt', '>', storedTime(store.dialect, now))
    .orderBy('createdAt')
    .orderBy('id')
    .execute()
}

/** Ends one session. Ignores sessions of other accounts. */
export async function endSession(store: Store, accountId: AccountId, id: SessionId): Promise<void> {
  await store.write((tx) => tx.deleteFrom('sessions').where('id', '=', id).where('userId', '=', accountId).execute())
}

/** Ends all sessions of the account except this one. */
export async function endOtherSessions(store: Store, accountId: AccountId, id: SessionId): Promise<void> {
  await store.write((tx) => tx.deleteFrom('sessions').where('id', '!=', id).where('userId', '=', accountId).execute())
}
