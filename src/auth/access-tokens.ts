// Verifies a session's access token: signature, issuer, audience, type and expiry, and that the session still exists.
// sign-in/library.ts signs tokens. Roles and scopes are never read from a token.
import { hash } from 'node:crypto'
import { decodeProtectedHeader, importJWK, jwtVerify, type CryptoKey, type JWTPayload } from 'jose'
import { z } from 'zod'
import { asId, type AccountId, type SessionId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import { isoTime } from '../store/times.ts'
import type { SessionCaller } from './caller.ts'

/** The fixed claims of our tokens, and their lifetime. */
export const ACCESS_TOKEN = { issuer: 'vitrine', audience: 'vitrine:rest', type: 'access', lifeSeconds: 600 } as const

const ALGORITHM = 'EdDSA'
const CACHED_MAX = 2_000

const Claims = z.object({
  sub: z.string().min(1),
  sid: z.string().min(1),
  typ: z.literal(ACCESS_TOKEN.type),
  exp: z.number(),
})
type Claims = z.infer<typeof Claims>

const PublicKey = z.object({ kty: z.literal('OKP'), crv: z.literal('Ed25519'), x: z.string() })

export interface AccessTokens {
  /** Returns null if the token is not valid or its session has ended. */
  verify(token: string): Promise<SessionCaller | null>
  /** Returns the current state of the session, or null if the session has ended. */
  again(caller: SessionCaller): Promise<SessionCaller | null>
}

export function accessTokens(deps: { readonly store: Store; readonly now: () => number }): AccessTokens {
  const { store, now } = deps
  /** Claims by token hash. The signature is verified once per token, the session on every call. */
  const verified = new Map<string, Claims>()
  return {
    async verify(token) {
      const key = hash('sha256', token)
      let claims = verified.get(key)
      if (claims === undefined) {
        const fresh = await checked(store, token, now())
        if (fresh === null) return null
        claims = fresh
        verified.set(key, claims)
        const oldest = verified.keys().next()
        if (verified.size > CACHED_MAX && !oldest.done) verified.delete(oldest.value)
      }
      if (claims.exp * 1000 <= now()) {
        verified.delete(key)
        return null
      }
      return await session(store, { sub: claims.sub, sid: claims.sid }, now())
    },
    again: ({ accountId, sessionId }) => session(store, { sub: accountId, sid: sessionId }, now()),
  }
}

async function checked(store: Store, token: string, now: number): Promise<Claims | null> {
  const kid = kidOf(token)
  if (kid === null) return null
  try {
    const key = await store.recall(`signing key ${kid}`, () => publicKey(store, kid))
    if (key === null) return null
    const { payload } = await jwtVerify(token, key, {
      algorithms: [ALGORITHM],
      issuer: ACCESS_TOKEN.issuer,
      audience: ACCESS_TOKEN.audience,
      currentDate: new Date(now),
      requiredClaims: ['sub', 'sid', 'typ', 'iat', 'exp'],
    })
    return claimsOf(payload)
  } catch (error) {
    // jose throws ERR_J… for invalid tokens. Other errors are ours and must not be reported as an invalid token.
    if (error instanceof Error && 'code' in error && String(error.code).startsWith('ERR_J')) return null
    throw error
  }
}

function kidOf(token: string): string | null {
  try {
    const { kid } = decodeProtectedHeader(token)
    return kid !== undefined && /^[\w-]{1,64}$/.test(kid) ? kid : null
  } catch {
    return null
  }
}

function claimsOf(payload: JWTPayload): Claims | null {
  const read = Claims.safeParse(payload)
  return read.success ? read.data : null
}

async function publicKey(store: Store, kid: string): Promise<CryptoKey | null> {
  const row = await store.db.selectFrom('signing_keys').select('publicKey').where('id', '=', kid).executeTakeFirst()
  if (row === undefined) return null
  const key = await importJWK(PublicKey.parse(JSON.parse(row.publicKey)), ALGORITHM)
  return key instanceof Uint8Array ? null : key
}

/** The session row, cached: a sign-out or a new password takes effect at once, on other replicas within one second. */
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
