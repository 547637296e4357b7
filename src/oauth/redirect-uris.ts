// Pure: the addresses that a code may be sent to. https anywhere, http to the person's own computer, and the schemes of
// a few known programs. The provider matches a request with the registered addresses exactly, except for the port of a
// program on the person's own computer.
import { isLoopbackName } from '../host-names.ts'

/** Schemes of their own are not bound to a program, so any program could catch a code. PKCE makes the code useless. */
const KNOWN_SCHEMES = new Set(['cursor://anysphere.cursor-mcp/oauth/callback'])
const LENGTH_MAX = 2_000
/** These run or show what the address contains. */
const DANGEROUS = /^(javascript|data|vbscript|file|blob|about|view-source|filesystem|ws|wss|ftp):/i

/**
 * `ok`: may be registered. `unknown`: a scheme of a program that we do not know; the rest of the client may be
 * registered. `refused`: no client with this address.
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

/** Returns whether a code goes to a program on the person's own computer. */
export function isOwnComputer(uri: string): boolean {
  const url = URL.parse(uri)
  return url?.protocol !== 'https:'
}
