// Everything under /auth: an allow-list of paths with the body each takes, in front of the library that does the work.
// Its refusals leave as ours, so that a wrong password and an unknown address read the same.
import { z } from 'zod'
import type { Config } from '../config.ts'
import { AppError, invalidRequest, notFound, type Code } from '../errors.ts'
import type { Store } from '../store/open.ts'
import { attempts, type Attempts } from './attempts.ts'
import { openLibrary, PASSWORD, type Library, type LibraryDeps } from './library.ts'
import { isOwnOrigin } from './origins.ts'
import { neededSetupToken, requireSignUp } from './sign-up.ts'

export interface SignIn {
  /** Answers one request under /auth. Throws AppError as session-interface.md §3 ends. */
  handle(request: Request): Promise<Response>
  /** Loads the library ahead of the first request; the service is ready before. */
  warm(): Promise<void>
  /** What the first account must send as `setupToken`; null where none is needed. To be printed once in the log. */
  setupToken(): Promise<string | null>
}

interface Deps extends LibraryDeps {
  readonly store: Store
  readonly config: LibraryDeps['config'] & Pick<Config, 'signup' | 'loopback'>
  readonly now?: () => number
}

const isText = (value: string) => value.isWellFormed() && !value.includes('\0')
const text = (max: number) => z.string().max(max).refine(isText, 'must not hold NUL or lone surrogates')
const email = z.email().max(254)
/** Too short a password is told at sign-up; at sign-in it is one wrong password more. */
const password = text(PASSWORD.max).min(1)
const newPassword = text(PASSWORD.max).min(PASSWORD.min)
const nothing = z.strictObject({})

const SignUp = z.strictObject({
  name: text(100).refine((value) => value.trim() !== '', 'must not be empty'),
  email,
  password: newPassword,
  rememberMe: z.boolean().exactOptional(),
  setupToken: text(200).exactOptional(),
  inviteToken: text(200).exactOptional(),
})
const SignInBody = z.strictObject({ email, password, rememberMe: z.boolean().exactOptional() })
const PasswordChange = z.strictObject({
  currentPassword: password,
  newPassword,
  /** Who changes a password wants whoever else holds the old one out, unless they say otherwise. */
  revokeOtherSessions: z.boolean().default(true),
})

/** What there is under /auth; nothing else of the library can be reached. null: a GET, without a body. */
const PATHS = new Map<string, z.ZodType | null>([
  ['POST /auth/sign-up/email', SignUp],
  ['POST /auth/sign-in/email', SignInBody],
  ['POST /auth/sign-out', nothing],
  ['POST /auth/change-password', PasswordChange],
  ['POST /auth/revoke-session', z.strictObject({ token: text(200) })],
  ['POST /auth/revoke-sessions', nothing],
  ['POST /auth/revoke-other-sessions', nothing],
  ['GET /auth/list-sessions', null],
  ['GET /auth/get-session', null],
  ['GET /auth/token', null],
])

/** Hashing a password costs about 50 ms of a core: what one address may make us spend. */
const BY_ADDRESS = { limit: 120, windowMs: 60_000 }
/** Guesses at one account from one address, and from everywhere. */
const BY_ACCOUNT_AND_ADDRESS = { limit: 10, windowMs: 300_000 }
const BY_ACCOUNT = { limit: 100, windowMs: 3_600_000 }

export function openSignIn(deps: Deps): SignIn {
  const now = deps.now ?? Date.now
  const tries = attempts(now)
  let loading: Promise<Library> | undefined
  const library = () => {
    loading ??= openLibrary(deps)
    return loading
  }
  return {
    async handle(request) {
      const { pathname } = new URL(request.url)
      const name = `${request.method} ${pathname}`
      const schema = PATHS.get(name)
      if (schema === undefined) throw notFound()
      if (!isOwnOrigin(request, deps.config)) {
        throw new AppError('SIGN_IN_REFUSED', 'This page may not sign in or out here.', {
          extra: { reason: 'INVALID_ORIGIN' },
        })
      }
      const body = schema === null ? undefined : read(schema, await bodyOf(request))
      const settle = await guard(deps, tries, name, body, request, now())
      const asked = await library()
      try {
        const response = await asked.handle(handed(request, asked.origin, body))
        if (!response.ok) throw await refusal(response, deps.store, body)
        settle()
        return response
      } finally {
        // Also where it failed: what it did before may hold.
        if (request.method !== 'GET') deps.store.forget()
      }
    },
    async warm() {
      await library()
    },
    setupToken: () => neededSetupToken(deps),
  }
}

/** What must hold before a password is hashed. Answers with what is done once it was right. */
async function guard(
  deps: Deps,
  tries: Attempts,
  name: string,
  body: unknown,
  request: Request,
  now: number,
): Promise<() => void> {
  const address = request.headers.get('x-vitrine-client') ?? ''
  const nothingMore = () => undefined
  const costly = /\/(sign-in|sign-up|change-password)\b/.test(name)
  if (costly) tries.spend(`address ${address}`, BY_ADDRESS)
  if (name === 'POST /auth/sign-up/email') {
    const order = SignUp.parse(body)
    await requireSignUp(deps, order, now)
    return nothingMore
  }
  if (name !== 'POST /auth/sign-in/email') return nothingMore
  const account = SignInBody.parse(body).email.toLowerCase()
  const pair = `pair ${address} ${account}`
  const anywhere = `account ${account}`
  tries.spend(pair, BY_ACCOUNT_AND_ADDRESS)
  tries.spend(anywhere, BY_ACCOUNT)
  return () => {
    tries.clear(pair)
    tries.clear(anywhere)
  }
}

/** The request as the library gets it: from an origin it trusts, with the body that was read and nothing else. */
function handed(request: Request, origin: string, body: unknown): Request {
  const headers = new Headers(request.headers)
  for (const name of ['referer', 'sec-fetch-site', 'sec-fetch-mode', 'sec-fetch-dest', 'content-length', 'host']) {
    headers.delete(name)
  }
  headers.set('origin', origin)
  const { pathname } = new URL(request.url)
  if (body === undefined) return new Request(new URL(pathname, origin), { method: request.method, headers })
  headers.set('content-type', 'application/json')
  return new Request(new URL(pathname, origin), {
    method: request.method,
    headers,
    body: JSON.stringify(forLibrary(body)),
  })
}

/** Without the tokens that are ours alone. */
function forLibrary(body: unknown): unknown {
  if (typeof body !== 'object' || body === null) return body
  return Object.fromEntries(Object.entries(body).filter(([key]) => key !== 'setupToken' && key !== 'inviteToken'))
}

function read(schema: z.ZodType, body: unknown): unknown {
  const result = schema.safeParse(body)
  if (result.success) return result.data
  throw invalidRequest(result.error.issues.map((issue) => `${issue.path.join('.') || 'body'}: ${issue.message}`))
}

async function bodyOf(request: Request): Promise<unknown> {
  const sent = await request.text()
  if (sent === '') return {}
  try {
    return JSON.parse(sent)
  } catch {
    throw invalidRequest(['body: not valid JSON'])
  }
}

const Refusal = z.object({ code: z.string().optional(), message: z.string().optional() })

/** The library's refusal in our body: its status and code decide, its own code is the `reason`. */
async function refusal(response: Response, store: Store, body: unknown): Promise<AppError> {
  const told = Refusal.safeParse(await response.json().catch(() => null))
  const reason = told.data?.code
  const code = await codeOf(response.status, reason, store, body)
  const extra = reason === undefined ? {} : { reason }
  switch (code) {
    case 'UNAUTHENTICATED':
      return reason === 'INVALID_EMAIL_OR_PASSWORD'
        ? new AppError(code, 'The e-mail address or the password is not right.', { extra })
        : new AppError(code, 'You are not signed in.', { extra })
    case 'INVALID_REQUEST': {
      const detail = told.data?.message ?? 'not as it must be'
      return new AppError(code, `The request is not valid: ${detail}`, { extra: { details: [detail], ...extra } })
    }
    case 'CONFLICT':
      return new AppError(code, 'This e-mail address has an account already: sign in.', { extra })
    case 'NOT_FOUND':
      return notFound()
    case 'SIGN_IN_REFUSED':
      return new AppError(code, 'This is not allowed here.', { extra })
    default:
      return new AppError('INTERNAL', 'Signing in failed on our side.', { cause: reason })
  }
}

async function codeOf(status: number, reason: string | undefined, store: Store, body: unknown): Promise<Code> {
  if (status === 422) {
    if (reason?.startsWith('USER_ALREADY_EXISTS') === true) return 'CONFLICT'
    // Two at once with one address: the store refused the later one.
    return (await isTaken(store, body)) ? 'CONFLICT' : 'INTERNAL'
  }
  switch (status) {
    case 400:
      return 'INVALID_REQUEST'
    case 401:
      return 'UNAUTHENTICATED'
    case 403:
      return 'SIGN_IN_REFUSED'
    case 404:
      return 'NOT_FOUND'
    case 409:
      return 'CONFLICT'
    default:
      return 'INTERNAL'
  }
}

async function isTaken(store: Store, body: unknown): Promise<boolean> {
  const order = SignUp.safeParse(body)
  if (!order.success) return false
  const address = order.data.email.toLowerCase()
  const row = await store.db.selectFrom('accounts').select('id').where('email', '=', address).executeTakeFirst()
  return row !== undefined
}
