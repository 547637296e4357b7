// An agent starts an authorization by opening this address in the browser. The provider checks the request. Then the
// browser is redirected to the consent page, or back to the client with an error. If the redirect URI cannot be
// trusted, the browser shows an error page.
import type { Attempts } from '../auth/attempt-counter.ts'
import { addressOf } from '../auth/client-name-and-address.ts'
import { blockOf, networkOf } from '../auth/client-network.ts'
import type { Clients } from './find-client.ts'
import { errorPage } from './authorization-pages.ts'
import { ERROR_PATH, type Provider } from './provider.ts'
import { SCOPES } from './scopes.ts'

interface Deps {
  readonly provider: Provider
  readonly clients: Pick<Clients, 'find'>
  readonly tries: Pick<Attempts, 'spend'>
  /** The URL of the connector, for requests that name no resource. */
  readonly resource: string
}

/** Limited per network, because a request can make this service read a document at a URL that the caller chose. */
const BY_NETWORK = { limit: 60, windowMs: 60_000 }

/** `resource` is passed on separately, because it may occur several times. Others are ignored (RFC 6749 §3.1). */
const KNOWN = [
  'response_type',
  'client_id',
  'redirect_uri',
  'scope',
  'state',
  'code_challenge',
  'code_challenge_method',
  'prompt',
  // The provider refuses these two parameters.
  'request',
  'request_uri',
] as const

/** Returns a redirect or an error page. Throws RATE_LIMITED. */
export async function authorize(deps: Deps, request: Request): Promise<Response> {
  const { searchParams: sent } = new URL(request.url)
  const twice = KNOWN.find((name) => sent.getAll(name).length > 1)
  if (twice !== undefined) return errorPage(`The request of the agent names ${twice} more than once.`)
  const clientId = sent.get('client_id')
  if (clientId === null) return errorPage('The request of the agent does not name the agent (client_id).')
  const address = addressOf(request)
  await deps.tries.spend([{ key: `oauth authorization: ${networkOf(address)}`, ...BY_NETWORK }])
  if ((await deps.clients.find(clientId, blockOf(address))) === null) return errorPage(UNKNOWN_CLIENT)
  const location = await deps.provider.authorize(checked(sent, deps.resource), request.headers.get('cookie'))
  if (location.startsWith(ERROR_PATH)) return errorPage(sentenceOf(location))
  return new Response(null, { status: 302, headers: { location } })
}

const UNKNOWN_CLIENT =
  'The agent is not known here, or its description cannot be read (invalid_client). Remove the connection in the agent, ' +
  'and connect it again.'

function checked(sent: URLSearchParams, resource: string): URLSearchParams {
  const params = new URLSearchParams()
  for (const name of KNOWN) {
    const value = sent.get(name)
    if (value !== null) params.set(name, value)
  }
  // Each authorization shows the consent page. Otherwise an earlier consent would apply to a later request.
  if (sent.get('prompt') !== 'none') params.set('prompt', 'consent')
  // The person decides how long an agent stays connected, so every agent may refresh its tokens.
  const scopes = new Set((sent.get('scope') ?? SCOPES.join(' ')).split(' ').filter((scope) => scope !== ''))
  params.set('scope', [...scopes.add('offline_access')].join(' '))
  const resources = sent.getAll('resource')
  // With a token for several resources, one of them could use the token at another. So for several resources, pass on
  // an unknown one, which the provider refuses.
  params.set('resource', resources.length > 1 ? 'urn:several-resources' : (resources[0] ?? resource))
  return params
}

function sentenceOf(location: string): string {
  switch (new URL(location, 'http://localhost').searchParams.get('error')) {
    case 'invalid_redirect':
      return 'The agent requested an answer at an address that it did not register (redirect_uri).'
    case 'invalid_client':
      return UNKNOWN_CLIENT
    default:
      return 'The request of the agent is not a valid OAuth request.'
  }
}
