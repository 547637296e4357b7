// Where a person wanted to go before signing in: a page of the console, or the page on which an agent asks for access.
// Anything else is refused, so that a link to the sign-in page cannot lead to another place.
const BASE = '/app/'
/** The service draws this page itself, outside of the console. */
const CONSENT = '/auth/consent'

/** Returns a path of this service, or null. */
export function nextPath(text: unknown): string | null {
  if (typeof text !== 'string' || !/^\/(app\/|auth\/consent\?)/.test(text) || /[\\\p{C}]/u.test(text)) return null
  const url = URL.parse(text, location.origin)
  if (url === null || url.origin !== location.origin) return null
  if (!url.pathname.startsWith(BASE) && url.pathname !== CONSENT) return null
  return url.pathname + url.search + url.hash
}

/** How the router goes there: a page outside of the console is loaded by the browser. */
export function nextPlace(text: unknown): { readonly href: string; readonly reloadDocument: boolean } {
  const href = nextPath(text) ?? BASE
  return { href, reloadDocument: !href.startsWith(BASE) }
}
