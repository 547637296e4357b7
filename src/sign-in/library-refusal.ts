// The library's refusals in our body: its status and code decide, its own code is the `reason`. Nothing else it says
// leaves, so that a wrong password and an unknown address read the same.
import { z } from 'zod'
import { AppError, notFound, type Code } from '../errors.ts'
import { tooManyTries } from '../auth/attempt-counter.ts'
import { LOCKED_MS } from './second-factor.ts'

const Told = z.object({ code: z.string().optional() })

const WRONG_SIGN_IN = 'The e-mail address or the password is not right.'

/** The sentence for a reason; without one, what is told is that of the status. */
const SENTENCES: Readonly<Record<string, string>> = {
  INVALID_PASSWORD: 'The password is not right.',
  PASSWORD_TOO_SHORT: 'The password is too short.',
  PASSWORD_TOO_LONG: 'The password is too long.',
  EMAIL_MISMATCH: 'This is not the e-mail address of who is signed in.',
  EMAIL_ALREADY_VERIFIED: 'This e-mail address is verified.',
  TOTP_ALREADY_ENABLED: 'The second factor is on: switch it off first.',
  TOTP_NOT_ENABLED: 'There is no second factor.',
  TWO_FACTOR_NOT_ENABLED: 'The second factor is not on.',
  BACKUP_CODES_NOT_ENABLED: 'There is no second factor.',
  INVALID_EMAIL_OR_PASSWORD: WRONG_SIGN_IN,
  INVALID_CODE: 'The code is not right, or was used before.',
  INVALID_BACKUP_CODE: 'The code is not right, or was used before.',
  INVALID_TWO_FACTOR_COOKIE: 'Sign in with your password first: there is no sign-in that waits for a code.',
  TOO_MANY_ATTEMPTS_REQUEST_NEW_CODE: 'Too many wrong codes: sign in with your password again.',
  EMAIL_NOT_VERIFIED: 'Verify your e-mail address first: POST /auth/send-verification-email sends the link again.',
  INVALID_TOKEN: 'This link is not valid: it was used, or never made.',
  TOKEN_EXPIRED: 'This link has expired: ask for another one.',
}

/** Of who signs in: an unknown address reads the same. */
export function wrongSignIn(): AppError {
  const extra = { reason: 'INVALID_EMAIL_OR_PASSWORD' }
  return new AppError('UNAUTHENTICATED', WRONG_SIGN_IN, { extra })
}

/** A link that was used, replaced, or never made. */
export function invalidLink(): AppError {
  return invalid('This link is not valid: it was used, or never made.', 'INVALID_TOKEN')
}

export function notSignedIn(extra: Readonly<Record<string, unknown>> = {}): AppError {
  return new AppError('UNAUTHENTICATED', 'You are not signed in.', { extra })
}

/** Of who is signed in. */
export function wrongPassword(): AppError {
  return invalid('The password is not right.', 'INVALID_PASSWORD')
}

function invalid(detail: string, reason?: string): AppError {
  return new AppError('INVALID_REQUEST', `The request is not valid: ${detail}`, {
    extra: { details: [detail], ...(reason === undefined ? {} : { reason }) },
  })
}

/** The library refused a sign-up for a reason of its own or of its store: `taken` tells an address from a defect. */
export async function libraryRefusal(response: Response, taken: () => Promise<boolean>): Promise<AppError> {
  const told = Told.safeParse(await response.json().catch(() => null))
  const reason = told.data?.code
  const extra = reason === undefined ? {} : { reason }
  const code = await codeOf(response.status, reason, taken)
  const sentence = reason === undefined ? undefined : SENTENCES[reason]
  switch (code) {
    case 'UNAUTHENTICATED':
      return sentence === undefined ? notSignedIn(extra) : new AppError(code, sentence, { extra })
    case 'INVALID_REQUEST':
      return invalid(sentence ?? 'not as it must be', reason)
    case 'CONFLICT':
      return response.status === 422
        ? new AppError(code, 'This e-mail address has an account already: sign in.', { extra })
        : new AppError(code, 'Another request was first: try again.', { extra })
    case 'NOT_FOUND':
      return notFound()
    case 'SIGN_IN_REFUSED':
      return new AppError(code, sentence ?? 'This is not allowed here.', { extra })
    case 'RATE_LIMITED':
      // Told as the longest that anything is locked.
      return tooManyTries(LOCKED_MS, extra)
    default:
      return new AppError('INTERNAL', 'Signing in failed on our side.', { cause: reason })
  }
}

async function codeOf(status: number, reason: string | undefined, taken: () => Promise<boolean>): Promise<Code> {
  // The challenge is gone: not the request is wrong, but who sent it is unknown again.
  if (reason === 'TOO_MANY_ATTEMPTS_REQUEST_NEW_CODE') return 'UNAUTHENTICATED'
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
    case 422:
      // Two at once with one address: the store refused the later one.
      return reason?.startsWith('USER_ALREADY_EXISTS') === true || (await taken()) ? 'CONFLICT' : 'INTERNAL'
    case 429:
      return 'RATE_LIMITED'
    default:
      return 'INTERNAL'
  }
}
