// Determines which certificates a login to PostgreSQL accepts.
import { isIP } from 'node:net'
import { checkServerIdentity, type ConnectionOptions } from 'node:tls'
import type { Target } from './settings.ts'

/** `require` only encrypts. `verify-ca` checks the certificate chain too, and `verify-full` also the host name. */
export function tlsOptions(target: Target): ConnectionOptions {
  const { host, sslMode, tls } = target
  return {
    ...tls,
    host,
    ...(isIP(host) === 0 ? { servername: host } : {}),
    minVersion: 'TLSv1.2',
    rejectUnauthorized: sslMode !== 'require',
    checkServerIdentity: (_, certificate) =>
      sslMode === 'verify-full' ? checkServerIdentity(host, certificate) : undefined,
  }
}
