import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { newId } from './ids.ts'
import { openSecrets, requireKeyOf, rootKeysOf, secretsFrom, type SecretPlace } from './secrets.ts'
import { openStore } from './store/open.ts'
import { storeSource } from '../test/support/stores.ts'

const place: SecretPlace = { teamId: newId(), datasourceId: newId(), field: 'password' }
const secrets = secretsFrom(new Uint8Array(32).fill(1))
const keys = (byte: number) => rootKeysOf({ dataDir: '', secretKey: new Uint8Array(32).fill(byte) }, true)
const TEXT = 'pässwörd, long enough to be seen'

const refuses = (place: SecretPlace, sealed: string, by = secrets) =>
  assert.throws(
    () => by.open(place, sealed),
    (error: Error) => {
      assert.ok(!error.message.includes(TEXT) && !error.message.includes(sealed))
      return true
    },
  )

describe('a sealed secret', () => {
  const sealed = secrets.seal(place, TEXT)

  test('a sealed value opens for its own place, and sealing the same text again gives another value', () => {
    assert.equal(secrets.open(place, sealed), TEXT)
    assert.notEqual(secrets.seal(place, TEXT), sealed)
    assert.equal(secrets.open(place, secrets.seal(place, '')), '')
    assert.ok(!Buffer.from(sealed.split('.')[2] ?? '', 'base64url').includes('long enough'))
  })

  test('a sealed value does not open for another team, datasource or field', () => {
    refuses({ ...place, teamId: newId() }, sealed)
    refuses({ ...place, datasourceId: newId() }, sealed)
    refuses({ ...place, field: 'uri' }, sealed)
    refuses({ ...place, teamId: place.datasourceId, datasourceId: place.teamId } as never, sealed)
  })

  test('a sealed value does not open if it was changed or cut, or has another version', () => {
    const [version, id, encoded] = sealed.split('.')
    const body = Buffer.from(encoded ?? '', 'base64url')
    for (let bit = 0; bit < body.length * 8; bit++) {
      const flipped = Buffer.from(body)
      flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7))
      refuses(place, `${version}.${id}.${flipped.toString('base64url')}`)
    }
    for (const broken of [
      '.',
      'v1.x',
      `v2.${id}.${encoded}`,
      `v1.${id}.${body.subarray(0, 20).toString('base64url')}`,
    ]) {
      refuses(place, broken)
    }
  })

  test('the error for a value that was sealed with another root key says so', () => {
    const other = secretsFrom(new Uint8Array(32).fill(2))
    assert.throws(() => other.open(place, sealed), /another VITRINE_SECRET_KEY/)
    refuses(place, sealed.replace(/\.[0-9a-f]{8}\./, `.${other.seal(place, '').split('.')[1]}.`), other)
  })
})

describe('the root key', () => {
  const dir = mkdtempSync(join(tmpdir(), 'vt-secrets-'))
  after(() => rmSync(dir, { recursive: true, force: true }))

  test('the root key is created once, and only its owner can read the file', async () => {
    const dataDir = join(dir, 'data')
    const [first, second] = await Promise.all([
      openSecrets({ dataDir, secretKey: null }),
      openSecrets({ dataDir, secretKey: null }),
    ])
    const sealed = first.seal(place, TEXT)
    assert.equal(second.open(place, sealed), TEXT)
    assert.equal((await openSecrets({ dataDir, secretKey: null })).open(place, sealed), TEXT)
    assert.equal(statSync(join(dataDir, 'secret.key')).mode & 0o777, 0o600)
    assert.equal(statSync(dataDir).mode & 0o777, 0o700)
    assert.equal(Buffer.from(readFileSync(join(dataDir, 'secret.key'), 'utf8'), 'base64').length, 32)
  })

  test('a damaged file of the root key is not replaced', async () => {
    const dataDir = join(dir, 'broken')
    await openSecrets({ dataDir, secretKey: null })
    writeFileSync(join(dataDir, 'secret.key'), 'short')
    await assert.rejects(openSecrets({ dataDir, secretKey: null }), /does not contain a key of 32 bytes/)
    assert.equal(readFileSync(join(dataDir, 'secret.key'), 'utf8'), 'short')
  })

  test('a root key is refused if the store was written with another one', async () => {
    await using source = await storeSource('sqlite')
    await using store = await openStore(await source.config())
    await requireKeyOf(store, await keys(1))
    await requireKeyOf(store, await keys(1))
    await assert.rejects(requireKeyOf(store, await keys(2)), /another VITRINE_SECRET_KEY/)
  })

  test('each purpose gets a different key from the root key', () => {
    const labels = ['sign-in', 'setup token', 'datasource secrets'].map((label) =>
      Buffer.from(secrets.derive(label)).toString('hex'),
    )
    assert.equal(new Set(labels).size, 3)
    assert.equal(labels[0]?.length, 64)
  })
})
