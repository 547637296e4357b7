// Sets a cookie in a browser (a “device”) that sent an account's correct password or passed its second factor. The
// cookie gives this browser its own rate limit, so that strangers who guess cannot lock out the owner. The cookie signs
// nobody in.
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Secrets } from '../secrets.ts'
import { cookiesOf } from './cookies.ts'

const NAME = 'vitrine.known_device'
/** The lifetime of the cookie. */
const DAYS = 180

export interface KnownDevices {
  /** Returns the id of a device known to the account, or null. */
  of(request: Request, email: string): string | null
  /** Returns the id of a device that passed this second factor, or null. */
  passed(request: Request, factorId: string): string | null
  /**
   * Returns the Set-Cookie value for a device that sent the correct password. With `factorId`, the device also passed
   * that second factor. A known device keeps its earlier proofs.
   */
  cookie(request: Request, email: string, factorId?: string): string
}

/** nonce.passwordProof[.secondFactorProof] */
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
