// Mounts the operations that need no token (contract/routes-without-token.ts).
import type { FastifyInstance } from 'fastify'
import { OPEN_ROUTES } from '../contract/routes-without-token.ts'
import { invalidRequest } from '../errors.ts'
import type { OpenOperations } from '../operations/without-token.ts'
import { answer } from './send-answer.ts'
import type { KnownPath } from './unknown-route.ts'

export function openRoutes(app: FastifyInstance, operations: OpenOperations): readonly KnownPath[] {
  const { getInvitation } = OPEN_ROUTES
  app.route<{ Params: Record<string, string>; Querystring: Record<string, unknown> }>({
    method: getInvitation.method,
    url: getInvitation.path.replace(/\{(\w+)\}/g, ':$1'),
    config: { operation: 'getInvitation' },
    handler: async (request, reply) => {
      const surplus = Object.keys(request.query)
      const value = await operations.getInvitation({ params: request.params, address: request.ip })
      if (surplus.length > 0) throw invalidRequest(surplus.map((key) => `${key}: unknown parameter`))
      return answer(reply, getInvitation, value)
    },
  })
  return [getInvitation]
}
