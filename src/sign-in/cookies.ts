// Parses cookies in the same way as the sign-in library. Otherwise, for some cookies, the rate limits would see another
// value than the library.

/** Decodes values and removes quotes. If several cookies have one name, returns the first one. */
export function cookiesOf(request: Request): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  for (const pair of (request.headers.get('cookie') ?? '').split(';')) {
    const at = pair.indexOf('=')
    if (at === -1) continue
    const name = pair.slice(0, at).trim()
    if (!found.has(name)) found.set(name, decoded(pair.slice(at + 1).trim()))
  }
  return found
}

function decoded(sent: string): string {
  const value = sent.startsWith('"') ? sent.slice(1, -1) : sent
  try {
    return decodeURIComponent(value)
  } catch {
    return value
  }
}

export function withCookie(response: Response, cookie: string): Response {
  const headers = new Headers(response.headers)
  headers.append('set-cookie', cookie)
  return new Response(response.body, { status: response.status, headers })
}

/** Returns the session token that an answer sets, or null. */
export function sessionMadeBy(response: Response): string | null {
  for (const line of response.headers.getSetCookie()) {
    const sent = /^(?:__Secure-)?vitrine\.session_token=([^;]+)/.exec(line)?.[1]
    if (sent !== undefined) return decodeURIComponent(sent).split('.', 1)[0] ?? null
  }
  return null
}
