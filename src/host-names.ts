// The forms of hosts in URLs.

export const LOOPBACK_NAMES: readonly string[] = ['127.0.0.1', 'localhost', '[::1]']

export function isLoopbackName(hostname: string): boolean {
  return LOOPBACK_NAMES.includes(hostname)
}

/**
 * In a URL, an IPv6 address is in brackets (RFC 3986, section 3.2.2). Sockets and certificates need it without
 * brackets.
 */
export function bareHost(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, '$1')
}
