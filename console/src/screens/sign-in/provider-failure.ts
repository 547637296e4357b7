// Explains why a sign-in at a provider failed. The address contains only a word from the service's list. A sentence in
// the address would not be safe, because anybody can write a link.
import { Refused, Told } from '../../api/failure.ts'
import type { ProviderFailure } from '../../api/types.ts'

const SENTENCES: Readonly<Record<ProviderFailure, (at: string) => string>> = {
  EXPIRED: (at) => `The sign-in at ${at} took too long, or began in another browser. Try again.`,
  CANCELLED: (at) => `The sign-in at ${at} was cancelled.`,
  UNAVAILABLE: (at) => `${at} does not answer. Try again later, or sign in in another way.`,
  SWITCHED_OFF: (at) =>
    `Signing in with ${at} is switched off here now. Use another way to sign in, or ask the operator of this service.`,
  FAILED: (at) => `The answer of ${at} was not valid. If it happens again, ask the operator: the reason is in the log.`,
  EMAIL_UNVERIFIED: (at) => `${at} has not verified your email address. Verify it there, then try again.`,
  ACCOUNT_UNVERIFIED: (at) =>
    `There is an account with your email address, but the address was never verified here. Sign in with its password, then connect ${at} under Settings, Security.`,
  SIGN_UP_CLOSED: () =>
    'You have no account here, and new accounts are switched off. Ask the operator of this service.',
  INVITATION_NEEDED: () => 'You have no account here yet. Open the link of your invitation, and continue from there.',
  SETUP_TOKEN_NEEDED: () => 'The first account needs the setup token. It is in the service’s log.',
  TAKEN: (at) => `This account at ${at} is connected to another account here.`,
  ANOTHER_CONNECTED: (at) => `Another account at ${at} is connected already. Disconnect it first.`,
  SESSION_ENDED: () => 'You signed out meanwhile, so nothing was connected. Try again.',
  RATE_LIMITED: () => 'Too many attempts. Wait a minute, then try again.',
}

/** Returns the sentence, or null if there was no failure or the word is unknown. */
export function providerSentence(
  { failed, provider }: { readonly failed?: string | undefined; readonly provider?: string | undefined },
  oidcName: string | undefined,
): string | null {
  return sentenceFor(failed, providerName(provider, oidcName))
}

function sentenceFor(failed: unknown, name: string): string | null {
  const entry = Object.entries(SENTENCES).find(([reason]) => reason === failed)
  return entry === undefined ? null : entry[1](name)
}

/** Returns an error with the sentence for the reason of a refusal. Returns any other error unchanged. */
export function named(error: unknown, name: string): unknown {
  const sentence = error instanceof Refused ? sentenceFor(error.body['reason'], name) : null
  return sentence === null ? error : new Told(sentence)
}

export function providerName(provider: string | undefined, oidcName: string | undefined): string {
  if (provider === 'github') return 'GitHub'
  if (provider === 'google') return 'Google'
  return oidcName ?? 'single sign-on'
}
