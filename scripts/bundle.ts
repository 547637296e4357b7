// `npm run prepare` and `npm ci` bundle the server and the console into dist/. From there, the server starts faster and
// with less memory than from source. Modules that are loaded lazily stay separate files.
import { existsSync } from 'node:fs'
import { cp, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'
import { buildConsole } from '../console/build.ts'
import { standaloneScript } from '../src/http/scalar-script.ts'
import { licensesOf, nodeLicense, packagesOf } from './licenses.ts'

const ROOT = fileURLToPath(new URL('../', import.meta.url))

/** These files are loaded at run time by their own names. */
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
  /** licenses.ts does not list the licenses of these packages yet. */
  readonly unread: readonly string[]
}

/** The folder must be empty. The licenses of the packages are added. */
export async function bundleInto(folder: string): Promise<Bundled> {
  const [server, console] = await Promise.all([bundle(folder), buildConsole(join(folder, 'console')), copies(folder)])
  // Scalar's script is copied as a file and not bundled, so its package is added here.
  const packages = packagesOf([...server, ...console, join(ROOT, 'node_modules/@scalar/fastify-api-reference')])
  const { text, problems } = await licensesOf(packages)
  const { version } = JSON.parse(await readFile(join(ROOT, 'node_modules/node/package.json'), 'utf8'))
  await writeFile(join(folder, 'THIRD-PARTY-LICENSES.txt'), `${text}\n${await nodeLicense(version)}`)
  return { packages, unread: problems }
}

/** Returns the paths of the modules in the bundle. */
async function bundle(folder: string): Promise<readonly string[]> {
  const built = await rolldown({
    cwd: ROOT,
    input: Object.fromEntries(Object.entries(ENTRIES).filter(([, file]) => existsSync(join(ROOT, file)))),
    platform: 'node',
    // The native parts of pg and ssh2 are optional and not installed. scalar-script.ts is needed only from source
    // (http/api-docs.ts).
    external: ['pg-native', 'cpu-features', /\/sshcrypto\.node$/, /\/scalar-script\.ts$/],
    transform: {
      // The oldest Node that src/node-version.ts allows has no `using` declarations, so they are compiled.
      target: 'node22',
      // CommonJS packages look for files beside themselves. For example, libpg-query looks for its .wasm.
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
      // All files are in one flat folder, so import.meta.url means this folder in an entry and in a chunk.
      entryFileNames: '[name].js',
      chunkFileNames: 'part-[name]-[hash].js',
    })
    return output.flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []))
  } finally {
    await built.close()
  }
}

/** The bundle reads these files from its own folder. */
async function copies(folder: string): Promise<void> {
  await cp(join(ROOT, 'node_modules/libpg-query/wasm/libpg-query.wasm'), join(folder, 'libpg-query.wasm'))
  await cp(join(ROOT, 'openapi.json'), join(folder, 'openapi.json'))
  await writeFile(join(folder, 'scalar.js'), await standaloneScript())
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }\n')
}

/**
 * Builds the bundle in another folder, and then replaces dist/ by two renames. A service that starts during the build
 * finds the old bundle complete.
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
