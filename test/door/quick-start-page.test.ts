// Runs the commands of docs/quick-start.md on an empty store, unchanged and in one shell. Only the addresses of the
// service and of the database are filled in.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { follow } from '../support/follow-docs-page.ts'
import { startApp } from '../support/app.ts'
import { startPostgres } from '../support/postgres.ts'

const PAGE = readFileSync(new URL('../../docs/quick-start.md', import.meta.url), 'utf8')
const SQL = `CREATE TABLE customers (id int PRIMARY KEY, name text, email text);
  CREATE TABLE orders (id int PRIMARY KEY, customer_id int REFERENCES customers);
  INSERT INTO customers VALUES (1, 'Ada', 'canary'), (2, 'Bo', 'canary'); INSERT INTO orders VALUES (1, 2), (2, 2), (3, 1)`

test('the commands of docs/quick-start.md work with curl alone', async () => {
  await using postgres = await startPostgres()
  const database = await postgres.createDatabase('shop', SQL)
  await using app = await startApp()
  const [start, ...blocks] = [...PAGE.matchAll(/^```sh\n(.*?)^```$/gms)].map((match) => match[1] ?? '')
  assert.match(start ?? '', /npm start/)
  const { host, port, superuser: username, password } = postgres
  const login = JSON.stringify({ host, port, database, username, password }).slice(1, -1)
  const outputs = await follow(
    blocks.map((block) => block.replace('http://127.0.0.1:3000', app.url).replace(/"host": .*?"password": "…"/, login)),
  )
  const all = outputs.join('\n')
  assert.match(all, /"grade":"(?:PASS|WARN)".*"tableCount":2.*"version":1/s)
  assert.match(outputs.at(-1) ?? '', /"columnsRestricted":true.*"rows":\[\["Bo",2\],\["Ada",1\]\]/s)
  assert.ok(!all.includes('canary') && !all.includes('"code":"'), all)
})
