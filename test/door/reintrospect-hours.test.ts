// Tests config.reintrospectHours over HTTP, for PostgreSQL and MongoDB. A change of this setting does not affect the
// connection.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { openShop, type Shop } from '../support/shop.ts'

const MONGO = {
  name: 'docs',
  type: 'MONGODB',
  connectionMode: 'DIRECT',
  host: '127.0.0.1',
  port: 1,
  database: 'docs',
  username: 'reader',
  password: 'pw',
  sslMode: 'disable',
  config: { authSource: 'docs', reintrospectHours: 6 },
}

describe('config.reintrospectHours', () => {
  let shop: Shop
  before(async () => {
    shop = await openShop()
  })
  after(() => shop[Symbol.asyncDispose]())

  const create = (body: object) => shop.owner.ask('POST', `/teams/${shop.teamId}/datasources`, body)

  test('reintrospectHours defaults to 24, and is shown next to the settings of the driver', async () => {
    assert.deepEqual((await shop.owner.must('GET', shop.at)).config, { reintrospectHours: 24 })
    const listed = await shop.app.must('GET', `/teams/${shop.teamId}/datasources`, { token: shop.key })
    assert.deepEqual(listed[0].config, { reintrospectHours: 24 })
    const made = await create(MONGO)
    assert.equal(made.status, 201, made.text)
    assert.deepEqual(made.json.config, { authSource: 'docs', reintrospectHours: 6 })
  })

  test('a change of reintrospectHours needs no password, and keeps the status and the other settings', async () => {
    await shop.owner.must('POST', `${shop.at}/test`)
    const changed = await shop.owner.must('PATCH', shop.at, { config: { reintrospectHours: 0 } })
    assert.deepEqual([changed.status, changed.config], ['CONNECTED', { reintrospectHours: 0 }])
    assert.equal((await shop.owner.must('PATCH', shop.at, { name: 'shop' })).config.reintrospectHours, 0)
    assert.equal((await shop.owner.must('PATCH', shop.at, { config: {} })).config.reintrospectHours, 0)
    assert.equal((await shop.query('SELECT 1')).status, 200)

    const { json: mongo } = await create(MONGO)
    const at = `/teams/${shop.teamId}/datasources/${mongo.id}`
    const hoursOnly = await shop.owner.must('PATCH', at, { config: { reintrospectHours: 720 } })
    assert.deepEqual(hoursOnly.config, { authSource: 'docs', reintrospectHours: 720 })
    const both = await shop.owner.must('PATCH', at, { config: { authSource: 'other', reintrospectHours: 1 } })
    assert.deepEqual(both.config, { authSource: 'other', reintrospectHours: 1 })
    const driver = await shop.owner.must('PATCH', at, { config: { authSource: 'third' } })
    assert.deepEqual(driver.config, { authSource: 'third', reintrospectHours: 1 })
    // A new host still needs the password.
    const moved = await shop.owner.ask('PATCH', at, { host: 'localhost', config: { reintrospectHours: 2 } })
    assert.deepEqual([moved.status, moved.json.code], [400, 'INVALID_REQUEST'])
    assert.equal((await shop.owner.must('GET', at)).config.reintrospectHours, 1)
  })

  for (const hours of [-1, 721, 1.5, '24', null, true, [24], {}, 1e300]) {
    test(`reintrospectHours of ${JSON.stringify(hours)} are refused by name, and nothing changes`, async () => {
      for (const answer of [
        await shop.owner.ask('PATCH', shop.at, { name: 'x', config: { reintrospectHours: hours } }),
        await create({ ...MONGO, config: { reintrospectHours: hours } }),
      ]) {
        assert.deepEqual([answer.status, answer.json.code], [400, 'INVALID_REQUEST'])
        assert.match(answer.json.details[0], /^config\.reintrospectHours: .*0 to 720/)
      }
      assert.notEqual((await shop.owner.must('GET', shop.at)).name, 'x')
    })
  }

  test('a change of reintrospectHours with an unknown setting is refused', async () => {
    const answer = await shop.owner.ask('PATCH', shop.at, { config: { reintrospectHours: 1, nonsense: 1 } })
    assert.equal(answer.status, 400)
    assert.match(JSON.stringify(answer.json.details), /nonsense/)
  })
})
