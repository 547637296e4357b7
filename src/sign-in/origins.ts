// From which pages a request under /auth may come, and to which its links may lead on: the cookie is sent by the browser,
// so both must be ours. Programs send no Origin; a browser always does where it could do harm.
import type { Config } from '../config.ts'

const LOOPBACK = ['127.0.0.1', 'localhost', '[::1]']

type Public = Pick<Config, 'publicUrl'>

/** True for a request that no page of another site can have made. */
export function isOwnOrigin(request: Request, config: Public): boolean {
  const origin = request.headers.get('origin')
  if (origin === null) {
    const site = request.headers.get('sec-fetch-site')
    return site === null || site === 'same-origin' || site === 'none' || request.method === 'GET'
  }
  return isOurs(origin, request, config)
}

/**
 * Where a link may lead on to, as a path of ours without a fragment, since a token is put behind it: from `/path`, or from
 * an address at an origin of ours. null for everything else, and for what some browser reads as another host (`//host`,
 * `/\host`, `/.//host`).
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

/** Both loopback names of the very port that was asked: another port is another program, and shares the cookie. */
function isLoopbackHere(origin: string, asked: URL): boolean {
  const url = URL.parse(origin)
  if (url === null || url.origin !== origin || !LOOPBACK.includes(url.hostname)) return false
  return LOOPBACK.includes(asked.hostname) && url.port === asked.port && url.protocol === asked.protocol
}
