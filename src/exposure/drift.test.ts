// What drifted is told by names and types; what only a sample did not show this time is neither gone nor new.
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
const met = (rows: number, of: number, types: readonly string[] = ['string'], missed = 0): { seen: Seen } => ({
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

test('the same is no drift, whatever the order, and a table that is new or gone is one line', () => {
  const [a, b] = [table('a', [column('x'), column('y')]), table('b', [column('x')])]
  assert.deepEqual(driftOf(catalog(a, b), catalog(b, table('a', [column('y'), column('x')]))), NONE)
  assert.deepEqual(driftOf(catalog(a), catalog(b)), {
    added: [{ schema: 'shop', table: 'b' }],
    removed: [{ schema: 'shop', table: 'a' }],
    retyped: [],
  })
})

test('a column of a table that is called like another of another table is told apart', () => {
  const before = catalog(table('a', [column('b.c')]), table('a.b', [column('c')]))
  assert.deepEqual(driftOf(before, before), NONE)
})

test('values of quite other types are a change of type; of one type more, or by chance, are not', () => {
  const drift = (was: Partial<CatalogColumn>, is: Partial<CatalogColumn>, looked = SAMPLED) =>
    driftOf(catalog(table('a', [column('x', was)], looked)), catalog(table('a', [column('x', is)], looked))).retyped
  assert.deepEqual(drift(met(500, 1000), met(400, 1000, ['int', 'long'])), [
    { schema: 'shop', table: 'a', column: 'x', type: 'int or long', was: 'string' },
  ])
  assert.deepEqual(drift(met(500, 1000), met(400, 1000, ['int', 'string'])), [])
  assert.deepEqual(drift(met(500, 1000), met(400, 1000, ['null'])), [])
  assert.deepEqual(drift(met(3, 1000), met(2, 1000, ['int'])), [])
  assert.equal(drift(met(3, 9), met(2, 9, ['int']), { rows: 9, all: true }).length, 1)
})

test('a rare path that the sample did not meet is carried on where it stood, and is no drift', () => {
  const before = catalog(
    table('a', [column('_id'), column('rare', met(2, 1_000)), column('common', met(900, 1_000))], SAMPLED),
  )
  const sampled = catalog(table('a', [column('_id'), column('common', met(910, 1_000))], SAMPLED))
  const after = retainUnsampled(before, sampled, [])
  assert.deepEqual(namesOf(after), ['_id', 'rare', 'common'])
  assert.deepEqual(driftOf(before, after), NONE)
  assert.deepEqual([after.tables[0]?.columns[1]?.seen?.missed, after.tables[0]?.columns[1]?.nullable], [1_000, true])
})

test('what many samples did not meet is gone; a common path is gone with the first', () => {
  let known = catalog(
    table('a', [column('_id'), column('rare', met(2, 1_000)), column('often', met(50, 1_000))], SAMPLED),
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

test('an exposed path so rare that no sample can tell stays, an exposed common one goes', () => {
  let known = catalog(
    table('a', [column('_id'), column('rare', met(2, 1_000)), column('often', met(50, 1_000))], SAMPLED),
  )
  const sampled = catalog(table('a', [column('_id')], SAMPLED))
  const exposed = [{ schema: 'shop', table: 'a', columns: ['rare', 'often'] }]
  for (let n = 0; n < 50; n++) known = retainUnsampled(known, sampled, exposed)
  assert.deepEqual(namesOf(known), ['_id', 'rare'])
})

test('where all rows were looked at, what was not met is gone; of no rows nothing is learnt', () => {
  const before = catalog(table('a', [column('_id'), column('x', met(1, 1_000))], SAMPLED))
  const whole = catalog(table('a', [column('_id')], { rows: 40, all: true }))
  assert.deepEqual(namesOf(retainUnsampled(before, whole, [{ schema: 'shop', table: 'a', columns: ['x'] }])), ['_id'])
  const emptied = catalog(table('a', [column('_id')], { rows: 0, all: true }))
  assert.deepEqual(namesOf(retainUnsampled(before, emptied, [])), ['_id', 'x'])
})

test('a kind that knows its columns carries nothing, nor is a table that is gone carried', () => {
  const before = catalog(table('a', [column('x', met(1, 1_000))]), table('b', [column('x')]))
  assert.deepEqual(namesOf(retainUnsampled(before, catalog(table('a', [column('y')])), [])), ['y'])
})

test('carrying on is bounded, but for what is exposed', () => {
  const rare = Array.from({ length: 900 }, (_, n) => column(`k${n}`, met(2, 1_000)))
  const before = catalog(table('a', rare, SAMPLED))
  const sampled = catalog(table('a', [column('_id')], SAMPLED))
  const exposed = [{ schema: 'shop', table: 'a', columns: rare.slice(800).map((it) => it.name) }]
  const names = namesOf(retainUnsampled(before, sampled, exposed))
  assert.equal(names.length, 600)
  assert.ok(names.includes('k899') && names.includes('k0') && !names.includes('k700'))
})
