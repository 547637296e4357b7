// Pure: decides to which addresses a code may be sent. Allowed are https anywhere, http on the person's own computer,
// and the schemes of a few known programs. The provider compares the address in a request with the registered addresses
// exactly. Only the port on the person's own computer may differ.
import { isLoopbackName } from '../host-names.ts'

/**
 * The addresses with schemes of known programs. Another program on the computer could also register such a scheme and
 * receive the code. PKCE makes the code useless for that program.
 */
const KNOWN_SCHEMES = new Set(['cursor://anysphere.cursor-mcp/oauth/callback'])
const LENGTH_MAX = 2_000
/** Matches addresses whose content a browser would execute or display. */
const DANGEROUS = /^(javascript|data|vbscript|file|blob|about|view-source|filesystem|ws|wss|ftp):/i

/**
 * `ok` means that the address may be registered. `unknown` means that the scheme belongs to an unknown program. The
 * client may be registered without such an address. `refused` means that the whole client is refused.
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

/** Returns true if a code is sent to a program on the person's own computer. */
export function isOwnComputer(uri: string): boolean {
  const url = URL.parse(uri)
  return url?.protocol !== 'https:'
}
