// Sign-in providers on this machine. startOidc() runs a certified implementation of OpenID Connect in this process, and
// the test chooses who signs in. startRogue() runs a provider whose answers a test can forge. It can also stand in for
// GitHub.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { text } from 'node:stream/consumers'
import { exportJWK, generateKeyPair, SignJWT, type CryptoKey } from 'jose'
import Provider from 'oidc-provider'

export const CLIENT = { id: 'vitrine', secret: 'a-secret:with/odd+characters%' }

interface Claims {
  readonly email?: string
  readonly email_verified?: boolean | string
  readonly name?: string
  readonly preferred_username?: string
}

export interface TestOidc extends AsyncDisposable {
  readonly issuer: string
  /** The key is the subject. */
  readonly people: Map<string, Claims>
  /** The subject who signs in next. If null, the person cancels. */
  next: string | null
  /** The variables VITRINE_OIDC_…. */
  readonly env: Readonly<Record<string, string>>
  /** Opens the address like a browser. Returns the address to which the provider redirects. */
  visit(url: string): Promise<URL>
}

/** Without `redirectUris`, loopback addresses at any port are allowed. */
export async function startOidc(redirectUris: readonly string[] = []): Promise<TestOidc> {
  let answer: (request: IncomingMessage, response: ServerResponse) => void = (_request, response) => response.end()
  const server = createServer((request, response) => answer(request, response))
  const issuer = await listening(server)
  const people = new Map<string, Claims>()
  const loopback = ['127.0.0.1', 'localhost'].map((host) => `http://${host}/auth/callback/oidc`)
  const client = {
    client_id: CLIENT.id,
    client_secret: CLIENT.secret,
    token_endpoint_auth_method: 'client_secret_basic' as const,
  }
  const provider = new Provider(issuer, {
    clients: [
      redirectUris.length > 0
        ? { ...client, redirect_uris: [...redirectUris] }
        : { ...client, application_type: 'native', redirect_uris: loopback },
    ],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name', 'preferred_username'] },
    features: { devInteractions: { enabled: false } },
    cookies: { keys: ['a key of the test'] },
    interactions: { url: (_ctx, interaction) => `/interaction/${interaction.uid}` },
    findAccount: (_ctx, sub) => ({ accountId: sub, claims: () => ({ sub, ...people.get(sub) }) }),
    async loadExistingGrant({ oidc }) {
      const grant = new oidc.provider.Grant({
        clientId: oidc.client?.clientId ?? '',
        accountId: oidc.session?.accountId ?? '',
      })
      grant.addOIDCScope('openid email profile')
      await grant.save()
      return grant
    },
  })
  const oidc: TestOidc = {
    issuer,
    people,
    next: null,
    env: {
      VITRINE_OIDC_ISSUER: issuer,
      VITRINE_OIDC_CLIENT_ID: CLIENT.id,
      VITRINE_OIDC_CLIENT_SECRET: CLIENT.secret,
      VITRINE_OIDC_NAME: 'Acme',
    },
    visit: (url) => visit(issuer, url),
    [Symbol.asyncDispose]: () => close(server),
  }
  const callback = provider.callback()
  answer = (request, response) => {
    if (request.url?.startsWith('/interaction/') !== true) return void callback(request, response)
    const result =
      oidc.next === null
        ? { error: 'access_denied' }
        : { login: { accountId: oidc.next, remember: false }, consent: {} }
    void provider.interactionFinished(request, response, result)
  }
  return oidc
}

/** Follows redirects with cookies, as long as they stay at the provider. */
async function visit(issuer: string, from: string): Promise<URL> {
  const jar = new Map<string, string>()
  let url = new URL(from)
  for (let hops = 0; url.origin === issuer; hops++) {
    if (hops > 10) throw new Error(`the provider redirects in a loop: ${url.href}`)
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(url, { redirect: 'manual', headers: { cookie } })
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      jar.set(name, value)
    }
    const location = response.headers.get('location')
    if (location === null) throw new Error(`the provider answered ${response.status}: ${await response.text()}`)
    url = new URL(location, url)
  }
  return url
}

export interface Rogue extends AsyncDisposable {
  readonly url: string
  readonly port: number
  /** Replaces claims of the next token. The other claims, such as `nonce`, are correct. */
  claims: Readonly<Record<string, unknown>>
  discovery: Readonly<Record<string, unknown>>
  /** JSON answers by path. They replace the usual answers, or add paths. */
  readonly answers: Map<string, unknown>
  /** Signs the next token. If null, the provider's key signs. */
  signer: ((claims: Readonly<Record<string, unknown>>) => Promise<string>) | null
  /** The received requests as `METHOD /path`, with the parameters of a form. */
  readonly asked: string[]
  /** Replaces the provider's key. */
  rotate(): Promise<void>
  /**
   * Returns the address to which the provider redirects after an authorization, with the state and these parameters.
   */
  back(url: string, parameters?: Readonly<Record<string, string>>): URL
}

/** `as` is the issuer, if it is not the server's address. With `tls`, the server uses TLS. */
export async function startRogue(
  options: { readonly as?: string; readonly tls?: { readonly key: string; readonly cert: string } } = {},
): Promise<Rogue> {
  const handle = (request: IncomingMessage, response: ServerResponse) => void serve(request, response)
  const server = options.tls === undefined ? createServer(handle) : createSecureServer(options.tls, handle)
  const here = await listening(server)
  const issuer = options.as ?? here
  let key = await newKey('first')
  let nonce = ''
  const rogue: Rogue = {
    url: issuer,
    port: Number(new URL(here).port),
    claims: {},
    discovery: {},
    answers: new Map(),
    signer: null,
    asked: [],
    async rotate() {
      key = await newKey(`key ${Math.random()}`)
    },
    back(url, parameters = { code: 'a code' }) {
      const { searchParams } = new URL(url)
      nonce = searchParams.get('nonce') ?? ''
      const back = new URL(searchParams.get('redirect_uri') ?? '')
      const sent = { state: searchParams.get('state') ?? '', ...parameters }
      for (const [name, value] of Object.entries(sent)) back.searchParams.set(name, value)
      return back
    },
    [Symbol.asyncDispose]: () => close(server),
  }
  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url ?? '/', here)
    const form = await text(request)
    rogue.asked.push(`${request.method ?? ''} ${pathname}${form === '' ? '' : ` ${form}`}`)
    const json = rogue.answers.has(pathname) ? rogue.answers.get(pathname) : await usual(pathname)
    response.writeHead(json === undefined ? 404 : 200, { 'content-type': 'application/json' })
    response.end(JSON.stringify(json ?? { error: 'not_found' }))
  }
  async function usual(pathname: string): Promise<unknown> {
    switch (pathname) {
      case '/.well-known/openid-configuration':
        return {
          issuer,
          authorization_endpoint: `${issuer}/authorize`,
          token_endpoint: `${issuer}/token`,
          jwks_uri: `${issuer}/jwks`,
          ...rogue.discovery,
        }
      case '/jwks':
        return { keys: [key.jwk] }
      case '/token': {
        const at = Math.floor(Date.now() / 1000)
        const claims = { iss: issuer, aud: CLIENT.id, sub: 'somebody', iat: at, exp: at + 300, nonce, ...rogue.claims }
        const id_token = rogue.signer === null ? await signed(claims, key) : await rogue.signer(claims)
        return { id_token, access_token: 'an access token', token_type: 'Bearer' }
      }
      default:
        return undefined
    }
  }
  return rogue
}

interface Key {
  readonly kid: string
  readonly privateKey: CryptoKey
  readonly jwk: object
}

export async function newKey(kid: string): Promise<Key> {
  const { privateKey, publicKey } = await generateKeyPair('ES256')
  return { kid, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg: 'ES256', use: 'sig' } }
}

export async function signed(claims: Readonly<Record<string, unknown>>, { kid, privateKey }: Key): Promise<string> {
  return await new SignJWT({ ...claims }).setProtectedHeader({ alg: 'ES256', kid }).sign(privateKey)
}

async function listening(server: Server): Promise<string> {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('the server has no address')
  return `http://127.0.0.1:${address.port}`
}

async function close(server: Server): Promise<void> {
  server.closeAllConnections()
  server.close()
  await once(server, 'close')
}
