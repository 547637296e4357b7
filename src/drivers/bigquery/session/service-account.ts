// Parses the key file of a service account. Only validated fields are used. A key file of another type can name files,
// addresses and programs. Another token_uri than Google's would receive an assertion that the service has signed.
import { createPrivateKey, type KeyObject } from 'node:crypto'
import { z } from 'zod'

export const TOKEN_URI = 'https://oauth2.googleapis.com/token'

const UNIVERSE = 'googleapis.com'
const FIELD = 'serviceAccountKey'
/** Google's own keys have 2048 bits. Signing with a much longer key blocks the event loop for seconds. */
const KEY_BITS = { min: 2048, max: 4096 } as const
/** A key of 4096 bits has 3,300 characters in PEM. */
const PEM_MAX = 8_192

export interface ServiceAccount {
  readonly email: string
  readonly keyId: string | null
  readonly key: KeyObject
}

const KeyFile = z.object({
  type: z.literal('service_account', { error: 'type must be service_account' }),
  token_uri: z.literal(TOKEN_URI, { error: `token_uri must be ${TOKEN_URI}` }),
  universe_domain: z.literal(UNIVERSE, { error: `universe_domain must be ${UNIVERSE}` }).optional(),
  client_email: z
    .string({ error: 'client_email must be a string' })
    .max(320, 'client_email is too long')
    .regex(/^[^\s@\p{Cc}]+@[A-Za-z0-9.-]+$/u, 'client_email must be an e-mail address'),
  private_key: z.string({ error: 'private_key must be a string' }),
  private_key_id: z
    .string({ error: 'private_key_id must be a string' })
    .regex(/^[A-Za-z0-9]{1,128}$/, 'private_key_id must be letters and digits')
    .optional(),
})

/** Returns the account, or a list of problems. A problem names the field and never repeats its value. */
export function readServiceAccount(text: string): ServiceAccount | readonly string[] {
  let json: unknown
  try {
    // Some editors write a byte order mark.
    json = JSON.parse(text.replace(/^\uFEFF/, ''))
  } catch {
    return [`${FIELD}: is not JSON`]
  }
  if (typeof json !== 'object' || json === null || Array.isArray(json)) return [`${FIELD}: must be a JSON object`]
  const read = KeyFile.safeParse(json)
  if (!read.success) return read.error.issues.map(({ message }) => `${FIELD}: ${message}`)
  const key = privateKey(read.data.private_key)
  if (key === null)
    return [`${FIELD}: private_key must be an unencrypted RSA key of ${KEY_BITS.min} to ${KEY_BITS.max} bits in PEM`]
  return { email: read.data.client_email, keyId: read.data.private_key_id ?? null, key }
}

function privateKey(pem: string): KeyObject | null {
  if (pem.length > PEM_MAX) return null
  try {
    // In environment variables, line breaks are often escaped twice, so replace `\n` by line breaks. PEM itself
    // contains no backslashes.
    const key = createPrivateKey({ key: pem.replaceAll('\\n', '\n'), format: 'pem' })
    const bits = key.asymmetricKeyDetails?.modulusLength ?? 0
    return key.asymmetricKeyType === 'rsa' && bits >= KEY_BITS.min && bits <= KEY_BITS.max ? key : null
  } catch {
    return null
  }
}
