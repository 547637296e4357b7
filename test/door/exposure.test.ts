// Tests the exposure over HTTP: changes of the database (drift), versions with their authors, previews of a change with
// past queries, and the change that a refused query needs.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import * as shape from '../../src/contract/exposure-schemas.ts'
import { Job } from '../../src/contract/schemas.ts'
import type { Answer, Person } from '../support/app.ts'
import { openShop, type Shop } from '../support/shop.ts'

const SQL = `
CREATE TABLE customers (id int PRIMARY KEY, name text, email text, country char(2));
CREATE TABLE orders (id int PRIMARY KEY, customer_id int REFERENCES customers, total numeric, note text);
CREATE TABLE payroll (id int PRIMARY KEY, name text, salary int);
CREATE TABLE empty_one (only_one int);
CREATE SCHEMA hr; CREATE TABLE hr.people (id int PRIMARY KEY, "Full Name" text, name text);
CREATE VIEW totals AS SELECT customer_id, sum(total) AS total FROM orders GROUP BY 1;
CREATE TYPE odd AS (a int);
CREATE FUNCTION odd_text(odd) RETURNS text LANGUAGE sql AS 'SELECT 1::text';
CREATE CAST (odd AS text) WITH FUNCTION odd_text(odd);
CREATE TABLE strange (id int, odd odd);
CREATE TYPE place AS (street text, city text);
CREATE TABLE homes (id int, home place);
`
const names = (table: string, columns: readonly string[] | null, schema = 'public') => ({ schema, table, columns })
const EXPOSED = [names('customers', ['id', 'name', 'country']), names('orders', ['id', 'customer_id', 'total'])]
const UNKNOWN = '00000000-0000-4000-8000-000000000000'

describe('the exposure', () => {
  let shop: Shop
  let databases = 0
  before(async () => {
    shop = await openShop()
  })
  after(() => shop[Symbol.asyncDispose]())

  async function openDatasource(tables: readonly object[] | null = EXPOSED) {
    const database = await shop.postgres.createDatabase(`exposure_${++databases}`, SQL)
    const id = await shop.app.datasource(shop.owner, shop.teamId, { ...shop.spec, database }, tables ?? undefined)
    const at = `/teams/${shop.teamId}/datasources/${id}`
    const ask = (method: string, rest: string, body?: unknown, who: Person = shop.owner): Promise<Answer> =>
      who.ask(method, at + rest, body)
    const must = async (method: string, rest: string, body?: unknown) => shop.owner.must(method, at + rest, body)
    return {
      id,
      at,
      ask,
      must,
      alter: (sql: string) => shop.postgres.query(database, sql),
      query: (sql: string) => shop.app.ask('POST', `${at}/query`, { token: shop.key, body: { sql } }),
      async last(): Promise<string> {
        const { items } = await shop.owner.must('GET', `/teams/${shop.teamId}/audit?limit=1`)
        return items[0].id
      },
      async ended(jobId: string) {
        for (;;) {
          const job = Job.parse(await must('GET', `/jobs/${jobId}`))
          if (job.state !== 'RUNNING' && job.state !== 'QUEUED') return job
        }
      },
    }
  }

  describe('drift', () => {
    test('drift lists tables and columns that were added or removed, and columns that were retyped, since the exposure was last saved', async () => {
      const { must, alter } = await openDatasource()
      const empty = { added: [], removed: [], retyped: [] }
      const driftNow = async () => {
        const drift = shape.Drift.parse(await must('GET', '/drift'))
        return { added: drift.added, removed: drift.removed, retyped: drift.retyped }
      }
      assert.deepEqual(await driftNow(), empty)
      await alter(`ALTER TABLE customers ADD phone text; ALTER TABLE customers DROP country CASCADE;
        ALTER TABLE orders ALTER note TYPE varchar(9); CREATE TABLE fresh (x int); DROP TABLE payroll`)
      const counts = await must('POST', '/introspect')
      assert.deepEqual([counts.added, counts.removed, counts.changed], [1, 1, 2])
      const changed = {
        added: [
          { schema: 'public', table: 'customers', column: 'phone', type: 'text' },
          { schema: 'public', table: 'fresh' },
        ],
        removed: [
          { schema: 'public', table: 'customers', column: 'country', was: 'character(2)' },
          { schema: 'public', table: 'payroll' },
        ],
        retyped: [{ schema: 'public', table: 'orders', column: 'note', type: 'character varying(9)', was: 'text' }],
      }
      assert.deepEqual(await driftNow(), changed)
      // The counts compare with the previous introspection. Drift compares with the last save of the exposure.
      for (let n = 0; n < 3; n++) {
        const again = await must('POST', '/introspect')
        assert.deepEqual([again.added, again.removed, again.changed], [0, 0, 0])
      }
      assert.deepEqual(await driftNow(), changed)
      // If the database no longer has a column, the column stays in the exposure and is marked as gone.
      const exposure = await must('GET', '/exposure')
      assert.deepEqual(exposure.gone, [{ schema: 'public', table: 'customers', column: 'country' }])
      assert.deepEqual(exposure.tables[0].columns, ['id', 'name', 'country'])
      await must('PUT', '/exposure', { tables: exposure.tables, version: exposure.version })
      assert.deepEqual(await driftNow(), empty)
      assert.deepEqual((await must('GET', '/exposure')).gone.length, 1)
      await alter('ALTER TABLE customers ADD country char(2)')
      await must('POST', '/introspect')
      assert.deepEqual((await driftNow()).added, [
        { schema: 'public', table: 'customers', column: 'country', type: 'character(2)' },
      ])
      assert.deepEqual((await must('GET', '/exposure')).gone, [])
    })

    test('drift is empty without an exposure, without an introspection, and if the exposure was saved before the first introspection', async () => {
      const { must } = await openDatasource(null)
      const drift = await must('GET', '/drift')
      assert.deepEqual([drift.added, drift.since, typeof drift.schemaCapturedAt], [[], null, 'string'])
      const spec = { name: 'new', type: 'POSTGRES', connectionMode: 'DIRECT', sslMode: 'disable', ...shop.spec }
      const { id } = await shop.owner.must('POST', `/teams/${shop.teamId}/datasources`, spec)
      const path = `/teams/${shop.teamId}/datasources/${id}`
      const none = { added: [], removed: [], retyped: [], since: null, schemaCapturedAt: null }
      assert.deepEqual(await shop.owner.must('GET', `${path}/drift`), none)
      await shop.owner.must('PUT', `${path}/exposure`, { tables: [] })
      await shop.owner.must('POST', `${path}/introspect`)
      assert.deepEqual((await shop.owner.must('GET', `${path}/drift`)).added, [])
    })
  })

  describe('versions', () => {
    test('versions of an exposure are listed in pages with their authors, and a version is restored by saving it again', async () => {
      const { must, ask } = await openDatasource()
      const admin = await shop.app.person('Ada')
      await shop.app.join(shop.owner, shop.teamId, admin, 'ADMIN')
      const second = await ask('PUT', '/exposure', { tables: [names('orders', ['id'])], version: 1 }, admin)
      assert.equal(second.json.version, 2)
      const { items, nextCursor } = shape.ExposureVersions.parse(await must('GET', '/exposure/versions?limit=1'))
      assert.deepEqual(
        items.map((item) => [item.version, item.author]),
        [[2, { accountId: admin.id, name: 'Ada' }]],
      )
      const older = await must('GET', `/exposure/versions?limit=1&cursor=${nextCursor}`)
      assert.deepEqual([older.items[0].version, older.nextCursor], [1, null])
      const restored = await must('PUT', '/exposure', { tables: older.items[0].tables, version: 2 })
      assert.deepEqual([restored.version, restored.tables], [3, older.items[0].tables])
      assert.equal((await ask('PUT', '/exposure', { tables: [], version: 2 })).json.code, 'CONFLICT')
      for (const bad of ['?cursor=x', '?limit=0', '?from=1']) {
        assert.equal((await ask('GET', `/exposure/versions${bad}`)).status, 400)
      }
    })
  })

  describe('a preview', () => {
    const past = [
      'SELECT id, name FROM customers',
      'SELECT id, name FROM customers',
      'SELECT email FROM customers',
      'SELECT total FROM orders WHERE id = 7',
      'SELECT pg_sleep(1)',
      'SELEC 1',
      'SELECT 1/0',
    ]
    const proposed = [names('customers', ['id', 'email'])]

    test('an exposure preview counts the past queries that the change would refuse or allow', async () => {
      const { ask, must, query, ended, at } = await openDatasource()
      for (const sql of past) await query(sql)
      await shop.owner.must('PATCH', `/teams/${shop.teamId}`, { settings: { auditRedactLiterals: true } })
      await query("SELECT id FROM customers WHERE name = 'redacted'")
      await shop.owner.must('PATCH', `/teams/${shop.teamId}`, { settings: { auditRedactLiterals: false } })
      const started = await ask('POST', '/exposure/preview', { tables: proposed, days: 1 })
      assert.deepEqual([started.status, Object.keys(started.json)], [202, ['jobId']])
      const job = await ended(started.json.jobId)
      assert.deepEqual([job.state, job.kind, job.done, job.total], ['DONE', 'preview', 8, 8])
      const result = shape.Preview.parse(job.result)
      assert.deepEqual(
        [result.nowRefused.count, result.nowAllowed.count, result.cannotTell.count],
        [3, 1, 1],
        JSON.stringify(result),
      )
      const { items } = await shop.owner.must('GET', `/teams/${shop.teamId}/audit?limit=100`)
      const texts = (ids: readonly string[]) =>
        ids.map((id) => items.find((item: { id: string }) => item.id === id).query)
      assert.deepEqual(texts(result.nowRefused.auditIds), [past[3], past[0], past[0]])
      assert.deepEqual(texts(result.nowAllowed.auditIds), ['SELECT email FROM customers'])
      // The preview changes nothing, and is audited.
      assert.equal((await must('GET', '/exposure')).version, 1)
      assert.ok(items.some((item: { action: string }) => item.action === 'previewExposure'))
      assert.equal((await shop.app.ask('POST', `${at}/query`, { token: shop.key, body: { sql: past[2] } })).status, 403)
    })

    test('an exposure preview refuses malformed proposals, and refuses unknown tables as a save does', async () => {
      const { ask } = await openDatasource()
      const unknown = await ask('POST', '/exposure/preview', {
        tables: [names('nosuch', null), names('customers', ['q'])],
        days: 1,
      })
      assert.deepEqual([unknown.status, unknown.json.code, unknown.json.details.length], [400, 'INVALID_REQUEST', 2])
      for (const body of [
        {},
        { tables: proposed },
        { days: 1 },
        { tables: proposed, days: 0 },
        { tables: proposed, days: 3651 },
        { tables: proposed, days: 1.5 },
        { tables: proposed, days: '1' },
        { tables: proposed, days: 1, version: 1 },
        { tables: [{ schema: 'public', table: 'customers' }], days: 1 },
        { tables: [names('customers', ['\0'])], days: 1 },
        { tables: null, days: 1 },
        [],
      ]) {
        const { status, json } = await ask('POST', '/exposure/preview', body)
        assert.deepEqual([status, json.code], [400, 'INVALID_REQUEST'], JSON.stringify(body))
        assert.ok(json.details.length > 0)
      }
      assert.equal((await ask('POST', '/exposure/preview', '{"tables": [')).status, 400)
      const wide = 'x'.repeat(9 << 20)
      assert.equal((await ask('POST', '/exposure/preview', { tables: [names(wide, null)], days: 1 })).status, 413)
      const fits = 'x'.repeat(7 << 20)
      assert.equal((await ask('POST', '/exposure/preview', { tables: [names(fits, null)], days: 1 })).status, 400)
    })

    test('an exposure preview needs an introspection and a manager, and its job is found only under its own datasource', async () => {
      const { ask, ended } = await openDatasource()
      const spec = { name: 'new', type: 'POSTGRES', connectionMode: 'DIRECT', sslMode: 'disable', ...shop.spec }
      const { id } = await shop.owner.must('POST', `/teams/${shop.teamId}/datasources`, spec)
      const path = `/teams/${shop.teamId}/datasources/${id}`
      const early = await shop.owner.ask('POST', `${path}/exposure/preview`, { tables: [], days: 1 })
      assert.deepEqual([early.status, early.json.code], [409, 'NOT_CONNECTED'])
      const refused = await shop.owner.ask('POST', `${path}/exposure/from-refusal/${UNKNOWN}`)
      assert.equal(refused.status, 404)
      const member = await shop.app.person('Mia')
      await shop.app.join(shop.owner, shop.teamId, member)
      // The member has access to the datasource, so 403 reveals nothing. A caller without access gets 404.
      const asMember = await ask('POST', '/exposure/preview', { tables: [], days: 1 }, member)
      assert.deepEqual([asMember.status, asMember.json.code], [403, 'ROLE_REQUIRED'])
      const started = await ask('POST', '/exposure/preview', { tables: [], days: 1 })
      assert.equal((await shop.owner.ask('GET', `${path}/jobs/${started.json.jobId}`)).status, 404)
      assert.equal((await shop.owner.ask('DELETE', `${path}/jobs/${started.json.jobId}`)).status, 404)
      assert.equal((await ended(started.json.jobId)).state, 'DONE')
      assert.equal((await ask('DELETE', `/jobs/${started.json.jobId}`)).status, 204)
      assert.equal((await ended(started.json.jobId)).state, 'DONE')
    })
  })

  describe('from a refusal', () => {
    const cases: readonly { readonly sql: string; readonly added: readonly object[] }[] = [
      { sql: 'SELECT email FROM customers', added: [names('customers', ['email'])] },
      { sql: 'SELECT c.email, o.note FROM customers c JOIN orders o ON o.customer_id = c.id', added: [names('customers', ['email']), names('orders', ['note'])] },
      { sql: 'SELECT note FROM customers JOIN orders ON customer_id = customers.id', added: [names('orders', ['note'])] },
      { sql: 'SELECT salary FROM payroll WHERE id > 3', added: [names('payroll', ['id', 'salary'])] },
      { sql: 'SELECT * FROM payroll', added: [names('payroll', ['id', 'name', 'salary'])] },
      { sql: 'TABLE payroll', added: [names('payroll', ['id', 'name', 'salary'])] },
      { sql: 'SELECT count(*) FROM PayRoll', added: [names('payroll', ['id'])] },
      { sql: 'SELECT "Full Name" FROM hr.people ORDER BY id', added: [names('people', ['id', 'Full Name'], 'hr')] },
      { sql: 'SELECT name FROM payroll WHERE salary > (SELECT avg(total) FROM orders)', added: [names('payroll', ['name', 'salary'])] },
      { sql: 'WITH p AS (SELECT name, salary FROM payroll) SELECT p.name, e.total FROM p, totals e', added: [names('payroll', ['name', 'salary']), names('totals', ['total'])] },
      { sql: 'SELECT p.name FROM payroll p JOIN hr.people USING (id)', added: [names('people', ['id'], 'hr'), names('payroll', ['id', 'name'])] },
    ] // prettier-ignore

    test('from-refusal returns the smallest exposure that allows the query, as a body for PUT', async () => {
      const { ask, must, query, last } = await openDatasource()
      for (const { sql, added } of cases) {
        assert.equal((await query(sql)).json.code, 'QUERY_DENIED', sql)
        const answer = await ask('POST', `/exposure/from-refusal/${await last()}`)
        assert.equal(answer.status, 200, answer.text)
        const { tables, version, added: proposed } = shape.Widened.parse(answer.json)
        assert.deepEqual(proposed, added, sql)
        const saved = await must('PUT', '/exposure', { tables, version })
        assert.deepEqual(saved.tables, tables)
        assert.equal((await query(sql)).status, 200, sql)
        await must('PUT', '/exposure', { tables: EXPOSED, version: saved.version })
      }
    })

    test('from-refusal answers CONFLICT with the reason if no change would help', async () => {
      const { ask, query, last } = await openDatasource([...EXPOSED, names('strange', ['id'])])
      for (const [sql, why] of [
        ['SELECT pg_read_file(email) FROM customers', /pg_read_file/],
        ['DELETE FROM payroll', /DELETE/],
        ['SELECT nosuch FROM customers', /has nosuch in the catalog/],
        ['SELECT c.nosuch FROM customers c', /has c\.nosuch in the catalog/],
        ['SELECT p.id, p.nosuch FROM payroll p', /has p\.nosuch in the catalog/],
        ['SELECT (home).ctiy FROM homes', /has ctiy in the catalog/],
        ['SELECT * FROM nosuch', /nosuch/],
        ['SELECT odd FROM strange', /odd may not be exposed/],
        ['SELECT email FROM payroll', /email/],
        ['SELECT name FROM payroll, hr.people', /ambiguous/],
        ['SELEC email', /cannot be parsed/],
      ] as const) {
        await query(sql)
        const { status, json } = await ask('POST', `/exposure/from-refusal/${await last()}`)
        assert.deepEqual([status, json.code], [409, 'CONFLICT'], sql)
        assert.match(json.error, why)
      }
    })

    test('from-refusal adds nothing if the query already passes, and answers CONFLICT if the audit row has no whole text or the cost was refused', async () => {
      const { ask, query, last, must } = await openDatasource()
      await query('SELECT id FROM customers')
      const passes = await ask('POST', `/exposure/from-refusal/${await last()}`)
      assert.deepEqual([passes.status, passes.json.added, passes.json.tables], [200, [], EXPOSED])
      await must('GET', '/exposure')
      const change = await ask('POST', `/exposure/from-refusal/${await last()}`)
      assert.deepEqual([change.status, change.json.code], [409, 'CONFLICT'])
      await shop.owner.must('PATCH', `/teams/${shop.teamId}`, { settings: { auditRedactLiterals: true } })
      await query("SELECT email FROM customers WHERE name = 'x'")
      const redacted = await ask('POST', `/exposure/from-refusal/${await last()}`)
      await shop.owner.must('PATCH', `/teams/${shop.teamId}`, { settings: { auditRedactLiterals: false } })
      assert.deepEqual([redacted.status, redacted.json.code], [409, 'CONFLICT'])
      await shop.owner.must('PATCH', `/teams/${shop.teamId}`, { settings: { postgresMaxPlanCost: 1 } })
      await query('SELECT count(*) FROM orders a, orders b, orders c')
      const cost = await ask('POST', `/exposure/from-refusal/${await last()}`)
      await shop.owner.must('PATCH', `/teams/${shop.teamId}`, { settings: { postgresMaxPlanCost: 1_000_000 } })
      assert.match(cost.json.error, /cost/)
    })

    test('from-refusal does not find an audit id of another datasource or an unknown audit id', async () => {
      const [one, other] = [await openDatasource(), await openDatasource()]
      await one.query('SELECT email FROM customers')
      const id = await one.last()
      const missing = await Promise.all(
        [UNKNOWN, 'x', 'x.y', id].map((auditId) => other.ask('POST', `/exposure/from-refusal/${auditId}`)),
      )
      assert.deepEqual(new Set(missing.map((answer) => `${answer.status} ${answer.text}`)).size, 1)
      assert.equal(missing[0]?.status, 404)
      assert.equal((await one.ask('POST', `/exposure/from-refusal/${id}`, { nope: 1 })).status, 400)
    })
  })
})
