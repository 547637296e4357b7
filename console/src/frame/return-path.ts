// The page that a person wanted to open before signing in: a page of the console, or the page on which an agent asks
// for access. Any other address is refused, so that a link to the sign-in page cannot redirect to another site.
const BASE = '/app/'
/** The service itself renders this page, outside of the console. */
const CONSENT = '/auth/consent'

/** Returns the path if it belongs to this service, or null. */
export function nextPath(text: unknown): string | null {
  if (typeof text !== 'string' || !/^\/(app\/|auth\/consent\?)/.test(text) || /[\\\p{C}]/u.test(text)) return null
  const url = URL.parse(text, location.origin)
  if (url === null || url.origin !== location.origin) return null
  if (!url.pathname.startsWith(BASE) && url.pathname !== CONSENT) return null
  return url.pathname + url.search + url.hash
}

/**
 * Returns where to go after the sign-in. With `reloadDocument`, the browser must load the page, because it is outside
 * of the console.
 */
export function nextPlace(text: unknown): { readonly href: string; readonly reloadDocument: boolean } {
  const href = nextPath(text) ?? BASE
  return { href, reloadDocument: !href.startsWith(BASE) }
}
