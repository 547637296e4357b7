// Decides which certificates a login to MongoDB accepts.
import { isIP } from 'node:net'
import { checkServerIdentity, type PeerCertificate } from 'node:tls'
import type { MongoClientOptions } from 'mongodb'
import type { Target } from './settings.ts'

/**
 * Behind a tunnel, the library knows only the tunnel's socket. These options make it check the certificate against the
 * host.
 */
export function identityBehind({ hosts, sslMode }: Target): MongoClientOptions {
  const host = hosts[0]?.host ?? ''
  if (sslMode === 'disable') return {}
  return {
    ...(isIP(host) === 0 ? { servername: host } : {}),
    ...(sslMode === 'verify-full'
      ? { checkServerIdentity: (_: string, certificate: PeerCertificate) => checkServerIdentity(host, certificate) }
      : {}),
  }
}

/**
 * `require` only encrypts. `verify-ca` also checks the certificate chain. `verify-full` checks the chain and the
 * server's name.
 */
export function tlsOptions(target: Target): MongoClientOptions {
  const { sslMode, tls } = target
  if (sslMode === 'disable') return { tls: false }
  return {
    tls: true,
    ...tls,
    rejectUnauthorized: sslMode !== 'require',
    ...(sslMode === 'verify-full' ? {} : { checkServerIdentity: () => undefined }),
  }
}
