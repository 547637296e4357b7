// A pooler gives a server connection to several clients, so no setting may outlive the service's transaction.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Client } from 'pg'
import { emptyKnown, LIMITS, settingsOf } from '../../../../test/support/postgres-session.ts'
import { startPostgres } from '../../../../test/support/postgres.ts'
import { startTransactionPooler } from '../../../../test/support/transaction-pooler.ts'
import type { Catalog, Connection } from '../../driver.ts'
import { confine } from '../guard/confine.ts'
import { openParser } from '../guard/parser-pool.ts'
import { logIn } from './connect.ts'
import { PostgresConnection } from './connection.ts'
import { targetOf } from './settings.ts'

const never = new AbortController().signal
const SETUP = `CREATE TABLE orders (id int PRIMARY KEY, kind int NOT NULL, note text);
INSERT INTO orders SELECT i, i % 7, 'note ' || i FROM generate_series(1, 500) i; ANALYZE orders;
CREATE VIEW few AS SELECT * FROM orders WHERE kind = 3`

/** Returns all that the server keeps for a session after a transaction. */
const STATE = `SELECT 'setting ' || name || ' ' || setting FROM pg_catalog.pg_settings
UNION ALL SELECT 'statement ' || name FROM pg_catalog.pg_prepared_statements
UNION ALL SELECT 'cursor ' || name FROM pg_catalog.pg_cursors WHERE name <> ''
UNION ALL SELECT 'channel ' || c FROM pg_catalog.pg_listening_channels() c
UNION ALL SELECT 'lock ' || locktype FROM pg_catalog.pg_locks WHERE pid = pg_catalog.pg_backend_pid() AND locktype = 'advisory'
UNION ALL SELECT 'temporary ' || oid FROM pg_catalog.pg_class WHERE relpersistence = 't'
UNION ALL SELECT 'role ' || current_user || ' ' || session_user ORDER BY 1`

async function work(connection: Connection): Promise<void> {
  await using parser = await openParser({ threads: 1 })
  const catalog: Catalog = await connection.introspect(never)
  const ask = async (text: string, limits = LIMITS): Promise<unknown> => {
    const verdict = await confine(parser, { text, limit: null }, catalog, limits, never)
    assert.ok(verdict.kind === 'confined', text)
    return connection.run(verdict.query, limits, never)
  }
  assert.equal((await connection.test(catalog, never)).ok, true)
  for (const table of catalog.tables) {
    await connection.profile(table, catalog, { rows: 100, timeoutMs: 60_000, bytes: null }, never)
  }
  // The first lookups are explained. Later ones are prepared, and then keep settings if that is allowed.
  for (let id = 1; id < 8; id++) await ask(`SELECT note FROM orders WHERE id = ${id}`)
  for (let kind = 1; kind < 5; kind++) await ask(`SELECT note FROM orders WHERE kind = ${kind} ORDER BY id LIMIT 2`)
  await ask("SELECT count(*), md5(max(few.note)) FROM orders JOIN few USING (id) WHERE few.note LIKE 'n%'")
  await assert.rejects(ask('SELECT 1 / (id - 1) FROM orders'), { code: 'QUERY_FAILED' })
  await assert.rejects(ask('SELECT few.note FROM orders, few', { ...LIMITS, maxCost: 1 }), { code: 'QUERY_DENIED' })
  const verdict = await confine(parser, { text: 'SELECT id FROM orders', limit: null }, catalog, LIMITS, never)
  assert.ok(verdict.kind === 'confined')
  await connection.estimate(verdict.query, LIMITS, never)
}

for (const [name, takesOptions] of [
  ['that drops start-up options', false],
  ['that passes start-up options on', true],
] as const) {
  test(`nothing outlives a transaction on the server connection of a pooler ${name}`, async () => {
    await using server = await startPostgres({ hba: 'host all all all trust' })
    const database = await server.createDatabase('pooled', SETUP)
    await using pooler = await startTransactionPooler(server.port, { namesItself: true })
    const options = takesOptions ? {} : { options: '-c DateStyle=SQL' }
    const other = new Client({ host: '127.0.0.1', port: pooler.port, user: server.superuser, database, ...options })
    // If the test fails, the pooler stops first, and this client emits an error.
    other.on('error', () => undefined)
    const state = async () => (await other.query<[string]>({ text: STATE, rowMode: 'array' })).rows.flat()
    const open = async () => {
      const target = targetOf(settingsOf(server, database, { port: pooler.port }))
      return new PostgresConnection(await logIn(target, true, AbortSignal.timeout(60_000)), emptyKnown)
    }
    // The pooler has one server connection. Its options are those of the first client.
    if (!takesOptions) await other.connect()
    {
      await using connection = await open()
      if (takesOptions) await other.connect()
      const before = await state()
      await work(connection)
      assert.deepEqual(await state(), before)
    }
    await other.end()
  })
}

test('behind a pooler, the connection test fails only if the pooler has pool_mode=statement', async () => {
  await using server = await startPostgres({ hba: 'host all all all trust' })
  const database = await server.createDatabase('statements', SETUP)
  for (const poolsStatements of [true, false]) {
    await using pooler = await startTransactionPooler(server.port, { namesItself: true, poolsStatements })
    const target = targetOf(settingsOf(server, database, { port: pooler.port }))
    await using connection = new PostgresConnection(await logIn(target, true, AbortSignal.timeout(60_000)), emptyKnown)
    const { ok, steps } = await connection.test(null, never)
    const failed = steps.filter(({ status }) => status === 'FAIL').map(({ name }) => name)
    assert.deepEqual([ok, failed], poolsStatements ? [false, ['pooler']] : [true, []])
  }
})
