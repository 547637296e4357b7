// Parses cookies like the sign-in library. Otherwise a caller could spell a cookie so that the rate limit and the
// library see different values. Also reads the session cookie of an answer.

/** Returns the cookies by name, decoded and without quotes. The first of several cookies with one name wins. */
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

/** Returns the token of the session cookie in an answer, or null. */
export function sessionMadeBy(response: Response): string | null {
  for (const line of response.headers.getSetCookie()) {
    const sent = /^(?:__Secure-)?vitrine\.session_token=([^;]+)/.exec(line)?.[1]
    if (sent !== undefined) return decodeURIComponent(sent).split('.', 1)[0] ?? null
  }
  return null
}
