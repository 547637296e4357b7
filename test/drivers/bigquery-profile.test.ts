// Tests profiles of BigQuery's tables. If no bytes may be read, a profile is free. Otherwise, it is one query on
// exposed columns, within the limit on bytes.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { countCells } from '../../src/drivers/bigquery/catalog/profile.ts'
import { ColumnSample } from '../../src/drivers/profile-from-sample.ts'
import type { Catalog, ColumnProfile, ProfileBounds, TableProfile } from '../../src/drivers/driver.ts'
import type { Question } from '../../src/drivers/example-question.ts'
import { openBrain } from '../engines/bigquery/evaluate-query.ts'
import { DATASETS, FIXTURE, isHidden, shownOf, WORLD } from '../attacks/bigquery/sample-project.ts'
import { connectBigQuery, soon, WIDE, type ConnectedBigQuery } from '../support/bigquery-connected.ts'
import { PROJECT, select, type Known } from '../support/bigquery-shop.ts'
import { failed, type DoubleDataset } from '../support/bigquery.ts'
import { engineOrSkip } from '../support/no-such-engine.ts'

const FREE: ProfileBounds = { rows: 1_000, timeoutMs: 5_000, bytes: null }
const PAID: ProfileBounds = { ...FREE, bytes: 1e9 }

const LAKE: Readonly<Record<string, DoubleDataset>> = {
  shop: {
    tables: {
      products: {
        schema: {
          fields: [
            { name: 'id', type: 'INTEGER', mode: 'REQUIRED' },
            { name: 'name', type: 'STRING' },
            { name: 'price', type: 'NUMERIC' },
            { name: 'added', type: 'TIMESTAMP' },
            { name: 'tags', type: 'STRING', mode: 'REPEATED' },
            { name: 'tagged', type: 'STRING', policyTags: { names: ['projects/p/x'] } },
            { name: 'supplier_secret', type: 'STRING' },
          ],
        },
        numRows: '40000',
        numBytes: '4000000',
        lastModifiedTime: '1704067200000',
      },
      small: { schema: { fields: [{ name: 'id', type: 'INTEGER' }] }, numRows: '3', numBytes: '24' },
      lists: { schema: { fields: [{ name: 'tags', type: 'STRING', mode: 'REPEATED' }] }, numRows: '3' },
      guarded: { schema: { fields: [{ name: 'id', type: 'INTEGER' }] }, numRows: '3', requirePartitionFilter: true },
      files: { type: 'EXTERNAL', schema: { fields: [{ name: 'id', type: 'INTEGER' }] } },
      v_small: { type: 'VIEW', schema: { fields: [{ name: 'id', type: 'INTEGER' }] } },
      events_20240101: { schema: { fields: [{ name: 'id', type: 'INTEGER' }] }, numRows: '3' },
      events_20240102: { schema: { fields: [{ name: 'id', type: 'INTEGER' }] }, numRows: '5' },
      late_20240101: {
        schema: {
          fields: [
            { name: 'id', type: 'INTEGER' },
            { name: 'added', type: 'STRING' },
          ],
        },
        numRows: '7',
        creationTime: '2000',
      },
      late_20240102: { schema: { fields: [{ name: 'id', type: 'INTEGER' }] }, numRows: '5', creationTime: '1000' },
    },
  },
}

const ID = { schema: { fields: [{ name: 'c0', type: 'INTEGER' }] }, rows: [['1'], ['2'], [null]] }
const KNOWN: readonly Known[] = [
  {
    says: /\.late_20240101` /,
    analysis: select('late_20240101'),
    evaluation: {
      schema: {
        fields: [
          { name: 'c0', type: 'INTEGER' },
          { name: 'c1', type: 'STRING' },
        ],
      },
      rows: [['1', 'x']],
    },
  },
  {
    says: /^SELECT _vt\.`id` AS c0, LEFT/,
    evaluation: {
      schema: {
        fields: [
          { name: 'c0', type: 'INTEGER' },
          { name: 'c1', type: 'STRING' },
          { name: 'c2', type: 'NUMERIC' },
          { name: 'c3', type: 'TIMESTAMP' },
        ],
      },
      rows: [
        ['1', 'Tea', '1.5', '1704067200000000'],
        ['2', 'Tea', '12345678901234567890.5', '1704153600000000'],
        ['3', null, null, null],
        ['9007199254740993', 'Milk', '2', '1704153600000000'],
      ],
    },
  },
  ...['small', 'v_small', 'events_20240102'].map((id) => ({
    says: new RegExp(`AS c0 FROM \`[^\`]*\\.${id}\` `),
    analysis: select(id),
    evaluation: ID,
  })),
  { says: /v_small/, analysis: select('small') },
  { says: /files/, analysis: select('files') },
]

describe('a profile', () => {
  let at: ConnectedBigQuery
  let exposed: Catalog
  before(async () => {
    at = await connectBigQuery({ known: KNOWN, double: { datasets: LAKE } })
    const tables = at.catalog.tables.map((table) => ({
      ...table,
      columns: table.columns.filter(({ name }) => name !== 'supplier_secret'),
    }))
    exposed = { ...at.catalog, tables }
  })
  after(async () => {
    assert.deepEqual(at.double.violations, [])
    await at[Symbol.asyncDispose]()
  })

  async function profile(name: string, bounds: ProfileBounds): Promise<TableProfile> {
    at.double.requests.length = 0
    const table = exposed.tables.find((each) => each.table === name)
    assert.ok(table !== undefined, name)
    return await at.connection.profile(table, exposed, bounds, soon())
  }

  const ran = (): string[] =>
    at.double.requests.filter(({ kind }) => kind === 'run').map(({ body }) => String(body.query))

  test('if no bytes may be read, a profile uses only metadata, with one free call and no dry run', async () => {
    const { rowsSampled, complete, estimatedRows, columns } = await profile('products', FREE)
    assert.deepEqual([rowsSampled, complete, estimatedRows], [0, false, 40_000])
    assert.deepEqual(
      at.double.requests.map(({ kind }) => kind),
      ['table'],
    )
    assert.deepEqual(
      columns.map(({ name, kind, nullFrac }) => [name, kind, nullFrac]),
      [
        ['id', 'number', 0],
        ['name', 'text', null],
        ['price', 'number', null],
        ['added', 'time', null],
        ['tags', 'other', 0],
        ['tagged', 'text', null],
      ],
    )
    assert.deepEqual(column(columns, 'added').signals, ['the table last changed on 2024-01-01'])
    assert.ok(columns.every(({ values, range, sample }) => values === null && range === null && sample === null))
  })

  test('a profile samples exposed columns of scalar values with one query, within the limit on bytes', async () => {
    const { rowsSampled, complete, estimatedRows, columns } = await profile('products', PAID)
    assert.deepEqual(ran(), [
      `SELECT _vt.\`id\` AS c0, LEFT(_vt.\`name\`, 257) AS c1, _vt.\`price\` AS c2, _vt.\`added\` AS c3 FROM \`${PROJECT}.shop.products\` AS _vt TABLESAMPLE SYSTEM (2.500000 PERCENT) LIMIT 1001`,
    ])
    assert.deepEqual(
      at.double.requests.map(({ kind }) => kind),
      ['table', 'dry run', 'run'],
    )
    assert.equal(at.double.requests.at(-1)?.body.maximumBytesBilled, '1000000000')
    assert.deepEqual([rowsSampled, complete, estimatedRows], [4, false, 40_000])
    assert.deepEqual(column(columns, 'id').range, { min: 1, max: '9007199254740993' })
    assert.deepEqual(column(columns, 'price').range, { min: 1.5, max: '12345678901234567890.5' })
    assert.deepEqual(column(columns, 'added').range, {
      min: '2024-01-01T00:00:00.000000Z',
      max: '2024-01-02T00:00:00.000000Z',
    })
    assert.deepEqual(column(columns, 'name').values?.[0], { value: 'Tea', share: 0.5, rows: 2 })
    assert.equal(column(columns, 'name').nullFrac, 0.25)
    assert.equal(column(columns, 'tagged').sample, null)
    assert.deepEqual(column(columns, 'added').signals, ['the table last changed on 2024-01-01'])
  })

  test('if a table is larger than the limit on bytes, a profile samples a part of it', async () => {
    await profile('products', { ...PAID, bytes: 40_000 })
    assert.match(ran()[0] ?? '', /TABLESAMPLE SYSTEM \(0\.900000 PERCENT\)/)
  })

  test('if the dry run is over the limit on bytes, a profile is refused with estimate and limit, and nothing runs', async () => {
    await assert.rejects(profile('products', { ...PAID, bytes: 31_999 }), {
      code: 'QUERY_DENIED',
      message: 'This query would read 32000 bytes, more than the limit of 31999 bytes.',
    })
    assert.deepEqual(ran(), [])
  })

  test('a profile of a small table, and of a view within the limit on bytes, is complete and has no sampling', async () => {
    for (const name of ['small', 'v_small']) {
      const { rowsSampled, complete, estimatedRows, columns } = await profile(name, PAID)
      assert.deepEqual([rowsSampled, complete, estimatedRows], [3, true, 3])
      assert.deepEqual(ran(), [`SELECT _vt.\`id\` AS c0 FROM \`${PROJECT}.shop.${name}\` AS _vt LIMIT 1001`])
      assert.deepEqual([columns[0]?.distinctCount, columns[0]?.range], [2, { min: 1, max: 2 }])
    }
  })

  test('a profile of a family of shards reads the newest shard, and is not complete', async () => {
    const { rowsSampled, complete, estimatedRows } = await profile('events_*', PAID)
    assert.deepEqual([rowsSampled, complete, estimatedRows], [3, false, 10])
    assert.match(ran()[0] ?? '', /FROM `[^`]*\.events_20240102` AS _vt LIMIT/)
  })

  test('a profile of a family of shards reads the shard that was created last, even if another shard has a later date', async () => {
    const { columns } = await profile('late_*', PAID)
    assert.deepEqual(
      columns.map(({ name }) => name),
      ['id', 'added'],
    )
    assert.match(ran()[0] ?? '', /FROM `[^`]*\.late_20240101` AS _vt LIMIT/)
  })

  test('a profile reads nothing if no column has scalar values', async () => {
    assert.equal((await profile('lists', PAID)).rowsSampled, 0)
    assert.deepEqual(ran(), [])
  })

  for (const [name, what] of [
    ['guarded', 'a table that needs a partition filter'],
    ['files', 'a table of files'],
  ] as const) {
    test(`a profile of ${what} reads metadata, but no sample`, async () => {
      assert.equal((await profile(name, FREE)).rowsSampled, 0)
      await assert.rejects(profile(name, PAID), { code: 'QUERY_FAILED', message: /^BigQuery .*\.$/ })
      assert.deepEqual(ran(), [])
    })
  }

  test('a profile of a missing table fails with SCHEMA_STALE, and a profile of a hidden table throws a TypeError', async () => {
    at.double.rig('table', failed({ status: 404, reason: 'notFound', message: 'Not found: Table CANARY' }))
    await assert.rejects(profile('small', FREE), { code: 'SCHEMA_STALE', message: /^(?!.*CANARY)/ })
    const [table] = exposed.tables
    assert.ok(table !== undefined)
    const nothing = { ...exposed, tables: [] }
    await assert.rejects(at.connection.profile(table, nothing, FREE, soon()), TypeError)
  })

  test('a profile reads only exposed columns, whatever table is passed', async () => {
    at.double.requests.length = 0
    const whole = at.catalog.tables.find(({ table }) => table === 'products')
    assert.ok(whole !== undefined)
    const cut = { ...at.catalog, tables: [{ ...whole, columns: whole.columns.slice(0, 1) }] }
    at.double.rig('run', failed({ status: 400, reason: 'invalidQuery', message: 'x' }))
    await assert.rejects(at.connection.profile(whole, cut, PAID, soon()), { code: 'QUERY_FAILED' })
    assert.match(ran()[0] ?? '', /^SELECT _vt\.`id` AS c0 FROM/)
  })

  test('a profile ends at its timeout', async () => {
    at.double.rig('run', 'hang', 9)
    await assert.rejects(profile('small', { ...PAID, timeoutMs: 200 }), { code: 'QUERY_TIMEOUT' })
    at.double.unrig()
  })

  const questions: readonly Question[] = [
    { kind: 'countBy', of: { schema: 'shop', table: 'products' }, column: 'name' },
    { kind: 'newest', of: { schema: 'shop', table: 'products' }, time: 'added', columns: ['id', 'added'] },
    {
      kind: 'countJoined',
      of: { schema: 'shop', table: 'events_*' },
      column: 'id',
      to: { schema: 'shop', table: 'products', column: 'id' },
      label: 'name',
    },
    { kind: 'rows', of: { schema: 'shop', table: 'v_small' }, columns: ['id'] },
  ]
  for (const question of questions) {
    test(`the guard accepts the example question ${question.kind}`, async () => {
      const text = at.driver.phrase(question)
      assert.ok(text !== null)
      const verdict = await at.driver.confine(at.driver.reread(text), exposed, WIDE, soon())
      assert.equal(verdict.kind, 'confined', JSON.stringify(verdict))
    })
  }
})

test('on Google’s engine, a sample reads no hidden column, and counts like plain SQL', async (t) => {
  const brain = await engineOrSkip(t, () => openBrain(WORLD))
  if (brain === null) return
  await using _ = brain
  await using at = await connectBigQuery({ double: { datasets: DATASETS, brain } })
  for (const table of at.catalog.tables) {
    const { family } = table.detail as { family: { prefix: string } | null }
    const names = shownOf(
      `${FIXTURE.project}.${table.schema}.${table.table.replace('*', family === null ? '*' : '20240101')}`,
    )
    if (names === null) continue
    const cut = { ...table, columns: table.columns.filter(({ name }) => names.includes(name)) }
    brain.requests.length = 0
    const profile = await at.connection.profile(cut, { ...at.catalog, tables: [cut] }, PAID, soon())
    assert.deepEqual(
      profile.columns.map(({ name }) => name),
      cut.columns.map(({ name }) => name),
    )
    assert.deepEqual(brain.requests.flatMap(({ reads }) => reads).filter(isHidden), [])
    for (const sentinel of FIXTURE.sentinels) assert.ok(!JSON.stringify(profile).includes(sentinel), sentinel)
    if (table.table !== 'customers') continue
    const counted = await at.run(
      'SELECT country, COUNT(*) FROM shop.customers WHERE country IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1',
    )
    assert.deepEqual(
      column(profile.columns, 'country').values?.map(({ value, rows }) => [value, rows]),
      JSON.parse(String(counted.rows)),
    )
  }
  assert.deepEqual(at.double.violations, [])
})

test('cells are counted in slices of at most a thousand', () => {
  const samples = Array.from({ length: 40 }, () => ({ values: new ColumnSample('text'), keys: null }))
  const rows = Array.from({ length: 1_000 }, (_, row) => samples.map((_, n) => `${row}/${n}`))
  const turns = [...countCells(Buffer.from(JSON.stringify(rows)), samples)]
  assert.equal(turns.length, 40)
  assert.equal(samples[39]?.values.profile('c', { rows: null, complete: true }).distinctCount, 1_000)
})

const DOCS: Readonly<Record<string, DoubleDataset>> = {
  shop: {
    tables: {
      docs: {
        schema: {
          fields: [
            { name: 'id', type: 'INTEGER' },
            { name: 'body', type: 'JSON' },
          ],
        },
        numRows: '5',
      },
    },
  },
}

async function profileDocs(at: ConnectedBigQuery): Promise<readonly ColumnProfile[]> {
  const [docs] = at.catalog.tables
  assert.ok(docs !== undefined)
  return (await at.connection.profile(docs, at.catalog, PAID, soon())).columns
}

test('a profile counts the top-level keys of JSON objects', async () => {
  const cells = [
    '[{"k":"city","t":"string"},{"k":"tags","t":"array"},{"k":"\\"a.b\\"","t":null}]',
    '[{"k":"city","t":"null"}]',
    `[{"k":"${'x'.repeat(65)}","t":"number"}]`,
    '',
    null,
  ]
  const evaluation = {
    schema: {
      fields: [
        { name: 'c0', type: 'INTEGER' },
        { name: 'c1', type: 'STRING' },
      ],
    },
    rows: cells.map((cell, id) => [String(id), cell]),
  }
  const known = [{ says: /JSON_KEYS/, analysis: select('docs'), evaluation }]
  await using at = await connectBigQuery({ known, double: { datasets: DOCS } })
  const columns = await profileDocs(at)
  const body = column(columns, 'body')
  assert.deepEqual(body.keys, [
    { key: 'city', rows: 2, share: 2 / 3, types: ['null', 'string'] },
    { key: 'tags', rows: 1, share: 1 / 3, types: ['array'] },
  ])
  assert.deepEqual([body.kind, body.values, body.nullFrac], ['other', null, 1 / 5])
  assert.equal('keys' in column(columns, 'id'), false)
})

test('on Google’s engine, counting JSON keys reads no value, and without JSON_KEYS the other columns are sampled', async (t) => {
  const bodies = ['{"city":"CANARY","tags":["CANARY"],"zip":1}', '{"city":null}', '["CANARY"]', 'null', null]
  const table = {
    columns: [
      { name: 'id', type: 'INT64' },
      { name: 'body', type: 'JSON' },
    ],
    rows: bodies.map((body, id) => ({ id, body })),
  }
  const world = { ...WORLD, tables: { [`${PROJECT}.shop.docs`]: table } }
  const brain = await engineOrSkip(t, () => openBrain({ ...world, project: PROJECT }))
  if (brain === null) return
  await using _ = brain
  await using at = await connectBigQuery({ double: { datasets: DOCS, brain } })
  const columns = await profileDocs(at)
  assert.deepEqual(column(columns, 'id').range, { min: 0, max: 4 })
  assert.equal(column(columns, 'body').keys, undefined)
  // The engine of the tests has no JSON_KEYS, so the test supplies its result.
  const dryRuns = at.double.requests.filter(({ kind }) => kind === 'dry run')
  const text = String(dryRuns[0]?.body.configuration.query.query)
  const cells = await brain.evaluate(text.replace(/JSON_KEYS\([^)]*\)/, "['city', 'tags', '\"a.b\"']"))
  assert.ok('rows' in cells, JSON.stringify(cells))
  const pairs = (city: string, tags: string | null) =>
    JSON.stringify([
      { k: 'city', t: city },
      { k: 'tags', t: tags },
      { k: '"a.b"', t: null },
    ])
  assert.deepEqual(
    cells.rows.map(([, cell]) => cell),
    [pairs('string', 'array'), pairs('null', null), '', '', null],
  )
})

function column(columns: readonly ColumnProfile[], name: string): ColumnProfile {
  return columns.find((each) => each.name === name) ?? assert.fail(name)
}
