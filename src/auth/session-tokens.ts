// Verifies the access token of a session, which sign-in/better-auth.ts signs. The session must still exist.
import { z } from 'zod'
import { asId, type AccountId, type SessionId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import { isoTime } from '../store/better-auth-times.ts'
import type { SessionCaller } from './caller.ts'
import { signedTokens } from './verify-jwt.ts'

export const ACCESS_TOKEN = { issuer: 'vitrine', audience: 'vitrine:rest', type: 'access', lifeSeconds: 600 } as const

const Claims = z.object({
  sub: z.string().min(1),
  sid: z.string().min(1),
  typ: z.literal(ACCESS_TOKEN.type),
  exp: z.number(),
})
type Claims = z.infer<typeof Claims>

const EXPECTED = {
  issuer: ACCESS_TOKEN.issuer,
  audience: ACCESS_TOKEN.audience,
  requiredClaims: ['sub', 'sid', 'typ', 'iat', 'exp'],
}

export interface AccessTokens {
  /** Returns null if the token is not valid, or if its session has ended. */
  verify(token: string): Promise<SessionCaller | null>
  again(caller: SessionCaller): Promise<SessionCaller | null>
}

export function accessTokens(deps: { readonly store: Store; readonly now: () => number }): AccessTokens {
  const { store, now } = deps
  const claimsOf = signedTokens(deps, () => EXPECTED, Claims)
  return {
    async verify(token) {
      const claims = await claimsOf(token)
      return claims === null ? null : await session(store, claims, now())
    },
    again: ({ accountId, sessionId }) => session(store, { sub: accountId, sid: sessionId }, now()),
  }
}

/** A sign-out or a new password takes effect at once in this process, and within one second in all other processes. */
async function session(store: Store, claims: Pick<Claims, 'sub' | 'sid'>, now: number): Promise<SessionCaller | null> {
  const id = asId<SessionId>(claims.sid)
  const found = await store.recall(`session ${id}`, async () => {
    const row = await store.db
      .selectFrom('sessions')
      .innerJoin('accounts', 'accounts.id', 'sessions.userId')
      .select(['sessions.userId', 'sessions.createdAt', 'sessions.expiresAt', 'accounts.name'])
      .where('sessions.id', '=', id)
      .executeTakeFirst()
    return row === undefined ? null : { row, expiresAt: Date.parse(isoTime(row.expiresAt)) }
  })
  if (found === null || found.row.userId !== asId<AccountId>(claims.sub) || found.expiresAt <= now) return null
  return {
    kind: 'session',
    accountId: found.row.userId,
    name: found.row.name,
    sessionId: id,
    signedInAt: isoTime(found.row.createdAt),
  }
}
