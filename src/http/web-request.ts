// Converts Fastify's requests and answers to the web classes Request and Response, for sign-in/ and oauth/.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { CLIENT_ADDRESS } from '../auth/client-name-and-address.ts'
import { invalidRequest } from '../errors.ts'
import { hangUpOf } from '../hang-up.ts'

/** Hop-by-hop headers, and headers that could claim another host or address. */
const DROPPED =
  /^(connection|keep-alive|transfer-encoding|content-length|upgrade|te|trailer|forwarded|x-forwarded-.*|x-real-ip)$/

/**
 * Keeps a form as it is. The signal aborts if the caller hangs up. Throws INVALID_REQUEST for an invalid Host header,
 * and for a body that is nested too deeply.
 */
export function toWeb(request: FastifyRequest, reply: FastifyReply): Request {
  const headers = new Headers()
  for (const [name, value] of Object.entries(request.headers)) {
    if (value === undefined || DROPPED.test(name)) continue
    for (const each of Array.isArray(value) ? value : [value]) headers.append(name, each)
  }
  // trustProxy decides whether a proxy may set the caller's address.
  headers.set(CLIENT_ADDRESS, request.ip)
  const init: RequestInit = { method: request.method, headers, signal: hangUpOf(reply.raw) }
  const { body } = request
  if (body !== undefined && request.method !== 'GET') {
    init.body = typeof body === 'string' ? body : serialized(body)
    if (typeof body !== 'string') headers.set('content-type', 'application/json')
  }
  return new Request(addressOf(request), init)
}

export function addressOf(request: FastifyRequest): URL {
  const url = URL.parse(request.url, `${request.protocol}://${request.host || 'localhost'}`)
  if (url === null || url.username !== '' || url.password !== '')
    throw invalidRequest(['Host: is not a valid host name'])
  return url
}

/** Serializing recurses, unlike parsing. Throws INVALID_REQUEST if the body is nested too deeply. */
function serialized(body: unknown): string {
  try {
    return JSON.stringify(body)
  } catch {
    throw invalidRequest(['body: is nested too deeply'])
  }
}

/** Sends the response and forbids caching. */
export async function carry(response: Response, reply: FastifyReply): Promise<FastifyReply> {
  reply.code(response.status)
  response.headers.forEach((value, name) => {
    if (name !== 'set-cookie' && name !== 'content-length') reply.header(name, value)
  })
  for (const cookie of response.headers.getSetCookie()) reply.header('set-cookie', cookie)
  reply.header('cache-control', 'no-store')
  return reply.send(await response.text())
}
