// Scalar's standalone script, taken out of the package that carries it inside. Used by `npm run prepare`, which keeps
// it as a file beside the bundle, and by a service run from its source; never by the bundle.
import { fastify } from 'fastify'

/** About 4 MB of JavaScript for the browser. */
export async function standaloneScript(): Promise<string> {
  const { default: scalar } = await import('@scalar/fastify-api-reference')
  const shelf = fastify({ logger: false })
  await shelf.register(scalar, { routePrefix: '/docs', configuration: { content: { openapi: '3.1.0' } } })
  const response = await shelf.inject('/docs/js/scalar.js')
  if (response.statusCode !== 200)
    throw new Error(`@scalar/fastify-api-reference gave no script: ${response.statusCode}`)
  return response.body
}
