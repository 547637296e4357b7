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

test('a catalog in another order has no drift, and a new or removed table is one line of drift', async () => {
  const [a, b] = [table('a', [column('x'), column('y')]), table('b', [column('x')])]
  assert.deepEqual(await driftOf(catalog(a, b), catalog(b, table('a', [column('y'), column('x')]))), NONE)
  assert.deepEqual(await driftOf(catalog(a), catalog(b)), {
    added: [{ schema: 'shop', table: 'b' }],
    removed: [{ schema: 'shop', table: 'a' }],
    retyped: [],
  })
})

test('column `b.c` of table `a` is not confused with column `c` of table `a.b`', async () => {
  const before = catalog(table('a', [column('b.c')]), table('a.b', [column('c')]))
  assert.deepEqual(await driftOf(before, before), NONE)
})

test('a column has drifted if all its values have another type, but not if only some have, or if few values were read', async () => {
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

test('a rare path that the new sample missed stays in its position and causes no drift', async () => {
  const before = catalog(
    table('a', [column('_id'), column('rare', seenIn(2, 1_000)), column('common', seenIn(900, 1_000))], SAMPLED),
  )
  const sampled = catalog(table('a', [column('_id'), column('common', seenIn(910, 1_000))], SAMPLED))
  const after = retainUnsampled(before, sampled, [])
  assert.deepEqual(namesOf(after), ['_id', 'rare', 'common'])
  assert.deepEqual(await driftOf(before, after), NONE)
  assert.deepEqual([after.tables[0]?.columns[1]?.seen?.missed, after.tables[0]?.columns[1]?.nullable], [1_000, true])
})

test('a rare path is removed after many samples without it, and a common path after the first', async () => {
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

test('an exposed rare path stays even after fifty samples without it, but an exposed common path is removed', async () => {
  let known = catalog(
    table('a', [column('_id'), column('rare', seenIn(2, 1_000)), column('often', seenIn(50, 1_000))], SAMPLED),
  )
  const sampled = catalog(table('a', [column('_id')], SAMPLED))
  const exposed = [{ schema: 'shop', table: 'a', columns: ['rare', 'often'] }]
  for (let n = 0; n < 50; n++) known = retainUnsampled(known, sampled, exposed)
  assert.deepEqual(namesOf(known), ['_id', 'rare'])
})

test('a missing path is removed if all rows were read, unless there were no rows', async () => {
  const before = catalog(table('a', [column('_id'), column('x', seenIn(1, 1_000))], SAMPLED))
  const whole = catalog(table('a', [column('_id')], { rows: 40, all: true }))
  assert.deepEqual(namesOf(retainUnsampled(before, whole, [{ schema: 'shop', table: 'a', columns: ['x'] }])), ['_id'])
  const emptied = catalog(table('a', [column('_id')], { rows: 0, all: true }))
  assert.deepEqual(namesOf(retainUnsampled(before, emptied, [])), ['_id', 'x'])
})

test('a missing column is removed if the database declares its columns, and a missing table is always removed', async () => {
  const before = catalog(table('a', [column('x', seenIn(1, 1_000))]), table('b', [column('x')]))
  assert.deepEqual(namesOf(retainUnsampled(before, catalog(table('a', [column('y')])), [])), ['y'])
})

test('a limited number of paths that samples missed is kept, but every exposed path is kept', async () => {
  const rare = Array.from({ length: 900 }, (_, n) => column(`k${n}`, seenIn(2, 1_000)))
  const before = catalog(table('a', rare, SAMPLED))
  const sampled = catalog(table('a', [column('_id')], SAMPLED))
  const exposed = [{ schema: 'shop', table: 'a', columns: rare.slice(800).map((it) => it.name) }]
  const names = namesOf(retainUnsampled(before, sampled, exposed))
  assert.equal(names.length, 600)
  assert.ok(rare.slice(800).every((it) => names.includes(it.name)) && names.includes('k0') && !names.includes('k700'))
})
