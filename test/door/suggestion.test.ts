// For a refused query, the service may suggest another query. The guard must accept it, and it must contain only
// exposed names.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { openShop, type Shop } from '../support/shop.ts'

describe('a refusal suggests a repaired query', () => {
  let shop: Shop
  before(async () => {
    shop = await openShop()
  })
  after(() => shop[Symbol.asyncDispose]())

  for (const [sql, suggestion] of [
    ['SELECT nam FROM customers', 'SELECT name FROM customers'],
    ['SELECT c.nam FROM customers c', 'SELECT c.name FROM customers c'],
    ['SELECT "nam" FROM customers', 'SELECT name FROM customers'],
    ['SELECT id FROM custmers', 'SELECT id FROM customers'],
    ['SELECT id FROM public.custmers', 'SELECT id FROM public.customers'],
    ['SELECT nam, contry FROM custmers', 'SELECT name, country FROM customers'],
    ['SELECT id, email FROM customers', 'SELECT id FROM customers'],
    ['SELECT email, id FROM customers', 'SELECT id FROM customers'],
    ['SELECT id, c.email AS mail, name FROM customers c', 'SELECT id, name FROM customers c'],
    ['SELECT id FROM customers FOR UPDATE', 'SELECT id FROM customers'],
    ['SELECT id, pg_sleep(1) FROM customers', 'SELECT id FROM customers'],
    [`SELECT id FROM customers${' '.repeat(3_000)}FOR UPDATE`, 'SELECT id FROM customers'],
    // No small change repairs these queries.
    ['SELECT email FROM customers', undefined],
    ['SELECT salary FROM payroll', undefined],
    ['DELETE FROM customers', undefined],
    ['SELECT zzz FROM qqq', undefined],
  ] as const) {
    test(sql, async () => {
      const { json } = await shop.query(sql)
      assert.equal(json.code, 'QUERY_DENIED')
      assert.equal(json.suggestion, suggestion)
      if (suggestion !== undefined) assert.equal((await shop.query(suggestion)).status, 200)
    })
  }

  test('a hidden name and a missing name get the same suggestion', async () => {
    for (const [hidden, none] of [
      ['email', 'emaik'],
      ['note', 'notf'],
    ] as const) {
      const asked = async (name: string) => (await shop.query(`SELECT id, ${name} FROM customers`)).json.suggestion
      assert.equal(await asked(hidden), await asked(none))
    }
  })

  test('the suggestion for a query with a parameter keeps the parameter', async () => {
    const body = { sql: 'SELECT nam FROM customers WHERE id = $1', params: [1], limit: 5 }
    const { json } = await shop.app.ask('POST', `${shop.at}/query`, { token: shop.key, body })
    assert.equal(json.suggestion, 'SELECT name FROM customers WHERE id = $1')
  })

  test('a change that would leave a parameter unused is not suggested', async () => {
    const body = { sql: 'SELECT id, pg_sleep($1) FROM customers', params: [1] }
    const { json } = await shop.app.ask('POST', `${shop.at}/query`, { token: shop.key, body })
    assert.deepEqual([json.code, json.blocked.kind, json.suggestion], ['QUERY_DENIED', 'function', undefined])
  })

  test('a long query is refused without a suggestion, and the audit stores no suggestion', async () => {
    const { json } = await shop.query(`SELECT nam FROM customers -- ${'x'.repeat(5_000)}`)
    assert.deepEqual([json.code, json.suggestion], ['QUERY_DENIED', undefined])
    await shop.query("SELECT nam FROM customers WHERE name = 'secret'")
    const { items } = await shop.owner.must('GET', `/teams/${shop.teamId}/audit?limit=1`)
    assert.equal('suggestion' in items[0], false)
  })
})
