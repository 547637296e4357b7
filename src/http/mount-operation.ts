// Mounts an operation as a route, which authenticates the caller and checks the scope before it reads the body.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Authenticator } from '../auth/authenticate.ts'
import type { Arrival, Trace } from '../auth/caller.ts'
import { clientOf } from '../auth/client-name-and-address.ts'
import type { Route } from '../contract/route-type.ts'
import { AppError } from '../errors.ts'
import { admit } from '../operations/admit.ts'
import type { Streamed } from '../operations/operation-types.ts'
import type { Operation } from '../operations/order-of-checks.ts'
import { encodingOf } from './compress.ts'
import { hangUpOf } from '../hang-up.ts'
import { answer, answerPrebuilt, answerStreamed, isPrebuilt } from './send-answer.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The operation id. Missing on public routes. */
    readonly operation?: string
    readonly namesAsKeys?: boolean
    /** Default: VALUES.few. */
    readonly valuesMax?: number
  }
  interface FastifyRequest {
    /** Set before the body is read. Null on public routes. */
    caller: Arrival['caller'] | null
    /** By performance.now(). */
    knownAt: number
    refusal: string | null
    trace: Trace | null
  }
}

export function mountOperation(
  app: FastifyInstance,
  authenticator: Authenticator,
  id: string,
  route: Route,
  operation: Operation,
): void {
  // A query answer must not wait for compression, and most query answers are short.
  const isCompressed = id !== 'runQuery'
  app.route({
    method: route.method,
    url: route.path.replace(/\{(\w+)\}/g, ':$1'),
    ...(route.bodyLimit === undefined ? {} : { bodyLimit: route.bodyLimit }),
    config: {
      operation: id,
      namesAsKeys: route.namesAsKeys === true,
      ...(route.valuesMax !== undefined && { valuesMax: route.valuesMax }),
    },
    onRequest: async (request) => {
      // The router reads `/teams/` as a team with an empty id.
      if (hasEmptyParam(request.params)) throw new AppError('NOT_FOUND', 'There is no such route.')
      const caller = await authenticator.authenticate(request.headers.authorization, request.headers['user-agent'])
      admit(caller, route)
      request.caller = caller
      request.knownAt = performance.now()
    },
    handler: async (request, reply) => {
      const { query, body } = request
      const value = await operation(arrivalOf(route, request, reply), { params: paramsOf(request.params), query, body })
      if (reply.raw.destroyed) return reply.hijack()
      const encoding = isCompressed ? encodingOf(request.headers['accept-encoding']) : null
      if (isStreamed(route, value)) return await answerStreamed(reply, value, isCompressed && acceptsGzip(request))
      if (route.prebuilt !== true) return await answer(reply, route, value, encoding)
      if (!isPrebuilt(value)) throw new TypeError(`${id} must answer with JSON already written`)
      return answerPrebuilt(reply, route.status ?? 200, value, request.headers['if-none-match'], encoding)
    },
  })
}

function arrivalOf(route: Route, request: FastifyRequest, reply: FastifyReply): Arrival {
  const { caller, knownAt } = request
  if (caller === null) throw new AppError('INTERNAL', 'The caller was not authenticated.')
  return {
    caller,
    knownAt,
    via: 'REST',
    requestId: request.id,
    ...(request.trace !== null && { trace: request.trace }),
    signal: hangUpOf(reply.raw),
    client: clientOf(request.headers['user-agent']),
    // Reading the addresses that proxies add takes time, and no operation for API keys needs them.
    address: route.scope === undefined ? request.ip : undefined,
  }
}

function hasEmptyParam(params: unknown): boolean {
  return typeof params === 'object' && params !== null && Object.values(params).includes('')
}

function paramsOf(params: unknown): Record<string, string> {
  if (typeof params !== 'object' || params === null) return {}
  return Object.fromEntries(Object.entries(params).map(([name, value]) => [name, String(value)]))
}

function acceptsGzip(request: FastifyRequest): boolean {
  return encodingOf(request.headers['accept-encoding'], ['gzip']) !== null
}

function isStreamed(route: Route, value: unknown): value is Streamed {
  return route.streams !== undefined && typeof value === 'object' && value !== null && 'parts' in value
}
