// Checks the fields that the datasources of several kinds of database have: host, port, names, sslMode and secrets. An
// error names the field, and never repeats its value.
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { createSecureContext } from 'node:tls'
import { z } from 'zod'
import type { SettingsInput } from './driver.ts'
import type { DatasourceType } from './datasource-type.ts'

/**
 * `require` only encrypts. `verify-ca` also checks the certificate chain. `verify-full` checks the chain and the host
 * name.
 */
export const SslMode = z.enum(['disable', 'require', 'verify-ca', 'verify-full'])
export type SslMode = z.infer<typeof SslMode>

const SECRET_LENGTH_MAX = 65_536
/**
 * The maximum length of a key in bits. Signing with a longer key blocks the event loop, for seconds with 16,384 bits.
 */
const KEY_BITS_MAX = 8_192

/** wrongHost() checks the form of the host. */
export const hostField = z.string({ error: 'must be a string' }).min(1, 'must not be empty').max(253, 'is too long')

/** `usual` is the default port of the kind of database. */
export function portField(usual: number) {
  return z
    .int({ error: 'must be a whole number' })
    .min(1, 'must be 1 to 65535')
    .max(65_535, 'must be 1 to 65535')
    .nullish()
    .transform((port) => port ?? usual)
}

/** Returns the schema for the name of a database or user. `max` is the maximum length. */
export function nameField(max: number): z.ZodString {
  return z
    .string({ error: 'must be a string' })
    .min(1, 'must not be empty')
    .max(max, `is longer than ${max} characters`)
    .regex(/^\P{Cc}*$/u, 'contains control characters')
}

/** Returns a sentence for an invalid host, or an empty list. */
export function wrongHost(host: string): string[] {
  const isName = /^(?!-)[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?$/.test(host)
  return isName || isIP(host) !== 0 ? [] : ['host: must be one host name or IP address (no socket, no list)']
}

/** Returns a sentence for each secret that is unknown, too long or has a NUL, and for each wrong TLS secret. */
export function wrongSecrets(
  type: DatasourceType,
  known: readonly string[],
  secrets: SettingsInput['secrets'],
): string[] {
  const wrong = Object.keys(secrets)
    .filter((secret) => !known.includes(secret))
    .map((secret) => `${secret.slice(0, 60)}: is not a secret of ${type}`)
  for (const secret of known) {
    const value = secrets[secret] ?? ''
    if (value.length > SECRET_LENGTH_MAX) wrong.push(`${secret}: is too long`)
    if (value.includes('\0')) wrong.push(`${secret}: contains a NUL`)
  }
  return [...wrong, ...wrongTls(secrets)]
}

function wrongTls(secrets: SettingsInput['secrets']): string[] {
  const { tlsCa, tlsCertificate, tlsKey } = secrets
  const wrong: string[] = []
  if (tlsCa !== undefined && !isCertificate(tlsCa)) wrong.push('tlsCa: is not a PEM certificate')
  if (tlsCertificate !== undefined && !isCertificate(tlsCertificate))
    wrong.push('tlsCertificate: is not a PEM certificate')
  if ((tlsCertificate === undefined) !== (tlsKey === undefined))
    wrong.push('tlsCertificate and tlsKey: must be sent together')
  if (wrong.length === 0 && tlsCertificate !== undefined && tlsKey !== undefined) {
    try {
      const bits = createPrivateKey(tlsKey).asymmetricKeyDetails?.modulusLength ?? 0
      if (bits > KEY_BITS_MAX) wrong.push(`tlsKey: is longer than ${KEY_BITS_MAX} bits`)
      else createSecureContext({ cert: tlsCertificate, key: tlsKey })
    } catch {
      wrong.push('tlsKey: is not an unencrypted PEM key that fits tlsCertificate')
    }
  }
  return wrong
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).subject !== ''
  } catch {
    return false
  }
}
