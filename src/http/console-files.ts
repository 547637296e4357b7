// Serves the built console under /app. A file is read at its first request, and stays in memory.
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { AppError } from '../errors.ts'
import { loadOnce, sendShared } from './shared-bytes.ts'
import type { KnownPath } from './unknown-route.ts'

/** The path of the built console differs between the bundle (`dist/main.js`) and a checkout. */
const BUNDLED = !import.meta.url.endsWith('.ts')
const BUILT = fileURLToPath(new URL(BUNDLED ? './console' : '../../dist/console', import.meta.url))

/** The page has no inline scripts or styles, so the policy needs no nonce. */
const CSP = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ')

const TYPES: ReadonlyMap<string, string> = new Map([
  ['.html', 'text/html; charset=utf-8'],
  ['.js', 'text/javascript; charset=utf-8'],
  ['.css', 'text/css; charset=utf-8'],
  ['.svg', 'image/svg+xml'],
])

const ENCODINGS = [
  { name: 'br', suffix: '.br', accepted: /\bbr\b(?!\s*;\s*q=0(?:\.0+)?\s*(?:,|$))/ },
  { name: 'gzip', suffix: '.gz', accepted: /\bgzip\b(?!\s*;\s*q=0(?:\.0+)?\s*(?:,|$))/ },
] as const

/** The answer to every path of the console, such as /app/t/acme. */
const PAGE = 'index.html'
/** Vite adds a hash of the content to the names of files in this folder. */
const HASHED = 'assets/'

interface Built {
  readonly bytes: () => Promise<Buffer>
  readonly etag: string
}

/** Returns the paths of the routes. */
export function consoleRoutes(app: FastifyInstance, folder = BUILT): readonly KnownPath[] {
  let files: ReadonlyMap<string, Built> | null = null
  const serve = async (request: FastifyRequest<{ Params: { '*'?: string } }>, reply: FastifyReply) => {
    files ??= await filesIn(folder)
    if (files === null) return reply.code(503).type('text/plain; charset=utf-8').send(NOT_BUILT)
    const wanted = request.params['*'] ?? ''
    const name = files.has(wanted) || wanted.startsWith(HASHED) || extname(wanted) !== '' ? wanted : PAGE
    return await answer(files, name, request, reply)
  }
  for (const path of ['/app', '/app/*']) app.get(path, serve)
  return ['/app', '/app/*'].map((path) => ({ method: 'GET', path }))
}

const NOT_BUILT = 'The console is not built. Run npm run prepare, or see docs/console.md to run it from source.\n'

async function answer(
  files: ReadonlyMap<string, Built>,
  name: string,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const type = TYPES.get(extname(name))
  if (type === undefined || !files.has(name)) throw new AppError('NOT_FOUND', 'There is no such route.')
  const accepts = request.headers['accept-encoding'] ?? ''
  const encoding = ENCODINGS.find(({ suffix, accepted }) => accepted.test(accepts) && files.has(name + suffix))
  const file = files.get(name + (encoding?.suffix ?? ''))
  if (file === undefined) throw new AppError('NOT_FOUND', 'There is no such route.')
  reply
    .header('content-security-policy', CSP)
    .header('cross-origin-opener-policy', 'same-origin')
    // With no-referrer, browsers would send Origin: null with the console's own requests.
    .header('referrer-policy', 'same-origin')
    .header('cache-control', name.startsWith(HASHED) ? 'public, max-age=31536000, immutable' : 'no-cache')
    .header('vary', 'accept-encoding')
    .header('etag', file.etag)
  if (request.headers['if-none-match'] === file.etag) return reply.code(304).send()
  if (encoding !== undefined) reply.header('content-encoding', encoding.name)
  return sendShared(reply.type(type), await file.bytes())
}

/** Null if the console is not built. */
async function filesIn(folder: string): Promise<ReadonlyMap<string, Built> | null> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => [])
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  const files = new Map<string, Built>()
  for (const path of paths) {
    const name = path.slice(folder.length + 1)
    const bytes = loadOnce(() => readFile(path))
    // A name with a hash changes with the content, so the name can be the ETag, and the file need not be read yet.
    const version = name.startsWith(HASHED) ? name.slice(HASHED.length) : hashOf(await bytes())
    files.set(name, { bytes, etag: `"${version}"` })
  }
  return files.has(PAGE) ? files : null
}

function hashOf(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('base64url').slice(0, 27)
}
