// Some names need quotes in a query. The texts that Vitrine generates about tables with these names must work without a
// change. Uses real servers.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { startApp, type Person, type TestApp } from '../support/app.ts'
import { startMongod } from '../support/mongodb.ts'
import { skipWithout } from '../support/no-such-engine.ts'
import { startPostgres } from '../support/postgres.ts'

interface Text {
  readonly text: string
}

async function draftsOf(app: TestApp, owner: Person, at: string) {
  for (const path of ['profile', 'documentation/generate']) {
    const { jobId } = await owner.must('POST', `${at}/${path}`)
    let job = await owner.must('GET', `${at}/jobs/${jobId}`)
    while (job.state === 'RUNNING' || job.state === 'QUEUED') job = await owner.must('GET', `${at}/jobs/${jobId}`)
    assert.equal(job.state, 'DONE', JSON.stringify(job))
  }
  const { tables } = await owner.must('GET', `${at}/documentation`)
  return tables as readonly {
    readonly table: string
    readonly statements: readonly Text[]
    readonly examples: Text | null
  }[]
}

describe('PostgreSQL names that need quotes', () => {
  const stack = new AsyncDisposableStack()
  const TABLES = ['Customers', 'user', 'ünïcødé', 'a.b', 'two words', 'say "hi"', 'select', "it's", '1st', 'plain']
  let app: TestApp
  let owner: Person
  let at: string
  before(async () => {
    const server = stack.use(await startPostgres())
    const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`
    const table = (name: string) => `
      CREATE TABLE "Billing".${quoted(name)} ("Id" int PRIMARY KEY, "order" int REFERENCES "Billing"."Customers", "My State" text,
        "created At" timestamptz, "from ""x""" text, "größe" int, "${name === 'plain' ? 'deleted_at' : 'Deleted_At'}" date);
      INSERT INTO "Billing".${quoted(name)} SELECT n, 1, (ARRAY['on','off'])[n % 2 + 1], now(), 'x', n FROM generate_series(1, 20) n;`
    const database = await server.createDatabase(
      'quoted',
      `CREATE SCHEMA "Billing"; ${TABLES.map(table).join('')} ANALYZE`,
    )
    app = stack.use(await startApp())
    owner = await app.person('Olga')
    const teamId = await app.team(owner)
    const login = { host: server.host, port: server.port, username: server.superuser, password: server.password }
    const tables = TABLES.map((name) => ({ schema: 'Billing', table: name, columns: null }))
    at = `/teams/${teamId}/datasources/${await app.datasource(owner, teamId, { ...login, database }, tables)}`
  })
  after(() => stack.disposeAsync())

  test('the examples of tables with quoted names run unchanged, and names in statements can be copied into a query', async () => {
    const drafts = await draftsOf(app, owner, at)
    assert.deepEqual(drafts.map(({ table }) => table).sort(), [...TABLES].sort())
    for (const { table, statements, examples } of drafts) {
      assert.ok(examples !== null, table)
      const sql = examples.text.slice(examples.text.indexOf('\n') + 1)
      const answer = await owner.ask('POST', `${at}/query`, { sql })
      assert.equal(answer.status, 200, `${sql}: ${answer.text}`)
      const texts = statements.map(({ text }) => text)
      const join = texts.map((text) => /^Join on (.+) = (.+)\.("Id")[;.]/.exec(text)).find((found) => found !== null)
      assert.ok(join, texts.join('\n'))
      const [, own, to, key] = join
      const ownTable = `"Billing"."${table.replaceAll('"', '""')}"`
      const joined = `SELECT count(*) FROM ${ownTable} x JOIN ${to} y ON x.${own} = y.${key}`
      const run = await owner.ask('POST', `${at}/query`, { sql: joined })
      assert.equal(run.status, 200, `${joined}: ${run.text}`)
      const listed = texts.map((text) => /^(.+) is one of “off” or “on”\.$/.exec(text)?.[1]).find(Boolean)
      assert.equal(listed, '"My State"')
    }
  })

  test('tables with quoted names are described, and exposed without a warning', async () => {
    const { tables } = await owner.must('GET', `${at}/schema`)
    assert.equal(tables.length, TABLES.length)
    const warned = await owner.must('PUT', `${at}/exposure`, {
      tables: [{ schema: 'Billing', table: 'two words', columns: ['Id'] }],
    })
    assert.deepEqual(warned.warnings, [])
  })
})

const skip = await skipWithout(() => startMongod())

describe('MongoDB names that need quotes', { skip }, () => {
  test('the examples of collections with quoted names run unchanged, and statements quote names with spaces', async () => {
    await using server = await startMongod()
    const database = server.database('quoted')
    const db = server.client.db(database)
    const names = ['Two Words', 'dotted.name', 'ünïcødé', "it's", 'plain']
    for (const name of names) {
      await db.collection(name).insertMany(
        Array.from({ length: 20 }, (_, n) => ({
          'My State': n % 2 === 0 ? 'on' : 'off',
          createdAt: new Date(n),
          größe: n,
          inner: { 'a b': 1, from: 2 },
        })),
      )
    }
    await using app = await startApp()
    const owner = await app.person('Olga')
    const teamId = await app.team(owner)
    const tables = names.map((table) => ({ schema: database, table, columns: null }))
    const spec = { type: 'MONGODB', host: server.host, port: server.port, database }
    const at = `/teams/${teamId}/datasources/${await app.datasource(owner, teamId, spec, tables)}`
    const drafts = await draftsOf(app, owner, at)
    assert.deepEqual(drafts.map(({ table }) => table).sort(), [...names].sort())
    for (const { table, statements, examples } of drafts) {
      assert.ok(examples !== null, table)
      const [title = '', ...body] = examples.text.split('\n')
      const answer = await owner.ask('POST', `${at}/query`, JSON.parse(body.join('\n')))
      assert.equal(answer.status, 200, `${examples.text}: ${answer.text}`)
      assert.ok(title.includes(/[ ']/.test(table) ? JSON.stringify(table) : table), title)
      const texts = statements.map(({ text }) => text)
      assert.ok(texts.includes('"My State" is one of “off” or “on”.'), texts.join('\n'))
    }
  })
})
