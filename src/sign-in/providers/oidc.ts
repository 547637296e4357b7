// Signs in at an OpenID Connect provider, with the authorization code flow, PKCE, state and nonce. Reads the discovery
// document at the first sign-in, so that a provider that is down does not delay the start.
import { hash } from 'node:crypto'
import { createLocalJWKSet, errors, jwtVerify, type JWTVerifyGetKey } from 'jose'
import { z } from 'zod'
import type { Provider } from '../../config.ts'
import { isAllowed, type AskProvider } from './ask-provider.ts'
import { plainText, ProviderProblem, type Profile } from './provider-identity.ts'
import type { Flow } from './provider-flow.ts'

const Discovery = z.object({
  issuer: z.string(),
  authorization_endpoint: z.url(),
  token_endpoint: z.url(),
  jwks_uri: z.url(),
  userinfo_endpoint: z.url().optional(),
  token_endpoint_auth_methods_supported: z.array(z.string()).optional(),
  authorization_response_iss_parameter_supported: z.boolean().optional(),
})
type Discovery = z.infer<typeof Discovery>

const Keys = z.object({ keys: z.array(z.looseObject({ kty: z.string() })).max(100) })
const Tokens = z.object({ id_token: z.string(), access_token: z.string() })
/** Some providers write booleans as strings. */
const Flag = z.union([z.boolean(), z.stringbool({ truthy: ['true'], falsy: ['false'], case: 'sensitive' })])
const Claims = z.object({
  sub: z.string().min(1).max(255),
  nonce: z.string().optional(),
  azp: z.string().optional(),
  aud: z.union([z.string(), z.array(z.string())]).optional(),
  email: z.string().optional(),
  email_verified: Flag.optional(),
  name: z.string().optional(),
  preferred_username: z.string().optional(),
})
type Claims = z.infer<typeof Claims>

/** HMAC is not accepted, because its key would be the client secret. */
const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519']
/** How much the provider's clock may differ from ours. */
const CLOCK_SECONDS = 60
const DISCOVERED_MS = 3_600_000
const KEYS_MS = 600_000
/** Keys are fetched at most this often. Otherwise each invalid token would cause a request. */
const KEYS_AGAIN_MS = 30_000
/** How long a failure is cached, so that only one request waits for a timeout. */
const FAILED_MS = 5_000

export function oidcFlow(provider: Provider, ask: AskProvider, now: () => number): Flow {
  const discovered = remembered(now, DISCOVERED_MS, () => discover(provider, ask))
  const keys = remembered(now, KEYS_MS, async () => {
    const { json } = await ask((await discovered.get()).jwks_uri)
    return createLocalJWKSet(Keys.parse(json))
  })
  /** Fetches the keys again if the key of a token is unknown, because providers change their keys. */
  const keyOf: JWTVerifyGetKey = async (header, token) => {
    try {
      return await (
        await keys.get()
      )(header, token)
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey) || !keys.forget(KEYS_AGAIN_MS)) throw error
      return await (
        await keys.get()
      )(header, token)
    }
  }
  return {
    async authorizationUrl({ redirectUri, state, nonce, verifier }) {
      const url = new URL((await discovered.get()).authorization_endpoint)
      const parameters = {
        response_type: 'code',
        client_id: provider.clientId,
        redirect_uri: redirectUri,
        scope: 'openid email profile',
        state,
        nonce,
        code_challenge: hash('sha256', verifier, 'base64url'),
        code_challenge_method: 'S256',
      }
      for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
      return url.href
    },
    async profile({ redirectUri, nonce, verifier }, { code, iss }) {
      const found = await discovered.get()
      // Otherwise the answer of one provider might be accepted as the answer of another (RFC 9207).
      const wanted = found.authorization_response_iss_parameter_supported === true
      if (iss === undefined ? wanted : iss !== found.issuer)
        throw new ProviderProblem('the answer is of another issuer')
      const { json } = await ask(found.token_endpoint, tokenQuestion(provider, found, { code, redirectUri, verifier }))
      const tokens = Tokens.safeParse(json)
      if (!tokens.success) throw new ProviderProblem(`no tokens: ${errorOf(json)}`)
      const { payload } = await jwtVerify(tokens.data.id_token, keyOf, {
        issuer: found.issuer,
        audience: provider.clientId,
        algorithms: ALGORITHMS,
        requiredClaims: ['sub', 'exp', 'iat', 'nonce'],
        clockTolerance: CLOCK_SECONDS,
        currentDate: new Date(now()),
      })
      const claims = Claims.parse(payload)
      if (claims.nonce !== nonce) throw new ProviderProblem('the token is of another sign-in')
      const isOnly = typeof claims.aud === 'string' || claims.aud?.length === 1
      if (claims.azp === undefined ? !isOnly : claims.azp !== provider.clientId) {
        throw new ProviderProblem('the token is for another client')
      }
      const more = claims.email === undefined ? await userInfo(ask, found, tokens.data.access_token, claims.sub) : {}
      return profileOf({ ...more, ...claims }, provider.trustEmail)
    },
  }
}

/** Throws if the document has another issuer. A trailing slash makes no difference, because people forget it. */
async function discover({ issuer }: Provider, ask: AskProvider): Promise<Discovery> {
  const { status, json } = await ask(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`)
  if (status !== 200) throw new ProviderProblem(`discovery answered with status ${status}`)
  const found = Discovery.parse(json)
  if (found.issuer.replace(/\/$/, '') !== issuer.replace(/\/$/, ''))
    throw new ProviderProblem('discovery is about another issuer')
  if (!isAllowed(new URL(found.authorization_endpoint), new URL(issuer))) {
    throw new ProviderProblem('the provider names an address without TLS')
  }
  return found
}

function tokenQuestion(
  { clientId, clientSecret }: Provider,
  { token_endpoint_auth_methods_supported: methods }: Discovery,
  sent: { readonly code: string; readonly redirectUri: string; readonly verifier: string },
) {
  const form = {
    grant_type: 'authorization_code',
    code: sent.code,
    redirect_uri: sent.redirectUri,
    code_verifier: sent.verifier,
  }
  // The default of OpenID Connect is client_secret_basic.
  if (methods === undefined || methods.includes('client_secret_basic')) {
    const [user, password] = [clientId, clientSecret].map((text) => new URLSearchParams({ text }).toString().slice(5))
    const authorization = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
    return { form, headers: { authorization } }
  }
  return { form: { ...form, client_id: clientId, client_secret: clientSecret } }
}

/** For providers whose token does not contain the e-mail address. */
async function userInfo(ask: AskProvider, found: Discovery, token: string, sub: string): Promise<Partial<Claims>> {
  if (found.userinfo_endpoint === undefined) return {}
  const { json } = await ask(found.userinfo_endpoint, { headers: { authorization: `Bearer ${token}` } })
  const claims = Claims.parse(json)
  // Otherwise an attacker could substitute the user info of another person (OpenID Connect Core 5.3.2).
  if (claims.sub !== sub) throw new ProviderProblem('the user info is of somebody else')
  return claims
}

function profileOf(claims: Claims, trustEmail: boolean): Profile {
  const email = z.email().max(254).safeParse(claims.email?.trim())
  const address = email.success ? email.data.toLowerCase() : null
  return {
    subject: claims.sub,
    email: address,
    emailVerified: claims.email_verified ?? trustEmail,
    name: plainText(claims.name) ?? plainText(claims.preferred_username) ?? address?.split('@')[0] ?? 'Unnamed',
    label: plainText(address ?? claims.preferred_username),
  }
}

const OauthError = z.object({ error: z.string().regex(/^[\w.-]{1,60}$/) })

/** Returns the provider's error code, but not its description. */
export function errorOf(json: unknown): string {
  return OauthError.safeParse(json).data?.error ?? 'not what was asked for'
}

interface Remembered<T> {
  get(): Promise<T>
  /** Forgets the value if it is at least this old. Returns true if it did. */
  forget(olderThanMs: number): boolean
}

function remembered<T>(now: () => number, lifeMs: number, load: () => Promise<T>): Remembered<T> {
  let held: { readonly value: Promise<T>; readonly at: number; until: number } | undefined
  return {
    get() {
      if (held !== undefined && now() < held.until) return held.value
      const entry = { value: load(), at: now(), until: now() + lifeMs }
      held = entry
      entry.value.catch(() => (entry.until = Math.min(entry.until, now() + FAILED_MS)))
      return entry.value
    },
    forget(olderThanMs) {
      if (held === undefined || now() - held.at < olderThanMs) return false
      held = undefined
      return true
    },
  }
}
