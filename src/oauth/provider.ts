// Configures better-auth's OAuth provider, which checks authorization requests, issues codes, and exchanges codes for
// tokens. Clients, documents, pages, grants and revocation are our own code.
import { AsyncLocalStorage } from 'node:async_hooks'
import type { BetterAuthPlugin } from 'better-auth'
import type { createAuthEndpoint as CreateEndpoint } from 'better-auth/api'
import { z } from 'zod'
import { CONNECTOR_TOKEN, connectorResources } from '../auth/oauth-access-tokens.ts'
import { AppError } from '../errors.ts'
import type { GrantId } from '../ids.ts'
import { sharedOptions, type SharedDeps } from '../sign-in/better-auth-options.ts'
import { isDocumentId, type Clients } from './find-client.ts'
import { SCOPES } from './scopes.ts'

export interface ProviderDeps extends SharedDeps {
  readonly clients: Pick<Clients, 'find'>
  /** https, or a loopback address. */
  readonly origin: string
}

export interface Provider {
  /**
   * Returns the URL to which the browser is redirected: the consent page, the client with an error, or the error page.
   */
  authorize(params: URLSearchParams, cookie: string | null): Promise<string>
  /** False for a query that is not signed or has expired. */
  isSigned(query: string): Promise<boolean>
  /** Returns the client's URL with the code. */
  approve(query: string, scopes: readonly string[], grantId: GrantId, cookie: string): Promise<string>
  /** Returns the client's URL with access_denied. */
  deny(query: string, cookie: string): Promise<string>
  /** The caller must check that client_id, grant_type, and the code or refresh token each occur exactly once. */
  token(params: URLSearchParams): Promise<TokenAnswer>
}

/** Has the fields of RFC 6749 §5.1, or of §5.2 if the status is 400 or 401. */
export interface TokenAnswer {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>>
}

const CONSENT_PATH = '/auth/consent'
/**
 * The provider redirects here if the browser must not return to the client. authorize.ts shows an error page instead.
 */
export const ERROR_PATH = '/auth/oauth2/error'
/** The time limit for the person's answer, and for the exchange of the code. */
const CODE_SECONDS = 600
const REFRESH_SECONDS = 30 * 86_400
/**
 * A client may lose the answer to a refresh, or refresh in two processes. If it uses the same refresh token again
 * within this time, it gets the same tokens. After this time, the provider would end all tokens of the client and the
 * person. So exchange-and-revoke-tokens.ts refuses the token a moment earlier.
 */
export const REUSE = { seconds: 31, marginMs: 1_000 } as const

const Redirect = z.object({ url: z.string() })
const Fields = z.record(z.string(), z.unknown())

export async function openProvider(deps: ProviderDeps): Promise<Provider> {
  const [{ betterAuth }, { createAuthEndpoint }, { jwt }, { oauthProvider }] = await Promise.all([
    import('better-auth'),
    import('better-auth/api'),
    import('better-auth/plugins/jwt'),
    import('@better-auth/oauth-provider'),
  ])
  const { origin, clients } = deps
  /**
   * The grant for which approve() is running. It is undefined in all other requests, so the provider finds no earlier
   * consent.
   */
  const consented = new AsyncLocalStorage<GrantId>()
  const shared = sharedOptions(deps, origin)
  // The library's types of an endpoint violate exactOptionalPropertyTypes.
  // oxlint-disable-next-line typescript/consistent-type-assertions
  const provider = oauthProvider({
    schema: {
      oauthClient: { modelName: 'oauth_clients' },
      oauthResource: { modelName: 'oauth_resources' },
      oauthRefreshToken: { modelName: 'oauth_refresh_tokens' },
      oauthAccessToken: { modelName: 'oauth_access_tokens' },
      oauthConsent: { modelName: 'oauth_consents' },
    },
    scopes: [...SCOPES, 'offline_access'],
    grantTypes: ['authorization_code', 'refresh_token'],
    resources: [...connectorResources(origin)],
    resourceSeedMode: 'overwrite',
    enforcePerClientResources: false,
    loginPage: CONSENT_PATH,
    consentPage: CONSENT_PATH,
    codeExpiresIn: CODE_SECONDS,
    accessTokenExpiresIn: CONNECTOR_TOKEN.lifeSeconds,
    refreshTokenExpiresIn: REFRESH_SECONDS,
    refreshTokenReuseInterval: REUSE.seconds,
    prefix: { refreshToken: REFRESH_PREFIX },
    postLogin: {
      page: CONSENT_PATH,
      shouldRedirect: () => false,
      consentReferenceId: () => consented.getStore(),
    },
    customAccessTokenClaims: ({ referenceId }) => ({ gid: referenceId }),
    extensions: [
      {
        clientDiscovery: {
          id: 'documents',
          matches: isDocumentId,
          resolve: async (_ctx, clientId) => {
            const client = await clients.find(clientId)
            if (client === null) return null
            const { name, redirectUris } = client
            const grantTypes = ['authorization_code', 'refresh_token'] as const
            return {
              clientId,
              name,
              redirectUris: [...redirectUris],
              grantTypes: [...grantTypes],
              tokenEndpointAuthMethod: 'none',
            }
          },
        },
      },
    ],
  }) as BetterAuthPlugin
  const auth = betterAuth({
    ...shared,
    session: { ...shared.session, disableSessionRefresh: true },
    onAPIError: { ...shared.onAPIError, errorURL: ERROR_PATH },
    plugins: [
      jwt({
        disableSettingJwtHeader: true,
        schema: { jwks: { modelName: 'signing_keys' } },
        jwks: { keyPairConfig: { alg: 'EdDSA', crv: 'Ed25519' } },
        jwt: { issuer: origin },
      }),
      provider,
      { id: 'ours', endpoints: { checkQuery: checkQuery(createAuthEndpoint) } },
    ],
  })
  // Wait until the library has stored the resources, so that an error is thrown here.
  await auth.$context
  const post = async (path: string, body: object, cookie: string): Promise<string> => {
    const headers = { 'content-type': 'application/json', cookie, origin }
    const request = new Request(`${origin}/auth${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    const response = await auth.handler(request)
    const read = Redirect.safeParse(await response.json())
    if (!response.ok || !read.success) throw failed(response.status)
    return read.data.url
  }
  return {
    async authorize(params, cookie) {
      // Without this header, the provider would answer with JSON instead of a redirect.
      const headers = { 'sec-fetch-mode': 'navigate', ...(cookie === null ? {} : { cookie }) }
      const response = await auth.handler(new Request(`${origin}/auth/oauth2/authorize?${params}`, { headers }))
      const location = response.headers.get('location')
      if (location === null) throw failed(response.status)
      return location
    },
    async isSigned(query) {
      try {
        await auth.api.checkQuery({ body: { oauth_query: query } })
        return true
      } catch (error) {
        if (error instanceof Error && 'status' in error && error.status === 'BAD_REQUEST') return false
        throw error
      }
    },
    approve: (query, scopes, grantId, cookie) =>
      consented.run(grantId, () =>
        post('/oauth2/consent', { accept: true, scope: scopes.join(' '), oauth_query: query }, cookie),
      ),
    deny: (query, cookie) => post('/oauth2/consent', { accept: false, oauth_query: query }, cookie),
    async token(params) {
      const headers = { 'content-type': 'application/x-www-form-urlencoded' }
      const request = new Request(`${origin}/auth/oauth2/token`, { method: 'POST', headers, body: params.toString() })
      const response = await auth.handler(request)
      if (response.status >= 500) throw failed(response.status)
      return { status: response.status, body: Fields.parse(await response.json()) }
    },
  }
}

/** With this prefix, scanners for leaked secrets recognize refresh tokens. */
export const REFRESH_PREFIX = 'vitrine_rt_'

/** Does nothing itself. Before it runs, the provider verifies the signature of the oauth_query. */
function checkQuery(createAuthEndpoint: typeof CreateEndpoint) {
  const body = z.object({ oauth_query: z.string() })
  return createAuthEndpoint.serverOnly({ method: 'POST', body }, async (ctx) => ctx.json({ status: true }))
}

function failed(status: number): AppError {
  return new AppError('INTERNAL', 'Connecting the agent failed because of a bug in the service.', { cause: status })
}
