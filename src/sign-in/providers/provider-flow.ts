// The steps of a sign-in that differ by kind of provider. oidc.ts and github.ts implement them.
import type { Profile } from './provider-identity.ts'

/** The values of one sign-in at a provider. They must match when the browser returns. */
interface Trip {
  readonly redirectUri: string
  readonly state: string
  readonly nonce: string
  /** The code verifier of PKCE. */
  readonly verifier: string
}

export interface Flow {
  /** Returns the address of the provider's sign-in page. Throws an Error if the provider does not answer. */
  authorizationUrl(trip: Trip): Promise<string>
  /** Exchanges a code for the person's profile. Throws an Error that contains no secret. Tokens are not stored. */
  profile(trip: Trip, answer: { readonly code: string; readonly iss: string | undefined }): Promise<Profile>
}
