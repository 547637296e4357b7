// Two documents tell an agent where to ask for access. One describes the connector as a protected resource (RFC 9728),
// the other describes this service as its authorization server (RFC 8414).
import { connectorResources } from '../auth/oauth-access-tokens.ts'
import { SCOPES } from './scopes.ts'

/**
 * On loopback, a service has several URLs, but an agent accepts only the URL that it was given. So the document names
 * the URL with the host of the request.
 */
export function protectedResource(origin: string, at: URL): object {
  const [canonical, ...others] = connectorResources(origin)
  return {
    resource: others.find((other) => new URL(other).host === at.host) ?? canonical,
    authorization_servers: [origin],
    scopes_supported: SCOPES,
    bearer_methods_supported: ['header'],
    resource_name: 'Vitrine',
  }
}

export function authorizationServer(origin: string): object {
  const at = (path: string) => `${origin}/auth/oauth2/${path}`
  return {
    issuer: origin,
    authorization_endpoint: at('authorize'),
    token_endpoint: at('token'),
    registration_endpoint: at('register'),
    revocation_endpoint: at('revoke'),
    scopes_supported: [...SCOPES, 'offline_access'],
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    grant_types_supported: ['authorization_code', 'refresh_token'],
    token_endpoint_auth_methods_supported: ['none'],
    revocation_endpoint_auth_methods_supported: ['none'],
    code_challenge_methods_supported: ['S256'],
    authorization_response_iss_parameter_supported: true,
    client_id_metadata_document_supported: true,
  }
}
