// What the other files need from the sign-in library (better-auth.ts implements it).
import type { AccountId, SessionId } from '../ids.ts'

export interface Library {
  /** The only origin that the library trusts. Requests are passed to the library with this origin. */
  readonly origin: string
  handle(request: Request): Promise<Response>
  identify(request: Pick<Request, 'headers'>): Promise<Identity>
  /** With `anew`, creates a session and sets its cookie. If `remember` is false, the cookie ends with the browser. */
  signedIn(
    request: Pick<Request, 'headers'>,
    accountId: AccountId,
    made: { readonly anew: boolean; readonly remember?: boolean },
  ): Promise<Response>
  /** Lets the browser's sign-in wait for a code of the second factor, and removes the session cookie. */
  awaitCode(
    request: Pick<Request, 'headers'>,
    accountId: AccountId,
    made: { readonly remember: boolean },
  ): Promise<Response>
  /** Takes the same time for an account without a password. */
  isPassword(accountId: AccountId, password: string): Promise<boolean>
  /** Returns the hash as it is stored in sign_in_methods. */
  hashPassword(password: string): Promise<string>
  /** Returns true if the code is valid now. `secret` is encrypted, as in second_factors. */
  isCode(secret: string, code: string): Promise<boolean>
  openBackupCodes(stored: string): Promise<readonly string[]>
  sealBackupCodes(codes: readonly string[]): Promise<string>
}

/** The sender of a request under /auth, according to its cookies. */
export interface Identity {
  readonly signedIn: AccountId | null
  readonly sessionId: SessionId | null
  /** The account whose sign-in waits for a code of the second factor. */
  readonly waiting: AccountId | null
}
