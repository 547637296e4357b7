// A browser that once knew an account's password is told apart from strangers, by a cookie of its own: so that strangers
// who guess everywhere cannot keep an account's owner out. It signs nobody in; it is only counted by itself.
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Secrets } from '../secrets.ts'

const NAME = 'vitrine.known_device'
const DAYS = 180

export interface KnownDevices {
  /** Which device of the account it is; null for none. */
  of(request: Request, email: string): string | null
  /** The Set-Cookie line for a device that has just sent the right password. */
  cookie(email: string): string
}

export function knownDevices(secrets: Pick<Secrets, 'derive'>, secure: boolean): KnownDevices {
  const key = secrets.derive('known devices')
  const proof = (nonce: string, email: string) =>
    createHmac('sha256', key)
      .update(JSON.stringify([nonce, email]))
      .digest('base64url')
  return {
    of(request, email) {
      const cookies = request.headers.get('cookie') ?? ''
      const [, nonce = '', sent = ''] =
        /(?:^|; *)vitrine\.known_device=([\w-]{22})\.([\w-]{43})(?:;|$)/.exec(cookies) ?? []
      return nonce !== '' && timingSafeEqual(Buffer.from(sent), Buffer.from(proof(nonce, email))) ? nonce : null
    },
    cookie(email) {
      const nonce = randomBytes(16).toString('base64url')
      const attributes = `Max-Age=${DAYS * 86_400}; Path=/auth/sign-in; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}`
      return `${NAME}=${nonce}.${proof(nonce, email)}; ${attributes}`
    },
  }
}
