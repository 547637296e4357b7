// Defines what this room asks of the sign-in library (better-auth.ts implements it).
import type { AccountId, SessionId } from '../ids.ts'

export interface Library {
  /** The origin that the library trusts. Requests are passed to the library with this origin. */
  readonly origin: string
  handle(request: Request): Promise<Response>
  identify(request: Pick<Request, 'headers'>): Promise<Identity>
  /**
   * Returns the library's answer to a sign-in. With `anew`, creates a session and sets its cookie. If `remember` is
   * true (the default), the browser keeps the cookie after it closes.
   */
  signedIn(
    request: Pick<Request, 'headers'>,
    accountId: AccountId,
    made: { readonly anew: boolean; readonly remember?: boolean },
  ): Promise<Response>
  /**
   * Makes the sign-in of the browser wait for a code of the second factor, as after the correct password. Removes the
   * session cookie.
   */
  awaitCode(
    request: Pick<Request, 'headers'>,
    accountId: AccountId,
    made: { readonly remember: boolean },
  ): Promise<Response>
  /** Checks a password. For an account without a password, takes as long as for a wrong password. */
  isPassword(accountId: AccountId, password: string): Promise<boolean>
  /** Returns the hash as stored in sign_in_methods. */
  hashPassword(password: string): Promise<string>
  /** Returns true if a code is currently valid. `secret` is encrypted, as stored in second_factors. */
  isCode(secret: string, code: string): Promise<boolean>
  /** Decrypts backup codes as stored in second_factors. sealBackupCodes() encrypts them. */
  openBackupCodes(stored: string): Promise<readonly string[]>
  sealBackupCodes(codes: readonly string[]): Promise<string>
}

/** The sender of a request under /auth, as its cookies prove. */
export interface Identity {
  readonly signedIn: AccountId | null
  readonly sessionId: SessionId | null
  /** The account whose sign-in is waiting for a code of the second factor. */
  readonly waiting: AccountId | null
}
