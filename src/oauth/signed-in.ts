// The signed-in person of a request, by the cookie of sign-in, with what the audit and the page say about them.
import type { SessionCaller } from '../auth/caller.ts'
import type { Identity } from '../sign-in/library.ts'
import type { Store } from '../store/open.ts'
import { isoTime } from '../store/times.ts'

export interface Person {
  readonly caller: SessionCaller
  readonly email: string
}

interface Deps {
  readonly store: Pick<Store, 'db'>
  readonly identify: (request: Pick<Request, 'headers'>) => Promise<Identity>
}

/** Returns null if nobody is signed in. */
export async function personOf({ store, identify }: Deps, request: Request): Promise<Person | null> {
  const { signedIn: accountId, sessionId } = await identify(request)
  if (accountId === null || sessionId === null) return null
  const row = await store.db
    .selectFrom('sessions')
    .innerJoin('accounts', 'accounts.id', 'sessions.userId')
    .select(['accounts.name', 'accounts.email', 'sessions.createdAt'])
    .where('sessions.id', '=', sessionId)
    .where('accounts.id', '=', accountId)
    .executeTakeFirst()
  if (row === undefined) return null
  const { name, email, createdAt } = row
  return { caller: { kind: 'session', accountId, name, sessionId, signedInAt: isoTime(createdAt) }, email }
}
