import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Client } from 'pg'
import { startPostgres } from './postgres.ts'

test("a test's PostgreSQL server accepts TCP connections with a password, and ends with its `await using` scope", async () => {
  let url: string
  {
    await using server = await startPostgres()
    const name = await server.createDatabase('shop', 'CREATE TABLE t (a int); INSERT INTO t VALUES (1), (NULL)')
    assert.deepEqual(await server.query(name, 'SELECT a FROM t ORDER BY a'), [['1'], [null]])
    url = server.url(name)
    await assert.rejects(new Client({ connectionString: server.url(name, 'postgres', 'wrong') }).connect(), /password/)
  }
  if (process.env['TEST_POSTGRES_URL'] === undefined) {
    await assert.rejects(new Client({ connectionString: url }).connect(), /ECONNREFUSED/)
  }
})

test('a PostgreSQL server of the requested version starts from npm', async () => {
  await using server = await startPostgres({ version: 18 })
  assert.match(String((await server.query('postgres', 'SHOW server_version'))[0]?.[0]), /^18/)
})
