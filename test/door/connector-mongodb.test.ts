// Tests the agent connector with a MongoDB datasource: descriptions use MongoDB's terms, and clients may send filters
// and pipelines as JSON text. Skipped without mongod.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Agent } from '../support/agent.ts'
import { startApp } from '../support/app.ts'
import { startMongod } from '../support/mongodb.ts'
import { skipWithout } from '../support/no-such-engine.ts'

const skip = await skipWithout(() => startMongod({ auth: true }))

test('the connector describes MongoDB in its own terms, and runs filters and pipelines', { skip }, async () => {
  await using server = await startMongod({ auth: true })
  const database = server.database('docs')
  const db = server.client.db(database)
  await db
    .collection<{ _id: number }>('products')
    .insertMany(
      Array.from({ length: 5 }, (_, n) =>
        Object.assign({ _id: n }, { name: `p${n}`, supplier: { city: 'Ulm', secret: 'CANARY' } }),
      ),
    )
  await server.createUser(database, 'reader', 'reader-pw', [{ role: 'read', db: database }])
  await using app = await startApp()
  const owner = await app.person('Olga')
  const teamId = await app.team(owner)
  const spec = { type: 'MONGODB', host: server.host, port: server.port, database, username: 'reader' }
  const login = { password: 'reader-pw', config: { authSource: database } }
  const exposed = [{ schema: database, table: 'products', columns: ['_id', 'name', 'supplier.city'] }]
  const datasourceId = await app.datasource(owner, teamId, { ...spec, ...login }, exposed)
  const key = await app.key(owner)
  const agent = new Agent(app, key)
  const at = { teamId, datasourceId }

  const { schema, queryLanguage } = await agent.tool('describe_datasource', at)
  assert.equal(queryLanguage, 'MongoDB filter and aggregation pipeline')
  assert.match(schema, /^# collection\(/)
  assert.match(schema, /\nproducts\(_id.*, name.*supplier\.city/)
  assert.doesNotMatch(schema, /secret/)

  const filter = { name: 'p3' }
  const pipeline = [{ $match: { _id: { $gte: 3 } } }, { $project: { name: 1 } }]
  for (const [asked, sent] of [
    [{ filter }, { filter }],
    [{ filter: JSON.stringify(filter) }, { filter }],
    [{ pipeline }, { pipeline }],
    [{ pipeline: JSON.stringify(pipeline) }, { pipeline }],
    [{ filter: { 'supplier.secret': 'x' } }, { filter: { 'supplier.secret': 'x' } }],
  ] as const) {
    const { durationMs: _a, ...tool } = await agent.tool('run_query', { ...at, collection: 'products', ...asked })
    const body = { collection: 'products', limit: 100, ...sent }
    const path = `/teams/${teamId}/datasources/${datasourceId}/query`
    const { durationMs: _b, ...rest } = (await app.ask('POST', path, { token: key, body })).json
    assert.equal(tool.code, rest.code)
    assert.deepEqual(tool.rows, rest.rows)
  }
  const mistaken = { collection: 'product', pipeline: [{ $match: { nmae: 'p3' } }, { $project: { name: 1 } }] }
  const { code, suggestion } = await agent.tool('run_query', { ...at, ...mistaken })
  assert.deepEqual([code, suggestion.pipeline[0]], ['QUERY_DENIED', { $match: { name: 'p3' } }])
  assert.deepEqual((await agent.tool('run_query', { ...at, ...suggestion })).rows, [[3, 'p3']])

  for (const wrong of [
    { filter: '{name:' },
    { filter: '{"a":1,"a":2}' },
    { filter: '{"__proto__":{}}' },
    { filter: '5' },
    { pipeline: '{}' },
    { sql: 'SELECT 1' },
  ]) {
    const { code } = await agent.tool('run_query', { ...at, collection: 'products', ...wrong })
    assert.equal(code, 'INVALID_REQUEST', JSON.stringify(wrong))
  }
})
