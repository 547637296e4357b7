// Requests access tokens from Google's token endpoint, with a signed assertion. A token is cached until five minutes
// before it expires. Datasources with the same key share a token. A token is never logged, and is sent only to
// BigQuery's own address.
import { createHash, sign, type KeyObject } from 'node:crypto'
import { z } from 'zod'
import { untilAborted } from './abortable.ts'
import { sendRequest, jsonOf, Unreadable } from './http-exchange.ts'
import { unavailable } from './failure.ts'
import type { Pools } from './socket-pools.ts'
import { TOKEN_URI, type ServiceAccount } from './service-account.ts'
import type { Credentials } from './settings.ts'

/**
 * The narrowest scope that jobs.insert and jobs.cancel accept. It allows writing, so the roles of the account must
 * forbid it.
 */
const SCOPE = 'https://www.googleapis.com/auth/bigquery'
const ASSERTION_SECONDS = 3600
const BEFORE_END_MS = 300_000
const FETCH_MS = 10_000
const ANSWER_BYTES_MAX = 64 * 1024
const SOURCES_MAX = 500

/** Call forget() if a token was refused. */
export interface TokenSource {
  /** Throws AppError, ErrorResponse, Unreadable, the error of the socket, or the signal's reason. */
  get(signal: AbortSignal): Promise<string>
  forget(token: string): void
}

/** Matches a token that a header may contain. */
const TOKEN = /^[\x21-\x7e]{1,8192}$/

const Answer = z.object({
  access_token: z.string().regex(TOKEN),
  expires_in: z.number().min(0).max(86_400).catch(0),
})

/** The sources of one driver. Datasources with the same key share a source. */
export class Tokens {
  readonly #pools: Pools
  readonly #sources = new Map<string, TokenSource>()

  constructor(pools: Pools) {
    this.#pools = pools
  }

  /** Returns null if no token may be sent. */
  sourceOf(credentials: Credentials, allowPrivateHosts: boolean): TokenSource | null {
    if (credentials.kind === 'none') return null
    const key = credentials.kind === 'service account' ? keyOf(credentials.account) : credentials.kind
    const name = `${key} ${allowPrivateHosts}`
    const known = this.#sources.get(name)
    // Move the source to the end of the map. If there are too many sources, the first one is evicted.
    this.#sources.delete(name)
    const source = known ?? this.#newSource(credentials, allowPrivateHosts)
    this.#sources.set(name, source)
    const [oldest] = this.#sources.keys()
    if (this.#sources.size > SOURCES_MAX && oldest !== undefined) this.#sources.delete(oldest)
    return source
  }

  #newSource(credentials: Exclude<Credentials, { kind: 'none' }>, allowPrivateHosts: boolean): TokenSource {
    if (credentials.kind === 'application default') return applicationDefault()
    return cachedSource((signal) => fetchToken(this.#pools, credentials.account, allowPrivateHosts, signal))
  }
}

/** The hash identifies an account and its key, but does not reveal the key. */
function keyOf({ email, key }: ServiceAccount): string {
  const pem = key.export({ type: 'pkcs8', format: 'pem' })
  return createHash('sha256').update(`${email}\n`).update(pem).digest('hex')
}

interface Fetched {
  readonly token: string
  /** The token is used until performance.now() has this value, five minutes before it expires. */
  readonly until: number
}

/** Fetches a token only if necessary. Concurrent callers share one fetch. */
function cachedSource(fetch: (signal: AbortSignal) => Promise<Fetched>): TokenSource {
  let now: Fetched | null = null
  let under: Promise<Fetched> | null = null
  return {
    async get(signal) {
      signal.throwIfAborted()
      if (now !== null && performance.now() < now.until) return now.token
      // The fetch has its own timeout. If it ended with the signal of the caller that started it, the other callers
      // would fail.
      under ??= fetch(AbortSignal.timeout(FETCH_MS)).finally(() => (under = null))
      now = await untilAborted(under, signal)
      return now.token
    },
    forget(token) {
      if (now?.token === token) now = null
    },
  }
}

async function fetchToken(
  pools: Pools,
  account: ServiceAccount,
  allowPrivateHosts: boolean,
  signal: AbortSignal,
): Promise<Fetched> {
  const { origin, pathname } = new URL(TOKEN_URI)
  await using held = await pools.hold(origin, allowPrivateHosts)
  const requestedAt = performance.now()
  const body = new URLSearchParams({
    grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
    assertion: assertionOf(account, Math.floor(Date.now() / 1000)),
  }).toString()
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  const request = { method: 'POST', path: pathname, headers, body, bytesMax: ANSWER_BYTES_MAX } as const
  const answer = Answer.safeParse(jsonOf(await sendRequest(held.dispatcher, request, signal)))
  if (!answer.success) throw new Unreadable('a token answer without a token')
  return { token: answer.data.access_token, until: requestedAt + answer.data.expires_in * 1000 - BEFORE_END_MS }
}

/** Returns a JWT that requests a token. It is signed with the account's own key (RS256). */
function assertionOf({ email, keyId, key }: ServiceAccount, iat: number): string {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const header = part({ alg: 'RS256', typ: 'JWT', ...(keyId === null ? {} : { kid: keyId }) })
  const claims = part({ iss: email, scope: SCOPE, aud: TOKEN_URI, iat, exp: iat + ASSERTION_SECONDS })
  return `${header}.${claims}.${signed(key, `${header}.${claims}`)}`
}

/** Throws for a key whose numbers do not fit together. The parser accepts such a key. */
function signed(key: KeyObject, text: string): string {
  try {
    return sign('RSA-SHA256', Buffer.from(text), key).toString('base64url')
  } catch (error) {
    throw unavailable('The private key of the service account cannot sign: it is damaged.', error)
  }
}

/** Uses the identity of the machine. The library finds it, and caches its tokens. */
function applicationDefault(): TokenSource {
  const open = async () => {
    const { GoogleAuth } = await import('google-auth-library')
    return new GoogleAuth({ scopes: [SCOPE] })
  }
  let auth: ReturnType<typeof open> | null = null
  return {
    async get(signal) {
      signal.throwIfAborted()
      auth ??= open()
      const fetched = auth.then((library) => library.getAccessToken())
      const token = await untilAborted(fetched, AbortSignal.any([signal, AbortSignal.timeout(FETCH_MS)])).catch(
        noIdentity,
      )
      signal.throwIfAborted()
      return typeof token === 'string' && TOKEN.test(token) ? token : noIdentity(undefined)
    },
    forget() {
      auth = null
    },
  }
}

/** The library's message may contain files and accounts of this machine, so it is replaced. */
function noIdentity(cause: unknown): never {
  throw unavailable('The application default credentials of this machine give no token.', cause)
}
