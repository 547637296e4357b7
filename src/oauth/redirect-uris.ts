// Decides to which redirect URIs a code may be sent: https on any host, http on the person's own computer, and the
// schemes of a few known programs. A request must use exactly a registered URI. Only the port on the person's own
// computer may differ.
import { isLoopbackName } from '../host-names.ts'

/**
 * Redirect URIs with the schemes of known programs. Another program on the computer may register the same scheme and
 * receive the code, but cannot use it because of PKCE.
 */
const KNOWN_SCHEMES = new Set(['cursor://anysphere.cursor-mcp/oauth/callback'])
const LENGTH_MAX = 2_000
/** A browser would execute or display the content of such a URI. */
const DANGEROUS = /^(javascript|data|vbscript|file|blob|about|view-source|filesystem|ws|wss|ftp):/i

/** `unknown`: the client may be registered only without this URI. `refused`: the client may not be registered. */
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

/** Returns true if a program on the person's own computer gets the code. */
export function isOwnComputer(uri: string): boolean {
  const url = URL.parse(uri)
  return url?.protocol !== 'https:'
}
