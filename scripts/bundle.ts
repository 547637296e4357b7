// Bundles the server and the console into dist/, so that the server starts faster and with less memory than from
// source. `npm run prepare` and `npm ci` run this script. Lazily loaded modules stay separate files.
import { existsSync } from 'node:fs'
import { cp, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'
import { buildConsole } from '../console/build.ts'
import { standaloneScript } from '../src/http/scalar-script.ts'
import { licensesOf, nodeLicense, packagesOf } from './licenses.ts'

const ROOT = fileURLToPath(new URL('../', import.meta.url))

/** The entries: files that are loaded at run time by their own names. */
const ENTRIES = {
  main: 'src/main.ts',
  cli: 'src/cli.ts',
  'parse-worker': 'src/drivers/postgres/guard/parse-worker.ts',
  'judge-worker': 'src/drivers/mongodb/guard/judge-worker.ts',
  'ssh-key-worker': 'src/drivers/ssh-key-worker.ts',
}

interface Bundled {
  /** The folders of the packages whose code is in the bundle. */
  readonly packages: ReadonlySet<string>
  /** Packages whose license is not yet listed in licenses.ts. */
  readonly unread: readonly string[]
}

/** Builds the whole bundle in an empty folder, with the licenses of its packages. */
export async function bundleInto(folder: string): Promise<Bundled> {
  const [server, console] = await Promise.all([bundle(folder), buildConsole(join(folder, 'console')), copies(folder)])
  // Add Scalar's package, because its script is copied as a file and not bundled.
  const packages = packagesOf([...server, ...console, join(ROOT, 'node_modules/@scalar/fastify-api-reference')])
  const { text, problems } = await licensesOf(packages)
  const { version } = JSON.parse(await readFile(join(ROOT, 'node_modules/node/package.json'), 'utf8'))
  await writeFile(join(folder, 'THIRD-PARTY-LICENSES.txt'), `${text}\n${await nodeLicense(version)}`)
  return { packages, unread: problems }
}

/** Bundles the server into a folder. Returns the paths of the modules in the bundle. */
async function bundle(folder: string): Promise<readonly string[]> {
  const built = await rolldown({
    cwd: ROOT,
    input: Object.fromEntries(Object.entries(ENTRIES).filter(([, file]) => existsSync(join(ROOT, file)))),
    platform: 'node',
    // The native parts of pg and ssh2 are optional and not installed. scalar-script.ts is only for running from source
    // (http/api-docs.ts).
    external: ['pg-native', 'cpu-features', /\/sshcrypto\.node$/, /\/scalar-script\.ts$/],
    transform: {
      // Compile `using` declarations, because the oldest Node that src/node-version.ts allows lacks them.
      target: 'node22',
      // Define __dirname, because CommonJS packages look for files beside themselves: libpg-query looks for its .wasm.
      define: { __dirname: 'import.meta.dirname', __filename: 'import.meta.filename' },
    },
    onLog(level, log, handler) {
      if (level !== 'info' && log.code !== 'EVAL') handler(level, log)
    },
  })
  try {
    const { output } = await built.write({
      dir: folder,
      format: 'esm',
      minify: true,
      // Write all files into one flat folder, so that import.meta.url refers to this folder in an entry and in a chunk.
      entryFileNames: '[name].js',
      chunkFileNames: 'part-[name]-[hash].js',
    })
    return output.flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []))
  } finally {
    await built.close()
  }
}

/** Copies files that the bundle reads from its own folder. */
async function copies(folder: string): Promise<void> {
  await cp(join(ROOT, 'node_modules/libpg-query/wasm/libpg-query.wasm'), join(folder, 'libpg-query.wasm'))
  await cp(join(ROOT, 'openapi.json'), join(folder, 'openapi.json'))
  await writeFile(join(folder, 'scalar.js'), await standaloneScript())
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }\n')
}

/**
 * Builds the bundle in another folder, then replaces dist/ by two renames. A service that starts during the build finds
 * the old bundle complete.
 */
async function replaceDist(): Promise<void> {
  const dist = join(ROOT, 'dist')
  const made = join(ROOT, `node_modules/.bundle-${process.pid}`)
  try {
    await rm(made, { recursive: true, force: true })
    await mkdir(made)
    await bundleInto(made)
    const old = join(ROOT, `node_modules/.bundle-old-${process.pid}`)
    if (existsSync(dist)) await rename(dist, old)
    await rename(made, dist)
    await rm(old, { recursive: true, force: true })
  } finally {
    await rm(made, { recursive: true, force: true })
  }
}

if (import.meta.main) await replaceDist()
