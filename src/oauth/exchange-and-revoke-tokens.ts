// Checks requests for tokens, which the provider then answers, and revokes tokens. A code that is used twice counts as
// stolen, and so does a refresh token that is used again more than 30 seconds after its first use. Then the grant of
// this code or token ends.
import { hash } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import type { Attempts } from '../auth/attempt-counter.ts'
import type { GrantCaller } from '../auth/caller.ts'
import { endGrant, type GrantDeps } from '../auth/grants.ts'
import { AppError } from '../errors.ts'
import { asId, type GrantId } from '../ids.ts'
import { isoTime, storedTime } from '../store/better-auth-times.ts'
import { deleteInPortions } from '../store/delete-in-portions.ts'
import { OauthError } from './oauth-error.ts'
import { REFRESH_PREFIX, REUSE, type Provider, type TokenAnswer } from './provider.ts'

interface Deps extends Omit<GrantDeps, 'reached'> {
  readonly provider: Provider
  readonly tries: Pick<Attempts, 'spend'>
  readonly verify: (token: string) => Promise<GrantCaller | null>
  readonly now: () => number
}

/** How long used refresh tokens are stored, to detect theft. */
const USED_KEPT_MS = 86_400_000
/**
 * How often an agent may refresh, for each grant. Each use leaves a row for a day. More uses are refused, because a thief
 * who could push a stolen token out of the store would not be detected.
 */
export const REFRESHES = { limit: 60, windowMs: 3_600_000 } as const
const MALFORMED = 'The form must have exactly one value for'

/** Throws OauthError, and RATE_LIMITED after too many refreshes. */
export async function tokenAnswer(deps: Deps, form: URLSearchParams): Promise<Response> {
  const field = single(form)
  const clientId = field('client_id')
  switch (field('grant_type')) {
    case 'authorization_code':
      await requireUnused(deps, field('code'))
      break
    case 'refresh_token':
      await requireCurrent(deps, field('refresh_token'), clientId)
      break
    default:
      throw new OauthError('unsupported_grant_type', 'Use authorization_code or refresh_token.')
  }
  const first = await deps.provider.token(known(form))
  const { status, body } = first.status < 400 ? first : ((await raced(deps, form)) ?? first)
  if (status >= 400) throw refusalOf(body, form)
  pruneTokens(deps)
  // The provider adds fields that agents must not see, such as the session.
  const { access_token, token_type, expires_in, refresh_token, scope } = body
  return Response.json({ access_token, token_type, expires_in, refresh_token, scope })
}

const RACE = { tries: 20, stepMs: 50 } as const

/**
 * Two processes of an agent may use the same refresh token at once. The provider may refuse the second request until
 * its answer to the first one is stored, so this waits for it. Returns null if the requests did not overlap.
 */
async function raced(deps: Deps, form: URLSearchParams): Promise<TokenAnswer | null> {
  const token = form.get('refresh_token')
  if (token === null) return null
  for (let n = 0; n < RACE.tries; n++) {
    const row = await rowOf(deps, token)
    if (row === undefined || row.revoked === null || !isRepeated(deps, row)) return null
    if (row.rotationReplayResponse !== null) return await deps.provider.token(known(form))
    await setTimeout(RACE.stepMs)
  }
  return null
}

/** Gives the same answer for an unknown token (RFC 7009 §2.2). Throws OauthError. */
export async function revokeToken(deps: Deps, form: URLSearchParams): Promise<Response> {
  const field = single(form)
  const [token, clientId] = [field('token'), field('client_id')]
  const grantId = await grantOf(deps, token, clientId)
  if (grantId !== null) await endByClient(deps, grantId, 'the agent revoked its token')
  return new Response(null, { status: 200 })
}

async function grantOf(deps: Deps, token: string, clientId: string): Promise<GrantId | null> {
  if (token.startsWith(REFRESH_PREFIX)) {
    const row = await rowOf(deps, token)
    return row?.clientId === clientId ? grantIdOf(row) : null
  }
  const caller = await deps.verify(token)
  return caller?.clientId === clientId ? caller.grantId : null
}

/** All our clients are public, so client secrets and assertions are not passed on. */
function known(form: URLSearchParams): URLSearchParams {
  const params = new URLSearchParams()
  for (const name of [
    'grant_type',
    'client_id',
    'code',
    'redirect_uri',
    'code_verifier',
    'refresh_token',
    'resource',
  ]) {
    for (const value of form.getAll(name)) params.append(name, value)
  }
  const scope = form.get('scope')
  // Without offline_access, the provider would return no new refresh token.
  if (scope !== null) params.set('scope', [...new Set([...scope.split(' '), 'offline_access'])].join(' '))
  return params
}

function single(form: URLSearchParams): (name: string) => string {
  return (name) => {
    const [value, ...more] = form.getAll(name)
    if (value === undefined || value === '' || more.length > 0) {
      throw new OauthError('invalid_request', `${MALFORMED} ${name}.`)
    }
    return value
  }
}

/** If the code was used before, ends its grant and throws invalid_grant. */
async function requireUnused(deps: Deps, code: string): Promise<void> {
  const row = await deps.store.db
    .selectFrom('oauth_refresh_tokens')
    .select('referenceId')
    .where('authorizationCodeId', '=', hashOf(code))
    .executeTakeFirst()
  if (row === undefined) return
  await endByClient(deps, grantIdOf(row), 'a code was used twice')
  throw new OauthError('invalid_grant', 'This code was used before. Connect the agent again.')
}

/**
 * Throws invalid_grant for an unknown, expired or stolen token, and for another client's. Ends a stolen token's grant.
 */
async function requireCurrent(deps: Deps, token: string, clientId: string): Promise<void> {
  const row = await rowOf(deps, token)
  if (row === undefined || row.clientId !== clientId) throw invalidRefresh()
  if (row.expires_at !== null && Date.parse(row.expires_at) <= deps.now()) throw invalidRefresh()
  if (row.revoked === null) {
    await deps.tries.spend([{ key: `oauth refresh: ${grantIdOf(row)}`, ...REFRESHES }])
    return
  }
  // The provider repeats its first answer for a quick repetition.
  if (isRepeated(deps, row)) return
  await endByClient(deps, grantIdOf(row), 'a refresh token was used again')
  throw invalidRefresh()
}

function isRepeated({ now }: Pick<Deps, 'now'>, { rotationReplayExpiresAt: until }: RefreshRow): boolean {
  return until !== null && Date.parse(isoTime(until)) > now() + REUSE.marginMs
}

function invalidRefresh(): OauthError {
  return new OauthError('invalid_grant', 'This refresh token is not valid. Connect the agent again.')
}

type RefreshRow = NonNullable<Awaited<ReturnType<typeof rowOf>>>

function rowOf(deps: Pick<Deps, 'store'>, token: string) {
  return deps.store.db
    .selectFrom('oauth_refresh_tokens')
    .innerJoin('connector_grants', 'connector_grants.id', 'oauth_refresh_tokens.referenceId')
    .select(['clientId', 'referenceId', 'revoked', 'rotationReplayExpiresAt', 'rotationReplayResponse'])
    .select('connector_grants.expires_at')
    .where('token', '=', hashOf(token.slice(REFRESH_PREFIX.length)))
    .where('connector_grants.revoked_at', 'is', null)
    .executeTakeFirst()
}

/** Deletes expired tokens, and tokens that were used over a day ago. No client repeats a request after a day. */
function pruneTokens({ store, now }: Pick<Deps, 'store' | 'now'>): void {
  const time = (ms: number) => storedTime(store.dialect, ms)
  store.later(async () => {
    await deleteInPortions(store, 'oauth_refresh_tokens', (eb) => eb('revoked', '<', time(now() - USED_KEPT_MS)))
    await deleteInPortions(store, 'oauth_refresh_tokens', (eb) => eb('expiresAt', '<', time(now())))
  })
}

/** The agent revoked a token, or a token was stolen. */
async function endByClient(deps: Deps, id: GrantId, reason: string): Promise<void> {
  const row = await deps.store.db
    .selectFrom('connector_grants')
    .innerJoin('accounts', 'accounts.id', 'connector_grants.account_id')
    .select(['account_id', 'client_name', 'accounts.name'])
    .where('connector_grants.id', '=', id)
    .executeTakeFirst()
  if (row === undefined) return
  const { account_id: accountId, client_name: clientName, name } = row
  const caller = { kind: 'grant', accountId, name, grantId: id, clientName } as const
  try {
    await endGrant(deps, { action: 'endGrant', via: 'CONNECTOR', caller }, id, reason)
  } catch (error) {
    // NOT_FOUND: another request ended the grant in the meantime, or the grant has expired.
    if (!(error instanceof AppError && error.code === 'NOT_FOUND')) throw error
  }
}

/**
 * The provider answers invalid_request for a wrong verifier, and for a code whose session has ended. RFC 6749 §5.2 and
 * RFC 7636 §4.6 demand invalid_grant, unless a field is missing.
 */
function refusalOf(body: Readonly<Record<string, unknown>>, form: URLSearchParams): OauthError {
  const { error, error_description: description } = body
  const isComplete = ['code', 'code_verifier', 'redirect_uri'].every((name) => (form.get(name) ?? '') !== '')
  const otherwise = isComplete ? 'invalid_grant' : 'invalid_request'
  const known =
    typeof error === 'string' && /^[a-z_]{1,50}$/.test(error) && error !== 'invalid_request' ? error : otherwise
  return new OauthError(known, typeof description === 'string' ? description : 'The request is not valid.')
}

function grantIdOf(row: { readonly referenceId: string | null }): GrantId {
  if (row.referenceId === null) throw new AppError('INTERNAL', 'A token has no grant.')
  return asId<GrantId>(row.referenceId)
}

function hashOf(text: string): string {
  return hash('sha256', text, 'base64url')
}
