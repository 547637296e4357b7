// What one kind of provider does in a sign-in. Implemented by oidc.ts and github.ts.
import type { Profile } from './provider-identity.ts'

/** What a browser took along to the provider. */
interface Trip {
  readonly redirectUri: string
  readonly state: string
  readonly nonce: string
  /** Of PKCE. */
  readonly verifier: string
}

export interface Flow {
  /** Returns the address at the provider. Throws an Error if the provider does not answer. */
  authorizationUrl(trip: Trip): Promise<string>
  /** Exchanges a code for the person's profile. Throws an Error without secrets. Tokens are not kept. */
  profile(trip: Trip, answer: { readonly code: string; readonly iss: string | undefined }): Promise<Profile>
}
