// Builds the console. During development, serves the console beside the service that `npm run dev` starts
// (docs/console.md).
import react from '@vitejs/plugin-react'
import { defineConfig, type Plugin } from 'vite'
import { ROUTES } from '../src/contract/key-routes.ts'
import { SESSION_ROUTES } from '../src/contract/signed-in-routes.ts'

const SERVICE = process.env['VITRINE_URL'] ?? 'http://127.0.0.1:3000'

/** Paths that the development server passes on to the service. */
const PATHS = ['/auth', '/users', '/teams', '/invitations', '/instance', '/health', '/openapi.json', '/docs']

/** Provides `virtual:routes`: method and path of each operation that needs an access token, without schemas. */
function routes(): Plugin {
  const [name, resolved] = ['virtual:routes', '\0virtual:routes']
  return {
    name: 'routes',
    resolveId: (id) => (id === name ? resolved : undefined),
    load(id) {
      if (id !== resolved) return undefined
      const table = Object.entries({ ...ROUTES, ...SESSION_ROUTES }).map(([operation, { method, path }]) => [
        operation,
        [method, path],
      ])
      return `export const routes = ${JSON.stringify(Object.fromEntries(table))}`
    },
  }
}

// Vite looks for a default export here.
// oxlint-disable-next-line no-restricted-exports
export default defineConfig({
  root: import.meta.dirname,
  base: '/app/',
  plugins: [react(), routes()],
  build: {
    target: 'es2023',
    // Inline no files, because data URLs and inline scripts would need exceptions in the content security policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    emptyOutDir: true,
  },
  server: {
    // The service compares Origin with Host, so Host must stay as the browser sent it.
    proxy: Object.fromEntries(PATHS.map((path) => [path, { target: SERVICE, changeOrigin: false }])),
  },
})
