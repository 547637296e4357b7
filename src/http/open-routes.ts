// Mounts the operations that need no token (contract/open-routes.ts).
import type { FastifyInstance } from 'fastify'
import { OPEN_ROUTES } from '../contract/open-routes.ts'
import { invalidRequest } from '../errors.ts'
import type { OpenOperations } from '../operations/open.ts'
import { answer } from './reply.ts'
import type { KnownPath } from './unknown.ts'

/** Mounts the routes and returns their paths. */
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
