// Some columns are named like members of Object.prototype. They must behave like other columns in introspection,
// drafts, marks, profiles, exposures, descriptions and queries.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { startApp, type Person, type TestApp } from '../support/app.ts'
import { startPostgres, type TestPostgres } from '../support/postgres.ts'

const NAMES = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', '__defineGetter__', 'prototype']

describe('columns named like members of Object.prototype', () => {
  let server: TestPostgres
  let app: TestApp
  let owner: Person
  let at: string
  let key: string

  before(async () => {
    server = await startPostgres()
    const columns = NAMES.map((name) => `"${name}" text NOT NULL`).join(', ')
    const values = NAMES.map(() => `(ARRAY['on','off'])[n % 2 + 1]`).join(', ')
    const database = await server.createDatabase(
      'odd',
      `CREATE TABLE "__proto__" (id int PRIMARY KEY, ${columns});
       INSERT INTO "__proto__" SELECT n, ${values} FROM generate_series(1, 100) AS n;
       COMMENT ON COLUMN "__proto__"."constructor" IS 'A comment.'; ANALYZE`,
    )
    app = await startApp()
    owner = await app.person('Olga')
    const teamId = await app.team(owner)
    const login = { host: server.host, port: server.port, username: server.superuser, password: server.password }
    const id = await app.datasource(owner, teamId, { ...login, database })
    at = `/teams/${teamId}/datasources/${id}`
    key = await app.key(owner)
  })
  after(async () => {
    await app[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  })

  const put = (body: string) => app.ask('PUT', `${at}/documentation/public/__proto__`, { token: owner.jwt, body })
  const described = async () => (await app.must('GET', `${at}/schema`, { token: key })).tables[0]
  /** Creates own properties, as JSON.parse does. */
  const byName = (of: (name: string) => unknown) => Object.fromEntries(NAMES.map((name) => [name, of(name)]))

  test('columns named like members of Object.prototype are exposed by name, and otherwise hidden', async () => {
    const table = { schema: 'public', table: '__proto__' }
    const one = { tables: [{ ...table, columns: ['id', '__proto__'] }] }
    assert.deepEqual((await owner.must('PUT', `${at}/exposure`, one)).tables, one.tables)
    assert.deepEqual(
      (await described()).columns.map((column: { readonly name: string }) => column.name),
      ['id', '__proto__'],
    )
    const hidden = await app.ask('POST', `${at}/query`, {
      token: key,
      body: { sql: 'SELECT "toString" FROM "__proto__"' },
    })
    assert.deepEqual([hidden.status, hidden.json.code], [403, 'QUERY_DENIED'])
    await owner.must('PUT', `${at}/exposure`, { tables: [{ ...table, columns: ['id', ...NAMES] }] })
  })

  test('columns named like members of Object.prototype are profiled, documented, marked, judged, published and described', async () => {
    const run = async (path: string) => {
      const { jobId } = await owner.must('POST', `${at}/${path}`)
      let job = await owner.must('GET', `${at}/jobs/${jobId}`)
      while (job.state === 'RUNNING') job = await owner.must('GET', `${at}/jobs/${jobId}`)
      assert.equal(job.state, 'DONE', JSON.stringify(job))
    }
    await run('profile')
    const statsOf = async () =>
      new Map<string, { readonly values: unknown }>(
        (await described()).columns.map((column: { readonly name: string; readonly stats: unknown }) => [
          column.name,
          column.stats,
        ]),
      )
    const before = await statsOf()
    for (const name of NAMES) assert.equal((before.get(name)?.values as unknown[]).length, 2, name)
    await run('documentation/generate')
    const { tables } = await owner.must('GET', `${at}/documentation`)
    for (const name of NAMES) {
      const text = `${/[A-Z]/.test(name) ? `"${name}"` : name} is one of “off” or “on”.`
      const statement = tables[0].statements.find((entry: { readonly text: string }) => entry.text === text)
      assert.deepEqual([statement?.restsOn, statement?.stale], [[name], false], name)
    }

    const columns = byName((name) => ({ text: `Says ${name}.`, status: 'CONFIRMED', restsOn: ['id'] }))
    const saved = await put(JSON.stringify({ columns, statements: [{ text: 'All are on or off.', restsOn: NAMES }] }))
    assert.equal(saved.status, 200, saved.text)
    assert.deepEqual(Object.keys(saved.json.columns), NAMES)
    await owner.must('POST', `${at}/documentation/publish`)
    const after = await described()
    for (const { name, description } of after.columns.slice(1)) assert.equal(description, `Says ${name}.`)
    assert.deepEqual(after.documentation.statements, ['All are on or off.'])

    const marked = await put(JSON.stringify({ columns: byName((name) => ({ personal: name === '__proto__' })) }))
    assert.deepEqual(
      marked.json.columns,
      byName((name) => ({ personal: name === '__proto__' })),
    )
    const draft = await app.must('GET', `${at}/documentation`, { token: owner.jwt })
    assert.deepEqual(draft.tables[0].columns, marked.json.columns)
    await run('profile')
    const stats = await statsOf()
    for (const name of NAMES) assert.equal(stats.get(name)?.values === undefined, name === '__proto__', name)
    const unknown = await put(JSON.stringify({ columns: { valueOf: { text: 'No such column.' } } }))
    assert.deepEqual([unknown.status, unknown.json.code], [400, 'INVALID_REQUEST'])
    assert.match(JSON.stringify(unknown.json.details), /valueOf is not a column of this table/)
  })

  test('columns named like members of Object.prototype can be queried', async () => {
    const sql = `SELECT ${NAMES.map((name) => `"${name}"`).join(', ')} FROM "__proto__" ORDER BY id LIMIT 1`
    const answer = await app.ask('POST', `${at}/query`, { token: key, body: { sql } })
    assert.equal(answer.status, 200, answer.text)
    assert.deepEqual(
      answer.json.columns.map((column: { readonly name: string }) => column.name),
      NAMES,
    )
    assert.deepEqual(answer.json.rows, [NAMES.map(() => 'off')])
    const aliased = `SELECT count(*) AS "__proto__", "constructor" AS "toString" FROM "__proto__" AS "hasOwnProperty" GROUP BY 2`
    assert.equal((await app.ask('POST', `${at}/query`, { token: key, body: { sql: aliased } })).status, 200)
    for (const call of ['constructor(1)', 'toString(1)', '"__proto__"(1)']) {
      const denied = await app.ask('POST', `${at}/query`, { token: key, body: { sql: `SELECT ${call}` } })
      assert.deepEqual([denied.status, denied.json.blocked?.kind], [403, 'function'], call)
    }
  })

  test('names of members of Object.prototype are refused as fields of a request body', async () => {
    const bodies = [
      '{"__proto__": {"summary": null}}',
      '{"constructor": {"prototype": {}}}',
      '{"summary": {"text": "x", "__proto__": {"status": "CONFIRMED"}}}',
      '{"columns": {"id": {"__proto__": {"personal": true}}}}',
      '{"columns": []}',
      '{"columns": "__proto__"}',
      '{"columns": {"id": null}}',
    ]
    for (const body of bodies) {
      const answer = await put(body)
      assert.deepEqual([answer.status, answer.json.code], [400, 'INVALID_REQUEST'], body)
    }
    const elsewhere = await app.ask('PUT', `${at}/exposure`, { token: owner.jwt, body: '{"tables":[],"__proto__":{}}' })
    assert.equal(elsewhere.status, 400)
  })
})
