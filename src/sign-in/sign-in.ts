// Answers requests under /auth, except OAuth. Only the paths and bodies in allowed-paths.ts reach the sign-in library.
// If mail is on, neither the answer to a sign-up or a request for mail nor its duration reveals whether an address has
// an account.
import { setTimeout } from 'node:timers/promises'
import { DEMO_EMAIL, type Config } from '../config.ts'
import { SignUp } from '../contract/sign-in-routes.ts'
import type { AccountId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import { shapedAnswer } from './answer-shape.ts'
import { accountBy } from './account-by-address.ts'
import { accountLinks } from './verification-links.ts'
import { readSignInRequest, type SignInRequest } from './read-request.ts'
import type { Attempts } from '../auth/attempt-counter.ts'
import { openCodeTries } from './second-factor-limits.ts'
import { heldBy, stillHolds, type Held } from './password-still-current.ts'
import { sessionMadeBy, withCookie } from './cookies.ts'
import { knownDevices } from './known-browser-cookie.ts'
import { libraryRefusal, notSignedIn, wrongSignIn } from './better-auth-errors.ts'
import { openLibrary, type LibraryDeps } from './better-auth.ts'
import type { Identity, Library } from './sign-in-library.ts'
import { requestIdOf } from '../auth/client-name-and-address.ts'
import { doneFrom, type Notices } from '../auth/security-mail.ts'
import { ownAnswer, requireCode, type OwnDeps } from './paths-handled-here.ts'
import { signInOptions } from './sign-in-options.ts'
import {
  callbackOf,
  CHANGE_PASSWORD,
  isOfPerson,
  OPTIONS,
  PATHS,
  RESET_PAGE,
  SIGN_IN,
  SIGN_UP,
  VERIFY_PAGE,
} from './allowed-paths.ts'
import { boundSessions } from './sessions.ts'
import { failed, failureOf } from './providers/callback.ts'
import { openProviders, type ProvidersDeps } from './providers/trips-to-providers.ts'
import { requestInHand } from './current-request-id.ts'
import { resetPage } from './reset-password-page.ts'
import { afterCode, noChallenge } from './second-factor-lock.ts'
import { serializedWhileEmpty, deleteUnverified, neededSetupToken, moveLinks, requireSignUp } from './sign-up.ts'
import { passkeyChallenges } from './passkeys.ts'
import { openHashing, openThrottle } from './sign-in-limits.ts'
import { openTrail } from './audit-account-events.ts'
import { unsent } from './mail-limit-answer.ts'
import { factorOf } from './consume-second-factor-code.ts'
import { verifyPage } from './verify-email-page.ts'

export interface SignIn {
  /** Throws AppErrors as in docs/session.md#sign-in. */
  handle(request: Request): Promise<Response>
  /** Finds by the cookies who is signed in, and whose sign-in waits for a code. */
  identify(request: Pick<Request, 'headers'>): Promise<Identity>
  /** Loads the library, so that the first request need not wait for it. */
  warm(): Promise<void>
  /** Returns the `setupToken` that the first sign-up must send. Null if it needs none. Log it once. */
  setupToken(): Promise<string | null>
}

interface Deps extends Omit<LibraryDeps, 'links' | 'demoEmail'> {
  readonly audit: Parameters<typeof openTrail>[0]['audit'] & OwnDeps['audit']
  readonly store: Store
  readonly tries: Attempts
  readonly notices: Notices
  readonly config: LibraryDeps['config'] & Pick<Config, 'signup' | 'loopback' | 'demo'> & ProvidersDeps['config']
  /** Tests replace the connections to providers. */
  readonly transport?: NonNullable<ProvidersDeps['transport']>
  readonly log?: NonNullable<LibraryDeps['log']> & NonNullable<ProvidersDeps['log']>
  readonly now?: () => number
}

/** Where the browser goes if a callback is refused before its cookie is read. */
const NOWHERE = { target: '/app/', connects: null }
const NOBODY: Identity = { signedIn: null, sessionId: null, waiting: null }
/** These paths must not reveal whether an address has an account, so their answers take at least this long. */
const UNIFORM = /\/(sign-up\/email|request-password-reset|send-verification-email)$/
const UNIFORM_MS = 400

export function openSignIn(deps: Deps): SignIn {
  const now = deps.now ?? Date.now
  const isSecure = deps.config.publicUrl?.startsWith('https:') === true
  const sessionCookie = `${isSecure ? '__Secure-' : ''}vitrine.session_token`
  const passwordOf = async (email: string) => (await heldBy(deps.store, { email }))?.password ?? null
  const devices = knownDevices(deps.secrets, isSecure, passwordOf)
  const { tries, notices } = deps
  const throttle = openThrottle(tries, devices, sessionCookie)
  const hashing = openHashing()
  const codes = openCodeTries({ store: deps.store, tries, devices, sessionCookie, now })
  const links = accountLinks(deps)
  const providers = openProviders({ ...deps, secure: isSecure, now })
  const challenges = passkeyChallenges({ secrets: deps.secrets, secure: isSecure, now })
  const trail = openTrail(deps)
  const serialized = serializedWhileEmpty(deps.store)
  const sessions = boundSessions(deps)
  let loading: Promise<Library> | undefined
  const library = () => {
    loading ??= openLibrary({ ...deps, links, demoEmail: deps.config.demo ? DEMO_EMAIL : null })
    return loading
  }
  const ownDeps = async (): Promise<OwnDeps> => {
    const { store, audit, config, secrets, origin, mail } = deps
    const held = { store, audit, config, secrets, origin, links, tries, codes, devices }
    const more = { challenges, providers, trail, notices }
    return { ...held, ...more, library: await library(), mailIsOn: mail.isOn, now: now() }
  }

  const runRequest = async (
    request: Request,
    input: SignInRequest,
    identified: (identity: Identity) => void,
  ): Promise<Response> => {
    const { name, email } = input
    const { isKnownDevice, mails, settle } = await throttle({ name, request, email, mailIsOn: deps.mail.isOn })
    const identity = isOfPerson(name) ? await (await library()).identify(request) : NOBODY
    identified(identity)
    const known = isKnownDevice && email !== undefined ? email : identity.signedIn
    // Wait before the library begins a transaction, because on SQLite other changes would wait for that transaction.
    using _slot = await hashing(name, request, known)
    if (name === SIGN_UP) await requireSignUp(deps, SignUp.parse(input.body), now())
    const ours = await ownDeps()
    if (!mails) return await unsent(ours.library, input, now())
    const held = await heldOf(deps.store, input, identity)
    const counted = PATHS.get(name)?.asksCode === true ? await countCode(ours, request, identity) : null
    try {
      await requireCode(ours, request, input, identity)
      const response =
        (await ownAnswer(ours, request, input, identity)) ??
        (name === SIGN_UP && deps.mail.isOn && email !== undefined
          ? await replaceUnverified(deps.store, email, () => callLibrary(deps, ours.library, request, input))
          : await callLibrary(deps, ours.library, request, input))
      if (held !== null && !(await stillHolds(deps.store, held, response))) {
        throw name === SIGN_IN ? wrongSignIn() : notSignedIn()
      }
      const made = sessionMadeBy(response)
      if (made !== null) await sessions.afterSignIn(made)
      await settle()
      const done = await after(ours, request, { input, identity, held, response })
      await counted?.()
      await trail.done({ request, name, email, identity }, done)
      return done
    } finally {
      // Also after an error, because the library may have committed some changes.
      if (request.method !== 'GET') deps.store.forget()
    }
  }

  const runRecorded = async (request: Request, input: SignInRequest): Promise<Response> => {
    let identity = NOBODY
    try {
      return await runRequest(request, input, (who) => (identity = who))
    } catch (error) {
      await trail.refused({ request, name: input.name, email: input.email, identity }, error)
      throw error
    }
  }

  return {
    async handle(request) {
      const { pathname } = new URL(request.url)
      if (`${request.method} ${pathname}` === RESET_PAGE) return resetPage()
      const input = await readSignInRequest(request, pathname, deps.config)
      if (input.name === VERIFY_PAGE) return verifyPage()
      if (input.name === OPTIONS) return Response.json(await signInOptions(deps, request))
      const provider = callbackOf(input.name)
      const run = () => requestInHand.run(requestIdOf(request), runRecorded, request, input)
      const work = input.name === SIGN_UP || provider !== null ? serialized(run) : run()
      if (provider !== null) {
        return await work.catch((error: unknown) => failed(failureOf(error), { id: provider, ...NOWHERE }))
      }
      if (deps.mail.isOn && UNIFORM.test(input.name)) {
        await Promise.all([work.catch(() => undefined), setTimeout(UNIFORM_MS)])
      }
      return await shapedAnswer(input.name, request, await work, sessionCookie)
    },
    identify: async (request) => await (await library()).identify(request),
    async warm() {
      await library()
    },
    setupToken: () => neededSetupToken(deps),
  }
}

async function replaceUnverified(store: Store, email: string, signUp: () => Promise<Response>): Promise<Response> {
  const deletedId = await deleteUnverified(store, email)
  try {
    return await signUp()
  } finally {
    if (deletedId !== null) await moveLinks(store, deletedId, email)
  }
}

/** Returns the account whose password is checked for a session. Null if the request has no password. */
async function heldOf(
  store: Store,
  { name, email }: SignInRequest,
  { signedIn, waiting }: Identity,
): Promise<Held | null> {
  if (PATHS.get(name)?.makesSession !== true) return null
  if (name === SIGN_IN) return email === undefined ? null : await heldBy(store, { email })
  const accountId = signedIn ?? waiting
  return accountId === null ? null : await heldBy(store, { accountId })
}

/** Counts a code before it is checked. Throws UNAUTHENTICATED if no sign-in waits for one, and RATE_LIMITED. */
async function countCode(
  ours: OwnDeps,
  request: Request,
  { signedIn, waiting }: Identity,
): Promise<() => Promise<void>> {
  // If the browser sends both cookies, the library uses the session.
  if (signedIn !== null) return await ours.codes.signedIn(request, signedIn)
  if (waiting !== null) return await ours.codes.waiting(request, waiting)
  throw noChallenge()
}

interface Done {
  readonly input: SignInRequest
  readonly identity: Identity
  /** The account at the time when its password was checked. */
  readonly held: Held | null
  readonly response: Response
}

/** After the library: marks codes as used, sends security mails, and sets the cookie of a known device. */
async function after(ours: OwnDeps, request: Request, { input, identity, held, response }: Done): Promise<Response> {
  const { store, notices, devices } = ours
  const { signedIn, waiting } = identity
  const from = doneFrom(request)
  const tell = async (kind: 'password changed' | 'second factor on' | 'second factor off' | 'backup codes renewed') => {
    if (signedIn !== null) await notices.tell(signedIn, { kind }, from)
  }
  switch (input.name) {
    case 'POST /auth/two-factor/verify-totp':
      if (await afterCode(store, String(input.body?.['code']), response, ours.now)) await tell('second factor on')
      break
    case CHANGE_PASSWORD:
      await tell('password changed')
      break
    case 'POST /auth/two-factor/disable':
      // Without a code, the request succeeds only if the second factor was off before, so nothing has changed.
      if (input.body?.['code'] !== undefined) await tell('second factor off')
      break
    case 'POST /auth/two-factor/generate-backup-codes':
      await tell('backup codes renewed')
  }
  if (PATHS.get(input.name)?.asksCode === true) {
    const accountId = signedIn ?? waiting
    const factor = await factorOf(store, accountId)
    const email = accountId === null ? null : await emailOf(store, accountId)
    return factor === null || email === null
      ? response
      : withCookie(response, devices.cookie(request, held ?? { email, password: null }, factor.id))
  }
  if (input.name === SIGN_IN && held !== null) return withCookie(response, devices.cookie(request, held))
  if (input.name !== SIGN_UP || ours.mailIsOn || input.email === undefined) return response
  const made = await heldBy(store, { email: input.email })
  return made === null ? response : withCookie(response, devices.cookie(request, made))
}

async function emailOf(store: Pick<Store, 'db'>, accountId: AccountId): Promise<string | null> {
  const row = await store.db.selectFrom('accounts').select('email').where('id', '=', accountId).executeTakeFirst()
  return row?.email ?? null
}

async function callLibrary(deps: Deps, library: Library, request: Request, input: SignInRequest): Promise<Response> {
  const response = await requestLibrary(deps, library, request, input)
  if (response.status >= 400) throw await libraryRefusal(response, () => isTaken(deps.store, input.email))
  return response
}

async function requestLibrary(deps: Deps, lib: Library, request: Request, input: SignInRequest): Promise<Response> {
  const response = await lib.handle(libraryRequest(request, lib.origin, input))
  const isRace = response.status === 422 && deps.mail.isOn && (await isTaken(deps.store, input.email))
  // If two people sign up with one address at the same time, the second sign-up fails. A retry gets the answer for a
  // taken address.
  return isRace ? await lib.handle(libraryRequest(request, lib.origin, input)) : response
}

/** The request has an origin that the library trusts, and only validated fields. */
function libraryRequest(request: Request, origin: string, { name, body, query }: SignInRequest): Request {
  const headers = new Headers(request.headers)
  for (const name of ['referer', 'sec-fetch-site', 'sec-fetch-mode', 'sec-fetch-dest', 'content-length', 'host']) {
    headers.delete(name)
  }
  headers.set('origin', origin)
  const url = new URL(new URL(request.url).pathname, origin)
  for (const [key, value] of Object.entries(query)) url.searchParams.set(key, String(value))
  if (body === undefined) return new Request(url, { method: request.method, headers })
  headers.set('content-type', 'application/json')
  const libraryFields = Object.fromEntries(Object.entries(body).filter(([key]) => !isOurs(name, key)))
  return new Request(url, { method: request.method, headers, body: JSON.stringify(libraryFields) })
}

function isOurs(name: string, key: string): boolean {
  return key === 'setupToken' || key === 'inviteToken' || (key === 'code' && PATHS.get(name)?.needsCode === true)
}

async function isTaken(store: Store, email: string | undefined): Promise<boolean> {
  return (await accountBy(store, email)) !== null
}
