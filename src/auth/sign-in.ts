// Everything under /auth: an allow-list of paths with the body each takes (paths.ts), in front of the library that does
// the work. Its refusals leave as ours; where mail is on, no answer and no time it takes tells which addresses exist.
import { setTimeout } from 'node:timers/promises'
import type { z } from 'zod'
import { DEMO_EMAIL, type Config } from '../config.ts'
import { AppError, invalidRequest, notFound } from '../errors.ts'
import type { Store } from '../store/open.ts'
import { accountBy } from './account-by.ts'
import { accountLinks, type AccountLinks } from './account-links.ts'
import { attempts } from './attempts.ts'
import { endWaiting } from './new-password.ts'
import { knownDevices } from './known-device.ts'
import { libraryRefusal } from './library-refusal.ts'
import { openLibrary, type Asking, type Library, type LibraryDeps } from './library.ts'
import { isOwnOrigin, returnPath } from './origins.ts'
import { isOfPerson, PATHS, SIGN_IN, SIGN_UP, SignInBody, SignUp, VERIFY_EMAIL } from './paths.ts'
import { resetPage } from './reset-page.ts'
import { afterCode, countCode, forgetCodes, noChallenge } from './second-factor.ts'
import { firstInTurn, neededSetupToken, requireSignUp } from './sign-up.ts'
import { openThrottle } from './throttle.ts'
import { openTrail } from './trail.ts'

export interface SignIn {
  /** Answers one request under /auth. Throws AppError as session-interface.md §3 ends. */
  handle(request: Request): Promise<Response>
  /** Loads the library ahead of the first request; the service is ready before. */
  warm(): Promise<void>
  /** What the first account must send as `setupToken`; null where none is needed. To be printed once in the log. */
  setupToken(): Promise<string | null>
}

interface Deps extends Omit<LibraryDeps, 'links' | 'trail' | 'demoEmail'> {
  readonly audit: Parameters<typeof openTrail>[0]['audit']
  readonly store: Store
  readonly config: LibraryDeps['config'] & Pick<Config, 'signup' | 'loopback' | 'demo'>
  readonly now?: () => number
}

const NOBODY: Asking = { signedIn: null, waiting: null }
/** What is answered alike for an address that has an account and one that has none, and takes at least so long, ms. */
const ALIKE = /\/(sign-up\/email|request-password-reset|send-verification-email)$/
const ALIKE_MS = 400

interface Asked {
  readonly name: string
  readonly body: Fields | undefined
  readonly query: Fields
}
type Fields = Readonly<Record<string, unknown>>

export function openSignIn(deps: Deps): SignIn {
  const now = deps.now ?? Date.now
  const isSecure = deps.config.publicUrl?.startsWith('https:') === true
  const devices = knownDevices(deps.secrets, isSecure)
  const throttle = openThrottle(
    attempts(deps.store, now),
    devices,
    `${isSecure ? '__Secure-' : ''}vitrine.session_token`,
  )
  const links = accountLinks(deps)
  const trail = openTrail(deps)
  const inTurn = firstInTurn(deps.store)
  let loading: Promise<Library> | undefined
  const library = () => {
    loading ??= openLibrary({ ...deps, links, trail, demoEmail: deps.config.demo ? DEMO_EMAIL : null })
    return loading
  }

  /** What the library answers, and what of ours comes before and after it. */
  const worked = async (request: Request, asked: Asked, noted: (asking: Asking) => void): Promise<Response> => {
    const email = emailOf(asked.body)
    const settle = await throttle({ name: asked.name, request, email, mailIsOn: deps.mail.isOn })
    if (asked.name === SIGN_UP) await requireSignUp(deps, SignUp.parse(asked.body), now())
    const lib = await library()
    const asking = isOfPerson(asked.name) ? await lib.asking(request) : NOBODY
    noted(asking)
    if (PATHS.get(asked.name)?.asksCode === true) await requireChallenge(deps.store, asking, now())
    try {
      const response = await askLibrary(deps, lib, request, asked)
      if (response.status >= 400) throw await libraryRefusal(response, () => isTaken(deps.store, email))
      await settle()
      await after(deps.store, asked, asking, response, now())
      await trail.done({ request, ...asked, email, asking }, response)
      return asked.name === SIGN_IN && email !== undefined ? withCookie(response, devices.cookie(email)) : response
    } finally {
      // Also where it failed: what it did before may hold.
      if (request.method !== 'GET' || asked.name === VERIFY_EMAIL) deps.store.forget()
    }
  }

  const answered = async (request: Request, asked: Asked): Promise<Response> => {
    let asking = NOBODY
    try {
      return await worked(request, asked, (who) => (asking = who))
    } catch (error) {
      await trail.refused({ request, ...asked, email: emailOf(asked.body), asking }, error)
      throw error
    }
  }

  return {
    async handle(request) {
      const { pathname } = new URL(request.url)
      if (request.method === 'GET' && pathname === '/auth/reset-password') return resetPage()
      const asked = await withOwnToken(links, await read(request, pathname, deps.config))
      const work = asked.name === SIGN_UP ? inTurn(() => answered(request, asked)) : answered(request, asked)
      if (deps.mail.isOn && ALIKE.test(asked.name)) {
        await Promise.all([work.catch(() => undefined), setTimeout(ALIKE_MS)])
      }
      return await work
    },
    async warm() {
      await library()
    },
    setupToken: () => neededSetupToken(deps),
  }
}

/** Counts a code before it is looked at. Throws UNAUTHENTICATED where nobody waits for one, RATE_LIMITED while it is locked. */
async function requireChallenge(store: Store, { signedIn, waiting }: Asking, now: number): Promise<void> {
  // Nothing is handed on that was not counted: whoever is signed in confirms a factor of their own.
  if (waiting !== null) await countCode(store, waiting, now)
  else if (signedIn === null) throw noChallenge()
}

/** What of ours follows on what the library has done. */
async function after(store: Store, asked: Asked, asking: Asking, response: Response, now: number): Promise<void> {
  switch (asked.name) {
    case 'POST /auth/two-factor/verify-totp':
      await afterCode(store, String(asked.body?.['code']), response, now)
      break
    case 'POST /auth/change-password':
      await endWaiting(store, response)
  }
  if (PATHS.get(asked.name)?.asksCode === true && asking.waiting !== null) await forgetCodes(store, response)
}

/** With the library's token in the place of ours; one of an account that is gone is a token that never was. */
async function withOwnToken(links: AccountLinks, asked: Asked): Promise<Asked> {
  if (asked.name !== VERIFY_EMAIL) return asked
  return { ...asked, query: { ...asked.query, token: (await links.opened(String(asked.query['token']))) ?? 'none' } }
}

/** Throws NOT_FOUND for what is not listed, SIGN_IN_REFUSED for another site's page, INVALID_REQUEST. */
async function read(request: Request, pathname: string, config: Deps['config']): Promise<Asked> {
  const name = `${request.method} ${pathname}`
  const path = PATHS.get(name)
  if (path === undefined) throw notFound()
  if (!isOwnOrigin(request, config)) {
    throw new AppError('SIGN_IN_REFUSED', 'This page may not sign in or out here.', {
      extra: { reason: 'INVALID_ORIGIN' },
    })
  }
  const sent = Object.fromEntries(new URL(request.url).searchParams)
  const query = withReturnPaths(parse(path.query, sent), request, config)
  if (path.body === null) return { name, query, body: undefined }
  return { name, query, body: withReturnPaths(parse(path.body, await bodyOf(request)), request, config) }
}

/** Without a schema nothing may be sent. */
function parse(schema: z.ZodType | undefined, sent: unknown): Fields {
  if (schema === undefined) {
    const surplus = Object.keys(typeof sent === 'object' && sent !== null ? sent : {})
    if (surplus.length > 0) throw invalidRequest(surplus.map((key) => `${key}: there is no such parameter`))
    return {}
  }
  const result = schema.safeParse(sent)
  if (!result.success) {
    throw invalidRequest(result.error.issues.map((issue) => `${issue.path.join('.') || 'body'}: ${issue.message}`))
  }
  return typeof result.data === 'object' && result.data !== null ? { ...result.data } : {}
}

/** What a link leads on to, as a path of ours. Throws INVALID_REQUEST for anywhere else. */
function withReturnPaths(fields: Fields, request: Request, config: Deps['config']): Fields {
  return Object.fromEntries(
    Object.entries(fields).map(([key, value]) => {
      if ((key !== 'callbackURL' && key !== 'redirectTo') || typeof value !== 'string') return [key, value]
      const path = returnPath(value, request, config)
      if (path === null) throw invalidRequest([`${key}: must be a path of this service`])
      return [key, path]
    }),
  )
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

async function askLibrary(deps: Deps, lib: Library, request: Request, asked: Asked): Promise<Response> {
  const response = await lib.handle(handed(request, lib.origin, asked))
  const isRace = response.status === 422 && deps.mail.isOn && (await isTaken(deps.store, emailOf(asked.body)))
  // Two at once with one address: asked again, the later one is answered as for every address that has an account.
  return isRace ? await lib.handle(handed(request, lib.origin, asked)) : response
}

/** The request as the library gets it: from an origin it trusts, with what was read of it and nothing else. */
function handed(request: Request, origin: string, { body, query }: Asked): Request {
  const headers = new Headers(request.headers)
  for (const name of ['referer', 'sec-fetch-site', 'sec-fetch-mode', 'sec-fetch-dest', 'content-length', 'host']) {
    headers.delete(name)
  }
  headers.set('origin', origin)
  const url = new URL(new URL(request.url).pathname, origin)
  for (const [key, value] of Object.entries(query)) url.searchParams.set(key, String(value))
  if (body === undefined) return new Request(url, { method: request.method, headers })
  headers.set('content-type', 'application/json')
  // The tokens that are ours alone stay here.
  const { setupToken: _, inviteToken: __, ...theirs } = body
  return new Request(url, { method: request.method, headers, body: JSON.stringify(theirs) })
}

function withCookie(response: Response, cookie: string): Response {
  const headers = new Headers(response.headers)
  headers.append('set-cookie', cookie)
  return new Response(response.body, { status: response.status, headers })
}

function emailOf(body: Fields | undefined): string | undefined {
  const email = SignInBody.shape.email.safeParse(body?.['email'])
  return email.success ? email.data.toLowerCase() : undefined
}

async function isTaken(store: Store, email: string | undefined): Promise<boolean> {
  return (await accountBy(store, email)) !== null
}
