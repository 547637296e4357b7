// Pure: the addresses that a code may be sent to. They are https anywhere, http on the person's own computer, and the
// schemes of a few known programs. The provider matches a request with the registered addresses exactly, except for the
// port of a program on the person's own computer.
import { isLoopbackName } from '../host-names.ts'

/**
 * The operating system does not bind such a scheme to one program, so any program could receive the code. PKCE makes
 * the code useless to it.
 */
const KNOWN_SCHEMES = new Set(['cursor://anysphere.cursor-mcp/oauth/callback'])
const LENGTH_MAX = 2_000
/** Browsers execute or display the content of such an address. */
const DANGEROUS = /^(javascript|data|vbscript|file|blob|about|view-source|filesystem|ws|wss|ftp):/i

/**
 * `ok`: may be registered. `unknown`: the scheme of an unknown program; the client may be registered without this
 * address. `refused`: a client with this address is refused.
 */
export type UriVerdict = 'ok' | 'unknown' | 'refused'

export function verdictOf(uri: string): UriVerdict {
  const url = uri.length <= LENGTH_MAX && !/[\s\p{C}]/u.test(uri) ? URL.parse(uri) : null
  if (url === null || DANGEROUS.test(uri) || DANGEROUS.test(url.protocol)) return 'refused'
  if (KNOWN_SCHEMES.has(uri)) return 'ok'
  if (uri.includes('#') || url.username !== '' || url.password !== '') return 'refused'
  if (url.protocol === 'https:') return url.hostname === '' ? 'refused' : 'ok'
  if (url.protocol === 'http:') return isLoopbackName(url.hostname) ? 'ok' : 'refused'
  return 'unknown'
}

/** Returns whether a code is sent to a program on the person's own computer. */
export function isOwnComputer(uri: string): boolean {
  const url = URL.parse(uri)
  return url?.protocol !== 'https:'
}
