// The routes of OAuth 2.1 for openapi.json. http/oauth-routes.ts mounts them. Forms and refusals in the format of OAuth
// are used only where the OAuth standards demand them.
import { z } from 'zod'
import type { Code } from '../errors.ts'

export interface OAuthRoute {
  readonly id: string
  readonly summary: string
  readonly query?: z.ZodType
  readonly body?: { readonly type: 'json' | 'form'; readonly schema: z.ZodType }
  readonly answer: z.ZodType | 'page' | 'redirect' | 'empty'
  /** Default: 200, or 302 for a redirect. */
  readonly status?: number
  readonly cookie?: true
  /** The values of `error` in a 400 (RFC 6749 §5.2, RFC 7591 §3.2.2). */
  readonly oauthErrors?: readonly string[]
  /** Codes of refusals in the usual format. */
  readonly errors: readonly Code[]
}

const uri = z.string()
const uris = z.array(uri)
const words = z.array(z.string())

const Resource = z.object({
  resource: uri,
  authorization_servers: uris,
  scopes_supported: words,
  bearer_methods_supported: words,
  resource_name: z.string(),
})
const Server = z.object({
  issuer: uri,
  authorization_endpoint: uri,
  token_endpoint: uri,
  registration_endpoint: uri,
  revocation_endpoint: uri,
  scopes_supported: words,
  response_types_supported: words,
  response_modes_supported: words,
  grant_types_supported: words,
  token_endpoint_auth_methods_supported: words,
  revocation_endpoint_auth_methods_supported: words,
  code_challenge_methods_supported: words,
  authorization_response_iss_parameter_supported: z.boolean(),
  client_id_metadata_document_supported: z.boolean(),
})
const Registration = z.object({
  redirect_uris: uris.min(1).max(20),
  client_name: z.string().optional(),
  grant_types: words.max(20).optional(),
  response_types: words.max(20).optional(),
})
const Registered = z.object({
  client_id: z.string(),
  client_id_issued_at: z.int().min(0),
  client_name: z.string(),
  redirect_uris: uris,
  application_type: z.enum(['native', 'web']),
  grant_types: words,
  response_types: words,
  token_endpoint_auth_method: z.literal('none'),
})
const Authorization = z.object({
  response_type: z.literal('code'),
  client_id: z.string(),
  redirect_uri: uri,
  code_challenge: z.string(),
  code_challenge_method: z.literal('S256'),
  scope: z.string().optional(),
  state: z.string().optional(),
  resource: uri.optional(),
  prompt: z.string().optional(),
})
const TokenForm = z.object({
  grant_type: z.enum(['authorization_code', 'refresh_token']),
  client_id: z.string(),
  code: z.string().optional(),
  redirect_uri: uri.optional(),
  code_verifier: z.string().optional(),
  refresh_token: z.string().optional(),
  scope: z.string().optional(),
  resource: uri.optional(),
})
const Tokens = z.object({
  access_token: z.string(),
  token_type: z.literal('Bearer'),
  expires_in: z.int().min(0),
  refresh_token: z.string(),
  scope: z.string(),
})
const Choice = z.object({
  query: z.string().max(10_000),
  accountId: z.string(),
  allow: z
    .object({
      scopes: words.min(1),
      teamIds: words.min(1),
      datasourceIds: words.min(1).nullable(),
      days: z.int().min(1).max(366).nullable(),
    })
    .optional(),
})

const resource = { answer: Resource, errors: ['NOT_FOUND'] } as const

export const OAUTH_ROUTES: Readonly<Record<string, OAuthRoute>> = {
  'GET /.well-known/oauth-protected-resource': {
    ...resource,
    id: 'protectedResource',
    summary: 'Describes the connector as a protected resource (RFC 9728).',
  },
  'GET /.well-known/oauth-protected-resource/mcp': {
    ...resource,
    id: 'protectedConnector',
    summary: 'Returns the same document, at the address that RFC 9728 derives from /mcp.',
  },
  'GET /.well-known/oauth-authorization-server': {
    id: 'authorizationServer',
    summary: 'Describes this service as an authorization server (RFC 8414).',
    answer: Server,
    errors: ['NOT_FOUND'],
  },
  'POST /auth/oauth2/register': {
    id: 'registerClient',
    summary: 'Registers an agent that has no metadata document (RFC 7591). The agent gets no secret.',
    body: { type: 'json', schema: Registration },
    answer: Registered,
    status: 201,
    oauthErrors: ['invalid_client_metadata', 'invalid_redirect_uri'],
    errors: ['RATE_LIMITED', 'BODY_TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE'],
  },
  'GET /auth/oauth2/authorize': {
    id: 'authorize',
    summary: 'Starts an authorization, with PKCE. Redirects to the consent page, or back to the agent with an error.',
    query: Authorization,
    answer: 'redirect',
    errors: ['RATE_LIMITED'],
  },
  'GET /auth/consent': {
    id: 'showConsent',
    summary: 'Shows the page on which a person allows or refuses access. Its query string is signed by the service.',
    answer: 'page',
    errors: [],
  },
  'POST /auth/consent': {
    id: 'decideConsent',
    summary: 'Accepts the choice that the person made on the consent page. Requests from other pages are refused.',
    body: { type: 'json', schema: Choice },
    cookie: true,
    answer: z.object({ url: uri }),
    errors: ['INVALID_REQUEST', 'UNAUTHENTICATED', 'SIGN_IN_REFUSED', 'CONFLICT', 'BODY_TOO_LARGE'],
  },
  'POST /auth/oauth2/token': {
    id: 'issueTokens',
    summary: 'Exchanges a code or a refresh token for tokens for /mcp.',
    body: { type: 'form', schema: TokenForm },
    answer: Tokens,
    oauthErrors: [
      'invalid_request',
      'invalid_client',
      'invalid_grant',
      'unsupported_grant_type',
      'invalid_scope',
      'invalid_target',
    ],
    errors: ['BODY_TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE'],
  },
  'POST /auth/oauth2/revoke': {
    id: 'revokeToken',
    summary: 'Ends the grant of a token (RFC 7009). The answer is the same for an unknown token.',
    body: { type: 'form', schema: z.object({ token: z.string(), client_id: z.string() }) },
    answer: 'empty',
    oauthErrors: ['invalid_request'],
    errors: ['BODY_TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE'],
  },
}
