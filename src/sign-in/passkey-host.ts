// Decides for which host name and origin passkeys work. A passkey is bound to a host name, its relying party id. An IP
// address such as 127.0.0.1 is no valid relying party id. Browsers create passkeys only in a secure context.
import { isIP } from 'node:net'
import { bareHost } from '../host-names.ts'
import type { Config } from '../config.ts'

export interface PasskeyPlace {
  /** The relying party id: the host name that passkeys are bound to. */
  readonly rpId: string
  /** The only origin whose pages may use these passkeys. */
  readonly origin: string
}

/**
 * Returns null if passkeys do not work. Without VITRINE_PUBLIC_URL, only a service on loopback supports passkeys, and
 * only if the request's host is `localhost` or a subdomain of it.
 */
export function passkeyPlace(
  config: Pick<Config, 'publicUrl' | 'loopback'>,
  request: Pick<Request, 'url'>,
): PasskeyPlace | null {
  const { protocol, hostname, origin } = new URL(config.publicUrl ?? request.url)
  if (isIP(bareHost(hostname)) !== 0) return null
  const isLocal = hostname === 'localhost' || hostname.endsWith('.localhost')
  if (config.publicUrl === null && !(config.loopback && isLocal)) return null
  return protocol === 'https:' || isLocal ? { rpId: hostname, origin } : null
}
