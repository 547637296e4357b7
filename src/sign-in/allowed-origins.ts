// Checks which pages may send requests under /auth, and where mailed links may lead. Both must be this service: the
// browser adds the cookie to requests, and a link contains a token. Programs send no Origin header, but browsers send
// one with every request that could do harm.
import type { Config } from '../config.ts'
import { isLoopbackName } from '../host-names.ts'

type Public = Pick<Config, 'publicUrl'>

/** Returns false if a page of another site may have sent the request. Accepts a GET without an Origin header. */
export function isOwnOrigin(request: Request, config: Public): boolean {
  const origin = request.headers.get('origin')
  if (origin === null) {
    const site = request.headers.get('sec-fetch-site')
    return site === null || site === 'same-origin' || site === 'none' || request.method === 'GET'
  }
  return isOurs(origin, request, config)
}

/**
 * Returns the target of a link as a path of this service. Accepts `/path`, and a URL at our own origin. Removes the
 * fragment, because a token will be appended. Returns null for everything else, including texts that some browsers read
 * as another host (`//host`, `/\host`, `/.//host`).
 */
export function returnPath(text: string, request: Request, config: Public): string | null {
  if (/[\\\p{C}]/u.test(text) || !/^(\/(?!\/)|https?:\/\/)/i.test(text)) return null
  const url = URL.parse(text, request.url)
  if (url === null || url.username !== '' || url.password !== '') return null
  if (!text.startsWith('/') && !isOurs(url.origin, request, config)) return null
  if (/^\/\/|%2f|%5c/i.test(url.pathname)) return null
  return url.pathname + url.search
}

function isOurs(origin: string, request: Request, config: Public): boolean {
  return origin === config.publicUrl || isLoopbackHere(origin, new URL(request.url))
}

/** A page on another port is refused, because browsers send a cookie to all ports of a host. */
function isLoopbackHere(origin: string, requested: URL): boolean {
  const url = URL.parse(origin)
  if (url === null || url.origin !== origin || !isLoopbackName(url.hostname)) return false
  return isLoopbackName(requested.hostname) && url.port === requested.port && url.protocol === requested.protocol
}
