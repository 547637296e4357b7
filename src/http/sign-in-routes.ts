// Mounts /auth/*, except for OAuth (oauth-routes.ts). The bodies are JSON.
import type { FastifyInstance } from 'fastify'
import type { KnownPath } from './unknown-route.ts'
import { carry, toWeb } from './web-request.ts'

export interface SignInDoor {
  handle(request: Request): Promise<Response>
}

const BODY_BYTES = 64 << 10
export function signInRoutes(app: FastifyInstance, signIn: SignInDoor): readonly KnownPath[] {
  const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
  app.route({
    method: [...methods],
    url: '/auth/*',
    bodyLimit: BODY_BYTES,
    handler: async (request, reply) => carry(await signIn.handle(toWeb(request, reply)), reply),
  })
  return methods.map((method) => ({ method, path: '/auth/*' }))
}
