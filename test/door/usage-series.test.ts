// Tests usage by hour and by day, for the team and by key, datasource or client. The counts must agree with the audit.
// A MEMBER sees the sums of the team, but only their own keys and clients.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { z } from 'zod'
import { Usage, type AuditItem } from '../../src/contract/audit-schemas.ts'
import type { Person } from '../support/app.ts'
import { openShop, type Shop } from '../support/shop.ts'
import { DIALECTS, storeEnv, storeSource, type StoreSource } from '../support/stores.ts'

type Item = z.infer<typeof AuditItem>

for (const dialect of DIALECTS) {
  describe(`usage in detail on ${dialect}`, () => {
    let source: StoreSource
    let shop: Shop
    let member: Person
    let path: string

    const usage = async (query: string, who = shop.owner) =>
      Usage.parse(await who.must('GET', `${path}/usage?${query}`))
    const ask = (token: string, sql: string, client: string) =>
      shop.app.ask('POST', `${shop.at}/query`, { token, body: { sql }, headers: { 'user-agent': client } })

    before(async () => {
      source = await storeSource(dialect)
      shop = await openShop({ env: storeEnv(await source.config()) })
      path = `/teams/${shop.teamId}`
      member = await shop.app.person('Mia')
      await shop.app.join(shop.owner, shop.teamId, member)
      const own = await shop.app.key(member)
      for (let n = 0; n < 3; n++) await ask(shop.key, 'SELECT id FROM customers LIMIT 5', 'agent/1')
      // The store must add the second batch of queries to the counts of the first batch.
      await usage('')
      await ask(shop.key, 'SELECT id FROM customers LIMIT 2', 'agent/1')
      await ask(shop.key, 'SELECT email FROM customers', 'agent/1')
      await ask(own, 'SELECT id FROM orders LIMIT 1', 'other/2')
    })
    after(async () => {
      await shop[Symbol.asyncDispose]()
      await source[Symbol.asyncDispose]()
    })

    test('usage by hour and usage by day have the same sums as the audit', async () => {
      const items: Item[] = (await shop.owner.must('GET', `${path}/audit?action=runQuery&limit=500`)).items
      const sum = (of: (item: Item) => number | undefined) => items.reduce((all, item) => all + (of(item) ?? 0), 0)
      for (const step of ['hour', 'day'] as const) {
        const { points = [], series } = await usage(`step=${step}&days=31`)
        assert.equal(series, undefined)
        // The day may change during the test, so compare sums over all points.
        const total = (of: (point: (typeof points)[number]) => number) =>
          points.reduce((all, each) => all + of(each), 0)
        assert.equal(
          total(({ queries }) => queries),
          6,
        )
        assert.equal(
          total(({ denied }) => denied),
          1,
        )
        assert.equal(
          total(({ rows }) => rows),
          18,
        )
        assert.equal(
          total(({ bytes }) => bytes),
          sum((item) => item.bytes),
        )
        const durations = sum((item) => (item.outcome === 'ANSWERED' ? item.durationMs : 0))
        assert.ok(Math.abs(total(({ durationMs }) => durationMs) - durations) < 0.01)
        for (const { at, p50Ms, p95Ms } of points) {
          assert.match(at, step === 'hour' ? /T\d\d:00:00Z$/ : /T00:00:00Z$/)
          assert.ok(p50Ms !== null && p95Ms !== null && p50Ms > 0 && p50Ms <= p95Ms)
        }
      }
      assert.equal((await usage('')).points, undefined)
    })

    test('usage is grouped by key, datasource and client, the largest group first', async () => {
      const keys = (await usage('by=key')).series ?? []
      assert.deepEqual(
        keys.map(({ accountId, queries, denied }) => [accountId, queries, denied]),
        [
          [shop.owner.id, 5, 1],
          [member.id, 1, 0],
        ],
      )
      assert.equal(
        keys[0]?.points.reduce((all, { queries }) => all + queries, 0),
        5,
      )
      const datasources = (await usage('by=datasource&step=hour')).series ?? []
      assert.deepEqual(
        datasources.map(({ datasourceId, queries }) => [datasourceId, queries]),
        [[shop.datasourceId, 6]],
      )
      const clients = (await usage('by=client')).series ?? []
      assert.deepEqual(
        clients.map(({ client, rows }) => [client, rows]),
        [
          ['agent/1', 17],
          ['other/2', 1],
        ],
      )
    })

    test('in the usage, a MEMBER sees no other member’s keys and clients', async () => {
      const keys = (await usage('by=key', member)).series ?? []
      assert.deepEqual(
        keys.map(({ accountId }) => accountId),
        [member.id],
      )
      const clients = (await usage('by=client', member)).series ?? []
      assert.deepEqual(
        clients.map(({ client }) => client),
        ['other/2'],
      )
      assert.equal(
        (await usage('by=key', member)).points?.reduce((all, { queries }) => all + queries, 0),
        6,
      )
    })

    test('if a team has too many clients, their usage beyond a maximum number of clients is counted together', async () => {
      for (let n = 0; n < 60; n++) await ask(shop.key, 'SELECT id FROM customers LIMIT 1', `random/${n}`)
      const { points = [], series = [] } = await usage('by=client')
      assert.equal(
        points.reduce((all, { queries }) => all + queries, 0),
        66,
      )
      const others = series.find(({ client }) => client === '')
      assert.ok(series.length <= 20 && (others?.queries ?? 0) >= 10, JSON.stringify(series.map(({ client }) => client)))
    })

    test('usage by hour is refused for a period that is stored by day, and so is an unknown step or group', async () => {
      for (const query of ['days=32&step=day', 'days=366&by=key', 'by=nothing', 'step=minute']) {
        assert.equal((await shop.owner.ask('GET', `${path}/usage?${query}`)).json.code, 'INVALID_REQUEST', query)
      }
    })
  })
}
