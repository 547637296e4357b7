// The consent page shows which agent asks for which access. The person's choice creates the grant. Only our own page
// may send a choice, and only for the account that the page showed.
import { z } from 'zod'
import type { Call, SessionCaller } from '../auth/caller.ts'
import { addressOf, clientOf, requestIdOf } from '../auth/client-name-and-address.ts'
import { blockOf } from '../auth/client-network.ts'
import { endGrant, makeGrant, type GrantDeps } from '../auth/grants.ts'
import type { Config } from '../config.ts'
import { AppError, invalidRequest } from '../errors.ts'
import { isOwnOrigin } from '../sign-in/allowed-origins.ts'
import { choicesOf } from './grantable-datasources.ts'
import type { Clients } from './find-client.ts'
import { hostOf, type Client } from './client.ts'
import { consentPage, errorPage, signInPage } from './authorization-pages.ts'
import type { Provider } from './provider.ts'
import { isOwnComputer } from './redirect-uris.ts'
import { SCOPES, scopesIn } from './scopes.ts'
import { personOf } from '../sign-in/signed-in-person.ts'
import type { Identity } from '../sign-in/sign-in-library.ts'

export interface ConsentDeps extends GrantDeps {
  readonly provider: Provider
  readonly clients: Pick<Clients, 'find'>
  readonly config: Pick<Config, 'publicUrl'>
  readonly identify: (request: Pick<Request, 'headers'>) => Promise<Identity>
  readonly now: () => number
}

const DAY_MS = 86_400_000
const ids = z.array(z.string().max(200)).max(1_000)

const Choice = z.strictObject({
  query: z.string().max(10_000),
  accountId: z.string(),
  /** Absent if the person refuses. */
  allow: z
    .strictObject({
      scopes: z.array(z.enum(SCOPES)).min(1, 'tick at least one thing that the agent may do').max(SCOPES.length),
      teamIds: ids.min(1, 'tick at least one team'),
      /** Null means all datasources of the teams, including future ones. */
      datasourceIds: ids.min(1, 'tick at least one datasource').nullable(),
      /** Null means no expiry. */
      days: z.int().min(1).max(366).nullable(),
    })
    .optional(),
})
type Allowed = NonNullable<z.infer<typeof Choice>['allow']>

/** An agent's request, signed by the provider. */
interface Pending {
  readonly client: Client
  readonly redirectUri: string
  readonly scopes: readonly (typeof SCOPES)[number][]
}

export async function showConsent(deps: ConsentDeps, request: Request): Promise<Response> {
  const { pathname, search } = new URL(request.url)
  const pending = await pendingOf(deps, request, search.slice(1))
  if (pending === null) return errorPage(EXPIRED)
  const { client, redirectUri, scopes } = pending
  const host = hostOf(client, redirectUri)
  const person = await personOf(deps.store, await deps.identify(request))
  if (person === null) return signInPage(host, pathname + search)
  const { caller, email } = person
  return consentPage({
    clientName: client.name,
    host,
    hasDocument: client.host !== null,
    redirectUri,
    isOwnComputer: isOwnComputer(redirectUri),
    scopes,
    account: { id: caller.accountId, name: caller.name, email },
    teams: await choicesOf(deps, callOf(request, caller)),
  })
}

/**
 * Returns `{url}`, where the browser continues. Throws SIGN_IN_REFUSED if the request does not come from our page,
 * UNAUTHENTICATED without a session, CONFLICT for the session of another account, and INVALID_REQUEST for an invalid
 * choice or an expired request.
 */
export async function decideConsent(deps: ConsentDeps, request: Request): Promise<Response> {
  // Browsers send Origin with each POST.
  if (request.headers.get('origin') === null || !isOwnOrigin(request, deps.config)) {
    throw new AppError('SIGN_IN_REFUSED', 'Pages of another site may not connect agents.', {
      extra: { reason: 'INVALID_ORIGIN' },
    })
  }
  const person = await personOf(deps.store, await deps.identify(request))
  if (person === null) throw new AppError('UNAUTHENTICATED', 'You are not signed in. Reload the page.')
  const { query, accountId, allow } = await choiceOf(request)
  if (accountId !== person.caller.accountId) {
    throw new AppError('CONFLICT', 'You are now signed in with another account. Reload the page.')
  }
  const pending = await pendingOf(deps, request, query)
  if (pending === null) throw invalidRequest([`query: ${EXPIRED}`])
  const cookie = request.headers.get('cookie') ?? ''
  const url =
    allow === undefined
      ? await deps.provider.deny(query, cookie)
      : await approved(deps, callOf(request, person.caller), { pending, query, cookie, allow })
  return Response.json({ url })
}

const EXPIRED = 'This request has expired or was changed. Start again from the agent.'

interface Approval {
  readonly pending: Pending
  readonly query: string
  readonly cookie: string
  readonly allow: Allowed
}

async function approved(deps: ConsentDeps, call: Call, { pending, query, cookie, allow }: Approval): Promise<string> {
  const { client, redirectUri } = pending
  const { teamIds, datasourceIds, days } = allow
  const scopes = allow.scopes.filter((scope) => pending.scopes.includes(scope))
  if (scopes.length < allow.scopes.length)
    throw invalidRequest(['allow.scopes: the agent did not ask for all of these'])
  const grantId = await makeGrant(deps, call, {
    clientId: client.id,
    clientName: client.name,
    clientHost: hostOf(client, redirectUri),
    scopes,
    teamIds,
    ...(datasourceIds === null ? {} : { datasourceIds }),
    ...(days === null ? {} : { expiresAt: new Date(deps.now() + days * DAY_MS).toISOString() }),
  })
  try {
    return await deps.provider.approve(query, [...scopes, 'offline_access'], grantId, cookie)
  } catch (error) {
    await endGrant(deps, { ...call, action: 'endGrant' }, grantId, 'the agent could not be connected')
    throw error
  } finally {
    // The provider stores a consent to skip the page later. We always want the page, so delete this consent.
    await deps.store.append((tx) => tx.deleteFrom('oauth_consents').where('referenceId', '=', grantId).execute())
  }
}

/** Returns null for a query that is not signed or has expired, and for an unknown client. */
async function pendingOf(
  deps: Pick<ConsentDeps, 'provider' | 'clients'>,
  request: Request,
  query: string,
): Promise<Pending | null> {
  if (!(await deps.provider.isSigned(query))) return null
  const params = new URLSearchParams(query)
  const redirectUri = params.get('redirect_uri')
  const client = await deps.clients.find(params.get('client_id') ?? '', blockOf(addressOf(request)))
  if (client === null || redirectUri === null) return null
  return { client, redirectUri, scopes: scopesIn(params.get('scope')) }
}

async function choiceOf(request: Request): Promise<z.infer<typeof Choice>> {
  const read = Choice.safeParse(await request.json().catch(() => null))
  if (read.success) return read.data
  throw invalidRequest(read.error.issues.map(({ path, message }) => `${path.join('.') || 'body'}: ${message}`))
}

function callOf(request: Request, caller: SessionCaller): Call {
  return {
    action: 'makeGrant',
    caller,
    via: 'REST',
    requestId: requestIdOf(request),
    signal: request.signal,
    client: clientOf(request.headers.get('user-agent')),
  }
}
