// Tests which addresses a connection may use, and that only Google's address gets a token.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { PROJECT, startShop } from '../../../../test/support/bigquery-shop.ts'
import { TestDoor } from '../../../../test/support/bigquery-door.ts'
import { createBigQueryDriver } from '../driver.ts'

const soon = () => AbortSignal.timeout(60_000)

describe('an address', () => {
  const refused: readonly (readonly [string, boolean, RegExp])[] = [
    ['http://127.0.0.1:9', false, /VITRINE_ALLOW_PRIVATE_HOSTS=1/],
    ['http://localhost:9', false, /VITRINE_ALLOW_PRIVATE_HOSTS=1/],
    ['http://[::1]:9', false, /VITRINE_ALLOW_PRIVATE_HOSTS=1/],
    ['http://2130706433:9', false, /VITRINE_ALLOW_PRIVATE_HOSTS=1/],
    ['http://169.254.169.254', true, /metadata service/],
    ['http://[fd00:ec2::254]', true, /metadata service/],
    ['http://127.0.0.1:9', true, /nothing listens/],
  ]
  for (const [apiEndpoint, allowPrivateHosts, message] of refused) {
    test(`connecting to ${apiEndpoint} with private hosts ${allowPrivateHosts ? 'allowed' : 'not allowed'} fails with a sentence`, async () => {
      await using driver = await createBigQueryDriver({ allowEndpoint: true })
      const settings = driver.settings({
        connectionMode: 'SERVICE_ACCOUNT',
        database: PROJECT,
        config: { apiEndpoint },
        secrets: {},
      })
      await assert.rejects(driver.connect(settings, { allowPrivateHosts }, soon()), {
        code: 'DATASOURCE_UNAVAILABLE',
        message,
      })
    })
  }

  test('if an address never answers, connecting to it ends when the caller aborts', async () => {
    await using double = await startShop()
    double.rig('datasets', 'hang', 9)
    await using driver = await createBigQueryDriver({ allowEndpoint: true })
    const settings = driver.settings({
      connectionMode: 'SERVICE_ACCOUNT',
      database: PROJECT,
      config: { apiEndpoint: double.url },
      secrets: {},
    })
    const gone = new AbortController()
    const connecting = driver.connect(settings, { allowPrivateHosts: true }, gone.signal)
    connecting.catch(() => undefined)
    while (double.requests.length === 0) await new Promise((resolve) => setImmediate(resolve))
    gone.abort(new Error('gone'))
    await assert.rejects(connecting, /gone/)
  })

  test('the sockets to an address are closed with the last connection to it', async () => {
    await using double = await startShop()
    await using driver = await createBigQueryDriver({ allowEndpoint: true })
    const settings = driver.settings({
      connectionMode: 'SERVICE_ACCOUNT',
      database: PROJECT,
      config: { apiEndpoint: double.url },
      secrets: {},
    })
    const one = await driver.connect(settings, { allowPrivateHosts: true }, soon())
    const two = await driver.connect(settings, { allowPrivateHosts: true }, soon())
    await one[Symbol.asyncDispose]()
    assert.equal((await two.introspect(soon())).tables.length, 2)
    await two[Symbol.asyncDispose]()
    while ((await double.sockets()) > 0) await new Promise((resolve) => setImmediate(resolve))
  })
})

describe('the identity of the machine', () => {
  test('if the machine has no identity, the error does not say where the library searched for it', async () => {
    const before = process.env['GOOGLE_APPLICATION_CREDENTIALS']
    process.env['GOOGLE_APPLICATION_CREDENTIALS'] = '/nowhere/CANARY.json'
    try {
      await using driver = await createBigQueryDriver({ allowApplicationDefault: true })
      const settings = driver.settings({ connectionMode: 'APPLICATION_DEFAULT', database: PROJECT, secrets: {} })
      await assert.rejects(
        driver.connect(settings, { allowPrivateHosts: true }, soon()),
        (error: Error & { code?: string }) => {
          assert.equal(error.code, 'DATASOURCE_UNAVAILABLE')
          assert.match(error.message, /give no token/)
          assert.doesNotMatch(error.message, /CANARY|nowhere/)
          return true
        },
      )
    } finally {
      if (before === undefined) delete process.env['GOOGLE_APPLICATION_CREDENTIALS']
      else process.env['GOOGLE_APPLICATION_CREDENTIALS'] = before
    }
  })
})

test('no token is sent to an address that the datasource names', async () => {
  const door = new TestDoor()
  await using double = await startShop()
  await using driver = await createBigQueryDriver({ allowEndpoint: true })
  const secrets = { serviceAccountKey: door.keyFile() }
  const settings = driver.settings({
    connectionMode: 'SERVICE_ACCOUNT',
    database: PROJECT,
    config: { apiEndpoint: double.url },
    secrets,
  })
  await using connection = await driver.connect(settings, { allowPrivateHosts: true }, soon())
  await connection.introspect(soon())
  assert.deepEqual(
    double.requests.filter(({ authorization }) => authorization !== undefined),
    [],
  )
  assert.deepEqual(double.violations, [])
})
