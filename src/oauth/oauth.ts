// OAuth 2.1: a person allows an agent to act for them. Answers only the six requests in its switch, so callers cannot
// reach other paths of the provider.
import { connectorResources, connectorTokens } from '../auth/oauth-access-tokens.ts'
import type { Attempts } from '../auth/attempt-counter.ts'
import { AppError, notFound } from '../errors.ts'
import { authorize } from './authorize.ts'
import { openClientDocuments, type DocumentTransport } from './client-documents.ts'
import { openClients } from './find-client.ts'
import { decideConsent, showConsent, type ConsentDeps } from './consent.ts'
import { authorizationServer, protectedResource } from './discovery.ts'
import { OauthError } from './oauth-error.ts'
import { openProvider, type Provider, type ProviderDeps } from './provider.ts'
import { registerClient } from './register-client.ts'
import { revokeToken, tokenAnswer } from './exchange-and-revoke-tokens.ts'
import { openUnusedClients } from './unused-clients.ts'

export interface OAuth {
  /** Throws an AppError for a refusal that has no format in OAuth. */
  handle(request: Request): Promise<Response>
  protectedResource(at: URL): object
  authorizationServer(): object
}

interface Deps extends Omit<ConsentDeps, 'provider' | 'clients'>, Omit<ProviderDeps, 'clients' | 'origin' | 'store'> {
  readonly tries: Attempts
  readonly origin: () => string
  readonly documents?: DocumentTransport
}

export function openOAuth(deps: Deps): OAuth {
  const { store, tries, now } = deps
  const clients = openClients({ store, documents: openClientDocuments(deps.documents, now) })
  const unused = openUnusedClients(store)
  const { verify } = connectorTokens(deps)
  let loading: Promise<Provider> | undefined
  const provider = () =>
    (loading ??= openProvider({ ...deps, clients, origin: servedAt(deps.origin()) }).catch((error: unknown) => {
      // The next request tries again, because the store may be available by then.
      loading = undefined
      throw error
    }))

  const answer = async (request: Request): Promise<Response> => {
    const { pathname } = new URL(request.url)
    switch (`${request.method} ${pathname}`) {
      case 'GET /auth/oauth2/authorize': {
        const [resource] = connectorResources(deps.origin())
        return await authorize({ provider: await provider(), clients, tries, resource }, request)
      }
      case 'POST /auth/oauth2/register':
        return await registerClient({ store, tries, unused, now: now() }, request)
      case 'POST /auth/oauth2/token':
        return await tokenAnswer({ ...deps, provider: await provider(), verify }, await formOf(request))
      case 'POST /auth/oauth2/revoke':
        return await revokeToken({ ...deps, provider: await provider(), verify }, await formOf(request))
      case 'GET /auth/consent':
        return await showConsent({ ...deps, provider: await provider(), clients }, request)
      case 'POST /auth/consent':
        return await decideConsent({ ...deps, provider: await provider(), clients }, request)
      default:
        throw notFound()
    }
  }

  return {
    async handle(request) {
      servedAt(deps.origin())
      try {
        return await answer(request)
      } catch (error) {
        if (error instanceof OauthError) return error.response
        throw error
      }
    },
    protectedResource: (at) => protectedResource(servedAt(deps.origin()), at),
    authorizationServer: () => authorizationServer(servedAt(deps.origin())),
  }
}

/** Clients refuse http, except on this machine. Throws NOT_FOUND for such an origin. */
function servedAt(origin: string): string {
  const { protocol, hostname } = new URL(origin)
  if (protocol === 'https:' || /^(127\.0\.0\.1|localhost|\[::1\])$/.test(hostname)) return origin
  throw new AppError('NOT_FOUND', 'Agents can connect only if VITRINE_PUBLIC_URL is an https address.')
}

async function formOf(request: Request): Promise<URLSearchParams> {
  if (!/^application\/x-www-form-urlencoded\b/i.test(request.headers.get('content-type') ?? '')) {
    throw new OauthError('invalid_request', 'Send the fields as application/x-www-form-urlencoded.')
  }
  return new URLSearchParams(await request.text())
}
