import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { startApp, type TestApp } from '../../test/support/app.ts'

describe('the console’s files', () => {
  let folder: string
  let app: TestApp
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'vitrine-console-'))
    await mkdir(join(folder, 'assets'))
    await writeFile(join(folder, 'index.html'), '<!doctype html><p>page')
    await writeFile(join(folder, 'assets/a-1.js'), 'whole()')
    await writeFile(join(folder, 'assets/a-1.js.gz'), gzipSync('whole()'))
    app = await startApp({ consoleDir: folder })
  })
  after(async () => {
    await app[Symbol.asyncDispose]()
    await rm(folder, { recursive: true })
  })

  test('any path of the console returns its page, with a strict content security policy', async () => {
    for (const path of ['/app', '/app/', '/app/t/acme/members', '/app/sign-in?next=%2Fapp']) {
      const answer = await app.ask('GET', path)
      assert.deepEqual([answer.status, answer.text], [200, '<!doctype html><p>page'], path)
      assert.equal(answer.headers.get('content-type'), 'text/html; charset=utf-8')
      assert.equal(answer.headers.get('cache-control'), 'no-cache')
      const csp = answer.headers.get('content-security-policy') ?? ''
      assert.match(csp, /^default-src 'none'; script-src 'self'; style-src 'self';/)
      assert.match(csp, /frame-ancestors 'none'; require-trusted-types-for 'script'$/)
    }
  })

  test('a client that already has the console’s current page gets 304 without a body', async () => {
    const etag = (await app.ask('GET', '/app')).headers.get('etag') ?? ''
    const again = await app.ask('GET', '/app/t/acme', { headers: { 'if-none-match': etag } })
    assert.deepEqual([again.status, again.text], [304, ''])
  })

  test('an asset of the console is immutable, and is compressed for clients that accept this', async () => {
    const encodings = { 'gzip, br': 'gzip', 'gzip;q=0': null, identity: null } as const
    for (const [accepted, encoding] of Object.entries(encodings)) {
      const answer = await app.ask('GET', '/app/assets/a-1.js', { headers: { 'accept-encoding': accepted } })
      assert.deepEqual([answer.text, answer.headers.get('content-encoding')], ['whole()', encoding], accepted)
      assert.match(answer.headers.get('cache-control') ?? '', /immutable/)
      assert.equal(answer.headers.get('vary'), 'accept-encoding')
    }
  })

  test('a file of the console is read only once', async () => {
    const path = join(folder, 'assets/b-1.js')
    await writeFile(path, 'once()')
    await using fresh = await startApp({ consoleDir: folder })
    assert.equal((await fresh.ask('GET', '/app/assets/b-1.js')).text, 'once()')
    await rm(path)
    assert.equal((await fresh.ask('GET', '/app/assets/b-1.js')).text, 'once()')
  })

  test('an unknown file and a path outside the console’s folder are answered 404', async () => {
    for (const path of [
      '/app/assets/a-2.js',
      '/app/assets/a-1.js.gz',
      '/app/favicon.ico',
      '/app/..%2f..%2fpackage.json',
      '/app/%2e%2e/%2e%2e/package.json',
      '/app/assets/..%2f..%2f..%2fetc%2fpasswd',
    ]) {
      const answer = await app.ask('GET', path)
      assert.deepEqual([answer.status, answer.json?.code], [404, 'NOT_FOUND'], path)
    }
    assert.equal((await app.ask('POST', '/app')).status, 405)
  })

  test('if the console was not built, the answer is 503 and says why', async () => {
    await using bare = await startApp({ consoleDir: join(folder, 'nowhere') })
    const answer = await bare.ask('GET', '/app')
    assert.equal(answer.status, 503)
    assert.match(answer.text, /^The console is not built\./)
  })
})
