// Reduces the library's answers to the declared fields. This removes the session token, which no script may read.
import { z } from 'zod'
import { ACCESS_TOKEN } from '../auth/session-tokens.ts'
import { SIGN_IN_ROUTES, type SignInRoute } from '../contract/sign-in-routes.ts'
import { cookiesOf } from './cookies.ts'

const ROUTES: ReadonlyMap<string, SignInRoute> = new Map(Object.entries(SIGN_IN_ROUTES))
const WithToken = z.looseObject({ token: z.string() })

/** `name` is a method and path, such as `GET /auth/token`. `sessionCookie` is the name of the library's cookie. */
export async function shapedAnswer(
  name: string,
  request: Request,
  response: Response,
  sessionCookie: string,
): Promise<Response> {
  const answer = ROUTES.get(name)?.answer
  if (answer === undefined || typeof answer === 'string') return response
  const own = cookiesOf(request).get(sessionCookie)?.split('.', 1)[0] ?? ''
  const body: unknown = completed(name, await response.json(), own)
  const headers = new Headers(response.headers)
  headers.set('content-type', 'application/json')
  return new Response(JSON.stringify(answer.parse(body)), { status: response.status, headers })
}

/** Adds the fields that the library does not know. */
function completed(name: string, body: unknown, ownToken: string): unknown {
  const isCurrent = (session: unknown) => {
    const read = WithToken.safeParse(session)
    return read.success ? { ...read.data, ...(read.data.token === ownToken && { current: true }) } : session
  }
  switch (name) {
    case 'GET /auth/token':
      return { ...WithToken.parse(body), expiresIn: ACCESS_TOKEN.lifeSeconds }
    case 'GET /auth/get-session': {
      const read = z.looseObject({ session: z.unknown() }).safeParse(body)
      return read.success ? { ...read.data, session: isCurrent(read.data.session) } : body
    }
    default:
      return body
  }
}
