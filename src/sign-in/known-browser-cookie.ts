// A browser that has sent the correct password, or has passed the second factor, gets a cookie (it is a known
// “device”). With the cookie, it has its own rate limit, so that the owner can sign in even while strangers guess the
// password. After a change of the password, the cookie no longer counts, because a stranger may have known the old
// password. The cookie signs nobody in.
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Secrets } from '../secrets.ts'
import { cookiesOf } from './cookies.ts'

const NAME = 'vitrine.known_device'
const DAYS = 180

export interface KnownDevices {
  /** Null unless this device has sent the account's current password. A change of the password changes the id. */
  of(request: Request, email: string): Promise<string | null>
  /** Returns the id of this device if it has passed this second factor, or else null. */
  passed(request: Request, factorId: string): string | null
  /**
   * For a device that has sent the correct password. `password` is the stored hash, or null if the account has none.
   * `factorId` is the second factor that the device has passed. Without it, an earlier proof stays.
   */
  cookie(
    request: Request,
    account: { readonly email: string; readonly password: string | null },
    factorId?: string,
  ): string
}

/** nonce.passwordProof[.secondFactorProof] */
const FORM = /^([\w-]{22})\.([\w-]{43})(?:\.([\w-]{43}))?$/

/** `passwordOf` returns the stored hash of the current password, or null. */
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
      // The earlier proof is checked when it is used.
      const factor = factorId === undefined ? before : proof('second factor', nonce, factorId)
      const value = [nonce, proof(nonce, email, password), ...(factor === undefined ? [] : [factor])].join('.')
      const attributes = `Max-Age=${DAYS * 86_400}; Path=/auth; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}`
      return `${NAME}=${value}; ${attributes}`
    },
  }
}
