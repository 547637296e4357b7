// Does what an agent and a person’s browser do in OAuth, over HTTP or without it.
import { createHash, randomBytes } from 'node:crypto'
import { request } from 'undici'
import { AppError, STATUS } from '../../src/errors.ts'
import type { Rooms } from './people.ts'

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
  // Tests read fields that they expect in the response.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly json: any
}

interface Sent {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

type Method = 'GET' | 'POST' | 'OPTIONS' | 'PUT' | 'DELETE'

export interface Service {
  readonly url: string
  /** Sends a request, and reads the whole answer. Follows no redirect. */
  send(method: Method, path: string, sent?: Sent): Promise<Answer>
}

export interface Browser {
  readonly id: string
  readonly cookie: string
}

/**
 * With this setting, the service takes the client's address from a header. overHttp() sends another address in each
 * request, so that no test reaches a rate limit by chance.
 */
export const PROXY = { VITRINE_TRUST_PROXY: '1' }

/** Uses undici, because Node’s fetch would send the headers of a script. */
export function overHttp({ url }: { readonly url: string }): Service {
  let sender = 0
  return {
    url,
    async send(method, path, sent = {}) {
      sender++
      const from = { 'x-forwarded-for': `198.51.${sender >> 8}.${sender & 255}` }
      const all = { ...sent, method, headers: { ...from, ...sent.headers } }
      const { statusCode, headers, body } = await request(new URL(path, url), all)
      return answer(statusCode, headers, await body.text())
    },
  }
}

/** Calls the service's OAuth code without HTTP, so that a test can use the store and the clock. */
export function onRooms({ oauth }: Pick<Rooms, 'oauth'>): Service {
  const url = 'http://127.0.0.1:3000'
  return {
    url,
    async send(method, path, { headers = {}, body } = {}) {
      const address = { 'x-vitrine-client': '127.0.0.1' }
      const init = { method, headers: { ...address, ...headers }, ...(body === undefined ? {} : { body }) }
      try {
        const response = await oauth.handle(new Request(new URL(path, url), init))
        return answer(response.status, Object.fromEntries(response.headers), await response.text())
      } catch (error) {
        if (!(error instanceof AppError)) throw error
        return answer(
          STATUS[error.code],
          {},
          JSON.stringify({ error: error.message, code: error.code, ...error.extra }),
        )
      }
    },
  }
}

function answer(status: number, headers: Answer['headers'], text: string): Answer {
  return { status, headers, text, json: parse(text) }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const JSON_TYPE = { 'content-type': 'application/json' }
const FORM_TYPE = { 'content-type': 'application/x-www-form-urlencoded' }

export const REDIRECT = 'http://127.0.0.1:33418/callback'

export interface Client {
  readonly clientId: string
  readonly redirectUri: string
}

export function register(service: Service, metadata: object = {}): Promise<Answer> {
  const body = { client_name: 'Test agent', redirect_uris: [REDIRECT], ...metadata }
  return service.send('POST', '/auth/oauth2/register', { headers: JSON_TYPE, body: JSON.stringify(body) })
}

export async function registered(service: Service, metadata: object = {}): Promise<Client> {
  const { status, text, json } = await register(service, metadata)
  if (status !== 201) throw new Error(`register: ${status} ${text}`)
  return { clientId: json.client_id, redirectUri: json.redirect_uris[0] }
}

export function pkce() {
  const verifier = randomBytes(32).toString('base64url')
  return { verifier, challenge: createHash('sha256').update(verifier).digest('base64url') }
}

/** Parameters that replace the usual ones of an authorization request. A parameter that is null is left out. */
export type Params = Readonly<Record<string, string | readonly string[] | null>>

/** Returns the path that the agent opens in the browser. */
export function authorizePath(service: Service, client: Client, challenge: string, more: Params = {}): string {
  const search = new URLSearchParams()
  const params: Params = {
    response_type: 'code',
    client_id: client.clientId,
    redirect_uri: client.redirectUri,
    code_challenge: challenge,
    code_challenge_method: 'S256',
    scope: 'profile data:schema data:read',
    state: 'state-1',
    resource: `${service.url}/mcp`,
    ...more,
  }
  for (const [name, value] of Object.entries(params)) {
    for (const each of typeof value === 'string' ? [value] : (value ?? [])) search.append(name, each)
  }
  return `/auth/oauth2/authorize?${search}`
}

export const open = (service: Service, path: string, person?: Browser): Promise<Answer> =>
  service.send('GET', path, {
    headers: { 'sec-fetch-mode': 'navigate', ...(person === undefined ? {} : { cookie: person.cookie }) },
  })

export function locationOf(from: Answer): URL {
  const { location } = from.headers
  if (typeof location !== 'string') throw new Error(`no redirect: ${from.status} ${from.text.slice(0, 500)}`)
  return new URL(location, 'http://relative.test')
}

/** Requests an authorization. Returns the query of the consent page. */
export async function asked(
  service: Service,
  person: Browser,
  client: Client,
  challenge: string,
  more: Params = {},
): Promise<string> {
  const page = locationOf(await open(service, authorizePath(service, client, challenge, more), person))
  if (page.pathname !== '/auth/consent') throw new Error(`no consent page: ${page.href}`)
  return page.search.slice(1)
}

export interface Choice {
  readonly scopes?: readonly string[]
  readonly teamIds: readonly string[]
  readonly datasourceIds?: readonly string[] | null
  readonly days?: number | null
}

/** Sends the choice of the person. If `allow` is null, the person refuses. */
export function decide(
  service: Service,
  person: Browser,
  query: string,
  allow: Choice | null,
  headers: Readonly<Record<string, string>> = { origin: service.url },
): Promise<Answer> {
  const all = { scopes: ['profile', 'data:schema', 'data:read'], datasourceIds: null, days: 30 }
  const body = { query, accountId: person.id, ...(allow === null ? {} : { allow: { ...all, ...allow } }) }
  return service.send('POST', '/auth/consent', {
    headers: { ...JSON_TYPE, cookie: person.cookie, ...headers },
    body: JSON.stringify(body),
  })
}

export const form = (service: Service, path: 'token' | 'revoke', fields: Readonly<Record<string, string>>) =>
  service.send('POST', `/auth/oauth2/${path}`, { headers: FORM_TYPE, body: new URLSearchParams(fields).toString() })

export interface Coded extends Client {
  readonly code: string
  readonly verifier: string
}

/** Runs the flow up to the authorization code. */
export async function authorized(
  service: Service,
  person: Browser,
  client: Client,
  choice: Choice,
  more: Params = {},
): Promise<Coded> {
  const { verifier, challenge } = pkce()
  const decided = await decide(service, person, await asked(service, person, client, challenge, more), choice)
  const code = decided.status === 200 ? new URL(decided.json.url).searchParams.get('code') : null
  if (code === null) throw new Error(`consent: ${decided.status} ${decided.text}`)
  return { ...client, code, verifier }
}

export const exchange = (service: Service, { clientId, redirectUri, code, verifier }: Coded, more: object = {}) =>
  form(service, 'token', {
    grant_type: 'authorization_code',
    client_id: clientId,
    redirect_uri: redirectUri,
    code,
    code_verifier: verifier,
    ...more,
  })

export const refresh = (service: Service, clientId: string, token: string, more: object = {}) =>
  form(service, 'token', { grant_type: 'refresh_token', client_id: clientId, refresh_token: token, ...more })

export interface Tokens {
  readonly access: string
  readonly refresh: string
  readonly scope: string
}

export function tokensIn({ status, text, json }: Answer): Tokens {
  if (status !== 200) throw new Error(`token: ${status} ${text}`)
  return { access: json.access_token, refresh: json.refresh_token, scope: json.scope }
}

/** Runs the whole flow. Returns the tokens. */
export async function connected(
  service: Service,
  person: Browser,
  client: Client,
  choice: Choice,
  more: Params = {},
): Promise<Tokens> {
  return tokensIn(await exchange(service, await authorized(service, person, client, choice, more)))
}
