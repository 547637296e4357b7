// Verifies the OAuth tokens of agents, which oauth/ issues. A token contains the id of a grant, which is read at each
// call, so a change of the grant also affects old tokens. The scopes in the token can only narrow the grant.
import { z } from 'zod'
import { isLoopbackName, LOOPBACK_NAMES } from '../host-names.ts'
import { asId, type AccountId, type GrantId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import type { GrantCaller, Scope } from './caller.ts'
import { openGrants } from './find-caller-by-grant.ts'
import { signedTokens } from './verify-jwt.ts'

/** The `typ` in the header of a token (RFC 9068), and its lifetime. */
export const CONNECTOR_TOKEN = { type: 'at+jwt', lifeSeconds: 600 } as const

const CONNECTOR_PATH = '/mcp'

/**
 * Returns the main address first. On loopback, there are three, and an agent accepts only the one that it was given.
 */
export function connectorResources(origin: string): readonly [string, ...string[]] {
  const at = (host: string) => {
    const url = new URL(CONNECTOR_PATH, origin)
    url.hostname = host
    return url.href
  }
  const { hostname } = new URL(origin)
  const others = isLoopbackName(hostname) ? LOOPBACK_NAMES.filter((name) => name !== hostname) : []
  return [at(hostname), ...others.map(at)]
}

const Claims = z.object({
  sub: z.string().min(1),
  // One recipient only. With several, one of them could use the token here.
  aud: z.string(),
  client_id: z.string().min(1),
  gid: z.string().regex(/^[\w-]{1,64}$/),
  scope: z.string(),
  exp: z.number(),
})
type Claims = z.infer<typeof Claims>

export interface ConnectorTokens {
  /** Returns null if the token is not valid, or if its grant has ended. */
  verify(token: string): Promise<GrantCaller | null>
  again(caller: GrantCaller): Promise<GrantCaller | null>
}

export function connectorTokens(deps: {
  readonly store: Store
  readonly now: () => number
  /** The public origin is the issuer of the tokens. */
  readonly origin: () => string
}): ConnectorTokens {
  const { now, origin } = deps
  const grants = openGrants(deps)
  const expected = () => ({
    issuer: origin(),
    audience: [...connectorResources(origin())],
    typ: CONNECTOR_TOKEN.type,
    requiredClaims: ['sub', 'aud', 'client_id', 'gid', 'scope', 'iat', 'exp'],
  })
  const claimsOf = signedTokens(deps, expected, Claims)
  return {
    async verify(token) {
      const claims = await claimsOf(token)
      if (claims === null) return null
      const grant = await grants.find(asId<GrantId>(claims.gid), now())
      return grant !== null && isFor(grant, claims) ? within(grant, new Set(claims.scope.split(' '))) : null
    },
    async again(caller) {
      const grant = await grants.find(caller.grantId, now())
      return grant === null ? null : within(grant, caller.scopes)
    },
  }
}

function isFor(grant: GrantCaller, claims: Claims): boolean {
  return grant.accountId === asId<AccountId>(claims.sub) && grant.clientId === claims.client_id
}

/** A client may request a token with fewer scopes than its grant has. */
function within(grant: GrantCaller, scopes: ReadonlySet<string>): GrantCaller {
  const held = [...grant.scopes].filter((scope: Scope) => scopes.has(scope))
  return held.length === grant.scopes.size ? grant : { ...grant, scopes: new Set(held) }
}
