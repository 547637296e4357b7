// Tests what agents see of a datasource in each state: it is profiled, is a BigQuery project, has changed, cannot be
// reached, or is one of many. Also tests when the service loads the modules of the protocol.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { after, before, describe, test } from 'node:test'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Agent, ERAS } from '../support/agent.ts'
import { startApp } from '../support/app.ts'
import { PROJECT, startShop } from '../support/bigquery-shop.ts'
import { openShop, type Shop } from '../support/shop.ts'

describe('a datasource through the connector', () => {
  let shop: Shop
  let agent: Agent
  before(async () => {
    shop = await openShop()
    agent = new Agent(shop.app, shop.key)
  })
  after(() => shop[Symbol.asyncDispose]())

  const add = async (sql: string, tables: readonly object[], name: string) => {
    const database = await shop.postgres.createDatabase(name, sql)
    const spec = { ...shop.spec, name, database }
    const datasourceId = await shop.app.datasource(shop.owner, shop.teamId, spec, tables)
    const args = { teamId: shop.teamId, datasourceId }
    return { database, args, at: `/teams/${shop.teamId}/datasources/${datasourceId}` }
  }

  test('the full description has the statistics of a profile, and no personal values', async () => {
    const sql = `CREATE TABLE people (id int PRIMARY KEY, email text, status text NOT NULL, born date);
      INSERT INTO people SELECT n, 'person' || n || '@private.example', CASE WHEN n % 4 = 0 THEN 'closed' ELSE 'open' END,
        date '1980-01-01' + n FROM generate_series(1, 1000) AS n; ANALYZE;`
    const { args, at } = await add(sql, [{ schema: 'public', table: 'people', columns: null }], 'profiled')
    const before = await agent.tool('describe_datasource', { ...args, detail: 'full' })
    assert.deepEqual([before.profileCapturedAt, /\{/.test(before.schema.split('\n').slice(1).join())], [null, false])
    const { jobId } = await shop.owner.must('POST', `${at}/profile`)
    for (;;) {
      const { state, error } = await shop.owner.must('GET', `${at}/jobs/${jobId}`)
      if (state === 'DONE') break
      assert.ok(state === 'RUNNING' || state === 'QUEUED', error)
    }
    for (const era of ERAS) {
      const answer = await agent.tool('describe_datasource', { ...args, tables: ['people'] }, era)
      assert.equal(answer.detail, 'full')
      assert.notEqual(answer.profileCapturedAt, null)
      assert.match(answer.schema, /\n {2}status text! \{2 distinct; values open 75%, closed 25%/)
      assert.doesNotMatch(JSON.stringify(answer), /private\.example|person\d/)
    }
    assert.equal((await agent.tool('describe_datasource', { ...args, search: 'closed' })).shown, 1)
    assert.equal((await agent.tool('describe_datasource', { ...args, search: 'person7' })).shown, 0)
  })

  test('BigQuery is described in its own terms', async () => {
    await using double = await startShop()
    await using app = await startApp({ env: { VITRINE_ALLOW_BIGQUERY_ENDPOINT: '1' } })
    const owner = await app.person('Olga')
    const teamId = await app.team(owner)
    const config = { apiEndpoint: double.url, location: 'EU', datasets: ['shop'] }
    const how = { type: 'BIGQUERY', connectionMode: 'SERVICE_ACCOUNT', sslMode: undefined, database: PROJECT, config }
    const tables = [{ schema: 'shop', table: 'products', columns: ['id', 'name', 'price'] }]
    const datasourceId = await app.datasource(owner, teamId, how, tables)
    const from = new Agent(app, await app.key(owner))
    const { schema, queryLanguage, type } = await from.tool('describe_datasource', { teamId, datasourceId })
    assert.deepEqual([type, queryLanguage], ['BIGQUERY', 'GoogleSQL'])
    assert.match(schema, /^# table\(.*\n\[shop\]\nproducts\(id INT64 pk, name STRING, price NUMERIC\) ~2000$/)
    const { rows } = await from.tool('run_query', { teamId, datasourceId, sql: 'SELECT id, name FROM shop.products LIMIT 2' }) // prettier-ignore
    assert.deepEqual(rows, [
      [1, 'p1'],
      [2, 'p2'],
    ])
    const refused = await from.tool('run_query', { teamId, datasourceId, sql: 'SELECT id FROM shop.product' })
    assert.deepEqual([refused.code, refused.suggestion], ['QUERY_DENIED', 'SELECT id FROM shop.products'])
  })

  test('queries on a changed and on an unreachable database are refused with the same codes as over REST', async () => {
    const sql =
      'CREATE TABLE things (id int PRIMARY KEY, name text, old text); INSERT INTO things VALUES (1, $$a$$, $$b$$)'
    const { args, at, database } = await add(sql, [{ schema: 'public', table: 'things', columns: null }], 'changing')
    const both = async (text: string) => {
      const rest = (await shop.app.ask('POST', `${at}/query`, { token: shop.key, body: { sql: text } })).json
      for (const era of ERAS) assert.deepEqual(await agent.tool('run_query', { ...args, sql: text }, era), rest)
      return rest.code
    }
    await shop.postgres.query(database, 'ALTER TABLE things DROP COLUMN old')
    assert.equal(await both('SELECT old FROM things'), 'SCHEMA_STALE')
    const nowhere = { ...shop.spec, name: 'nowhere', port: 1 }
    const more = { type: 'POSTGRES', connectionMode: 'DIRECT', sslMode: 'disable', accessMode: 'ROLE_BASED' }
    await shop.owner.must('PATCH', at, { port: 1, password: Reflect.get(shop.spec, 'password') })
    assert.equal(await both('SELECT id FROM things'), 'DATASOURCE_UNAVAILABLE')
    const { id } = await shop.owner.must('POST', `/teams/${shop.teamId}/datasources`, { ...nowhere, ...more, minRole: 'MEMBER' }) // prettier-ignore
    const { schema } = await agent.tool('describe_datasource', { ...args, datasourceId: id })
    assert.match(schema, /nothing is known yet/)
  })

  test('the resources of many datasources are split into pages', async () => {
    const teamId = await shop.app.team(shop.owner, 'Many')
    const more = { type: 'POSTGRES', connectionMode: 'DIRECT', sslMode: 'disable', accessMode: 'ROLE_BASED' }
    for (let n = 0; n < 12; n++) {
      const body = { ...shop.spec, ...more, name: `d${n}`, minRole: 'MEMBER' }
      await shop.owner.must('POST', `/teams/${teamId}/datasources`, body)
    }
    const from = new Agent(shop.app, await shop.app.key(shop.owner, { teamIds: [teamId] }))
    const first = (await from.ask('modern', 'resources/list')).json.result
    assert.deepEqual([first.resources, typeof first.nextCursor], [[], 'string'])
    const last = (await from.ask('modern', 'resources/list', { cursor: first.nextCursor })).json.result
    assert.deepEqual([last.resources, last.nextCursor], [[], undefined])
  })

  test('the official MCP client uses 2025-11-25 unless it negotiates another version, and sees the same tools in each version', async () => {
    const names: string[][] = []
    for (const [options, version] of [
      [{ versionNegotiation: { mode: 'auto' } }, '2026-07-28'],
      [{}, '2025-11-25'],
    ] as const) {
      const client = new Client({ name: 'official', version: '1' }, options)
      const requestInit = { headers: { authorization: `Bearer ${shop.key}` } }
      await client.connect(new StreamableHTTPClientTransport(new URL('/mcp', shop.app.url), { requestInit }))
      assert.equal(client.getNegotiatedProtocolVersion(), version)
      names.push((await client.listTools()).tools.map(({ name }) => name))
      await client.close()
    }
    assert.deepEqual(names[0], ['whoami', 'list_teams', 'list_datasources', 'describe_datasource', 'run_query'])
    assert.deepEqual(names[1], names[0])
  })
})

test('no module of the MCP SDK is loaded before the first message that needs it', async () => {
  const script = fileURLToPath(new URL('../support/loaded-for-agents.ts', import.meta.url))
  const { stdout } = await promisify(execFile)(process.execPath, [script])
  assert.deepEqual(JSON.parse(stdout), {
    start: [],
    rest: [],
    call: [],
    list: ['@modelcontextprotocol/core', '@modelcontextprotocol/server'],
  })
})
