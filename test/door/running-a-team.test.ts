// Runs the commands of docs/running-a-team.md on an empty store, unchanged and in one shell. Only the addresses of the
// service and of the database are filled in.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { ROUTES } from '../../src/contract/key-routes.ts'
import { SESSION_ROUTES } from '../../src/contract/signed-in-routes.ts'
import type { Route } from '../../src/contract/route-type.ts'
import { startApp } from '../support/app.ts'
import { follow } from '../support/follow-docs-page.ts'
import { startPostgres } from '../support/postgres.ts'

const PAGE = readFileSync(new URL('../../docs/running-a-team.md', import.meta.url), 'utf8')
const SQL = `CREATE TABLE orders (id int PRIMARY KEY, total numeric, note text);
  INSERT INTO orders SELECT n, n * 2 FROM generate_series(1, 21) AS n`

test('the commands of docs/running-a-team.md work with curl alone', async () => {
  await using postgres = await startPostgres()
  const database = await postgres.createDatabase('shop', SQL)
  await using app = await startApp()
  const [start, ...blocks] = [...PAGE.matchAll(/^```sh\n(.*?)^```$/gms)].map((match) => match[1] ?? '')
  assert.match(start ?? '', /npm start/)
  const login = {
    host: postgres.host,
    port: postgres.port,
    database,
    username: postgres.superuser,
    password: postgres.password,
  }
  const commands = blocks.map((block) =>
    block
      .replace('http://127.0.0.1:3000', app.url)
      .replace(/"host": .*?"password": "…"/, JSON.stringify(login).slice(1, -1)),
  )
  assert.ok(
    commands.some((block) => block.includes(app.url)) &&
      commands.some((block) => block.includes(String(postgres.port))),
  )
  const outputs = await follow(commands)
  const [, signedUp, , connected, , joined, queried, byKey, withdrawn, roles, audit, removed, ended] = outputs
  assert.match(signedUp ?? '', /"email":"ada@example\.test"/)
  assert.match(connected ?? '', /"tableCount":1.*"version":1/s)
  assert.match(joined ?? '', /"status":"INVITED".*"status":"ACTIVE".*\[\]$/s)
  assert.match(queried ?? '', /"accountIds":\["[\w-]{36}"\].*"rows":\[\[21\]\]/s)
  assert.match(byKey ?? '', /"rows":\[\[42\]\].*"name":"agent".*"expiring":false/s)
  assert.match(withdrawn ?? '', /\{"accountIds":\[\]\}.*"code":"NOT_FOUND"/s)
  assert.match(roles ?? '', /"role":"ADMIN".*"role":"OWNER".*"role":"ADMIN"/s)
  for (const action of ['addMember', 'acceptInvitation', 'putAccess', 'runQuery', 'changeMember', 'putExposure']) {
    assert.ok(audit?.includes(`"action":"${action}"`), action)
  }
  assert.match(audit ?? '', /"query":"SELECT max\(total\) FROM orders"/)
  assert.match(removed ?? '', /^\{"error":[^}]*"code":"NOT_FOUND"\}$/)
  assert.equal(ended, '')
  assert.equal(outputs.join('').match(/"code":"/g)?.length, 2, outputs.join('\n'))
})

test('the table of roles in docs/running-a-team.md matches the routes', () => {
  const routes: Readonly<Record<string, Route>> = { ...ROUTES, ...SESSION_ROUTES }
  const rows = [...PAGE.matchAll(/^\| (.*?)\| (.*?)\|$/gm)].map((match) => [match[1] ?? '', match[2] ?? ''] as const)
  const named = (cells: readonly string[]) => cells.flatMap((cell) => cell.match(/(?<=`)\w+(?=`)/g) ?? []).sort()
  const inTeam = (role: 'ADMIN' | 'OWNER') =>
    Object.keys(routes)
      .filter((id) => routes[id]?.place === 'team' && routes[id].role === role)
      .sort()
  const ofTeams = rows.filter(([admin]) => !admin.startsWith('for a datasource'))
  assert.deepEqual(named(ofTeams.map(([admin]) => admin)), inTeam('ADMIN'))
  assert.deepEqual(named(ofTeams.map(([, owner]) => owner)), inTeam('OWNER'))
  const open = Object.keys(routes).filter((id) => routes[id]?.place === 'datasource' && routes[id].role === undefined)
  assert.deepEqual(named(rows.filter(([admin]) => admin.startsWith('for a datasource')).flat()), open.sort())
})
