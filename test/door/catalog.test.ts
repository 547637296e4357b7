// GET …/catalog returns the whole introspected catalog, with the facts that a person needs to choose what to expose.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { Catalog } from '../../src/contract/catalog-schemas.ts'
import { startApp, type Answer, type Person, type TestApp } from '../support/app.ts'
import { startPostgres, type TestPostgres } from '../support/postgres.ts'

const SQL = `
CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, email text, contact text, country char(2));
COMMENT ON TABLE customers IS 'Who buys.';
COMMENT ON COLUMN customers.country IS 'ISO 3166 code.';
INSERT INTO customers SELECT n, 'n' || n, null, 'c' || n || '@example.test', 'DE' FROM generate_series(1, 40) AS n;
CREATE TABLE products (id int PRIMARY KEY, name text, price numeric);
CREATE TABLE orders (id int PRIMARY KEY, customer_id int REFERENCES customers (id), status text);
CREATE VIEW open_orders AS SELECT * FROM orders WHERE status = 'open';
CREATE TABLE odd (id int, whole customers);
ANALYZE;
`

interface Column {
  readonly name: string
  readonly [field: string]: unknown
}

describe('the catalog from which people choose what to expose', () => {
  let app: TestApp
  let postgres: TestPostgres
  let owner: Person
  let key: string
  let at: string

  before(async () => {
    postgres = await startPostgres()
    const database = await postgres.createDatabase('shop', SQL)
    app = await startApp()
    owner = await app.person('Olga')
    const teamId = await app.team(owner, 'Shop')
    const login = {
      host: postgres.host,
      port: postgres.port,
      username: postgres.superuser,
      password: postgres.password,
    }
    at = `/teams/${teamId}/datasources/${await app.datasource(owner, teamId, { ...login, database })}`
    key = await app.key(owner)
  })
  after(async () => {
    await app[Symbol.asyncDispose]()
    await postgres[Symbol.asyncDispose]()
  })

  const catalog = () => owner.must('GET', `${at}/catalog`)
  const tableOf = (json: Answer['json'], table: string) =>
    json.tables.find((each: { readonly table: string }) => each.table === table)
  const columnOf = (json: Answer['json'], table: string, name: string): Column =>
    tableOf(json, table).columns.find((each: Column) => each.name === name)
  const query = (sql: string) => app.ask('POST', `${at}/query`, { token: key, body: { sql } })
  /** The service reads the audit in the background, so poll. */
  const until = async (isExpected: (json: Answer['json']) => boolean): Promise<Answer['json']> => {
    for (;;) {
      const json = await catalog()
      if (isExpected(json)) return json
      await wait(50)
    }
  }

  test('the catalog shows tables and columns before anything is exposed, in the declared shape', async () => {
    const json = await catalog()
    assert.deepEqual(Catalog.parse(json), json, 'no undeclared field')
    assert.deepEqual(
      json.tables.map((each: { table: string; kind: string; exposed: boolean }) => [
        each.table,
        each.kind,
        each.exposed,
      ]),
      [
        ['customers', 'table', false],
        ['odd', 'table', false],
        ['open_orders', 'view', false],
        ['orders', 'table', false],
        ['products', 'table', false],
      ],
    )
    assert.equal(json.exposureVersion, 0)
    assert.equal(tableOf(json, 'customers').comment, 'Who buys.')
    assert.equal(tableOf(json, 'customers').estimatedRows, 40)
    assert.deepEqual(columnOf(json, 'customers', 'country'), {
      name: 'country',
      type: 'character(2)',
      nullable: true,
      primaryKey: false,
      comment: 'ISO 3166 code.',
      personal: { guess: false, why: null },
      exposed: false,
      refusals7d: 0,
    })
    assert.deepEqual(columnOf(json, 'orders', 'customer_id')['references'], {
      schema: 'public',
      table: 'customers',
      column: 'id',
    })
  })

  test('the catalog says why a column cannot be exposed', async () => {
    const column = columnOf(await catalog(), 'odd', 'whole')
    assert.equal(typeof column['unexposable'], 'string')
    const { status, json } = await owner.ask('PUT', `${at}/exposure`, {
      tables: [{ schema: 'public', table: 'odd', columns: ['whole'] }],
    })
    assert.equal(status, 400)
    assert.ok(json.details[0].includes(column['unexposable']), 'the same reason as a save gives')
  })

  test('personal data is guessed by name before any profile', async () => {
    const json = await catalog()
    const guesses = (table: string) =>
      tableOf(json, table).columns.map((column: Column) => [column.name, column['personal']])
    const names = { guess: true, why: 'The name suggests names of people.' }
    const none = { guess: false, why: null }
    assert.deepEqual(guesses('customers'), [
      ['id', none],
      ['name', names],
      ['email', { guess: true, why: 'The name suggests e-mail addresses.' }],
      ['contact', none],
      ['country', none],
    ])
    assert.deepEqual(guesses('products'), [
      ['id', none],
      ['name', none],
      ['price', none],
    ])
  })

  test('personal data is guessed by profiled values, and the personal marks that people set are shown', async () => {
    const tables = [{ schema: 'public', table: 'customers', columns: ['id', 'name', 'contact', 'country'] }]
    await owner.must('PUT', `${at}/exposure`, { tables })
    const { jobId } = await owner.must('POST', `${at}/profile`, {})
    let job = await owner.must('GET', `${at}/jobs/${jobId}`)
    while (job.state === 'RUNNING' || job.state === 'QUEUED') job = await owner.must('GET', `${at}/jobs/${jobId}`)
    assert.equal(job.state, 'DONE')
    const profiled = columnOf(await catalog(), 'customers', 'contact')
    assert.deepEqual(profiled['personal'], { guess: true, why: 'The sampled values look like e-mail addresses.' })
    await owner.must('PUT', `${at}/documentation/public/customers`, {
      columns: { name: { personal: false }, country: { personal: true } },
    })
    const json = await catalog()
    assert.deepEqual(columnOf(json, 'customers', 'name')['personal'], {
      guess: false,
      why: 'A person marked the column as not personal.',
    })
    assert.deepEqual(columnOf(json, 'customers', 'country')['personal'], {
      guess: true,
      why: 'A person marked the column as personal.',
    })
  })

  test('the catalog counts refusals and shows the last read, from the audit', async () => {
    await owner.must('PUT', `${at}/exposure`, {
      tables: [{ schema: 'public', table: 'customers', columns: ['id', 'country'] }],
    })
    const before = new Date().toISOString()
    assert.equal((await query('SELECT c.email FROM customers c')).json.code, 'QUERY_DENIED')
    assert.equal((await query('SELECT id, email FROM customers')).json.code, 'QUERY_DENIED')
    assert.equal((await query('SELECT count(*) FROM public.orders')).json.code, 'QUERY_DENIED')
    assert.equal((await query('SELECT id FROM customers')).status, 200)
    const json = await until((read) => (columnOf(read, 'customers', 'id')['lastReadAt'] ?? '') >= before)
    assert.equal(columnOf(json, 'customers', 'email')['refusals7d'], 2)
    assert.equal(columnOf(json, 'customers', 'country')['refusals7d'], 0)
    assert.equal(tableOf(json, 'customers').refusals7d, 2)
    assert.equal(tableOf(json, 'orders').refusals7d, 1)
    assert.equal(tableOf(json, 'products').refusals7d, 0)
    assert.ok(tableOf(json, 'customers').lastReadAt >= before)
    assert.equal('lastReadAt' in columnOf(json, 'customers', 'country'), false, 'no query named it')
    assert.ok(Date.parse(json.evidence.refusalsSince) < Date.parse(before))

    await query('SELECT email FROM customers')
    const again = await until((read) => columnOf(read, 'customers', 'email')['refusals7d'] !== 2)
    assert.equal(columnOf(again, 'customers', 'email')['refusals7d'], 3)
    assert.equal(tableOf(again, 'orders').refusals7d, 1)
  })

  test('the catalog has an ETag that changes with the exposure', async () => {
    const first = await owner.ask('GET', `${at}/catalog`)
    const etag = first.headers.get('etag') ?? ''
    const headers = { 'if-none-match': etag }
    assert.equal((await app.ask('GET', `${at}/catalog`, { token: owner.jwt, headers })).status, 304)
    await owner.must('PUT', `${at}/exposure`, { tables: [{ schema: 'public', table: 'products', columns: ['id'] }] })
    const second = await app.ask('GET', `${at}/catalog`, { token: owner.jwt, headers })
    assert.equal(second.status, 200)
    assert.notEqual(second.headers.get('etag'), etag)
    assert.equal(tableOf(second.json, 'products').exposed, true)
    assert.equal(columnOf(second.json, 'products', 'id')['exposed'], true)
    assert.equal(columnOf(second.json, 'products', 'price')['exposed'], false)
    assert.equal(tableOf(second.json, 'customers').exposed, false)
  })

  test('a MEMBER may not read the catalog, and each request is in the audit', async () => {
    const member = await app.person('Max')
    await app.join(owner, at.split('/')[2] ?? '', member)
    const { status, json } = await member.ask('GET', `${at}/catalog`)
    assert.deepEqual([status, json.code], [403, 'ROLE_REQUIRED'])
    const { items } = await owner.must('GET', `/teams/${at.split('/')[2]}/audit?action=getCatalog&limit=2`)
    assert.deepEqual(
      items.map((item: { outcome: string }) => item.outcome),
      ['DENIED', 'ANSWERED'],
    )
  })
})
