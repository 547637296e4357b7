// Verifies a JWT that this service signed, and caches valid tokens. Callers must check the session or grant.
import { hash } from 'node:crypto'
import { decodeProtectedHeader, importJWK, jwtVerify, type CryptoKey, type JWTPayload } from 'jose'
import { z } from 'zod'
import { BoundedMap } from '../bounded-map.ts'
import type { Store } from '../store/open.ts'

const ALGORITHM = 'EdDSA'
const CACHED_MAX = 2_000

const PublicKey = z.object({ kty: z.literal('OKP'), crv: z.literal('Ed25519'), x: z.string() })

interface Expected {
  readonly issuer: string
  readonly audience: string | string[]
  readonly requiredClaims: string[]
  readonly typ?: string
}

interface Deps {
  readonly store: Store
  readonly now: () => number
}

/** Returns a function that returns the claims of a token, or null if it is not valid. */
export function signedTokens<Claims extends { readonly exp: number }>(
  { store, now }: Deps,
  expected: () => Expected,
  claims: z.ZodType<Claims>,
): (token: string) => Promise<Claims | null> {
  const verified = new BoundedMap<string, Claims>(CACHED_MAX)
  return async (token) => {
    const key = hash('sha256', token)
    const known = verified.get(key)
    if (known === undefined) {
      const payload = await payloadOf(store, token, expected(), now())
      const read = claims.safeParse(payload)
      if (!read.success) return null
      verified.set(key, read.data)
      return read.data
    }
    if (known.exp * 1000 > now()) return known
    verified.delete(key)
    return null
  }
}

async function payloadOf(store: Store, token: string, expected: Expected, now: number): Promise<JWTPayload | null> {
  const kid = kidOf(token)
  if (kid === null) return null
  try {
    const key = await store.recall(`signing key ${kid}`, () => publicKey(store, kid))
    if (key === null) return null
    const { payload } = await jwtVerify(token, key, {
      ...expected,
      algorithms: [ALGORITHM],
      currentDate: new Date(now),
    })
    return payload
  } catch (error) {
    // For invalid tokens, the codes of jose begin with ERR_J. Other errors are bugs.
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

async function publicKey(store: Store, kid: string): Promise<CryptoKey | null> {
  const row = await store.db.selectFrom('signing_keys').select('publicKey').where('id', '=', kid).executeTakeFirst()
  if (row === undefined) return null
  const key = await importJWK(PublicKey.parse(JSON.parse(row.publicKey)), ALGORITHM)
  return key instanceof Uint8Array ? null : key
}
