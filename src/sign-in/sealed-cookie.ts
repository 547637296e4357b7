// A cookie whose value only this service can create and read: the challenge of a passkey, or a sign-in in progress at a
// provider. So the server need not store anything for people who are not signed in.
import type { z } from 'zod'
import type { Secrets } from '../secrets.ts'
import { cookiesOf } from './cookies.ts'

export interface SealedCookie<T> {
  set(value: T): Promise<string>
  /** Returns null if the cookie is missing, has expired or is not ours. */
  read(request: Request): Promise<T | null>
  readonly clear: string
}

export interface SealedCookieOptions<T> {
  readonly secrets: Pick<Secrets, 'derive'>
  /** The name without its prefix. Each name has its own encryption key. */
  readonly name: string
  readonly schema: z.ZodType<T>
  readonly seconds: number
  readonly secure: boolean
  readonly now: () => number
}

const ENCRYPTION = { alg: 'dir', enc: 'A256GCM' } as const

export function sealedCookie<T>(options: SealedCookieOptions<T>): SealedCookie<T> {
  const { secrets, schema, seconds, secure, now } = options
  const name = `${secure ? '__Secure-' : ''}vitrine.${options.name}`
  const key = secrets.derive(`cookie ${options.name}`)
  const attributes = `Path=/auth; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}`
  return {
    async set(value) {
      const { EncryptJWT } = await import('jose')
      const at = Math.floor(now() / 1000)
      const sealed = await new EncryptJWT({ value })
        .setProtectedHeader(ENCRYPTION)
        .setExpirationTime(at + seconds)
        .encrypt(key)
      return `${name}=${sealed}; Max-Age=${seconds}; ${attributes}`
    },
    async read(request) {
      const sealed = cookiesOf(request).get(name)
      if (sealed === undefined) return null
      const { jwtDecrypt } = await import('jose')
      try {
        const { payload } = await jwtDecrypt(sealed, key, {
          keyManagementAlgorithms: [ENCRYPTION.alg],
          contentEncryptionAlgorithms: [ENCRYPTION.enc],
          currentDate: new Date(now()),
          requiredClaims: ['exp'],
        })
        return schema.parse(payload['value'])
      } catch {
        return null
      }
    },
    clear: `${name}=; Max-Age=0; ${attributes}`,
  }
}
