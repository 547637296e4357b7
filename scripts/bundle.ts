// Bundles the server and the console into dist/, so that it starts faster and with less memory than from source. `npm run prepare` runs
// it, and so does `npm ci`. Lazily loaded modules stay separate files.
import { existsSync } from 'node:fs'
import { cp, mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'
import { buildConsole } from '../console/build.ts'
import { standaloneScript } from '../src/http/scalar.ts'

const ROOT = new URL('../', import.meta.url)
/**
 * Built in another folder and swapped in by two renames: a service that starts meanwhile finds one complete bundle or
 * the other.
 */
const BUILT = new URL(`node_modules/.bundle-${process.pid}/`, ROOT)
const DIST = new URL('dist/', ROOT)

const path = (name: string, base = ROOT) => fileURLToPath(new URL(name, base))

/** These files are loaded at run time by their own names, so each is an entry. */
const ENTRIES = {
  main: 'src/main.ts',
  cli: 'src/cli.ts',
  'parse-worker': 'src/drivers/postgres/guard/parse-worker.ts',
  'judge-worker': 'src/drivers/mongodb/guard/judge-worker.ts',
}

async function bundle(): Promise<void> {
  const built = await rolldown({
    cwd: path('.'),
    input: Object.fromEntries(Object.entries(ENTRIES).filter(([, file]) => existsSync(path(file)))),
    platform: 'node',
    // pg requires its native binding; scalar.ts is for the source only (http/docs.ts).
    external: ['pg-native', /\/scalar\.ts$/],
    // CommonJS packages look for files beside themselves: libpg-query for its .wasm.
    transform: { define: { __dirname: 'import.meta.dirname', __filename: 'import.meta.filename' } },
    onLog(level, log, handler) {
      if (level !== 'info' && log.code !== 'EVAL') handler(level, log)
    },
  })
  try {
    await built.write({
      dir: path('.', BUILT),
      format: 'esm',
      minify: true,
      // One flat folder: import.meta.url then leads to the same place from an entry and from a chunk.
      entryFileNames: '[name].js',
      chunkFileNames: 'part-[name]-[hash].js',
    })
  } finally {
    await built.close()
  }
}

/** Files that the bundle reads from its own folder. */
async function copies(): Promise<void> {
  await cp(path('node_modules/libpg-query/wasm/libpg-query.wasm'), path('libpg-query.wasm', BUILT))
  await cp(path('openapi.json'), path('openapi.json', BUILT))
  await writeFile(path('scalar.js', BUILT), await standaloneScript())
  await writeFile(path('package.json', BUILT), '{ "type": "module" }\n')
}

try {
  await rm(BUILT, { recursive: true, force: true })
  await mkdir(BUILT)
  await Promise.all([bundle(), copies(), buildConsole(path('console', BUILT))])
  const old = path(`node_modules/.bundle-old-${process.pid}`)
  if (existsSync(path('dist'))) await rename(DIST, old)
  await rename(BUILT, DIST)
  await rm(old, { recursive: true, force: true })
} finally {
  await rm(BUILT, { recursive: true, force: true })
}
