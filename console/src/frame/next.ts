// Where a person wanted to go before signing in. Only paths of the console are accepted.
const BASE = '/app'

/** Returns a path under /app, or null. */
export function nextPath(text: unknown): string | null {
  if (typeof text !== 'string' || !text.startsWith(`${BASE}/`) || /[\\\p{C}]/u.test(text)) return null
  const url = URL.parse(text, location.origin)
  if (url === null || url.origin !== location.origin || !url.pathname.startsWith(`${BASE}/`)) return null
  return url.pathname + url.search + url.hash
}
