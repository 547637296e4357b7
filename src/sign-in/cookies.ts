// The cookies of a request, read as the sign-in library reads them: what is counted by a cookie must not be spelt in a
// way that is another one here and the same one there. And the session that an answer makes.

/** By name; of two of one name the first, without quotes, decoded. */
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

/** The token of the session whose cookie an answer sets; null for none. */
export function sessionMadeBy(response: Response): string | null {
  for (const line of response.headers.getSetCookie()) {
    const sent = /^(?:__Secure-)?vitrine\.session_token=([^;]+)/.exec(line)?.[1]
    if (sent !== undefined) return decodeURIComponent(sent).split('.', 1)[0] ?? null
  }
  return null
}
