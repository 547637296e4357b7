// The page about documentation is followed as it is written, in one shell: only where the service and the datasource are,
// and the token, is put in.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { follow } from './support/follow.ts'
import { startApp } from './support/app.ts'
import { startPostgres } from './support/postgres.ts'

const PAGE = readFileSync(new URL('../docs/documentation.md', import.meta.url), 'utf8')
const SQL = `CREATE TABLE orders (id int PRIMARY KEY, status text NOT NULL, channel text NOT NULL, total_cents int NOT NULL);
  INSERT INTO orders SELECT n, (ARRAY['open','paid'])[n % 2 + 1], (ARRAY['web','shop'])[n % 2 + 1], n FROM generate_series(1, 40) AS n`

test('the page about documentation can be followed with curl alone', async () => {
  await using postgres = await startPostgres()
  const database = await postgres.createDatabase('shop', SQL)
  await using app = await startApp()
  const owner = await app.person('Ada')
  const teamId = await app.team(owner)
  const { host, port, superuser: username, password } = postgres
  const tables = [{ schema: 'public', table: 'orders', columns: null }]
  const id = await app.datasource(owner, teamId, { host, port, username, password, database }, tables)
  const blocks = [...PAGE.matchAll(/^```sh\n(.*?)^```$/gms)].map((match) => match[1] ?? '')
  const placed = blocks.map((block) =>
    block
      .replace('http://127.0.0.1:3000', app.url)
      .replace('TEAM_ID', teamId)
      .replace('DATASOURCE_ID', id)
      .replace('ACCESS_TOKEN', owner.jwt),
  )
  const told = await follow(placed)
  const [, profiled, marked, proposed, judged, published, narrower] = told
  assert.match(profiled ?? '', /"state":"DONE".*"tables":1/)
  assert.match(marked ?? '', /"channel":\{"personal":true\}/)
  assert.match(proposed ?? '', /"state":"DONE".*“open” or “paid”/s)
  assert.ok(!proposed?.includes('“shop”'))
  assert.match(judged ?? '', /"origin":"GENERATED","status":"ACCEPTED".*"warnings":\[\]/)
  assert.match(published ?? '', /"publishedAt":.*"summary":"One row per order, cancelled ones too\."/s)
  assert.match(
    published ?? '',
    /"statements":\["status is one of “open” or “paid”\.","Leave out open orders for turnover\."\]/,
  )
  assert.match(published ?? '', /"description":"Where it was ordered\."/)
  assert.match(narrower ?? '', /"statements":\[\]/)
  assert.ok(!narrower?.includes('Where it was ordered'))
  assert.ok(!told.join('').includes('"code":"'), told.join('\n'))
})
