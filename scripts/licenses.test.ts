// A package whose license nobody has read ends the build.
import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { licensesText, packagesOf } from './licenses.ts'

test('packages are found by the modules of the bundle', () => {
  const ids = [
    '/a/src/main.ts',
    '/a/node_modules/x/lib/y.js',
    '\0/a/node_modules/@s/p/i.js',
    '\0virtual',
    '/a/node_modules/x/z.js',
  ]
  assert.deepEqual(
    [...packagesOf([...ids, '/a/node_modules/x/node_modules/n/i.js'])],
    ['/a/node_modules/x', '/a/node_modules/@s/p', '/a/node_modules/x/node_modules/n'],
  )
})

test('a license that is not listed, or missing, is refused with the name of the package', async () => {
  const root = await mkdtemp(join(tmpdir(), 'vitrine-licenses-'))
  const made = async (name: string, more: object) => {
    const folder = join(root, name)
    await mkdir(folder)
    await writeFile(join(folder, 'package.json'), JSON.stringify({ name, version: '1.0.0', ...more }))
    await writeFile(join(folder, 'LICENSE.md'), `The terms of ${name}.\n`)
    return folder
  }
  try {
    const good = await made('good', { license: 'MIT' })
    assert.match(await licensesText([good]), /-\ngood 1\.0\.0 \(MIT\)\n-+\n\nThe terms of good\.\n$/)
    const old = await made('old', { licenses: [{ type: 'ISC', url: 'https://example.test' }] })
    assert.match(await licensesText([old]), /\nold 1\.0\.0 \(ISC\)\n/)
    const two = await made('two', { licenses: [{ type: 'ISC' }, { type: 'AGPL-3.0' }] })
    await assert.rejects(licensesText([two]), /two 1\.0\.0: /)
    const others = [await made('copyleft', { license: 'AGPL-3.0' }), await made('silent', {})]
    await assert.rejects(
      licensesText([good, ...others]),
      /:\ncopyleft 1\.0\.0: "AGPL-3\.0"\nsilent 1\.0\.0: undefined$/,
    )
  } finally {
    await rm(root, { recursive: true })
  }
})
