// Reads Scalar's standalone script from its package. `npm run prepare` writes the script to a file for the bundled
// service. Only a service that runs from source calls this function.
import { fastify } from 'fastify'

/** Returns about 4 MB of JavaScript for the browser. */
export async function standaloneScript(): Promise<string> {
  const { default: scalar } = await import('@scalar/fastify-api-reference')
  const app = fastify({ logger: false })
  await app.register(scalar, { routePrefix: '/docs', configuration: { content: { openapi: '3.1.0' } } })
  const response = await app.inject('/docs/js/scalar.js')
  if (response.statusCode !== 200)
    throw new Error(`@scalar/fastify-api-reference returned no script: ${response.statusCode}`)
  return response.body
}
