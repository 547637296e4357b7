// Tells a browser that once knew an account's password, or passed its second factor, apart from strangers, by a cookie of
// its own: strangers who guess everywhere must not keep the owner of an account out. It signs nobody in; its tries are
// only counted by themselves.
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Secrets } from '../secrets.ts'
import { cookiesOf } from './cookies.ts'

const NAME = 'vitrine.known_device'
const DAYS = 180

export interface KnownDevices {
  /** Which device of the account it is; null for none. */
  of(request: Request, email: string): string | null
  /** Which device it is that passed this very second factor; null for none. */
  passed(request: Request, factorId: string): string | null
  /**
   * The Set-Cookie line for a device that has just sent the right password; with `factorId`, for one that passed this second
   * factor too. A device that is known keeps what it was known for.
   */
  cookie(request: Request, email: string, factorId?: string): string
}

/** nonce.proof of the password[.proof of the second factor] */
const FORM = /^([\w-]{22})\.([\w-]{43})(?:\.([\w-]{43}))?$/

export function knownDevices(secrets: Pick<Secrets, 'derive'>, secure: boolean): KnownDevices {
  const key = secrets.derive('known devices')
  const proof = (...parts: readonly string[]) =>
    createHmac('sha256', key).update(JSON.stringify(parts)).digest('base64url')
  const read = (request: Request) => FORM.exec(cookiesOf(request).get(NAME) ?? '')
  const isSame = (sent: string, wanted: string) => timingSafeEqual(Buffer.from(sent), Buffer.from(wanted))
  const of: KnownDevices['of'] = (request, email) => {
    const [, nonce, sent = ''] = read(request) ?? []
    return nonce !== undefined && isSame(sent, proof(nonce, email)) ? nonce : null
  }
  return {
    of,
    passed(request, factorId) {
      const [, nonce, , sent] = read(request) ?? []
      if (nonce === undefined || sent === undefined) return null
      return isSame(sent, proof('second factor', nonce, factorId)) ? nonce : null
    },
    cookie(request, email, factorId) {
      const known = of(request, email)
      const nonce = known ?? randomBytes(16).toString('base64url')
      const before = known === null ? undefined : read(request)?.[3]
      const factor = factorId === undefined ? before : proof('second factor', nonce, factorId)
      const value = [nonce, proof(nonce, email), ...(factor === undefined ? [] : [factor])].join('.')
      const attributes = `Max-Age=${DAYS * 86_400}; Path=/auth; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}`
      return `${NAME}=${value}; ${attributes}`
    },
  }
}
