// Mounts the routes of OAuth. Agents that run in a browser may read all answers except the pages.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { AppError } from '../errors.ts'
import type { KnownPath } from './unknown-route.ts'
import { addressOf, carry, toWeb } from './web-request.ts'

export interface OAuthDoor {
  handle(request: Request): Promise<Response>
  protectedResource(at: URL): object
  authorizationServer(): object
}

const BODY_BYTES = 64 << 10
const FORM_BYTES = 16 << 10

/** These answers depend on no cookie, so any website may read them. */
const CORS = {
  'access-control-allow-origin': '*',
  'access-control-allow-methods': 'GET, POST, OPTIONS',
  'access-control-allow-headers': 'authorization, content-type, mcp-protocol-version',
  'access-control-max-age': '86400',
} as const

export function oauthRoutes(app: FastifyInstance, oauth: OAuthDoor): readonly KnownPath[] {
  const known: KnownPath[] = []
  const document = (url: string, body: (at: URL) => object) => {
    known.push({ method: 'GET', path: url })
    app.get(url, async (request, reply) =>
      reply
        .headers(CORS)
        .header('cache-control', 'no-store')
        .send(body(addressOf(request))),
    )
    preflight(url)
  }
  const preflight = (url: string) => {
    known.push({ method: 'OPTIONS', path: url })
    app.options(url, async (_request, reply) => reply.code(204).headers(CORS).send())
  }
  document('/.well-known/oauth-protected-resource', (at) => oauth.protectedResource(at))
  document('/.well-known/oauth-protected-resource/mcp', (at) => oauth.protectedResource(at))
  document('/.well-known/oauth-authorization-server', () => oauth.authorizationServer())

  const handler = async (request: FastifyRequest, reply: FastifyReply) =>
    carry(await oauth.handle(toWeb(request, reply)), reply)
  const open = async (request: FastifyRequest, reply: FastifyReply) => handler(request, reply.headers(CORS))
  const pages = [
    { method: 'GET', url: '/auth/oauth2/authorize' },
    { method: 'GET', url: '/auth/consent' },
    { method: 'POST', url: '/auth/consent' },
  ] as const
  for (const { method, url } of pages) app.route({ method, url, bodyLimit: BODY_BYTES, handler })
  app.post('/auth/oauth2/register', { bodyLimit: BODY_BYTES }, open)
  const forms = ['/auth/oauth2/token', '/auth/oauth2/revoke']
  for (const url of ['/auth/oauth2/register', ...forms]) {
    known.push({ method: 'POST', path: url })
    preflight(url)
  }
  // Only in this separate context of Fastify are forms accepted.
  app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string' }, (_request, body, done) =>
      done(null, body),
    )
    scope.addHook('preValidation', async (request) => {
      if (typeof request.body !== 'string')
        throw new AppError('INVALID_REQUEST', 'The request needs a form as its body.')
    })
    for (const url of forms) scope.post(url, { bodyLimit: FORM_BYTES }, open)
  })
  return [...known, ...pages.map(({ method, url }) => ({ method, path: url }))]
}
