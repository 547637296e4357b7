import type { AuditedCall } from '../audit/make-rows.ts'
import { clientOf, requestIdOf } from '../auth/client-name-and-address.ts'
import type { SessionCaller } from '../auth/caller.ts'
import type { AccountId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import { isoTime } from '../store/better-auth-times.ts'
import type { Identity } from './sign-in-library.ts'

export interface Person {
  readonly caller: SessionCaller
  readonly email: string
}

/** Returns null if nobody is signed in. */
export async function personOf(
  store: Pick<Store, 'db'>,
  { signedIn: accountId, sessionId }: Pick<Identity, 'signedIn' | 'sessionId'>,
): Promise<Person | null> {
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

export function callBy(
  action: string,
  who: { readonly accountId: AccountId; readonly name: string },
  request: Pick<Request, 'headers'>,
): AuditedCall {
  const { accountId, name } = who
  return {
    action,
    caller: { kind: 'session', accountId, name },
    client: clientOf(request.headers.get('user-agent')),
    requestId: requestIdOf(request),
  }
}
