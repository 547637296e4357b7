// Web pages of the origins in VITRINE_CORS_ORIGINS may call the API with a token. By default, there are no such
// origins. /auth is excluded: browsers send a cookie there, and a page of another site must not act with it.
import type { FastifyInstance } from 'fastify'

const METHODS = 'GET, POST, PUT, PATCH, DELETE'
const SENT = 'authorization, content-type, if-none-match, mcp-protocol-version, mcp-method, mcp-name'
const READ =
  'etag, mcp-protocol-version, ratelimit-limit, ratelimit-remaining, ratelimit-reset, retry-after, www-authenticate, x-request-id'
const MAX_AGE_SECONDS = '600'
const ALLOW_ORIGIN = 'access-control-allow-origin'

/** Must be called before the routes are mounted. */
export function allowOrigins(app: FastifyInstance, origins: ReadonlySet<string>): void {
  if (origins.size === 0) return
  app.addHook('onRequest', async (request, reply) => {
    const { origin } = request.headers
    if (origin === undefined || !origins.has(origin) || /^\/auth(?:[/?]|$)/.test(request.url)) return
    // The raw response keeps these headers even if the answer is written without Fastify.
    reply.raw.setHeader(ALLOW_ORIGIN, origin)
    reply.raw.setHeader('access-control-expose-headers', READ)
    reply.raw.setHeader('vary', 'Origin')
    if (request.method !== 'OPTIONS' || request.headers['access-control-request-method'] === undefined) return
    return reply
      .code(204)
      .headers({
        'access-control-allow-methods': METHODS,
        'access-control-allow-headers': SENT,
        'access-control-max-age': MAX_AGE_SECONDS,
        vary: 'Origin',
      })
      .send()
  })
  // An answer's own Vary header would replace the one above.
  app.addHook('onSend', async (_request, reply) => {
    const own = reply.getHeader('vary')
    if (own === undefined || reply.raw.getHeader(ALLOW_ORIGIN) === undefined) return
    if (!/\borigin\b/i.test(String(own))) reply.header('vary', `${String(own)}, Origin`)
  })
}
