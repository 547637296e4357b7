// Serves /openapi.json for programs and /docs for people. /docs is Scalar's page. The page uses no scripts, fonts,
// proxies or telemetry from other hosts. Its script is loaded on the first visit.
import { readFile } from 'node:fs/promises'
import type { FastifyInstance } from 'fastify'
import type { KnownPath } from './unknown-route.ts'

/** True in the bundle (`dist/main.js`), false in a checkout. The paths of openapi.json and scalar.js differ. */
const BUNDLED = !import.meta.url.endsWith('.ts')

/** The policy allows local sources only. It allows inline styles because the page creates them. */
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

/** Mounts the routes and returns their paths. */
export function docsRoutes(app: FastifyInstance): readonly KnownPath[] {
  const openapi = once(() =>
    readFile(new URL(BUNDLED ? './openapi.json' : '../../openapi.json', import.meta.url), 'utf8'),
  )
  const scalar = once(scalarScript)
  const serve = (path: string, type: string, text: () => Promise<string>) => {
    app.get(path, async (_request, reply) => {
      const sent = await text()
      return reply
        .header('content-type', `${type}; charset=utf-8`)
        .header('cache-control', 'no-cache')
        .header('content-security-policy', CSP)
        .header('referrer-policy', 'no-referrer')
        .send(sent)
    })
    return { method: 'GET', path }
  }
  return [
    serve('/openapi.json', 'application/json', openapi),
    serve('/docs', 'text/html', async () => PAGE),
    serve('/docs/start.js', 'text/javascript', async () => START),
    serve('/docs/scalar.js', 'text/javascript', scalar),
  ]
}

/** Loads on the first call. A failed load is not cached. */
function once(load: () => Promise<string>): () => Promise<string> {
  let loaded: Promise<string> | undefined
  return () =>
    (loaded ??= load().catch((error: unknown) => {
      loaded = undefined
      throw error
    }))
}

/**
 * Returns Scalar's standalone script. In a bundle, the script is a file beside it. In a checkout, the script is
 * extracted from the package.
 */
async function scalarScript(): Promise<string> {
  if (BUNDLED) return readFile(new URL('./scalar.js', import.meta.url), 'utf8')
  const { standaloneScript } = await import('./scalar-script.ts')
  return standaloneScript()
}
