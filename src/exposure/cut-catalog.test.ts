import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Catalog, CatalogColumn, CatalogTable } from '../drivers/driver.ts'
import { cut, tableKey } from './cut-catalog.ts'

const column = (name: string, more: Partial<CatalogColumn> = {}): CatalogColumn => ({
  name,
  type: 'integer',
  nullable: true,
  primaryKey: false,
  references: null,
  description: null,
  unexposable: null,
  detail: null,
  ...more,
})
const table = (name: string, columns: CatalogColumn[], schema = 'public'): CatalogTable => ({
  schema,
  table: name,
  kind: 'table',
  description: null,
  estimatedRows: 1,
  columns,
  warnings: [],
  detail: null,
})
const catalog = (...tables: CatalogTable[]): Catalog => ({ capturedAt: 'now', capture: { version: 1 }, tables })
const shown = (of: Catalog) => of.tables.map((it) => [it.table, it.columnsRestricted, it.columns.map((c) => c.name)])

test('a catalog cut to an exposure has the named columns in database order and marks tables that have more columns', () => {
  const full = catalog(table('a', [column('x'), column('y'), column('z')]), table('b', [column('x')]))
  const exposed = cut(full, [
    { schema: 'public', table: 'b', columns: ['x'] },
    { schema: 'public', table: 'a', columns: ['z', 'x'] },
  ])
  assert.deepEqual(shown(exposed), [
    ['a', true, ['x', 'z']],
    ['b', false, ['x']],
  ])
  assert.equal(exposed.capture, full.capture)
})

test('a catalog cut to an exposure leaves out columns and tables that introspection no longer finds', () => {
  const full = catalog(table('a', [column('x')]))
  const exposure = [
    { schema: 'public', table: 'a', columns: ['x', 'gone'] },
    { schema: 'public', table: 'gone', columns: ['x'] },
    { schema: 'other', table: 'a', columns: ['x'] },
  ]
  assert.deepEqual(shown(cut(full, exposure)), [['a', false, ['x']]])
})

test('a catalog cut to an exposure leaves out columns that may no longer be exposed and tables without exposed columns', () => {
  const refused = column('x', { unexposable: 'Its type has a cast made by a user.' })
  const full = catalog(table('a', [refused, column('y')]), table('b', [refused]))
  const exposure = ['a', 'b'].map((name) => ({ schema: 'public', table: name, columns: ['x', 'y'] }))
  assert.deepEqual(shown(cut(full, exposure)), [['a', true, ['y']]])
})

test('a catalog cut to an exposure keeps a reference only if the referenced column is exposed', () => {
  const to = (name: string) => ({ schema: 'public', table: 'b', column: name })
  const full = catalog(
    table('a', [column('seen', { references: to('x') }), column('unseen', { references: to('y') })]),
    table('b', [column('x'), column('y')]),
  )
  const exposed = cut(full, [
    { schema: 'public', table: 'a', columns: ['seen', 'unseen'] },
    { schema: 'public', table: 'b', columns: ['x'] },
  ])
  assert.deepEqual(
    exposed.tables[0]?.columns.map((it) => it.references),
    [to('x'), null],
  )
})

test('an empty exposure shows no table', () => {
  assert.deepEqual(shown(cut(catalog(table('a', [column('x')])), [])), [])
})

test('two tables have different keys, even if `schema.table` is the same text for both', () => {
  assert.notEqual(tableKey('a', 'b.c'), tableKey('a.b', 'c'))
  assert.notEqual(tableKey('a', '1:b'), tableKey('a1:', 'b'))
  assert.notEqual(tableKey('', 'ab'), tableKey('a', 'b'))
})
