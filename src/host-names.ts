// Pure: the spelling of hosts in URLs. Covers the brackets of IPv6 addresses and the names of this machine.

/** The names of this machine in a URL. */
export const LOOPBACK_NAMES: readonly string[] = ['127.0.0.1', 'localhost', '[::1]']

export function isLoopbackName(hostname: string): boolean {
  return LOOPBACK_NAMES.includes(hostname)
}

/**
 * Returns the host in the form that sockets and certificates use: an IPv6 address without the brackets of RFC 3986,
 * section 3.2.2.
 */
export function bareHost(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, '$1')
}
