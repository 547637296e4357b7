// Tests drift, which reports changed names and types. A rare path that one sample missed causes no drift.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Catalog, CatalogColumn, CatalogTable, Seen } from '../drivers/driver.ts'
import { retainUnsampled } from '../introspection/retain-unsampled.ts'
import { driftOf } from './drift.ts'

const column = (name: string, more: Partial<CatalogColumn> = {}): CatalogColumn => ({
  name,
  type: 'bson',
  nullable: false,
  primaryKey: false,
  references: null,
  description: null,
  unexposable: null,
  detail: null,
  ...more,
})
const seenIn = (rows: number, of: number, types: readonly string[] = ['string'], missed = 0): { seen: Seen } => ({
  seen: { rows, of, missed, types },
})
const table = (name: string, columns: CatalogColumn[], looked?: CatalogTable['looked']): CatalogTable => ({
  schema: 'shop',
  table: name,
  kind: 'collection',
  description: null,
  estimatedRows: 1,
  columns,
  warnings: [],
  detail: null,
  ...(looked && { looked }),
})
const catalog = (...tables: CatalogTable[]): Catalog => ({ capturedAt: 'now', capture: null, tables })
const namesOf = (of: Catalog) => of.tables.flatMap((each) => each.columns.map((it) => it.name))
const NONE = { added: [], removed: [], retyped: [] }
const SAMPLED = { rows: 1_000, all: false }

test('reports no drift for an equal catalog in any order, and one line for a new or removed table', async () => {
  const [a, b] = [table('a', [column('x'), column('y')]), table('b', [column('x')])]
  assert.deepEqual(await driftOf(catalog(a, b), catalog(b, table('a', [column('y'), column('x')]))), NONE)
  assert.deepEqual(await driftOf(catalog(a), catalog(b)), {
    added: [{ schema: 'shop', table: 'b' }],
    removed: [{ schema: 'shop', table: 'a' }],
    retyped: [],
  })
})

test('distinguishes columns whose full names read alike in two tables', async () => {
  const before = catalog(table('a', [column('b.c')]), table('a.b', [column('c')]))
  assert.deepEqual(await driftOf(before, before), NONE)
})

test('reports a change of type if all values changed type, but not for an additional type or a chance difference', async () => {
  const drift = async (was: Partial<CatalogColumn>, is: Partial<CatalogColumn>, looked = SAMPLED) =>
    (await driftOf(catalog(table('a', [column('x', was)], looked)), catalog(table('a', [column('x', is)], looked))))
      .retyped
  assert.deepEqual(await drift(seenIn(500, 1000), seenIn(400, 1000, ['int', 'long'])), [
    { schema: 'shop', table: 'a', column: 'x', type: 'int or long', was: 'string' },
  ])
  assert.deepEqual(await drift(seenIn(500, 1000), seenIn(400, 1000, ['int', 'string'])), [])
  assert.deepEqual(await drift(seenIn(500, 1000), seenIn(400, 1000, ['null'])), [])
  assert.deepEqual(await drift(seenIn(3, 1000), seenIn(2, 1000, ['int'])), [])
  assert.equal((await drift(seenIn(3, 9), seenIn(2, 9, ['int']), { rows: 9, all: true })).length, 1)
})

test('keeps a rare path that the sample missed, in its position, and reports no drift', async () => {
  const before = catalog(
    table('a', [column('_id'), column('rare', seenIn(2, 1_000)), column('common', seenIn(900, 1_000))], SAMPLED),
  )
  const sampled = catalog(table('a', [column('_id'), column('common', seenIn(910, 1_000))], SAMPLED))
  const after = retainUnsampled(before, sampled, [])
  assert.deepEqual(namesOf(after), ['_id', 'rare', 'common'])
  assert.deepEqual(await driftOf(before, after), NONE)
  assert.deepEqual([after.tables[0]?.columns[1]?.seen?.missed, after.tables[0]?.columns[1]?.nullable], [1_000, true])
})

test('removes a rare path after many samples without it, and a common path after the first', async () => {
  let known = catalog(
    table('a', [column('_id'), column('rare', seenIn(2, 1_000)), column('often', seenIn(50, 1_000))], SAMPLED),
  )
  const sampled = catalog(table('a', [column('_id')], SAMPLED))
  const rounds: string[][] = []
  for (let n = 0; n < 6; n++) {
    known = retainUnsampled(known, sampled, [])
    rounds.push(namesOf(known))
  }
  assert.deepEqual(rounds[0], ['_id', 'rare'])
  assert.deepEqual(rounds.at(-1), ['_id'])
})

test('keeps an exposed rare path that fifty samples missed, and removes an exposed common path', async () => {
  let known = catalog(
    table('a', [column('_id'), column('rare', seenIn(2, 1_000)), column('often', seenIn(50, 1_000))], SAMPLED),
  )
  const sampled = catalog(table('a', [column('_id')], SAMPLED))
  const exposed = [{ schema: 'shop', table: 'a', columns: ['rare', 'often'] }]
  for (let n = 0; n < 50; n++) known = retainUnsampled(known, sampled, exposed)
  assert.deepEqual(namesOf(known), ['_id', 'rare'])
})

test('removes a missing path if all rows were read, unless there were no rows', async () => {
  const before = catalog(table('a', [column('_id'), column('x', seenIn(1, 1_000))], SAMPLED))
  const whole = catalog(table('a', [column('_id')], { rows: 40, all: true }))
  assert.deepEqual(namesOf(retainUnsampled(before, whole, [{ schema: 'shop', table: 'a', columns: ['x'] }])), ['_id'])
  const emptied = catalog(table('a', [column('_id')], { rows: 0, all: true }))
  assert.deepEqual(namesOf(retainUnsampled(before, emptied, [])), ['_id', 'x'])
})

test('keeps no missing column if the database declares its columns, and keeps no removed table', async () => {
  const before = catalog(table('a', [column('x', seenIn(1, 1_000))]), table('b', [column('x')]))
  assert.deepEqual(namesOf(retainUnsampled(before, catalog(table('a', [column('y')])), [])), ['y'])
})

test('limits how many missed paths it keeps, but keeps every exposed path', async () => {
  const rare = Array.from({ length: 900 }, (_, n) => column(`k${n}`, seenIn(2, 1_000)))
  const before = catalog(table('a', rare, SAMPLED))
  const sampled = catalog(table('a', [column('_id')], SAMPLED))
  const exposed = [{ schema: 'shop', table: 'a', columns: rare.slice(800).map((it) => it.name) }]
  const names = namesOf(retainUnsampled(before, sampled, exposed))
  assert.equal(names.length, 600)
  assert.ok(rare.slice(800).every((it) => names.includes(it.name)) && names.includes('k0') && !names.includes('k700'))
})
