// If a query is refused, a manager gets a link to the exposure that would allow the query. The link contains only ids.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { Agent, ERAS } from '../support/agent.ts'
import { openShop, type Shop } from '../support/shop.ts'

const UUID = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}'

describe('a refusal leads a manager to the exposure that would allow the query', () => {
  let shop: Shop
  let agent: Agent
  before(async () => {
    shop = await openShop()
    agent = new Agent(shop.app, shop.key)
  })
  after(() => shop[Symbol.asyncDispose]())

  const ofRest = async (sql: string) => (await shop.query(sql)).headers.get('vitrine-expose-url')
  const expected = () =>
    new RegExp(`^${shop.app.url}/app${shop.at.replace('/teams/', '/t/')}/exposure\\?from=(${UUID})$`)

  test('the link to the exposure is in a header over REST, and in a sentence after the body over the connector', async () => {
    const sql = "SELECT email FROM customers WHERE name = 'a secret'"
    assert.match((await ofRest(sql)) ?? '', expected())
    const { json: rest } = await shop.query(sql)
    for (const era of ERAS) {
      const { result } = (await agent.call(era, 'run_query', { teamId: shop.teamId, datasourceId: shop.datasourceId, sql })).json // prettier-ignore
      const [body, aside, ...others] = result.content
      assert.deepEqual([JSON.parse(body.text), result.structuredContent, others], [rest, rest, []])
      const url = /^A manager of the team can expose what was refused: (\S+)$/.exec(aside.text)?.[1] ?? ''
      const auditId = expected().exec(url)?.[1]
      const change = await shop.owner.must('POST', `${shop.at}/exposure/from-refusal/${auditId}`)
      assert.deepEqual(change.added, [{ schema: 'public', table: 'customers', columns: ['email'] }])
    }
  })

  test('a hidden and a missing name get the same link to the exposure, and a refusal of something else gets no link', async () => {
    for (const sql of ['SELECT salary FROM payroll', 'SELECT x FROM no_such', 'SELECT no_such FROM customers']) {
      assert.match((await ofRest(sql)) ?? '', expected(), sql)
    }
    for (const sql of ['SELECT 1', 'SELECT pg_sleep(1)', 'DELETE FROM customers', 'SELEC', 'SELECT 1 / 0']) {
      assert.equal(await ofRest(sql), null, sql)
    }
    const hidden = (await shop.query('SELECT email FROM customers')).text
    assert.equal((await shop.query('SELECT emoil FROM customers')).text.replaceAll('emoil', 'email'), hidden)
  })
})
