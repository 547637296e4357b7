// Three routes without a token: liveness, readiness, and the redirect to the console.
import type { FastifyInstance } from 'fastify'
import type { KnownPath } from './unknown-route.ts'

export function publicRoutes(app: FastifyInstance, ready: () => Promise<void>): readonly KnownPath[] {
  app.get('/health/live', async (_request, reply) => {
    reply.header('cache-control', 'no-store')
    return { status: 'ok' }
  })
  app.get('/health/ready', async (_request, reply) => {
    await ready()
    reply.header('cache-control', 'no-store')
    return { status: 'ok' }
  })
  app.get('/', async (_request, reply) => reply.redirect('/app'))
  return ['/health/live', '/health/ready', '/'].map((path) => ({ method: 'GET', path }))
}
