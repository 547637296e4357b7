// Tests BigQuery datasources over HTTP: the fields of a connection, and the answers that a caller gets. The operator
// allows the address of the double, so the driver sends no token.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { startApp, type Person, type TestApp } from '../support/app.ts'
import { TestDoor } from '../support/bigquery-door.ts'
import { PROJECT, startShop } from '../support/bigquery-shop.ts'
import { failed, type BigQueryDouble } from '../support/bigquery.ts'

const SMALL = 'SELECT id, name FROM shop.products ORDER BY id LIMIT 2'
const CANARY = 'CANARY-IN-THE-KEY'

describe('BigQuery over HTTP', () => {
  const stack = new AsyncDisposableStack()
  const door = new TestDoor()
  let app: TestApp
  let double: BigQueryDouble
  let owner: Person
  let team: string
  let id: string
  let key: string
  before(async () => {
    double = stack.use(await startShop())
    app = stack.use(await startApp({ env: { VITRINE_ALLOW_BIGQUERY_ENDPOINT: '1' } }))
    owner = await app.person()
    team = await app.team(owner)
    id = await app.datasource(owner, team, spec(), [
      { schema: 'shop', table: 'products', columns: ['id', 'name', 'price'] },
    ])
    key = await app.key(owner)
  })
  after(async () => {
    assert.deepEqual(double.violations, [])
    await stack.disposeAsync()
  })

  const spec = (more: object = {}) => ({
    type: 'BIGQUERY',
    connectionMode: 'SERVICE_ACCOUNT',
    database: PROJECT,
    sslMode: undefined,
    config: { apiEndpoint: double.url, location: 'EU' },
    ...more,
  })
  const path = (rest = '') => `/teams/${team}/datasources/${id}${rest}`
  const query = (sql: string, more: object = {}) =>
    app.ask('POST', path('/query'), { token: key, body: { sql, ...more } })

  test('the list of datasources shows the fields of BigQuery', async () => {
    const [item] = await app.must('GET', `/teams/${team}/datasources`, { token: key })
    const { type, connectionMode, host, port, database, username, sslMode, config, exposedTableCount } = item
    assert.deepEqual(
      [type, connectionMode, host, port, database, username, sslMode, exposedTableCount],
      ['BIGQUERY', 'SERVICE_ACCOUNT', null, null, PROJECT, null, null, 1],
    )
    assert.deepEqual(config, { apiEndpoint: double.url, location: 'EU', reintrospectHours: 24 })
  })

  test('a BigQuery query returns rows, and the description uses GoogleSQL’s terms', async () => {
    const answer = await query(SMALL)
    assert.equal(answer.status, 200, answer.text)
    assert.deepEqual(answer.json.rows, [
      [1, 'p1'],
      [2, 'p2'],
    ])
    assert.deepEqual(answer.json.columns, [
      { name: 'id', dataType: 'INT64' },
      { name: 'name', dataType: 'STRING' },
    ])
    const described = await app.must('GET', path('/schema'), { token: key })
    assert.deepEqual(described.vocabulary, { schema: 'dataset', table: 'table', queryLanguage: 'GoogleSQL' })
    assert.deepEqual(
      described.tables[0].columns.map(({ name, type }: { name: string; type: string }) => [name, type]),
      [
        ['id', 'INT64'],
        ['name', 'STRING'],
        ['price', 'NUMERIC'],
      ],
    )
    assert.doesNotMatch(JSON.stringify(described), /supplier_secret|secrets/)
  })

  test('a query that would read more bytes than the limit is refused with estimate and limit', async () => {
    double.rig('dry run', (asked) => {
      const { query: text } = asked.body.configuration.query
      const statistics = {
        statementType: 'SELECT',
        totalBytesProcessed: '2000000000',
        referencedTables: [{ projectId: PROJECT, datasetId: 'shop', tableId: 'products' }],
      }
      return {
        status: 200,
        body: { configuration: { jobType: 'QUERY', query: { query: text } }, statistics: { query: statistics } },
      }
    })
    const { status, json } = await query(SMALL)
    assert.equal(status, 403)
    assert.partialDeepStrictEqual(json, {
      code: 'QUERY_DENIED',
      blocked: { kind: 'cost' },
      estimate: 2_000_000_000,
      limit: 2 ** 30,
    })
  })

  test('a result has the requested number of rows, and says that there are more rows', async () => {
    const { json } = await query("SELECT id FROM shop.products WHERE name != 'many'", { limit: 3 })
    assert.deepEqual([json.rowCount, json.truncated], [3, true])
  })

  test('if BigQuery refuses access, the caller gets 502, and lastError is a sentence without Google’s message', async () => {
    double.rig('dry run', failed({ status: 403, reason: 'accessDenied', message: `Access Denied: ${CANARY}` }))
    const refused = await query(SMALL)
    assert.deepEqual([refused.status, refused.json.code], [502, 'DATASOURCE_UNAVAILABLE'])
    const item = await owner.must('GET', path())
    assert.deepEqual([item.status, item.lastError], ['ERROR', refused.json.error])
    assert.ok(!JSON.stringify([refused.text, item]).includes(CANARY))
    const report = await owner.must('POST', path('/test'))
    assert.equal(report.ok, true)
    assert.equal((await owner.must('GET', path())).status, 'CONNECTED')
  })

  test('a check makes a dry run but no run', async () => {
    double.requests.length = 0
    const checked = await owner.must('POST', path('/check'), { sql: SMALL })
    assert.partialDeepStrictEqual(checked, { verdict: 'ALLOWED' })
    assert.deepEqual(
      double.requests.map(({ kind }) => kind),
      ['dry run'],
    )
  })

  test('if the dry run refuses a query, the query and its check get the same refusal', async () => {
    const sql = 'SELECT id, supplier_secret FROM shop.products LIMIT 2'
    const refusal = (message: string) => failed({ status: 400, reason: 'invalidQuery', message })
    double.rig('dry run', refusal('Unrecognized name: supplier_secret at [1:12]'), 2)
    const response = await query(sql)
    assert.deepEqual([response.status, response.json.code], [403, 'QUERY_DENIED'])
    const { error, blocked, hint } = response.json
    const denied = await owner.must('POST', path('/check'), { sql })
    assert.partialDeepStrictEqual(denied, { verdict: 'DENIED', error, blocked, hint })
    double.rig('dry run', refusal('Syntax error: Unexpected end of input at [1:40]'))
    const invalid = await owner.must('POST', path('/check'), { sql: SMALL })
    assert.partialDeepStrictEqual(invalid, { verdict: 'INVALID', error: 'Syntax error: Unexpected end of input' })
  })

  test('a column that the dry run refuses is reported as hidden or as missing', async () => {
    const fromRefusal = async (column: string, from = 'shop.products') => {
      double.rig('dry run', failed({ status: 400, reason: 'invalidQuery', message: `Unrecognized name: ${column}` }))
      assert.equal((await query(`SELECT id, ${column} FROM ${from}`)).json.code, 'QUERY_DENIED')
      const { items } = await owner.must('GET', `/teams/${team}/audit?limit=1`)
      return await owner.ask('POST', path(`/exposure/from-refusal/${items[0].id}`))
    }
    const hidden = await fromRefusal('supplier_secret')
    assert.equal(hidden.status, 200, hidden.text)
    assert.deepEqual(hidden.json.added, [{ schema: 'shop', table: 'products', columns: ['supplier_secret'] }])
    const typo = await fromRefusal('pirce')
    assert.deepEqual([typo.status, typo.json.code], [409, 'CONFLICT'], typo.text)
    assert.match(typo.json.error, /none of the tables it names has pirce in the catalog/)
    const unread = await fromRefusal('supplier_secret', "UNNEST([STRUCT(1 AS id, 'products' AS name)])")
    assert.deepEqual(
      [unread.status, unread.json.code],
      [409, 'CONFLICT'],
      'a table that the query names only in a string',
    )
  })

  const wrong: readonly (readonly [string, object, string])[] = [
    ['broken JSON', { serviceAccountKey: `{"type": "${CANARY}` }, 'serviceAccountKey'],
    ['a file of another type', { serviceAccountKey: door.keyFile({ type: 'external_account' }) }, 'serviceAccountKey'],
    [
      'a token_uri of another host',
      { serviceAccountKey: door.keyFile({ token_uri: `https://${CANARY}.example/` }) },
      'serviceAccountKey',
    ],
    ['no key for Google', { config: {} }, 'serviceAccountKey'],
    ['the machine’s identity', { connectionMode: 'APPLICATION_DEFAULT', config: {} }, 'connectionMode'],
    ['an invalid address', { config: { apiEndpoint: 'ftp://x' } }, 'config.apiEndpoint'],
    ['a host', { host: 'localhost' }, 'host'],
    ['a key that is an object', { serviceAccountKey: { type: 'service_account' } }, 'serviceAccountKey'],
  ]
  for (const [what, more, field] of wrong) {
    test(`${what} gets 400 with the name of the field, and nothing is sent to BigQuery`, async () => {
      double.requests.length = 0
      const { status, json, text } = await owner.ask('POST', `/teams/${team}/datasources`, { name: 'x', ...spec(more) })
      assert.equal(status, 400, text)
      assert.equal(json.code, 'INVALID_REQUEST')
      assert.ok(
        json.details.some((detail: string) => detail.startsWith(field)),
        text,
      )
      assert.ok(!text.includes(CANARY))
      assert.deepEqual(double.requests, [])
    })
  }

  test('without the key file, a change of the address or the project is refused', async () => {
    const made = await owner.must('POST', `/teams/${team}/datasources`, {
      name: 'kept',
      ...spec({ serviceAccountKey: door.keyFile() }),
    })
    const at = `/teams/${team}/datasources/${made.id}`
    for (const more of [
      { config: {} },
      { database: 'another-project' },
      { config: { apiEndpoint: 'http://127.0.0.1:1' } },
    ]) {
      const { status, text } = await owner.ask('PATCH', at, more)
      assert.equal(status, 400, text)
      assert.match(text, /serviceAccountKey: must be sent again/)
    }
    const { status } = await owner.ask('PATCH', at, { config: { apiEndpoint: double.url, location: 'US' } })
    assert.equal(status, 200)
    assert.doesNotMatch(JSON.stringify(await owner.must('GET', at)), /PRIVATE KEY|service_account"/)
  })

  test('without the operator’s permission, BigQuery at another address is refused', async () => {
    await using strict = await startApp()
    const person = await strict.person()
    const other = await strict.team(person)
    const { status, text } = await person.ask('POST', `/teams/${other}/datasources`, { name: 'x', ...spec() })
    assert.equal(status, 400)
    assert.match(text, /VITRINE_ALLOW_BIGQUERY_ENDPOINT=1/)
  })
})
