// The paths under /auth that the library has no part in, or only a part: verifying an address, a new password, and the
// code beside the password for what weakens a second factor.
import { PasswordChange, Reset, ResetToken, Verification } from '../contract/sign-in-routes.ts'
import { invalidRequest } from '../errors.ts'
import type { Store } from '../store/open.ts'
import type { AccountLinks } from './account-links.ts'
import type { Asked } from './read-request.ts'
import type { Attempts } from '../auth/attempt-counter.ts'
import { changePassword } from './change-password.ts'
import type { CodeTries } from './code-tries.ts'
import type { KnownDevices } from './known-device.ts'
import type { Asking, Library } from './library.ts'
import { doneFrom, type Notices } from '../auth/notices.ts'
import { CHANGE_PASSWORD, PATHS, RESET, RESET_PREVIEW, VERIFY_EMAIL } from './paths.ts'
import { previewReset, resetPassword } from './reset.ts'
import { wrongCode } from './second-factor.ts'
import { resetChanges } from './trail-changes.ts'
import type { Trail } from './trail.ts'
import { factorOf, useCode } from './use-code.ts'
import { verifyEmail } from './verify-email.ts'

export interface OwnDeps {
  readonly store: Store
  readonly library: Library
  readonly links: AccountLinks
  readonly tries: Attempts
  readonly codes: CodeTries
  readonly devices: KnownDevices
  readonly trail: Pick<Trail, 'recordAction'>
  readonly notices: Notices
  readonly mailIsOn: boolean
  readonly now: number
}

/** The answer where the path is one of ours; null for the library's. */
export async function ownAnswer(
  deps: OwnDeps,
  request: Request,
  asked: Asked,
  asking: Asking,
): Promise<Response | null> {
  switch (asked.name) {
    case CHANGE_PASSWORD:
      return await changePassword(deps, request, asking, PasswordChange.parse(asked.body))
    case VERIFY_EMAIL: {
      const { callbackURL = null, ...order } = Verification.parse(asked.body)
      const { accountId, email, isNew } = await verifyEmail(deps, order)
      if (isNew) deps.trail.recordAction('verifyEmail', accountId, request)
      return withCookie(Response.json({ status: true, callbackURL }), deps.devices.cookie(request, email))
    }
    case RESET_PREVIEW:
      return Response.json(await previewReset(deps, ResetToken.parse(asked.body).token))
    case RESET: {
      const { accountId, email, answer } = await resetPassword(deps, Reset.parse(asked.body))
      deps.trail.recordAction('resetPassword', accountId, request, resetChanges(answer.ended))
      await deps.notices.tell(accountId, { kind: 'password reset' }, doneFrom(request))
      // Strangers who guessed until nobody may try must not keep out whoever came back by a link.
      return withCookie(Response.json(answer), deps.devices.cookie(request, email))
    }
    default:
      return null
  }
}

/**
 * Asks for a code beside the password, where the path weakens a second factor that is on. A wrong password uses no code up:
 * the library refuses it. Throws INVALID_REQUEST without a code, UNAUTHENTICATED for a wrong one.
 */
export async function requireCode(deps: OwnDeps, request: Request, asked: Asked, asking: Asking): Promise<void> {
  if (PATHS.get(asked.name)?.needsCode !== true || asking.signedIn === null) return
  const factor = await factorOf(deps.store, asking.signedIn)
  if (factor === null) return
  const { code, password } = asked.body ?? {}
  if (typeof code !== 'string') {
    throw invalidRequest(['code: needed while the second factor is on; a code of the authenticator, or a backup code'])
  }
  const settle = await deps.codes.signedIn(request, asking.signedIn)
  if (!(await deps.library.isPassword(asking.signedIn, String(password)))) return
  if (!(await useCode(deps, factor, code, deps.now))) throw wrongCode()
  await settle()
}

export function withCookie(response: Response, cookie: string): Response {
  const headers = new Headers(response.headers)
  headers.append('set-cookie', cookie)
  return new Response(response.body, { status: response.status, headers })
}
