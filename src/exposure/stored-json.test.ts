import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Catalog, CatalogColumn } from '../drivers/driver.ts'
import { readCatalog, readExposure, writeCatalog } from './stored-json.ts'

const column = (name: string, more: Partial<CatalogColumn> = {}): CatalogColumn => ({
  ...{ type: 'int4', nullable: true, primaryKey: false, references: null, description: null, unexposable: null },
  ...{ detail: { typeOid: 23 }, ...more },
  name,
})
const catalog: Catalog = {
  capturedAt: '2026-01-01T00:00:00.000Z',
  capture: { version: 1 },
  tables: [
    {
      ...{ schema: 'a', table: 't', kind: 'table', description: 'said', estimatedRows: 7, warnings: ['careful'] },
      columns: [
        column('id', { primaryKey: true, nullable: false }),
        column('one'),
        column('"two"\n'),
        column('of', { references: { schema: 'a', table: 't', column: 'id' }, description: 'whose' }),
      ],
      detail: { pages: 1 },
    },
    {
      ...{ schema: 'a', table: 'docs', kind: 'collection', description: null, estimatedRows: null, warnings: [] },
      columns: [
        column('one'),
        column('one.part', { partOf: 'one', signals: ['e-mail'], seen: { rows: 1, of: 2, missed: 0, types: ['int'] } }),
        column('hidden', { unexposable: 'No.' }),
      ],
      indexes: [{ keys: [{ path: 'one', direction: -1 }], unique: true }],
      looked: { rows: 2, all: false },
      detail: null,
    },
    {
      ...{ schema: 'a', table: 'bare', kind: 'view', description: null, estimatedRows: null, warnings: [] },
      columns: [],
      detail: null,
    },
  ],
}

test('a stored catalog is read as it was written, and identical columns are written once', async () => {
  const text = await writeCatalog(catalog)
  assert.deepEqual(readCatalog(text), catalog)
  assert.equal(text.split('"typeOid"').length - 1, 5)
})

test('other requests run while a large catalog is written', async () => {
  const tables = Array.from({ length: 15_000 }, () => catalog.tables).flat()
  let turns = 0
  const count = (): void => {
    turns++
    setImmediate(count).unref()
  }
  setImmediate(count).unref()
  assert.deepEqual(readCatalog(await writeCatalog({ ...catalog, tables })).tables.length, tables.length)
  assert.ok(turns > 1, `${turns} turns`)
})

test('a stored catalog in the previous format can be read', () => {
  assert.deepEqual(readCatalog(JSON.stringify(catalog)), catalog)
})

test('a damaged stored catalog is refused', async () => {
  const text = await writeCatalog(catalog)
  const kinds = /"kinds":\[0,1,1,2\]/
  assert.match(text, kinds)
  const damaged = [
    text.replace(kinds, '"kinds":[0,1,1,99]'),
    text.replace(kinds, '"kinds":[0,1,1,-1]'),
    text.replace(kinds, '"kinds":[0,1,1,0.5]'),
    text.replace(kinds, '"kinds":[0,1,1]'),
    text.replace(kinds, '"kinds":[0,1,1,2,2]'),
    text.replace(kinds, '"kinds":["length",1,1,2]'),
    text.replace('"names":["id"', '"names":[null'),
    text.replace('"nullable":false', '"nullable":0'),
    text.replace('"unexposable":"No."', '"unexposable":false'),
    text.replace('"unexposable":"No.",', ''),
    text.replace('"schema":"a"', '"schema":1'),
    text.replace('"warnings":["careful"]', '"warnings":"careful"'),
    text.replace('"estimatedRows":7', '"estimatedRows":"7"'),
    text.replace('"direction":-1', '"direction":null'),
    text.replace('"looked":{"rows":2', '"looked":{"rows":null'),
    text.replace('"columnKinds":', '"columnkinds":'),
    text.replace(/"columnKinds":.*$/, '"columnKinds":{}}'),
    '{}',
    'null',
    '[]',
  ]
  for (const one of damaged) {
    assert.notEqual(one, text)
    assert.throws(() => readCatalog(one), { name: 'ZodError' }, one)
  }
})

test('a damaged stored exposure is refused', () => {
  const exposure = [{ schema: 'a', table: 't', columns: ['id', 'one'] }]
  assert.deepEqual(readExposure(JSON.stringify(exposure)), exposure)
  const damaged = [
    [{ schema: 'a', table: 't', columns: null }],
    [{ schema: 'a', table: 't', columns: ['id', 1] }],
    [{ schema: 'a', columns: ['id'] }],
    [null],
    {},
    null,
  ]
  for (const one of damaged) assert.throws(() => readExposure(JSON.stringify(one)), { name: 'ZodError' })
})
