import type { ProviderFailure } from '../../contract/sign-in-routes.ts'
import { AppError } from '../../errors.ts'

export interface Profile {
  /** The person's id at the provider. No other person ever gets this id. */
  readonly subject: string
  /** In lower case. Null if the provider returns no valid address. */
  readonly email: string | null
  readonly emailVerified: boolean
  readonly name: string
  /** The name of the person's account at the provider: a login or an e-mail address. */
  readonly label: string | null
}

const CHARS_MAX = 100

/** Returns the text on one line, truncated to CHARS_MAX. Returns null if it has no visible character. */
export function plainText(text: string | null | undefined): string | null {
  const plain = (text ?? '')
    .toWellFormed()
    .replaceAll(/[\p{C}\p{Z}]+/gu, ' ')
    .trim()
  return plain === '' ? null : plain.slice(0, CHARS_MAX).toWellFormed()
}

/** A problem with a provider or its answer. The message is logged, so of the answer it may contain only error codes. */
export class ProviderProblem extends Error {
  override readonly name = 'ProviderProblem'
}

/** For the log. Leaves out messages that are not ours, because they may contain an address, a token or a name. */
export function problemOf(error: unknown): string {
  if (error instanceof ProviderProblem || error instanceof AppError) return error.message
  if (!(error instanceof Error)) return 'unknown'
  const [code, claim] = ['code' in error ? error.code : undefined, 'claim' in error ? error.claim : undefined]
  const parts = [error.name === 'ZodError' ? 'the answer has another form' : (code ?? error.name), claim]
  return parts.filter((part) => typeof part === 'string').join(' ')
}

/** For the audit and for programs. The console has its own texts. */
const SENTENCES: Readonly<Record<ProviderFailure, string>> = {
  EXPIRED: 'The sign-in at the provider took too long, or was started in another browser.',
  CANCELLED: 'The sign-in at the provider was cancelled.',
  UNAVAILABLE: 'The provider does not answer.',
  SWITCHED_OFF: 'The operator has switched off signing in with this provider.',
  FAILED: 'The answer of the provider is not valid.',
  EMAIL_UNVERIFIED: 'The provider has not verified the e-mail address.',
  ACCOUNT_UNVERIFIED: 'There is an account with this address, but the address was never verified here.',
  SIGN_UP_CLOSED: 'Signing up is closed.',
  INVITATION_NEEDED: 'Signing up requires an invitation for this e-mail address.',
  SETUP_TOKEN_NEEDED: 'The first account needs the setupToken from the log of this service.',
  TAKEN: 'The account at the provider is connected to another account here.',
  ANOTHER_CONNECTED: 'Another account at the provider is connected already.',
  SESSION_ENDED: 'The session that requested the connection has ended.',
  RATE_LIMITED: 'Too many attempts.',
}

/** `cause` is for the log. */
export function providerRefusal(reason: ProviderFailure, cause?: unknown): AppError {
  return new AppError('SIGN_IN_REFUSED', SENTENCES[reason], { extra: { reason }, cause })
}
