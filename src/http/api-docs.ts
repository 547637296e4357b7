// Serves /openapi.json for programs and /docs for people, without scripts, fonts or telemetry of other hosts.
import { readFile } from 'node:fs/promises'
import type { FastifyInstance } from 'fastify'
import { compressed, encodingOf } from './compress.ts'
import { loadOnce, sendShared } from './shared-bytes.ts'
import type { KnownPath } from './unknown-route.ts'

/** The paths of openapi.json and scalar.js differ between the bundle (`dist/main.js`) and a checkout. */
const BUNDLED = !import.meta.url.endsWith('.ts')

/** The page creates inline styles. Everything else must come from this server. */
const CSP = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data: blob:",
  "font-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

const PAGE = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <title>Vitrine API</title>
  </head>
  <body>
    <div id="app"></div>
    <noscript>The description of this interface is at <a href="/openapi.json">/openapi.json</a>.</noscript>
    <script src="/docs/scalar.js"></script>
    <script src="/docs/start.js"></script>
  </body>
</html>
`

const START = `Scalar.createApiReference('#app', {
  url: '/openapi.json',
  withDefaultFonts: false,
  telemetry: false,
  hideClientButton: true,
  showDeveloperTools: 'never',
  agent: { disabled: true },
  mcp: { disabled: true },
})
`

export function docsRoutes(app: FastifyInstance): readonly KnownPath[] {
  const serve = (path: string, type: string, load: () => Promise<Buffer>) => {
    const plain = loadOnce(load)
    const packed = {
      br: loadOnce(async () => compressed(await plain(), 'br')),
      gzip: loadOnce(async () => compressed(await plain(), 'gzip')),
    }
    app.get(path, async (request, reply) => {
      const encoding = encodingOf(request.headers['accept-encoding'])
      const body = encoding === null ? null : await packed[encoding]()
      reply
        .header('content-type', `${type}; charset=utf-8`)
        .header('cache-control', 'no-cache')
        .header('content-security-policy', CSP)
        .header('referrer-policy', 'no-referrer')
        .header('vary', 'accept-encoding')
      if (body === null) return sendShared(reply, await plain())
      return sendShared(reply.header('content-encoding', encoding), body)
    })
    return { method: 'GET', path }
  }
  return [
    serve('/openapi.json', 'application/json', () =>
      readFile(new URL(BUNDLED ? './openapi.json' : '../../openapi.json', import.meta.url)),
    ),
    serve('/docs', 'text/html', async () => Buffer.from(PAGE)),
    serve('/docs/start.js', 'text/javascript', async () => Buffer.from(START)),
    serve('/docs/scalar.js', 'text/javascript', scalarScript),
  ]
}

/** Returns Scalar's standalone script: from a file beside the bundle, or in a checkout, from the package. */
async function scalarScript(): Promise<Buffer> {
  if (BUNDLED) return readFile(new URL('./scalar.js', import.meta.url))
  const { standaloneScript } = await import('./scalar-script.ts')
  return Buffer.from(await standaloneScript())
}
