// The parts of a sign-in that differ by provider. oidc.ts and github.ts implement them.
import type { Profile } from './provider-identity.ts'

/** The values of one sign-in at a provider. They must be the same when the browser comes back. */
interface Trip {
  readonly redirectUri: string
  readonly state: string
  readonly nonce: string
  readonly verifier: string
}

export interface Flow {
  /** Returns the URL of the provider's sign-in page. Throws an Error if the provider does not answer. */
  authorizationUrl(trip: Trip): Promise<string>
  /** Exchanges a code for the person's profile. The tokens are not stored. Throws an Error without secrets. */
  profile(trip: Trip, answer: { readonly code: string; readonly iss: string | undefined }): Promise<Profile>
}
