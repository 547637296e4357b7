// When a caller loses access, their running query ends in the database. It gets the refusal of a new request, and has
// an audit row.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { Client } from 'pg'
import { Agent } from '../support/agent.ts'
import type { Person } from '../support/app.ts'
import { connected, overHttp, registered } from '../support/oauth.ts'
import { openShop, type Shop } from '../support/shop.ts'
import { until } from '../support/until.ts'

/** Runs for minutes unless it is cancelled. */
const SLOW =
  'SELECT count(*) FROM orders a, orders b, orders c, orders d WHERE a.total + b.total + c.total + d.total < 0'

describe('a running query', () => {
  let shop: Shop
  let monitor: Client
  before(async () => {
    shop = await openShop()
    await shop.owner.must('PATCH', `/teams/${shop.teamId}`, {
      settings: { statementTimeoutMs: 60_000, postgresMaxPlanCost: 1e15 },
    })
    monitor = new Client({ connectionString: shop.postgres.url(shop.database) })
    await monitor.connect()
  })
  after(async () => {
    await monitor.end()
    await shop[Symbol.asyncDispose]()
  })

  async function active(): Promise<number> {
    const { rows } = await monitor.query(
      `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND state = 'active' AND query LIKE '%count%'
       AND pid <> pg_backend_pid()`,
    )
    return rows.length
  }
  async function untilActive(count: number): Promise<void> {
    await until(`${count} queries run`, async () => (await active()) === count)
  }
  async function expose(columns: Readonly<Record<string, readonly string[] | null>>): Promise<void> {
    const tables = Object.entries(columns).map(([table, columns]) => ({ schema: 'public', table, columns }))
    await shop.owner.must('PUT', `${shop.at}/exposure`, { tables })
  }
  async function member(): Promise<{ person: Person; key: string; keyId: string }> {
    const person = await shop.app.person('Mo')
    await shop.app.join(shop.owner, shop.teamId, person)
    const made = await person.must('POST', '/users/me/keys', { name: 'k', scopes: ['data:read'] })
    return { person, key: made.key, keyId: made.id }
  }

  const CASES: readonly {
    readonly name: string
    readonly end: (who: Awaited<ReturnType<typeof member>>) => Promise<unknown>
    readonly status: number
    readonly code: string
    readonly undo?: () => Promise<unknown>
  }[] = [
    {
      name: 'its datasource is disabled',
      end: () => shop.owner.must('POST', `${shop.at}/disable`),
      status: 409,
      code: 'DATASOURCE_DISABLED',
      undo: () => shop.owner.must('POST', `${shop.at}/enable`),
    },
    {
      name: 'its key is revoked',
      end: ({ person, keyId }) => person.must('DELETE', `/users/me/keys/${keyId}`),
      status: 401,
      code: 'UNAUTHENTICATED',
    },
    {
      name: 'a manager ends its key for the team',
      end: ({ keyId }) => shop.owner.must('DELETE', `/teams/${shop.teamId}/keys/${keyId}`),
      status: 404,
      code: 'NOT_FOUND',
    },
    {
      name: 'its caller is removed from the team',
      end: ({ person }) => shop.owner.must('DELETE', `/teams/${shop.teamId}/members/${person.id}`),
      status: 404,
      code: 'NOT_FOUND',
    },
    {
      name: 'its caller’s role no longer reaches the datasource',
      end: () => shop.owner.must('PATCH', shop.at, { minRole: 'ADMIN' }),
      status: 404,
      code: 'NOT_FOUND',
      undo: () => shop.owner.must('PATCH', shop.at, { minRole: 'MEMBER' }),
    },
    {
      name: 'a saved exposure hides a column that it reads',
      end: () => expose({ customers: null, orders: ['id', 'customer_id', 'placed_at'] }),
      status: 503,
      code: 'OVERLOADED',
      undo: () => expose({ customers: ['id', 'name'], orders: null }),
    },
  ]

  for (const { name, end, status, code, undo } of CASES) {
    test(`a running query ends when ${name}`, async () => {
      const who = await member()
      const answer = shop.query(SLOW, who.key)
      await untilActive(1)
      await end(who)
      const refused = await answer
      await untilActive(0)
      assert.deepEqual([refused.status, refused.json.code], [status, code])
      await undo?.()
      const { items } = await shop.owner.must('GET', `/teams/${shop.teamId}/audit?action=runQuery&limit=1`)
      assert.deepEqual([items[0].query, items[0].code], [SLOW, code])
    })
  }

  test('a running query of an agent ends when the agent may no longer read data', async () => {
    const service = overHttp(shop.app)
    const teamIds = [shop.teamId]
    const { access } = await connected(service, shop.owner, await registered(service), { teamIds })
    const at = { teamId: shop.teamId, datasourceId: shop.datasourceId }
    const answer = new Agent(shop.app, access).call('modern', 'run_query', { ...at, sql: SLOW })
    await untilActive(1)
    const [grant] = await shop.owner.must('GET', '/users/me/grants')
    await shop.owner.must('PATCH', `/users/me/grants/${grant.id}`, { scopes: ['data:schema'] })
    await untilActive(0)
    assert.match(JSON.stringify((await answer).messages), /SCOPE_REQUIRED/)
  })

  test('a running query continues when another key is revoked, the team is renamed, or the exposure is widened', async () => {
    await expose({ orders: null })
    const who = await member()
    const answer = shop.query(
      'SELECT count(*) FROM orders a, orders b, orders c WHERE a.id < 90 AND a.total + b.total < c.total',
      who.key,
    )
    await untilActive(1)
    const other = await member()
    await other.person.must('DELETE', `/users/me/keys/${other.keyId}`)
    await shop.owner.must('PATCH', `/teams/${shop.teamId}`, { name: 'Shop again' })
    await expose({ orders: null, customers: null })
    assert.equal((await answer).status, 200)
  })
})
