import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { connectBigQuery, soon, WIDE, type ConnectedBigQuery } from '../../../../test/support/bigquery-connected.ts'
import { PROJECT, select, type Known } from '../../../../test/support/bigquery-shop.ts'
import type { DoubleDataset, DoubleOptions, WireTableResource } from '../../../../test/support/bigquery.ts'
import { cut } from '../../../exposure/cut-catalog.ts'
import type { CatalogTable } from '../../driver.ts'

const ONE: WireTableResource = { schema: { fields: [{ name: 'x', type: 'INTEGER' }] }, numRows: '10' }
const shards = (...ids: readonly string[]) =>
  Object.fromEntries(ids.map((id, n) => [id, { ...ONE, creationTime: String(1000 + n) }]))

const LAKE: Readonly<Record<string, DoubleDataset>> = {
  shop: {
    isCaseInsensitive: true,
    tables: {
      orders: {
        schema: {
          fields: [
            { name: 'id', type: 'INTEGER', mode: 'REQUIRED', description: ' The number on the bill. ' },
            { name: 'customer_id', type: 'INTEGER' },
            { name: 'shop_id', type: 'INTEGER' },
            { name: 'day', type: 'DATE' },
            { name: 'code', type: 'STRING', maxLength: '10' },
            { name: 'total', type: 'NUMERIC', precision: '10', scale: '2' },
            { name: 'rate', type: 'BIGNUMERIC', precision: '40' },
            {
              name: 'ssn',
              type: 'STRING',
              policyTags: { names: ['projects/p/locations/eu/taxonomies/1/policyTags/2'] },
            },
            {
              name: 'items',
              type: 'RECORD',
              mode: 'REPEATED',
              fields: [
                { name: 'sku', type: 'STRING' },
                { name: 'at', type: 'RANGE', rangeElementType: { type: 'DATE' } },
                { name: 'odd name', type: 'FLOAT', mode: 'REPEATED' },
              ],
            },
            { name: 'b`ad', type: 'STRING' },
          ],
        },
        numRows: '3',
        numBytes: '1024',
        description: 'What was ordered.',
        timePartitioning: { type: 'DAY', field: 'day' },
        requirePartitionFilter: true,
        clustering: { fields: ['customer_id', 'code'] },
        tableConstraints: {
          primaryKey: { columns: ['id'] },
          foreignKeys: [
            {
              referencedTable: { projectId: PROJECT, datasetId: 'shop', tableId: 'customers' },
              columnReferences: [{ referencingColumn: 'customer_id', referencedColumn: 'id' }],
            },
            {
              referencedTable: { projectId: 'elsewhere', datasetId: 'shop', tableId: 'shops' },
              columnReferences: [{ referencingColumn: 'shop_id', referencedColumn: 'id' }],
            },
            'nonsense',
          ],
        },
      },
      v_orders: { type: 'VIEW', schema: { fields: [{ name: 'id', type: 'INTEGER' }] }, view: { query: 'SELECT 1' } },
      v_broken: { type: 'VIEW', schema: { fields: [{ name: 'id', type: 'INTEGER' }] } },
      v_mute: { type: 'VIEW', schema: { fields: [{ name: 'id', type: 'INTEGER' }] } },
      mv: { ...ONE, type: 'MATERIALIZED_VIEW' },
      sheet: { ...ONE, type: 'EXTERNAL', numRows: '0' },
      old: { ...ONE, type: 'SNAPSHOT' },
      loads: { ...ONE, timePartitioning: { type: 'DAY' } },
      hourly: { ...ONE, timePartitioning: { type: 'HOUR' } },
      ranged: { ...ONE, rangePartitioning: { field: 'x', range: {} } },
      empty: {},
      'names with-dashes': ONE,
    },
  },
  web: {
    tables: {
      ...shards('events_20240101', 'events_20240103'),
      events_20240102: { ...ONE, creationTime: '5' },
      ...shards(
        'events_secret',
        'events_intraday_20240104',
        'events_2024',
        'events_20241399',
        'odd_20241399',
        '20240101',
      ),
      events_20240107: { ...ONE, type: 'EXTERNAL' },
    },
  },
}

const KNOWN: readonly Known[] = [
  { says: /v_orders`$/, analysis: select('orders') },
  {
    says: /v_broken`$/,
    analysis: { error: { status: 400, reason: 'invalidQuery', message: 'Unrecognized name: hidden' } },
  },
  { says: /v_mute`$/, analysis: { statistics: { statementType: 'SELECT', totalBytesProcessed: '0' } } },
  { says: /mv`$/, analysis: select('orders') },
]

function connect(
  datasets: DoubleOptions['datasets'],
  config: object = {},
  more: Partial<DoubleOptions> = {},
): Promise<ConnectedBigQuery> {
  return connectBigQuery({ known: KNOWN, config, double: { datasets, ...more } })
}

function found(at: ConnectedBigQuery, schema: string, table: string): CatalogTable {
  return (
    at.catalog.tables.find((each) => each.schema === schema && each.table === table) ??
    assert.fail(`no ${schema}.${table}`)
  )
}

describe('introspect', () => {
  test('a project is introspected in pages, by free calls only', async () => {
    await using at = await connectBigQuery({ known: KNOWN, double: { datasets: LAKE, pageItems: 1 } })
    await at.connection.introspect(AbortSignal.timeout(60_000))
    assert.deepEqual([...new Set(at.double.requests.map(({ kind }) => kind))].sort(), [
      'dataset',
      'datasets',
      'dry run',
      'table',
      'tables',
    ])
    assert.ok(at.double.count('datasets') === 2 && at.double.count('tables') > 15)
    assert.equal(at.double.count('table'), 12 + 7)
    assert.deepEqual(at.double.violations, [])
  })

  test('introspected columns have GoogleSQL types, keys, and signals for partitioning and clustering', async () => {
    await using at = await connect(LAKE)
    const orders = found(at, 'shop', 'orders')
    const { detail: _, columns, warnings, ...rest } = orders
    assert.deepEqual(rest, {
      schema: 'shop',
      table: 'orders',
      kind: 'partitioned table',
      description: 'What was ordered.',
      estimatedRows: 3,
    })
    assert.deepEqual(
      columns.map(({ name, type, nullable, primaryKey }) => [name, type, nullable, primaryKey]),
      [
        ['id', 'INT64', false, true],
        ['customer_id', 'INT64', true, false],
        ['shop_id', 'INT64', true, false],
        ['day', 'DATE', true, false],
        ['code', 'STRING(10)', true, false],
        ['total', 'NUMERIC(10, 2)', true, false],
        ['rate', 'BIGNUMERIC(40)', true, false],
        ['ssn', 'STRING', true, false],
        ['items', 'ARRAY<STRUCT<sku STRING, at RANGE<DATE>, `odd name` ARRAY<FLOAT64>>>', false, false],
        ['b`ad', 'STRING', true, false],
      ],
    )
    const column = (name: string) => columns.find((each) => each.name === name)
    assert.equal(column('id')?.description, 'The number on the bill.')
    assert.deepEqual(column('customer_id')?.references, { schema: 'shop', table: 'customers', column: 'id' })
    assert.equal(column('shop_id')?.references, null)
    assert.match(column('day')?.signals?.join() ?? '', /partitioned by it, by day.*must filter/)
    assert.match(column('code')?.signals?.join() ?? '', /clustered by it \(2 of 2\)/)
    assert.match(column('b`ad')?.unexposable ?? '', /characters/)
    assert.match(warnings.join(), /Policy tags guard ssn.*only with a filter/)
  })

  test('the catalog has a separate kind for each type of table', async () => {
    await using at = await connect(LAKE)
    const kinds = ['v_orders', 'mv', 'sheet', 'old', 'ranged', 'empty', 'names with-dashes'].map((table) => {
      const { kind, estimatedRows } = found(at, 'shop', table)
      return [kind, estimatedRows]
    })
    assert.deepEqual(kinds, [
      ['view', null],
      ['materialized view', 10],
      ['external table', null],
      ['snapshot', 10],
      ['partitioned table', 10],
      ['table', null],
      ['table', 10],
    ])
    assert.match(found(at, 'shop', 'sheet').warnings.join(), /cannot estimate/)
  })

  test('the tables that a view reads are listed, and a view whose tables are unknown cannot be queried', async () => {
    await using at = await connect(LAKE)
    assert.partialDeepStrictEqual(found(at, 'shop', 'v_orders').detail, { closure: [`${PROJECT}.shop.orders`] })
    for (const table of ['v_broken', 'v_mute']) {
      assert.partialDeepStrictEqual(found(at, 'shop', table).detail, { closure: null })
      assert.match(found(at, 'shop', table).warnings.join(), /no query may use it/)
      const verdict = await at.driver.confine(
        at.driver.read({ sql: `SELECT * FROM shop.${table}` }),
        at.exposed,
        { rowCap: 1, maxResponseBytes: 1, timeoutMs: 1, maxCost: 1 },
        AbortSignal.timeout(60_000),
      )
      assert.equal(verdict.kind, 'denied')
    }
  })

  test('the pseudo columns of a table that is partitioned by ingestion time are listed', async () => {
    await using at = await connect(LAKE)
    const names = (table: string) => found(at, 'shop', table).columns.map(({ name, type }) => `${name} ${type}`)
    assert.deepEqual(names('loads'), ['x INT64', '_PARTITIONTIME TIMESTAMP', '_PARTITIONDATE DATE'])
    assert.deepEqual(names('hourly'), ['x INT64', '_PARTITIONTIME TIMESTAMP'])
  })

  test('dated shards are listed as one table with the creation time of the newest shard, and similar names are listed separately', async () => {
    await using at = await connect(LAKE)
    assert.deepEqual(
      at.catalog.tables
        .filter(({ schema }) => schema === 'web')
        .map(({ table }) => table)
        .sort(),
      ['20240101', 'events_*', 'events_2024', 'events_20240107', 'events_intraday_*', 'events_secret', 'odd_20241399'],
    )
    const { kind, estimatedRows, detail } = found(at, 'web', 'events_*')
    assert.deepEqual([kind, estimatedRows], ['sharded table', 40])
    assert.partialDeepStrictEqual(detail, {
      family: { prefix: 'events_', digits: 8, apart: ['events_20240107'] },
      newestShard: 'events_20241399',
      createdAt: 1003,
    })
    assert.partialDeepStrictEqual(at.catalog.capture, {
      project: PROJECT,
      location: 'EU',
      caseInsensitiveDatasets: ['shop'],
    })
    assert.partialDeepStrictEqual(at.catalog.capture, { tableIds: { web: ['events_20240101', 'events_20240103'] } })
  })

  test('a table whose name looks like a shard, but is none, is not exposed with the family', async () => {
    await using at = await connect(LAKE)
    const exposed = cut(at.catalog, [{ schema: 'web', table: 'events_*', columns: ['x'] }])
    const judged = async (sql: string) =>
      (await at.driver.confine(at.driver.read({ sql }), exposed, WIDE, AbortSignal.timeout(60_000))).kind
    assert.equal(await judged('SELECT x FROM web.events_20240101'), 'confined')
    assert.equal(await judged('SELECT x FROM web.events_20240108'), 'confined')
    assert.equal(await judged('SELECT x FROM web.events_20240107'), 'denied')
    // BigQuery reports that the query reads events_20240107, which is hidden. So the query on the wildcard does not
    // run.
    const query = await at.driver.confine(
      at.driver.read({ sql: 'SELECT x FROM `web.events_*`' }),
      exposed,
      WIDE,
      soon(),
    )
    assert.ok(query.kind === 'confined')
    const report = (tableId: string) => ({
      status: 200,
      body: {
        configuration: { jobType: 'QUERY' },
        statistics: {
          query: {
            statementType: 'SELECT',
            totalBytesProcessed: '1',
            referencedTables: [{ projectId: PROJECT, datasetId: 'web', tableId }],
          },
        },
      },
    })
    at.double.rig('dry run', report('events_20240101'))
    assert.deepEqual(await at.connection.estimate(query.query, WIDE, soon()), { cost: 1 })
    at.double.rig('dry run', report('events_20240107'))
    await assert.rejects(at.connection.estimate(query.query, WIDE, soon()), { code: 'QUERY_DENIED' })
  })

  test('only the chosen datasets are introspected', async () => {
    await using at = await connect(LAKE, { datasets: ['web'] })
    assert.deepEqual([...new Set(at.catalog.tables.map(({ schema }) => schema))], ['web'])
    await at.connection.introspect(AbortSignal.timeout(60_000))
    assert.equal(at.double.count('datasets'), 0)
  })

  test('a table that is dropped during introspection, or is not visible, is left out', async () => {
    await using at = await connect(LAKE)
    at.double.rig(({ kind, url }) => kind === 'table' && /orders$/.test(url.pathname), {
      status: 404,
      body: { error: { code: 404, errors: [{ reason: 'notFound' }] } },
    })
    at.double.rig(({ kind, url }) => kind === 'table' && /sheet$/.test(url.pathname), {
      status: 403,
      body: { error: { code: 403, errors: [{ reason: 'accessDenied' }] } },
    })
    const again = await at.connection.introspect(AbortSignal.timeout(60_000))
    assert.equal(again.tables.length, at.catalog.tables.length - 2)
  })

  test('a dataset whose tables may not be listed is left out, unless config names the dataset', async () => {
    const denied = { status: 403, body: { error: { code: 403, errors: [{ reason: 'accessDenied' }] } } }
    await using at = await connect(LAKE)
    at.double.rig(({ kind, url }) => kind === 'tables' && /\/web\/tables$/.test(url.pathname), denied)
    const again = await at.connection.introspect(AbortSignal.timeout(60_000))
    assert.deepEqual(
      again.tables.map(({ schema, table }) => [schema, table]),
      at.catalog.tables.filter(({ schema }) => schema !== 'web').map(({ schema, table }) => [schema, table]),
    )
    await using chosen = await connect(LAKE, { datasets: ['web'] })
    chosen.double.rig('tables', denied)
    await assert.rejects(chosen.connection.introspect(AbortSignal.timeout(60_000)), {
      code: 'DATASOURCE_UNAVAILABLE',
      message: 'The credentials may not list the tables of the dataset web.',
    })
  })

  test('a dataset or a table is listed once, even if two pages contain it', async () => {
    await using at = await connect(LAKE)
    const twice = (key: string) => (asked: { readonly url: URL }) => {
      const reference =
        key === 'datasets' ? { datasetReference: { datasetId: 'shop' } } : { tableReference: { tableId: 'orders' } }
      const more = asked.url.searchParams.has('pageToken') ? {} : { nextPageToken: 'p1' }
      return { status: 200, body: { [key]: [reference], ...more } }
    }
    at.double.rig('datasets', twice('datasets'), 2)
    at.double.rig('tables', twice('tables'), 2)
    const { tables } = await at.connection.introspect(AbortSignal.timeout(60_000))
    assert.deepEqual(
      tables.map(({ schema, table }) => `${schema}.${table}`),
      ['shop.orders'],
    )
  })

  test('the catalog of an empty project is empty', async () => {
    await using at = await connect({})
    assert.deepEqual(at.catalog.tables, [])
  })
})

describe('introspection of a wrong or too large project', () => {
  const fails = (promise: Promise<unknown>, message: RegExp) =>
    assert.rejects(promise, (error: Error & { code?: string }) => {
      assert.equal(error.code, 'DATASOURCE_UNAVAILABLE')
      assert.match(error.message, message)
      return true
    })

  test('a project whose datasets have several locations is refused, unless config chooses one location', async () => {
    const mixed = { ...LAKE, us: { location: 'US', tables: {} } }
    await fails(connect(mixed), /several locations \(EU, US\)/)
    await fails(connect(mixed, { location: 'EU', datasets: ['us'] }), /lies in US, and config.location is EU/)
    await using at = await connect(mixed, { location: 'eu' })
    assert.ok(at.catalog.tables.length > 10)
    await using other = await connect(mixed, { datasets: ['shop', 'web'] })
    assert.ok(other.catalog.tables.length > 10)
  })

  test('a project is refused if a chosen dataset does not exist', async () => {
    await fails(connect(LAKE, { datasets: ['nope'] }), /dataset nope does not exist, or the credentials may not see it/)
  })

  test('after an invalid response, either the project is refused, or the invalid items are left out', async () => {
    await using at = await connect(LAKE)
    const bodies = [
      [],
      'x',
      { datasets: {} },
      { datasets: [{}, null, 7, { datasetReference: { datasetId: '../x' } }] },
      { nextPageToken: 'again', datasets: [] },
    ]
    for (const body of bodies) {
      at.double.rig('datasets', { status: 200, body }, 10_000)
      const again = await at.connection.introspect(AbortSignal.timeout(60_000)).then(
        ({ tables }) => tables.length,
        (error: Error & { code?: string }) => error.code,
      )
      assert.ok(again === 0 || again === 'DATASOURCE_UNAVAILABLE', String(again))
      at.double.unrig()
    }
    for (const body of [
      { tables: 'x' },
      {
        tables: [
          null,
          {},
          { tableReference: { tableId: 7 } },
          { tableReference: { tableId: 'a`; DROP' } },
          { tableReference: { tableId: 'orders' }, type: 'constructor' },
        ],
      },
    ]) {
      at.double.rig('tables', { status: 200, body }, 10_000)
      await at.connection.introspect(AbortSignal.timeout(60_000)).catch((error: Error & { code?: string }) => {
        assert.equal(error.code, 'DATASOURCE_UNAVAILABLE')
      })
      at.double.unrig()
    }
    at.double.rig('table', { status: 200, body: { schema: { fields: [{ name: 'x', type: 7 }] } } }, 10_000)
    await fails(at.connection.introspect(AbortSignal.timeout(60_000)), /does not answer like BigQuery/)
  })

  test('a project with too many tables is refused', async () => {
    const many = Object.fromEntries(Array.from({ length: 10_001 }, (_, n) => [`t${n}`, ONE]))
    await fails(connect({ big: { tables: many } }), /more than 10000 tables/)
  })

  test('a project with too many fields is refused, and the fields of structs count', async () => {
    const fields = Array.from({ length: 9_999 }, (_, n) => ({ name: `f${n}`, type: 'INTEGER' }))
    const wide: WireTableResource = { schema: { fields: [{ name: 'all', type: 'RECORD', fields }] } }
    const many = Object.fromEntries(Array.from({ length: 51 }, (_, n) => [`t${n}`, wide]))
    await fails(connect({ big: { tables: many } }), /too many columns or too long descriptions altogether/)
  })

  test('introspection stops if the signal aborts', async () => {
    await using at = await connect(LAKE)
    at.double.rig('tables', 'hang', 99)
    const gone = new AbortController()
    const reading = at.connection.introspect(gone.signal)
    reading.catch(() => undefined)
    while (at.double.count('tables') === 0) await new Promise((resolve) => setImmediate(resolve))
    gone.abort()
    await assert.rejects(reading)
  })
})
