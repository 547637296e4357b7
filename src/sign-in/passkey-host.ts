// A passkey is bound to a host name, its relying party id. An IP address such as 127.0.0.1 is not allowed. Browsers
// create passkeys only over HTTPS or on this machine.
import { isIP } from 'node:net'
import { bareHost } from '../host-names.ts'
import type { Config } from '../config.ts'

export interface PasskeyPlace {
  readonly rpId: string
  /** Only pages of this origin may use the passkeys. */
  readonly origin: string
}

/**
 * Returns null if passkeys do not work. Without VITRINE_PUBLIC_URL, they work only if the service listens on loopback
 * and the browser uses the name `localhost` or a subdomain of it.
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
