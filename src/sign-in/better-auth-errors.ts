// Converts the library's errors to ours. The library's code becomes the `reason`. Its texts are dropped, so that a
// wrong password and an unknown address get the same answer.
import { z } from 'zod'
import { AppError, notFound, type Code } from '../errors.ts'
import { tooManyTries } from '../auth/attempt-counter.ts'
import { LOCKED_MS } from './second-factor-lock.ts'

export const EMAIL_NOT_VERIFIED =
  'Verify your e-mail address first. POST /auth/send-verification-email sends the link again.'

const LibraryError = z.object({ code: z.string().optional() })

const WRONG_SIGN_IN = 'The e-mail address or the password is wrong.'

/** The text for each reason. Reasons that are not listed get the text for their status. */
const SENTENCES: Readonly<Record<string, string>> = {
  INVALID_PASSWORD: 'The password is wrong.',
  PASSWORD_TOO_SHORT: 'The password is too short.',
  PASSWORD_TOO_LONG: 'The password is too long.',
  EMAIL_MISMATCH: 'This is not the e-mail address of the signed-in account.',
  EMAIL_ALREADY_VERIFIED: 'This e-mail address is already verified.',
  TOTP_ALREADY_ENABLED: 'The second factor is already on. Turn it off first.',
  TOTP_NOT_ENABLED: 'There is no second factor.',
  TWO_FACTOR_NOT_ENABLED: 'The second factor is not on.',
  BACKUP_CODES_NOT_ENABLED: 'There is no second factor.',
  INVALID_EMAIL_OR_PASSWORD: WRONG_SIGN_IN,
  INVALID_CODE: 'The code is wrong or was used before.',
  INVALID_BACKUP_CODE: 'The code is wrong or was used before.',
  INVALID_TWO_FACTOR_COOKIE: 'No sign-in is waiting for a code. Sign in with your password first.',
  TOO_MANY_ATTEMPTS_REQUEST_NEW_CODE: 'Too many wrong codes. Sign in with your password again.',
  EMAIL_NOT_VERIFIED,
  INVALID_TOKEN: 'This link is not valid: it was used or never issued.',
  TOKEN_EXPIRED: 'This link has expired. Request another one.',
}

/** An unknown e-mail address gets the same error as a wrong password. */
export function wrongSignIn(): AppError {
  const extra = { reason: 'INVALID_EMAIL_OR_PASSWORD' }
  return new AppError('UNAUTHENTICATED', WRONG_SIGN_IN, { extra })
}

/** For a link that was used, replaced or never issued. */
export function invalidLink(): AppError {
  return invalid('This link is not valid: it was used or never issued.', 'INVALID_TOKEN')
}

export function notSignedIn(extra: Readonly<Record<string, unknown>> = {}): AppError {
  return new AppError('UNAUTHENTICATED', 'You are not signed in.', { extra })
}

export function wrongPassword(): AppError {
  return invalid('The password is wrong.', 'INVALID_PASSWORD')
}

function invalid(detail: string, reason?: string): AppError {
  return new AppError('INVALID_REQUEST', `The request is not valid: ${detail}`, {
    extra: { details: [detail], issues: [{ path: [], message: detail }], ...(reason === undefined ? {} : { reason }) },
  })
}

/** `taken` returns whether the address has an account. If it has none, a failed sign-up is an internal error. */
export async function libraryRefusal(response: Response, taken: () => Promise<boolean>): Promise<AppError> {
  const body = LibraryError.safeParse(await response.json().catch(() => null))
  const reason = body.data?.code
  const extra = reason === undefined ? {} : { reason }
  const code = await codeOf(response.status, reason, taken)
  const sentence = reason === undefined ? undefined : SENTENCES[reason]
  switch (code) {
    case 'UNAUTHENTICATED':
      return sentence === undefined ? notSignedIn(extra) : new AppError(code, sentence, { extra })
    case 'INVALID_REQUEST':
      return invalid(sentence ?? 'invalid field', reason)
    case 'CONFLICT':
      return response.status === 422
        ? new AppError(code, 'This e-mail address already has an account. Sign in instead.', { extra })
        : new AppError(code, 'Another request was faster. Try again.', { extra })
    case 'NOT_FOUND':
      return notFound()
    case 'SIGN_IN_REFUSED':
      return new AppError(code, sentence ?? 'This is not allowed.', { extra })
    case 'RATE_LIMITED':
      // The longest possible time.
      return tooManyTries(LOCKED_MS, extra)
    default:
      return new AppError('INTERNAL', 'Signing in failed because of a bug in the service.', { cause: reason })
  }
}

async function codeOf(status: number, reason: string | undefined, taken: () => Promise<boolean>): Promise<Code> {
  // Too many wrong codes end the sign-in that waits for a code.
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
      // If two people sign up with one address at the same time, the second error has no reason.
      return reason?.startsWith('USER_ALREADY_EXISTS') === true || (await taken()) ? 'CONFLICT' : 'INTERNAL'
    case 429:
      return 'RATE_LIMITED'
    default:
      return 'INTERNAL'
  }
}
