// PostgreSQL 16 to 18 added calls that need much memory or that no cancel ends. Each must end soon after its timeout, and
// use limited memory. Ordinary queries with the same features are answered.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { startApp, type Answer } from '../../support/app.ts'
import { startPostgres } from '../../support/postgres.ts'

const SCHEMA = `
CREATE EXTENSION ltree;
CREATE COLLATION folded (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE DOMAIN label AS text COLLATE folded;
CREATE TABLE names (id int PRIMARY KEY, short text COLLATE folded, long text COLLATE folded, plain text, label label);
INSERT INTO names VALUES (1, 'Ada Lovelace', repeat('Ada ', 750), repeat('Ada ', 750), 'Ada');`

type Ask = (sql: string, params?: readonly unknown[]) => Promise<Answer>

let ask: Ask
let direct: (sql: string) => Promise<(string | null)[][]>

const stack = new AsyncDisposableStack()

before(async () => {
  const postgres = stack.use(await startPostgres({ version: 18 }))
  await postgres.query('postgres', `CREATE DATABASE icu TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en'`)
  await postgres.query('icu', SCHEMA)
  const app = stack.use(await startApp())
  const owner = await app.person('Olga')
  const teamId = await app.team(owner, 'New', { statementTimeoutMs: 5_000 })
  const token = await app.key(owner)
  const { host, port, superuser: username, password } = postgres
  const spec = { name: 'icu', host, port, database: 'icu', username, password }
  const tables = ['names']
  const exposed = tables.map((table) => ({ schema: 'public', table, columns: null }))
  const id = await app.datasource(owner, teamId, spec, exposed)
  const path = `/teams/${teamId}/datasources/${id}/query`
  ask = (sql, params) => app.ask('POST', path, { token, body: { sql, ...(params && { params }) } })
  direct = (sql) => postgres.query('icu', sql)
})
after(() => stack.disposeAsync())

async function refused(sql: string, params?: readonly unknown[]): Promise<void> {
  const { status, json } = await ask(sql, params)
  assert.ok([403, 422].includes(status), `${status} ${JSON.stringify(json)}`)
}

describe('a search of a text with a nondeterministic collation', () => {
  const TEXTS: readonly string[] = [
    'long',
    'lower(long)',
    'long::varchar',
    "repeat(substr(long, 1, 1), 3000)",
    'plain || label',
  ]
  for (const text of TEXTS) {
    test(`is refused for a long text: ${text}`, () => refused(`SELECT strpos(${text}, 'zz') FROM names`))
  }
  const CALLS: readonly string[] = [
    "replace(long, 'zz', 'y')",
    "split_part(long, 'zz', 2)",
    "position('zz' IN long)",
    "string_to_array(long, 'zz')",
    "strpos(plain, short)",
    "strpos(repeat('x', 3000), short)",
    "strpos(plain, 'zz'::label)",
  ]
  for (const call of CALLS) test(`is refused in ${call}`, () => refused(`SELECT ${call} FROM names`))
  const FROM: readonly string[] = [
    '(SELECT long AS x FROM names) q',
    '(SELECT long AS x FROM names OFFSET 0) q',
    "(SELECT 'a' AS x UNION ALL SELECT long FROM names) q",
    '(SELECT max(long) AS x FROM names) q',
    'names JOIN (SELECT long AS x FROM names) q ON true',
    '(SELECT long AS x FROM names) p JOIN (SELECT long AS x FROM names) q USING (x)',
    "(SELECT string_agg(long, ',') AS x FROM names) q",
    'names, LATERAL unnest(ARRAY[long]) AS u(x)',
  ]
  for (const from of FROM) test(`is refused for a column of ${from}`, () => refused(`SELECT strpos(x, 'zz') FROM ${from}`))

  const ORDINARY: readonly string[] = [
    "strpos(short, 'love')",
    "replace(short, 'ADA', 'x')",
    "split_part(short, ' ', 2)",
    'strpos(short, label)',
    `strpos(long COLLATE "C", 'zz')`,
    "strpos(plain, 'zz')",
    "length(replace(plain, ' ', ''))",
    "length(replace(plain, ' ', '')) + length(short)",
  ]
  for (const call of ORDINARY) {
    test(`is answered as by PostgreSQL: ${call}`, async () => {
      const { status, json } = await ask(`SELECT (${call})::text FROM names`)
      assert.equal(status, 200, JSON.stringify(json))
      assert.deepEqual(json.rows, await direct(`SELECT (${call})::text FROM names`))
    })
  }
})
