// Everything under /auth: an allow-list of paths with the body each takes (paths.ts), in front of the library that does
// the work. Its refusals leave as ours. Where mail is on, neither a sign-up nor a request for a mail tells by its answer or
// its time which addresses exist.
import { setTimeout } from 'node:timers/promises'
import { DEMO_EMAIL, type Config } from '../config.ts'
import { SignUp } from '../contract/sign-in-routes.ts'
import type { AccountId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import { accountBy } from './account-by.ts'
import { accountLinks } from './account-links.ts'
import { readAsked, type Asked } from './read-request.ts'
import type { Attempts } from '../auth/attempt-counter.ts'
import { openCodeTries } from './code-tries.ts'
import { heldBy, stillHolds, type Held } from './held-password.ts'
import { knownDevices } from './known-device.ts'
import { libraryRefusal, notSignedIn, wrongSignIn } from './library-refusal.ts'
import { openLibrary, type Asking, type Library, type LibraryDeps } from './library.ts'
import { doneFrom, type Notices } from '../auth/notices.ts'
import { ownAnswer, requireCode, withCookie, type OwnDeps } from './own-paths.ts'
import { CHANGE_PASSWORD, isOfPerson, PATHS, RESET_PAGE, SIGN_IN, SIGN_UP, VERIFY_PAGE } from './paths.ts'
import { resetPage } from './reset-page.ts'
import { afterCode, noChallenge } from './second-factor.ts'
import { firstInTurn, giveWay, neededSetupToken, passOnLinks, requireSignUp } from './sign-up.ts'
import { openThrottle } from './sign-in-limits.ts'
import { openTrail } from './trail.ts'
import { unsent } from './unsent.ts'
import { factorOf } from './use-code.ts'
import { verifyPage } from './verify-page.ts'

export interface SignIn {
  /** Answers one request under /auth. Throws AppError as docs/session.md#sign-in says. */
  handle(request: Request): Promise<Response>
  /** Loads the library ahead of the first request; the service is ready before. */
  warm(): Promise<void>
  /** What the first account must send as `setupToken`; null where none is needed. To be printed once in the log. */
  setupToken(): Promise<string | null>
}

interface Deps extends Omit<LibraryDeps, 'links' | 'demoEmail'> {
  readonly audit: Parameters<typeof openTrail>[0]['audit']
  readonly store: Store
  readonly tries: Attempts
  readonly notices: Notices
  readonly config: LibraryDeps['config'] & Pick<Config, 'signup' | 'loopback' | 'demo'>
  readonly now?: () => number
}

const NOBODY: Asking = { signedIn: null, sessionId: null, waiting: null }
/** What is answered alike for an address that has an account and one that has none, and takes at least so long, ms. */
const ALIKE = /\/(sign-up\/email|request-password-reset|send-verification-email)$/
const ALIKE_MS = 400

export function openSignIn(deps: Deps): SignIn {
  const now = deps.now ?? Date.now
  const isSecure = deps.config.publicUrl?.startsWith('https:') === true
  const sessionCookie = `${isSecure ? '__Secure-' : ''}vitrine.session_token`
  const devices = knownDevices(deps.secrets, isSecure)
  const { tries, notices } = deps
  const throttle = openThrottle(tries, devices, sessionCookie)
  const codes = openCodeTries({ store: deps.store, tries, devices, sessionCookie, now })
  const links = accountLinks(deps)
  const trail = openTrail(deps)
  const inTurn = firstInTurn(deps.store)
  let loading: Promise<Library> | undefined
  const library = () => {
    loading ??= openLibrary({ ...deps, links, demoEmail: deps.config.demo ? DEMO_EMAIL : null })
    return loading
  }
  const ofOurs = async (): Promise<OwnDeps> => {
    const { store, mail } = deps
    const mailIsOn = mail.isOn
    return { store, library: await library(), links, tries, codes, devices, trail, notices, mailIsOn, now: now() }
  }

  /** What the library answers, and what of ours comes before and after it. */
  const worked = async (request: Request, asked: Asked, noted: (asking: Asking) => void): Promise<Response> => {
    const { name, email } = asked
    const { mails, settle } = await throttle({ name, request, email, mailIsOn: deps.mail.isOn })
    if (name === SIGN_UP) await requireSignUp(deps, SignUp.parse(asked.body), now())
    const ours = await ofOurs()
    if (!mails) return await unsent(ours.library, asked, now())
    const asking = isOfPerson(name) ? await ours.library.asking(request) : NOBODY
    noted(asking)
    const held = await heldOf(deps.store, asked, asking)
    const counted = PATHS.get(name)?.asksCode === true ? await countCode(ours, request, asking) : null
    try {
      await requireCode(ours, request, asked, asking)
      const response =
        (await ownAnswer(ours, request, asked, asking)) ??
        (name === SIGN_UP && deps.mail.isOn && email !== undefined
          ? await inPlace(deps.store, email, () => ofLibrary(deps, ours.library, request, asked))
          : await ofLibrary(deps, ours.library, request, asked))
      if (held !== null && !(await stillHolds(deps.store, held, response))) {
        throw name === SIGN_IN ? wrongSignIn() : notSignedIn()
      }
      await settle()
      const done = await after(ours, request, { asked, asking, response })
      await counted?.()
      await trail.done({ request, name, email, asking }, done)
      return done
    } finally {
      // Also where it failed: what it did before may hold.
      if (request.method !== 'GET') deps.store.forget()
    }
  }

  const answered = async (request: Request, asked: Asked): Promise<Response> => {
    let asking = NOBODY
    try {
      return await worked(request, asked, (who) => (asking = who))
    } catch (error) {
      await trail.refused({ request, name: asked.name, email: asked.email, asking }, error)
      throw error
    }
  }

  return {
    async handle(request) {
      const { pathname } = new URL(request.url)
      // Programs that look at mails add parameters to links: this page takes what it knows.
      if (`${request.method} ${pathname}` === RESET_PAGE) return resetPage()
      const asked = await readAsked(request, pathname, deps.config)
      if (asked.name === VERIFY_PAGE) return verifyPage()
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

/** A sign-up with an address that somebody may have signed up with, and not verified. */
async function inPlace(store: Store, email: string, signUp: () => Promise<Response>): Promise<Response> {
  const gone = await giveWay(store, email)
  try {
    return await signUp()
  } finally {
    if (gone !== null) await passOnLinks(store, gone, email)
  }
}

/** By whose password the library makes a session; null where it makes none. */
async function heldOf(store: Store, { name, email }: Asked, { signedIn, waiting }: Asking): Promise<Held | null> {
  if (PATHS.get(name)?.makesSession !== true) return null
  if (name === SIGN_IN) return email === undefined ? null : await heldBy(store, { email })
  const accountId = signedIn ?? waiting
  return accountId === null ? null : await heldBy(store, { accountId })
}

/** Counts a code before it is looked at. Throws UNAUTHENTICATED where nobody waits for one, RATE_LIMITED past a limit. */
async function countCode(ours: OwnDeps, request: Request, { signedIn, waiting }: Asking): Promise<() => Promise<void>> {
  // In the library's order: of a request with both it looks at the session.
  if (signedIn !== null) return await ours.codes.signedIn(request, signedIn)
  if (waiting !== null) return await ours.codes.waiting(request, waiting)
  throw noChallenge()
}

interface Done {
  readonly asked: Asked
  readonly asking: Asking
  readonly response: Response
}

/** What of ours follows on what the library has done: codes that are used up, letters, devices that are known from now on. */
async function after(ours: OwnDeps, request: Request, { asked, asking, response }: Done): Promise<Response> {
  const { store, notices, devices } = ours
  const { signedIn, waiting } = asking
  const from = doneFrom(request)
  const tell = async (kind: 'password changed' | 'second factor on' | 'second factor off' | 'backup codes renewed') => {
    if (signedIn !== null) await notices.tell(signedIn, { kind }, from)
  }
  switch (asked.name) {
    case 'POST /auth/two-factor/verify-totp':
      if (await afterCode(store, String(asked.body?.['code']), response, ours.now)) await tell('second factor on')
      break
    case CHANGE_PASSWORD:
      await tell('password changed')
      break
    case 'POST /auth/two-factor/disable':
      // Without a code there was none that was on.
      if (asked.body?.['code'] !== undefined) await tell('second factor off')
      break
    case 'POST /auth/two-factor/generate-backup-codes':
      await tell('backup codes renewed')
  }
  if (PATHS.get(asked.name)?.asksCode === true) {
    const accountId = signedIn ?? waiting
    const factor = await factorOf(store, accountId)
    const email = accountId === null ? null : await emailOf(store, accountId)
    return factor === null || email === null
      ? response
      : withCookie(response, devices.cookie(request, email, factor.id))
  }
  const isSignIn = asked.name === SIGN_IN || (asked.name === SIGN_UP && !ours.mailIsOn)
  return isSignIn && asked.email !== undefined ? withCookie(response, devices.cookie(request, asked.email)) : response
}

async function emailOf(store: Pick<Store, 'db'>, accountId: AccountId): Promise<string | null> {
  const row = await store.db.selectFrom('accounts').select('email').where('id', '=', accountId).executeTakeFirst()
  return row?.email ?? null
}

/** Throws its refusals as ours. */
async function ofLibrary(deps: Deps, library: Library, request: Request, asked: Asked): Promise<Response> {
  const response = await askLibrary(deps, library, request, asked)
  if (response.status >= 400) throw await libraryRefusal(response, () => isTaken(deps.store, asked.email))
  return response
}

async function askLibrary(deps: Deps, lib: Library, request: Request, asked: Asked): Promise<Response> {
  const response = await lib.handle(handed(request, lib.origin, asked))
  const isRace = response.status === 422 && deps.mail.isOn && (await isTaken(deps.store, asked.email))
  // Two at once with one address: asked again, the later one is answered as for every address that has an account.
  return isRace ? await lib.handle(handed(request, lib.origin, asked)) : response
}

/** The request as the library gets it: from an origin it trusts, with what was read of it and nothing else. */
function handed(request: Request, origin: string, { name, body, query }: Asked): Request {
  const headers = new Headers(request.headers)
  for (const name of ['referer', 'sec-fetch-site', 'sec-fetch-mode', 'sec-fetch-dest', 'content-length', 'host']) {
    headers.delete(name)
  }
  headers.set('origin', origin)
  const url = new URL(new URL(request.url).pathname, origin)
  for (const [key, value] of Object.entries(query)) url.searchParams.set(key, String(value))
  if (body === undefined) return new Request(url, { method: request.method, headers })
  headers.set('content-type', 'application/json')
  const theirs = Object.fromEntries(Object.entries(body).filter(([key]) => !isOurs(name, key)))
  return new Request(url, { method: request.method, headers, body: JSON.stringify(theirs) })
}

/** What the library does not read stays here. */
function isOurs(name: string, key: string): boolean {
  return key === 'setupToken' || key === 'inviteToken' || (key === 'code' && PATHS.get(name)?.needsCode === true)
}

async function isTaken(store: Store, email: string | undefined): Promise<boolean> {
  return (await accountBy(store, email)) !== null
}
