// Fastify ↔ Web: carries /auth/* to the sign-in library and back. The only routes where a cookie is read; bodies are
// JSON here too.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { invalidRequest } from '../errors.ts'
import type { KnownPath } from './unknown.ts'

/** src/auth/sign-in.ts. */
export interface SignInDoor {
  handle(request: Request): Promise<Response>
}

const BODY_BYTES = 64 << 10
/** Where the caller really is, as trustProxy tells; what the caller claims under this name is dropped. */
const CLIENT_ADDRESS = 'x-vitrine-client'
/** Of the connection, not of the message; and names by which a caller could claim another host or address. */
const DROPPED =
  /^(connection|keep-alive|transfer-encoding|content-length|upgrade|te|trailer|forwarded|x-forwarded-.*|x-real-ip)$/

/** Mounts /auth/*; answers with the paths that are now taken. */
export function signInRoutes(app: FastifyInstance, signIn: SignInDoor): readonly KnownPath[] {
  const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
  app.route({
    method: [...methods],
    url: '/auth/*',
    bodyLimit: BODY_BYTES,
    handler: async (request, reply) => carry(await signIn.handle(toWeb(request)), reply),
  })
  return methods.map((method) => ({ method, path: '/auth/*' }))
}

function toWeb(request: FastifyRequest): Request {
  const headers = new Headers()
  for (const [name, value] of Object.entries(request.headers)) {
    if (value === undefined || DROPPED.test(name)) continue
    for (const each of Array.isArray(value) ? value : [value]) headers.append(name, each)
  }
  headers.set(CLIENT_ADDRESS, request.ip)
  const init: RequestInit = { method: request.method, headers }
  if (request.body !== undefined && request.method !== 'GET') {
    init.body = writtenAgain(request.body)
    headers.set('content-type', 'application/json')
  }
  return new Request(addressOf(request), init)
}

/** Throws INVALID_REQUEST for a Host header that names no host: it is the caller's, and was only read as text so far. */
function addressOf(request: FastifyRequest): URL {
  const url = URL.parse(request.url, `${request.protocol}://${request.host || 'localhost'}`)
  if (url === null || url.username !== '' || url.password !== '') throw invalidRequest(['Host: names no host'])
  return url
}

/** Throws INVALID_REQUEST for what is nested deeper than can be written: reading it takes no stack, writing it does. */
function writtenAgain(body: unknown): string {
  try {
    return JSON.stringify(body)
  } catch {
    throw invalidRequest(['body: nested too deep'])
  }
}

async function carry(response: Response, reply: FastifyReply): Promise<FastifyReply> {
  reply.code(response.status)
  response.headers.forEach((value, name) => {
    if (name !== 'set-cookie' && name !== 'content-length') reply.header(name, value)
  })
  for (const cookie of response.headers.getSetCookie()) reply.header('set-cookie', cookie)
  reply.header('cache-control', 'no-store')
  return reply.send(await response.text())
}
