// Sets a cookie in a browser (a “device”) that sent an account's correct password or passed its second factor. The
// cookie gives this browser its own rate limit, so that strangers who guess cannot lock out the owner. The proof of the
// password ends when the password changes: whoever once knew an old password is a stranger. The cookie signs nobody in.
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Secrets } from '../secrets.ts'
import { cookiesOf } from './cookies.ts'

const NAME = 'vitrine.known_device'
/** The lifetime of the cookie. */
const DAYS = 180

export interface KnownDevices {
  /**
   * Returns the id of a device known to the account with its current password, or null. A device has another id after
   * the password has changed.
   */
  of(request: Request, email: string): Promise<string | null>
  /** Returns the id of a device that passed this second factor, or null. */
  passed(request: Request, factorId: string): string | null
  /**
   * Returns the Set-Cookie value for a device that sent the correct password. `password` is the stored hash, or null for
   * an account without a password. With `factorId`, the device also passed that second factor. Otherwise it keeps the
   * earlier proof of a second factor.
   */
  cookie(
    request: Request,
    account: { readonly email: string; readonly password: string | null },
    factorId?: string,
  ): string
}

/** nonce.passwordProof[.secondFactorProof] */
const FORM = /^([\w-]{22})\.([\w-]{43})(?:\.([\w-]{43}))?$/

/** `passwordOf` returns the stored hash of the account's current password, or null. */
export function knownDevices(
  secrets: Pick<Secrets, 'derive'>,
  secure: boolean,
  passwordOf: (email: string) => Promise<string | null>,
): KnownDevices {
  const key = secrets.derive('known devices')
  const proof = (...parts: readonly (string | null)[]) =>
    createHmac('sha256', key).update(JSON.stringify(parts)).digest('base64url')
  const read = (request: Request) => FORM.exec(cookiesOf(request).get(NAME) ?? '')
  const isSame = (sent: string, wanted: string) => timingSafeEqual(Buffer.from(sent), Buffer.from(wanted))
  return {
    async of(request, email) {
      const [, nonce, sent = ''] = read(request) ?? []
      if (nonce === undefined) return null
      return isSame(sent, proof(nonce, email, await passwordOf(email))) ? sent : null
    },
    passed(request, factorId) {
      const [, nonce, , sent] = read(request) ?? []
      if (nonce === undefined || sent === undefined) return null
      return isSame(sent, proof('second factor', nonce, factorId)) ? nonce : null
    },
    cookie(request, { email, password }, factorId) {
      const [, nonce = randomBytes(16).toString('base64url'), , before] = read(request) ?? []
      // An earlier proof is checked when it is used, so it need not be checked here.
      const factor = factorId === undefined ? before : proof('second factor', nonce, factorId)
      const value = [nonce, proof(nonce, email, password), ...(factor === undefined ? [] : [factor])].join('.')
      const attributes = `Max-Age=${DAYS * 86_400}; Path=/auth; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}`
      return `${NAME}=${value}; ${attributes}`
    },
  }
}
