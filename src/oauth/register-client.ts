// Agents without a metadata document register as clients (RFC 7591). Anybody may register a client, so a client gets no
// secret and no rights. Rights come only from a person's consent.
import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import type { Attempts } from '../auth/attempt-counter.ts'
import { addressOf } from '../auth/client-name-and-address.ts'
import { networkOf } from '../auth/client-network.ts'
import type { Store } from '../store/open.ts'
import { storedTime } from '../store/better-auth-times.ts'
import { shortName } from './client-documents.ts'
import { OauthError } from './oauth-error.ts'
import { isOwnComputer, verdictOf } from './redirect-uris.ts'
import type { UnusedClients } from './unused-clients.ts'

interface Deps {
  readonly store: Store
  readonly tries: Pick<Attempts, 'spend'>
  readonly unused: UnusedClients
  readonly now: number
}

/** Limited per network, so that one network registers only a small part of the clients without a grant. */
const BY_NETWORK = { limit: 30, windowMs: 60_000 }
const BY_NETWORK_A_DAY = { limit: 1_000, windowMs: 86_400_000 }
/** The maximum size of a client's redirect URIs, so that clients cannot fill the disk. */
const URIS_BYTES_MAX = 4_096
const GRANT_TYPES = ['authorization_code', 'refresh_token'] as const

/**
 * Other fields are ignored (RFC 7591 §2). `application_type` is not needed, because the redirect URIs show the type.
 */
const Registration = z.object({
  redirect_uris: z.array(z.string()).min(1).max(20),
  client_name: z.string().optional(),
  grant_types: z.array(z.string()).max(20).optional(),
  response_types: z.array(z.string()).max(20).optional(),
})

/**
 * Throws OauthError for metadata that this service does not support, RATE_LIMITED above a limit of the network, and
 * OVERLOADED if too many clients were registered within an hour.
 */
export async function registerClient(deps: Deps, request: Request): Promise<Response> {
  const network = networkOf(addressOf(request))
  await deps.tries.spend([{ key: `oauth registration: ${network}`, ...BY_NETWORK }])
  const read = Registration.safeParse(await bodyOf(request))
  if (!read.success) throw metadata(read.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`)[0])
  const { redirect_uris: uris, grant_types: grants, response_types: types } = read.data
  // Other grant types are ignored, and are not in the answer (RFC 7591 §3.2.1).
  if (grants?.includes('authorization_code') === false) throw metadata('grant_types: authorization_code is needed')
  if (types?.includes('code') === false) throw metadata('response_types: code is needed')
  const redirectUris = allowedUris(uris)
  if (Buffer.byteLength(redirectUris.join('')) > URIS_BYTES_MAX) {
    throw new OauthError('invalid_redirect_uri', `redirect_uris: at most ${URIS_BYTES_MAX} bytes together.`)
  }
  const name = shortName(read.data.client_name) ?? 'An agent without a name'
  // Only valid registrations count for the limit of a day, because only they are stored.
  await deps.tries.spend([{ key: `oauth registration a day: ${network}`, ...BY_NETWORK_A_DAY }])
  const { store, unused, now } = deps
  await unused.requireRoom(now)
  const clientId = randomUUID()
  const row = {
    id: randomUUID(),
    clientId,
    name,
    redirectUris: JSON.stringify(redirectUris),
    grantTypes: JSON.stringify(GRANT_TYPES),
    tokenEndpointAuthMethod: 'none',
    createdAt: storedTime(store.dialect, now),
  }
  await store.append((tx) => tx.insertInto('oauth_clients').values(row).execute())
  unused.prune(now)
  const answer = {
    client_id: clientId,
    client_id_issued_at: Math.floor(now / 1000),
    client_name: name,
    redirect_uris: redirectUris,
    application_type: redirectUris.some(isOwnComputer) ? 'native' : 'web',
    grant_types: GRANT_TYPES,
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  }
  return Response.json(answer, { status: 201 })
}

/** Leaves out URIs with unknown schemes, because programs register several. Throws OauthError if none is allowed. */
function allowedUris(uris: readonly string[]): readonly string[] {
  const verdicts = uris.map(verdictOf)
  const refused = uris[verdicts.indexOf('refused')]
  const allowed = [...new Set(uris.filter((_, n) => verdicts[n] === 'ok'))]
  if (refused === undefined && allowed.length > 0) return allowed
  throw new OauthError(
    'invalid_redirect_uri',
    'redirect_uris: use https, or http to 127.0.0.1, [::1] or localhost, without a fragment.',
  )
}

async function bodyOf(request: Request): Promise<unknown> {
  try {
    return await request.json()
  } catch {
    throw metadata('the body must be JSON')
  }
}

function metadata(detail = 'not valid'): OauthError {
  return new OauthError('invalid_client_metadata', `The client's metadata is not valid: ${detail}.`)
}
