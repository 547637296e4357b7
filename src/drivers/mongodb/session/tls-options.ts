// TLS to MongoDB: which certificates a login accepts.
import { isIP } from 'node:net'
import { checkServerIdentity, type PeerCertificate } from 'node:tls'
import type { MongoClientOptions } from 'mongodb'
import type { Target } from './settings.ts'

/** Behind a tunnel the library knows the socket only. The certificate is that of the host. */
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

/** require encrypts; verify-ca checks the certificate chain; verify-full checks the chain and the server's name. */
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
