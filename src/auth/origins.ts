// From which pages a request under /auth may come: the cookie is sent by the browser, so the origin must be ours.
// Programs send no Origin; a browser always does where it could do harm.
import type { Config } from '../config.ts'

const LOOPBACK = ['127.0.0.1', 'localhost', '[::1]']

/** True for a request that no page of another site can have made. */
export function isOwnOrigin(request: Request, config: Pick<Config, 'publicUrl'>): boolean {
  const origin = request.headers.get('origin')
  if (origin === null) {
    const site = request.headers.get('sec-fetch-site')
    return site === null || site === 'same-origin' || site === 'none' || request.method === 'GET'
  }
  return origin === config.publicUrl || isLoopbackHere(origin, new URL(request.url))
}

/** Both loopback names of the very port that was asked: another port is another program, and shares the cookie. */
function isLoopbackHere(origin: string, asked: URL): boolean {
  const url = URL.parse(origin)
  if (url === null || url.origin !== origin || !LOOPBACK.includes(url.hostname)) return false
  return LOOPBACK.includes(asked.hostname) && url.port === asked.port && url.protocol === asked.protocol
}
