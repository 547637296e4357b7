// Fetches an npm package that few starts need, once for each user of the machine. npm reads it from its cache or
// downloads it, and compares it with the given hash. No script of the package runs. This file must also run under Node
// 20.
import { execFile } from 'node:child_process'
import { access, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

export interface Pinned {
  readonly name: string
  readonly version: string
  /** The hash, in the format of npm's lock file. */
  readonly integrity: string
}

const PATIENCE_MS = 300_000

/** Calls `say` before a download. Throws an Error for the operator if npm cannot fetch the package. */
export async function fetchPackage(
  pinned: Pinned,
  options: { readonly say: (line: string) => void; readonly signal?: AbortSignal; readonly cache?: string },
): Promise<string> {
  const { name, version } = pinned
  const cache = options.cache ?? join(homedir(), '.cache', 'vitrine')
  const folder = join(cache, `${name.replace('/', '+')}-${version}`)
  const found = join(folder, 'node_modules', name)
  if (await exists(found)) return found
  options.say(`Fetching ${name} ${version} from npm into ${cache} (once).`)
  await mkdir(cache, { recursive: true, mode: 0o700 })
  const making = await mkdtemp(`${folder}-`)
  try {
    await install(pinned, making, options.signal)
    // Another process may have installed the same package first.
    await rename(making, folder).catch(async (error: unknown) => {
      if (!(await exists(found))) throw error
    })
  } finally {
    await rm(making, { recursive: true, force: true })
  }
  return found
}

/** npm checks the hash only with a lock file. */
async function install({ name, version, integrity }: Pinned, folder: string, signal?: AbortSignal): Promise<void> {
  const dependencies = { [name]: version }
  const packages = { '': { dependencies }, [`node_modules/${name}`]: { version, integrity } }
  await writeFile(join(folder, 'package.json'), JSON.stringify({ private: true, dependencies }))
  await writeFile(join(folder, 'package-lock.json'), JSON.stringify({ lockfileVersion: 3, requires: true, packages }))
  const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--no-bin-links', '--prefer-offline']
  try {
    await promisify(execFile)('npm', [...args, '--global=false', '--loglevel=error', '--fetch-retries=1'], {
      cwd: folder,
      timeout: PATIENCE_MS,
      ...(signal !== undefined && { signal }),
    })
  } catch (error) {
    signal?.throwIfAborted()
    throw new Error(`${name} ${version} could not be fetched from npm: ${reasonOf(error)}`, { cause: error })
  }
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if ('code' in error && error.code === 'ENOENT') return 'there is no npm on the PATH.'
  const lines = 'stderr' in error && typeof error.stderr === 'string' ? error.stderr.split('\n') : []
  const said = lines.map((line) => line.replace(/^npm (?:error|ERR!) ?/, '')).filter((line) => /\S\s+\S/.test(line))
  return `${(said[0] ?? error.message).slice(0, 300)}`
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}
