// The stored profiles of the attack databases and their descriptions must not contain a canary, which is a hidden
// value.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { openRooms } from '../support/connected.ts'
import { startMongod } from '../support/mongodb.ts'
import { skipWithout } from '../support/no-such-engine.ts'
import { startPostgres } from '../support/postgres.ts'
import { Profiled, withProfiles, type Shown } from '../support/profiled-datasource.ts'
import { EXPOSED, FULL, load } from './mongodb/fixture.ts'

const read = (name: string): string => readFileSync(new URL(`postgres/${name}`, import.meta.url), 'utf8')

test('for PostgreSQL, stored profiles and described statistics contain no hidden value', async () => {
  await using server = await startPostgres({ settings: { autovacuum: 'off' } })
  const database = await server.createDatabase('shop', `${read('fixture.sql')}; ANALYZE;`)
  await using rooms = await openRooms()
  withProfiles(rooms)
  const { host, port, superuser, password } = server
  const exposure: { readonly tables: readonly Shown[] } = JSON.parse(read('exposure.json'))
  const order = { host, port, database, username: superuser, password }
  const shop = await Profiled.connect(rooms, order, exposure.tables)
  const result = await shop.profile()
  assert.ok((result as { tables: number }).tables >= 5, JSON.stringify(result))
  const stats = JSON.stringify(
    (await shop.describe()).tables.map((table) => table.columns.map((column) => [column.name, column.stats])),
  )
  for (const text of [await shop.stored(), stats]) {
    assert.match(text, /country/)
    assert.doesNotMatch(text, /CANARY|\b9876[5-8]\d{4}\b|ssn|password_hash|secret_tier|credit_limit/)
  }
})

test('for MongoDB, stored profiles and descriptions contain no hidden value', { skip: await skipWithout(startMongod) }, async () => {
  await using server = await startMongod()
  await load(server.client.db(FULL), server.client.db('bare'))
  await using rooms = await openRooms()
  withProfiles(rooms)
  const order = { type: 'MONGODB', host: server.host, port: server.port, database: FULL, username: null }
  const shop = await Profiled.connect(rooms, order, [])
  const catalog = await rooms.catalogs.full((await shop.at()).row)
  await shop.expose(
    Object.entries(EXPOSED).map(([table, paths]) => {
      const columns = catalog?.tables.find((entry) => entry.table === table)?.columns.map((column) => column.name)
      return { schema: FULL, table, columns: paths.filter((path) => columns?.includes(path)) }
    }),
  )
  const result = await shop.profile()
  assert.equal((result as { tables: number }).tables, 7, JSON.stringify(result))
  for (const text of [await shop.stored(), JSON.stringify(await shop.describe())]) {
    assert.match(text, /"brand|cards\.brand/)
    assert.doesNotMatch(text, /SECRET|\b9000\d\d\b|ssn|number":|street/)
  }
})
