// The paths under /auth that our code handles, alone or together with the library.
import {
  PasskeyAdded,
  PasskeyEnd,
  PasskeyName,
  PasskeySignIn,
  PasswordChange,
  ProviderChoice,
  ProviderReturn,
  ProviderSignIn,
  Reset,
  ResetToken,
  SessionEnd,
  Verification,
} from '../contract/sign-in-routes.ts'
import { requireRecent } from '../auth/require-recent-sign-in.ts'
import { invalidRequest } from '../errors.ts'
import type { Store } from '../store/open.ts'
import { asId, type SessionId } from '../ids.ts'
import { notSignedIn } from './better-auth-errors.ts'
import type { AccountLinks } from './verification-links.ts'
import type { SignInRequest } from './read-request.ts'
import type { Attempts } from '../auth/attempt-counter.ts'
import { changePassword } from './change-password.ts'
import type { CodeTries } from './second-factor-limits.ts'
import { withCookie } from './cookies.ts'
import type { KnownDevices } from './known-browser-cookie.ts'
import type { Identity, Library } from './sign-in-library.ts'
import { doneFrom, type Notices } from '../auth/security-mail.ts'
import {
  callbackOf,
  CHANGE_PASSWORD,
  PATHS,
  RESET,
  RESET_PREVIEW,
  REVOKE_SESSION,
  VERIFY_EMAIL,
} from './allowed-paths.ts'
import { passkeyRequest, passkeySignIn } from './passkey-sign-in.ts'
import { addPasskey, passkeyCreation, removePasskey, renamePasskey, type PasskeyDeps } from './passkeys.ts'
import { personOf, type Person } from './signed-in-person.ts'
import { providerCallback, type CallbackDeps } from './providers/callback.ts'
import { disconnectProvider } from './providers/disconnect.ts'
import { startTrip, type Destination, type Providers } from './providers/trips-to-providers.ts'
import { previewReset, resetPassword } from './reset-password.ts'
import { wrongCode } from './second-factor-lock.ts'
import { resetChanges } from './audited-account-changes.ts'
import type { Trail } from './audit-account-events.ts'
import { factorOf, useCode } from './consume-second-factor-code.ts'
import { endOtherSessions, endSession, listSessions } from './sessions.ts'
import { verifyEmail } from './verify-email.ts'
import { waysOf } from './ways-to-sign-in.ts'

export interface OwnDeps {
  readonly store: Store
  readonly library: Library
  readonly links: AccountLinks
  readonly tries: Attempts
  readonly codes: CodeTries
  readonly devices: KnownDevices
  readonly trail: Pick<Trail, 'recordAction' | 'refusedTo'>
  readonly audit: PasskeyDeps['audit']
  readonly config: PasskeyDeps['config'] & CallbackDeps['config']
  readonly secrets: CallbackDeps['secrets']
  readonly providers: Providers
  readonly origin: () => string
  readonly challenges: PasskeyDeps['challenges']
  readonly notices: Notices
  readonly mailIsOn: boolean
  readonly now: number
}

/** Returns null if the library must handle the path. */
export async function ownAnswer(
  deps: OwnDeps,
  request: Request,
  input: SignInRequest,
  identity: Identity,
): Promise<Response | null> {
  switch (input.name) {
    case CHANGE_PASSWORD:
      return await changePassword(deps, request, identity, PasswordChange.parse(input.body))
    case REVOKE_SESSION:
      await endSession(deps.store, signedInOf(identity).accountId, asId<SessionId>(SessionEnd.parse(input.body).id))
      return Response.json({ status: true })
    case 'POST /auth/revoke-other-sessions': {
      const { accountId, sessionId } = signedInOf(identity)
      await endOtherSessions(deps.store, accountId, sessionId)
      return Response.json({ status: true })
    }
    case 'GET /auth/list-sessions': {
      const { accountId, sessionId } = signedInOf(identity)
      const sessions = await listSessions(deps.store, accountId, deps.now)
      return Response.json(sessions.map((each) => ({ ...each, ...(each.id === sessionId && { current: true }) })))
    }
    case VERIFY_EMAIL: {
      const { callbackURL = null, ...order } = Verification.parse(input.body)
      const { isNew, ...account } = await verifyEmail(deps, order)
      if (isNew) deps.trail.recordAction('verifyEmail', account.accountId, request)
      return withCookie(Response.json({ status: true, callbackURL }), deps.devices.cookie(request, account))
    }
    case RESET_PREVIEW:
      return Response.json(await previewReset(deps, ResetToken.parse(input.body).token))
    case RESET: {
      const { accountId, email, password, answer } = await resetPassword(deps, Reset.parse(input.body))
      deps.trail.recordAction('resetPassword', accountId, request, resetChanges(answer.ended))
      await deps.notices.tell(accountId, { kind: 'password reset' }, doneFrom(request))
      // The new password makes this browser the only known device, with its own rate limit. So the person can sign in
      // even if strangers have used up the limit of unknown browsers.
      return withCookie(Response.json(answer), deps.devices.cookie(request, { email, password }))
    }
    case 'GET /auth/sign-in-methods':
      return Response.json(
        await waysOf(deps.store.db, (await signedIn(deps, identity)).caller.accountId, deps.providers),
      )
    case 'POST /auth/passkey/add-options': {
      const { options, cookie } = await passkeyCreation(deps, request, await signedIn(deps, identity))
      return withCookie(Response.json(options), cookie)
    }
    case 'POST /auth/passkey/add': {
      const added = await addPasskey(deps, request, await signedIn(deps, identity), PasskeyAdded.parse(input.body))
      return withCookie(Response.json(added), deps.challenges.clear)
    }
    case 'POST /auth/passkey/rename':
      await renamePasskey(deps, request, await signedIn(deps, identity), PasskeyName.parse(input.body))
      return Response.json({ status: true })
    case 'POST /auth/passkey/remove':
      await removePasskey(deps, request, await signedIn(deps, identity), PasskeyEnd.parse(input.body).id)
      return Response.json({ status: true })
    case 'POST /auth/passkey/sign-in-options': {
      const { options, cookie } = await passkeyRequest(deps, request)
      return withCookie(Response.json(options), cookie)
    }
    case 'POST /auth/passkey/sign-in': {
      const answer = await passkeySignIn(deps, request, PasskeySignIn.parse(input.body))
      return withCookie(answer, deps.challenges.clear)
    }
    case 'POST /auth/sign-in/provider': {
      const { provider, callbackURL, rememberMe, ...tokens } = ProviderSignIn.parse(input.body)
      const destination = { ...tokens, target: callbackURL ?? '/app/', remember: rememberMe ?? true, connects: null }
      return await away(deps, request, provider, destination)
    }
    case 'POST /auth/connect-provider': {
      const { caller } = await signedIn(deps, identity)
      const { provider } = ProviderChoice.parse(input.body)
      requireRecent(caller.signedInAt, deps.now, 'add a way to sign in')
      return await away(deps, request, provider, { target: '/app/', remember: true, connects: caller.sessionId })
    }
    case 'POST /auth/disconnect-provider': {
      const { provider } = ProviderChoice.parse(input.body)
      await disconnectProvider(deps, request, await signedIn(deps, identity), provider)
      return Response.json({ status: true })
    }
    default: {
      const provider = callbackOf(input.name)
      if (provider === null) return null
      return await providerCallback(deps, request, provider, ProviderReturn.parse(input.query))
    }
  }
}

async function away(deps: OwnDeps, request: Request, id: string, destination: Destination): Promise<Response> {
  const { url, cookie } = await startTrip(deps, request, deps.providers.named(id), destination)
  return withCookie(Response.json({ url }), cookie)
}

/** Throws UNAUTHENTICATED if nobody is signed in. */
async function signedIn({ store }: OwnDeps, identity: Identity): Promise<Person> {
  const person = await personOf(store, identity)
  if (person === null) throw notSignedIn()
  return person
}

/** Throws UNAUTHENTICATED if nobody is signed in. */
function signedInOf({ signedIn, sessionId }: Identity) {
  if (signedIn === null || sessionId === null) throw notSignedIn()
  return { accountId: signedIn, sessionId }
}

/**
 * Checks the code if the path weakens a second factor that is on. A wrong password does not use up the code. Throws
 * INVALID_REQUEST without a code, UNAUTHENTICATED if it is wrong, and RATE_LIMITED after too many codes.
 */
export async function requireCode(
  deps: OwnDeps,
  request: Request,
  input: SignInRequest,
  identity: Identity,
): Promise<void> {
  if (PATHS.get(input.name)?.needsCode !== true || identity.signedIn === null) return
  const factor = await factorOf(deps.store, identity.signedIn)
  if (factor === null) return
  const { code, password } = input.body ?? {}
  if (typeof code !== 'string') {
    throw invalidRequest([
      'code: required while the second factor is on: a code of the authenticator, or a backup code',
    ])
  }
  const settle = await deps.codes.signedIn(request, identity.signedIn)
  if (!(await deps.library.isPassword(identity.signedIn, String(password)))) return
  if (!(await useCode(deps, factor, code, deps.now))) throw wrongCode()
  await settle()
}
