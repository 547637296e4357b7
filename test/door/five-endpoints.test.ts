// Tests the five endpoints of docs/contract.md, field by field, on a real database.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { ZodType } from 'zod'
import { z } from 'zod'
import * as shape from '../../src/contract/schemas.ts'
import type { Person } from '../support/app.ts'
import { openShop } from '../support/shop.ts'
import type { Shop } from '../support/shop.ts'
import { until } from '../support/until.ts'

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/

/** Fails if the value has a field that the schema does not declare. */
function assertShape(schema: ZodType, value: unknown): void {
  assert.deepEqual(schema.parse(value), value)
}

describe('the five endpoints', () => {
  let shop: Shop
  let member: Person
  let memberKey: string
  before(async () => {
    shop = await openShop()
    member = await shop.app.person('Mia')
    await shop.app.join(shop.owner, shop.teamId, member)
    memberKey = await shop.app.key(member)
  })
  after(() => shop[Symbol.asyncDispose]())

  const get = (path: string, headers: Record<string, string> = {}, token = shop.key) =>
    shop.app.ask('GET', path, { token, headers })

  test('GET /users/me returns the account of the token', async () => {
    const { status, json } = await get('/users/me')
    assert.equal(status, 200)
    assertShape(shape.Account, json)
    assert.deepEqual(
      { ...json, createdAt: null },
      {
        id: shop.owner.id,
        email: shop.owner.email,
        name: 'Olga',
        avatarUrl: null,
        emailVerified: false,
        createdAt: null,
      },
    )
    assert.match(json.createdAt, TIME)
  })

  test('GET /teams lists every team of the account, including unopened teams', async () => {
    const other = await shop.app.team(shop.owner, 'Not opened')
    await shop.app.join(shop.owner, other, member, 'ADMIN', false)
    const { json } = await get('/teams', {}, memberKey)
    assertShape(z.array(shape.Team), json)
    const seen = json.map(
      (team: { name: string; role: string; status: string; memberCount: number; dataSourceCount: number }) => [
        team.name,
        team.role,
        team.status,
        team.memberCount,
        team.dataSourceCount,
      ],
    )
    assert.deepEqual(seen, [
      ['Shop', 'MEMBER', 'ACTIVE', 2, 1],
      ['Not opened', 'ADMIN', 'INVITED', 2, 0],
    ])
  })

  test('GET …/datasources lists reachable datasources, without secrets', async () => {
    const { text, json } = await get(`/teams/${shop.teamId}/datasources`, {}, memberKey)
    assertShape(z.array(shape.Datasource), json)
    const [only] = json
    assert.equal(only.id, shop.datasourceId)
    assert.equal(only.exposedTableCount, 3)
    assert.equal(only.port, shop.postgres.port)
    assert.ok(!text.includes(shop.postgres.password))
  })

  test('GET …/schema describes the exposed tables and columns', async () => {
    const { json, text } = await get(`${shop.at}/schema`)
    assertShape(shape.Description, json)
    assert.deepEqual(json.vocabulary, { schema: 'schema', table: 'table', queryLanguage: 'PostgreSQL SQL' })
    assert.deepEqual(
      json.tables.map((table: { table: string; columnsRestricted: boolean }) => [table.table, table.columnsRestricted]),
      [
        ['customers', true],
        ['orders', false],
        ['recent', false],
      ],
    )
    const [customers, orders, recent] = json.tables
    assert.deepEqual([customers.description, customers.estimatedRows, recent.estimatedRows], ['Who buys.', 50, null])
    assert.deepEqual(customers.columns, [
      {
        name: 'id',
        type: 'integer',
        nullable: false,
        primaryKey: true,
        references: null,
        description: null,
        stats: null,
      },
      {
        name: 'name',
        type: 'text',
        nullable: false,
        primaryKey: false,
        references: null,
        description: null,
        stats: null,
      },
      {
        name: 'country',
        type: 'character(2)',
        nullable: true,
        primaryKey: false,
        references: null,
        description: 'ISO 3166 code.',
        stats: null,
      },
    ])
    assert.deepEqual(orders.columns[1].references, { schema: 'public', table: 'customers', column: 'id' })
    assert.doesNotMatch(text, /email|payroll|salary/)
  })

  test('GET …/schema?full=1 describes the whole schema, but only for managers', async () => {
    const full = await get(`${shop.at}/schema?full=1`)
    assertShape(shape.Description, full.json)
    const names = full.json.tables.map((table: { table: string }) => table.table)
    assert.deepEqual(names, ['customers', 'orders', 'payroll', 'recent'])
    const refused = await get(`${shop.at}/schema?full=1`, {}, memberKey)
    assert.deepEqual([refused.status, refused.json.code, refused.json.requiredRole], [403, 'ROLE_REQUIRED', 'ADMIN'])
    for (const query of ['full=2', 'full=', 'full', 'full=1&full=1', 'ful=1']) {
      assert.equal((await get(`${shop.at}/schema?${query}`)).json.code, 'INVALID_REQUEST', query)
    }
  })

  test("a description is revalidated by its ETag, and only the caller's own cache may store it", async () => {
    const first = await get(`${shop.at}/schema`)
    const etag = first.headers.get('etag') ?? ''
    assert.match(etag, /^"[^"]+"$/)
    for (const tag of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
      const again = await get(`${shop.at}/schema`, { 'if-none-match': tag })
      assert.deepEqual([again.status, again.text, again.headers.get('etag')], [304, '', etag])
      assert.equal(again.headers.get('cache-control'), 'private, no-cache')
      assert.equal(again.headers.get('vary'), 'Authorization')
    }
    assert.equal((await get(`${shop.at}/schema`, { 'if-none-match': '"other"' })).status, 200)
    assert.equal((await get(`${shop.at}/schema?full=1`, { 'if-none-match': etag })).status, 200)
  })

  test('POST …/query returns columns, and rows by position', async () => {
    const { status, json, headers } = await shop.query(
      'SELECT id, total, placed_at, NULL AS id FROM orders ORDER BY 1 LIMIT 2',
    )
    assert.equal(status, 200)
    assertShape(shape.QueryResult, json)
    assert.deepEqual(
      json.columns.map((column: { name: string }) => column.name),
      ['id', 'total', 'placed_at', 'id'],
    )
    assert.deepEqual(json.rows, [
      [1, 1.5, '2026-01-02T03:04:05Z', null],
      [2, 3, '2026-01-02T03:04:05Z', null],
    ])
    assert.deepEqual([json.rowCount, json.truncated], [2, false])
    assert.match(headers.get('ratelimit-remaining') ?? '', /^\d+$/)
  })

  test('POST …/query refuses hidden data, and its hint says what to do', async () => {
    for (const [sql, kind, name] of [
      ['SELECT salary FROM payroll', 'table', 'payroll'],
      ['SELECT email FROM customers', 'column', 'email'],
      ["SELECT pg_read_file('/etc/passwd')", 'function', 'pg_read_file'],
      ['DELETE FROM orders', 'statement', 'DELETE'],
    ] as const) {
      const { status, json } = await shop.query(sql)
      assert.deepEqual([status, json.code, json.blocked.kind], [403, 'QUERY_DENIED', kind], sql)
      assert.match(json.blocked.name, new RegExp(name, 'i'))
      assert.ok(json.hint.length > 0)
    }
  })

  test('POST …/query gives the same answer for a hidden and for an unknown name', async () => {
    const hidden = await shop.query('SELECT salary FROM payroll')
    const none = await shop.query('SELECT salary FROM payrull')
    assert.equal(hidden.text.replaceAll('payroll', '*'), none.text.replaceAll('payrull', '*'))
  })

  test('POST …/query checks for 404 first, then 409, then 400', async () => {
    const { id } = await shop.owner.must('POST', `/teams/${shop.teamId}/datasources`, {
      ...shop.spec,
      name: 'fresh',
      type: 'POSTGRES',
      connectionMode: 'DIRECT',
      sslMode: 'disable',
    })
    const ask = async (datasource: string, query: string, body: unknown) =>
      (
        await shop.app.ask('POST', `/teams/${shop.teamId}/datasources/${datasource}/query${query}`, {
          token: shop.key,
          body,
        })
      ).json
    for (const [query, body] of [
      ['?limit=5', { sql: 'SELECT 1' }],
      ['', { sql: 1 }],
      ['?limit=5', { sql: 1 }],
    ] as const) {
      assert.equal((await ask('none', query, body)).code, 'NOT_FOUND')
      assert.equal((await ask(id, query, body)).code, 'NOT_CONNECTED')
      const refused = await ask(shop.datasourceId, query, body)
      assert.equal(refused.code, 'INVALID_REQUEST')
      assert.match(JSON.stringify(refused.details), query === '' ? /sql/ : /limit: unknown query parameter/)
    }
    await shop.owner.must('DELETE', `/teams/${shop.teamId}/datasources/${id}`)
  })

  test('if a client disconnects, its query ends in the database', async () => {
    const gone = new AbortController()
    const sql = 'SELECT count(*) FROM orders a, orders b, orders c, orders d'
    await shop.owner.must('PATCH', `/teams/${shop.teamId}`, { settings: { postgresMaxPlanCost: 1e15 } })
    const running = () =>
      shop.postgres.query(
        shop.database,
        `SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid() AND datname = current_database()`,
      )
    const request = shop.app
      .ask('POST', `${shop.at}/query`, { token: shop.key, body: { sql }, signal: gone.signal })
      .catch((error: unknown) => error)
    while ((await running())[0]?.[0] === '0') await new Promise(setImmediate)
    gone.abort()
    await request
    await until('no query runs', async () => (await running())[0]?.[0] === '0')
  })
})
