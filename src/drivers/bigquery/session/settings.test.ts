// Tests which fields a BigQuery datasource accepts and refuses, and which fields the operator must allow.
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { describe, test } from 'node:test'
import { AppError } from '../../../errors.ts'
import { TestDoor } from '../../../../test/support/bigquery-door.ts'
import type { SettingsInput } from '../../driver.ts'
import { readSettings, targetOf, type Allowed } from './settings.ts'

const NOTHING: Allowed = { applicationDefault: false, endpoint: false }
const ALL: Allowed = { applicationDefault: true, endpoint: true }
const door = new TestDoor()
const CANARY = 'CANARY-IN-THE-KEY'

function input(more: object = {}, key: string | null = door.keyFile()): SettingsInput {
  const secrets = key === null ? {} : { serviceAccountKey: key }
  return { connectionMode: 'SERVICE_ACCOUNT', database: 'vitrine-test', secrets, ...more }
}

function detailsOf(allowed: Allowed, given: SettingsInput): readonly string[] {
  try {
    readSettings(allowed, given)
  } catch (error) {
    assert.ok(error instanceof AppError && error.code === 'INVALID_REQUEST', String(error))
    const details = error.extra['details']
    assert.ok(Array.isArray(details))
    assert.doesNotMatch(JSON.stringify([error.message, details]), /CANARY|PRIVATE KEY|MII/)
    return details
  }
  return []
}

const pem = (type: 'rsa' | 'ec') =>
  type === 'rsa'
    ? generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey.export({ type: 'pkcs8', format: 'pem' })
    : generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' })

/** Creating a real key of this size takes long, so the factors of this RSA key (PKCS #1) are not primes. */
function hugeKey(bits: number): string {
  const tagged = (tag: number, of: Buffer): Buffer => {
    const length = Buffer.from([0x83, of.length >> 16, (of.length >> 8) & 255, of.length & 255])
    return Buffer.concat([Buffer.from([tag]), length, of])
  }
  const odd = (size: number): Buffer => tagged(2, Buffer.concat([Buffer.from([0]), Buffer.alloc(size, 0xa5)]))
  const [whole, half] = [bits / 8, bits / 16]
  const numbers = [tagged(2, Buffer.from([0])), odd(whole), odd(2), odd(whole), ...Array(5).fill(odd(half))]
  const base64 = tagged(0x30, Buffer.concat(numbers)).toString('base64').replace(/.{64}/g, '$&\n')
  return `-----BEGIN RSA PRIVATE KEY-----\n${base64}\n-----END RSA PRIVATE KEY-----\n`
}

describe('a service account’s key', () => {
  const refused: readonly (readonly [string, string, RegExp])[] = [
    ['that is not JSON', `{"type": "${CANARY}"`, /serviceAccountKey: is not JSON/],
    ['that is a string', `"${CANARY}"`, /serviceAccountKey: must be a JSON object/],
    ['that is a list', '[]', /must be a JSON object/],
    ['that is empty', '', /is not JSON/],
    ['of another type', door.keyFile({ type: 'external_account' }), /type must be service_account/],
    ['of a person', door.keyFile({ type: 'authorized_user' }), /type must be service_account/],
    [
      'with a token_uri of another host',
      door.keyFile({ token_uri: `https://${CANARY}.example/token` }),
      /token_uri must be/,
    ],
    [
      'with a token_uri that only begins correctly',
      door.keyFile({ token_uri: 'https://oauth2.googleapis.com/token@evil' }),
      /token_uri/,
    ],
    ['without a token_uri', door.keyFile({ token_uri: undefined }), /token_uri/],
    ['of another universe', door.keyFile({ universe_domain: 'evil.example' }), /universe_domain/],
    ['without a private key', door.keyFile({ private_key: undefined }), /private_key/],
    [
      'with a broken private key',
      door.keyFile({ private_key: `-----BEGIN PRIVATE KEY-----\n${CANARY}\n` }),
      /private_key/,
    ],
    ['with a key that is too short', door.keyFile({ private_key: pem('rsa') }), /private_key/],
    ['with a key of 16,384 bits', door.keyFile({ private_key: hugeKey(16_384) }), /private_key/],
    ['with a key of 65,536 bits', door.keyFile({ private_key: hugeKey(65_536) }), /private_key/],
    ['with a key of another kind', door.keyFile({ private_key: pem('ec') }), /private_key/],
    [
      'with an e-mail address that contains a line break',
      door.keyFile({ client_email: 'a@b.c\r\nx: y' }),
      /client_email/,
    ],
    ['with an invalid key id', door.keyFile({ private_key_id: '../x' }), /private_key_id/],
    ['that is too long', ' '.repeat(70_000), /too long/],
  ]
  for (const [what, key, detail] of refused) {
    test(`a service account’s key ${what} is refused with the name of the field, and no value is repeated`, () => {
      const details = detailsOf(NOTHING, input({}, key))
      assert.ok(
        details.some((each) => detail.test(each)),
        JSON.stringify(details),
      )
    })
  }

  test("a service account's key from Google is stored unchanged", () => {
    const key = door.keyFile()
    const settings = readSettings(NOTHING, input({ config: { location: 'EU', datasets: ['shop'] } }, key))
    assert.deepEqual(settings, {
      connectionMode: 'SERVICE_ACCOUNT',
      host: null,
      port: null,
      database: 'vitrine-test',
      username: null,
      sslMode: null,
      config: { location: 'EU', datasets: ['shop'] },
      secrets: { serviceAccountKey: key },
    })
    assert.equal(targetOf(NOTHING, settings).endpoint, 'https://bigquery.googleapis.com')
    assert.equal(targetOf(NOTHING, settings).credentials.kind, 'service account')
  })

  test("a service account's key may have a byte order mark, and line breaks that are escaped twice", () => {
    const file = door.keyFile()
    const escaped = file.replaceAll('\\n', '\\\\n')
    assert.notEqual(escaped, file)
    for (const key of [`\uFEFF${file}`, escaped]) {
      assert.equal(targetOf(NOTHING, readSettings(NOTHING, input({}, key))).credentials.kind, 'service account')
    }
  })

  test("Google's address requires a service account's key", () => {
    assert.match(detailsOf(NOTHING, input({}, null)).join(), /serviceAccountKey: is required/)
  })
})

describe('the fields of a connection', () => {
  const refused: readonly (readonly [object, RegExp])[] = [
    [{ connectionMode: 'DIRECT' }, /connectionMode: must be SERVICE_ACCOUNT or APPLICATION_DEFAULT/],
    [{ connectionMode: undefined }, /connectionMode/],
    [{ host: 'bigquery.googleapis.com' }, /host: does not apply/],
    [{ port: 443 }, /port: does not apply/],
    [{ username: 'x' }, /username: does not apply/],
    [{ sslMode: 'prefer' }, /sslMode/],
    [{ database: undefined }, /database/],
    [{ database: 'Not A Project' }, /database: must be a project id/],
    [{ database: '../../evil' }, /database/],
    [{ database: 'a-project/datasets' }, /database/],
    [{ config: [] }, /config: must be an object/],
    [{ config: { nonsense: 1 } }, /config.nonsense: is not a setting/],
    [{ config: { location: 'EU; DROP' } }, /config.location/],
    [{ config: { datasets: 'shop' } }, /config.datasets/],
    [{ config: { datasets: ['shop', 'a.b'] } }, /config.datasets.1/],
    [{ config: { datasets: ['shop', 'shop'] } }, /config.datasets: contains a dataset twice/],
    [{ config: { billingProject: 'X' } }, /config.billingProject/],
    [{ config: { emulator: true } }, /config.emulator: is allowed only with config.apiEndpoint/],
    [{ config: { emulator: 1, apiEndpoint: 'http://localhost:1' } }, /config.emulator: must be true or false/],
    ...[
      'ftp://x',
      'http://u:p@x',
      'http://x/path',
      'http://x?y',
      'x',
      'http://',
      'http://a b',
      'file:///etc/passwd',
    ].map((apiEndpoint) => [{ config: { apiEndpoint } }, /config.apiEndpoint/] as const),
  ]
  for (const [more, detail] of refused) {
    test(`a connection with ${JSON.stringify(more)} is refused`, () => {
      const details = detailsOf(ALL, input(more))
      assert.ok(
        details.some((each) => detail.test(each)),
        JSON.stringify(details),
      )
    })
  }

  test('a secret that another kind of database uses is refused', () => {
    const given = { ...input(), secrets: { serviceAccountKey: door.keyFile(), password: CANARY } }
    assert.match(detailsOf(ALL, given).join(), /password: is not a secret of BIGQUERY/)
  })

  test('in the settings, the id of the project may contain a domain', () => {
    assert.equal(readSettings(NOTHING, input({ database: 'example.com:lake-1' })).database, 'example.com:lake-1')
  })
})

describe('settings that only the operator can allow', () => {
  const mode = { connectionMode: 'APPLICATION_DEFAULT' }
  const endpoint = { config: { apiEndpoint: 'http://127.0.0.1:9050/', emulator: true } }

  test('settings that the operator does not allow are refused by name', () => {
    assert.match(detailsOf(NOTHING, input(mode, null)).join(), /VITRINE_ALLOW_APPLICATION_DEFAULT=1/)
    assert.match(
      detailsOf(NOTHING, input(endpoint)).join(),
      /config.apiEndpoint: needs VITRINE_ALLOW_BIGQUERY_ENDPOINT=1/,
    )
    assert.match(detailsOf(NOTHING, input(endpoint)).join(), /config.emulator: needs VITRINE_ALLOW_BIGQUERY_ENDPOINT=1/)
  })

  test('when the operator withdraws a permission, stored settings that need it cannot be used any more', () => {
    const settings = readSettings(ALL, input(endpoint, null))
    assert.equal(targetOf(ALL, settings).endpoint, 'http://127.0.0.1:9050')
    assert.throws(() => targetOf(NOTHING, settings), { code: 'DATASOURCE_UNAVAILABLE' })
    assert.throws(() => targetOf(NOTHING, readSettings(ALL, input(mode, null))), { code: 'DATASOURCE_UNAVAILABLE' })
  })

  test("an address that is not Google's gets no credentials, neither stored keys nor the identity of the machine", () => {
    for (const given of [input(endpoint), input(endpoint, null), input({ ...mode, ...endpoint }, null)]) {
      assert.deepEqual(targetOf(ALL, readSettings(ALL, given)).credentials, { kind: 'none' })
    }
    const key = readSettings(ALL, input(endpoint)).secrets['serviceAccountKey']
    assert.equal(key?.includes('service_account'), true)
    assert.match(detailsOf(ALL, input(mode)).join(), /cannot be combined with APPLICATION_DEFAULT/)
    assert.match(detailsOf(ALL, input(endpoint, door.keyFile({ type: 'external_account' }))).join(), /type must be/)
  })
})
