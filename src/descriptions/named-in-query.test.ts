import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Catalog, CatalogTable } from '../drivers/driver.ts'
import {
  columnBlocked,
  columnsByName,
  namesIn,
  namesOf,
  readsAll,
  tablesBlocked,
  tablesNamed,
} from './named-in-query.ts'

function table(schema: string, name: string, columns: readonly string[] = []): CatalogTable {
  const about = { kind: 'table', description: null, estimatedRows: null, warnings: [], detail: null }
  const plain = { type: 'text', nullable: true, primaryKey: false, references: null, description: null }
  return {
    schema,
    table: name,
    ...about,
    columns: columns.map((column) => ({ name: column, ...plain, unexposable: null, detail: null })),
  }
}

const catalog: Catalog = {
  capturedAt: '',
  capture: null,
  tables: [
    table('public', 'orders'),
    table('archive', 'orders'),
    table('public', 'Customers'),
    table('public', 'two words'),
    table('logs', 'events_*'),
  ],
}
const names = namesOf(catalog)
const keys = (tables: readonly CatalogTable[]) => tables.map((each) => `${each.schema}.${each.table}`).sort()

describe('the tables that a query names', () => {
  const rows: readonly (readonly [string, readonly string[]])[] = [
    ['SELECT * FROM CUSTOMERS', ['public.Customers']],
    ['SELECT 1 FROM orders o', ['archive.orders', 'public.orders']],
    ['SELECT 1 FROM "two words"', ['public.two words']],
    ['SELECT 1 FROM `p.logs.events_20260101`', ['logs.events_*']],
    ['{"collection":"Customers","filter":{}}', ['public.Customers']],
    ['SELECT 1 FROM reorders', []],
  ]
  for (const [text, tables] of rows)
    test(`the query ${text} names ${tables.join(' and ') || 'no table'}`, () =>
      assert.deepEqual(keys(tablesNamed(namesIn(text), names)), tables))
})

describe('the tables that a refusal may mean', () => {
  const rows: readonly (readonly [string, readonly string[]])[] = [
    ['orders', ['archive.orders', 'public.orders']],
    ['archive.orders', ['archive.orders']],
    ['shop.public.customers', ['public.Customers']],
    ['other.orders', []],
    ['project.logs.events_20260101', ['logs.events_*']],
    ['nothing', []],
  ]
  for (const [name, tables] of rows)
    test(`a refusal of ${name} may mean ${tables.join(' and ') || 'no table'}`, () =>
      assert.deepEqual(keys(tablesBlocked(name, names)), tables))
})

describe('the column that a refusal may mean', () => {
  const columns = columnsByName(table('public', 't', ['Email', 'address', 'address.city']))
  const rows: readonly (readonly [string, string | undefined])[] = [
    ['email', 'Email'],
    ['c.email', 'Email'],
    ['address.city', 'address.city'],
    ['address.zip', 'address'],
    ['phone', undefined],
  ]
  for (const [name, column] of rows)
    test(`a refusal of ${name} may mean ${column ?? 'no column'}`, () =>
      assert.equal(columnBlocked(name, columns), column))
})

test('the names in a query include words, quoted names, and each path with its parents and its last part', () => {
  const found = namesIn('{"filter":{"address.city":"X"},"pipeline":[{"$group":{"_id":"$kind"}}]}')
  for (const name of ['address.city', 'address', 'city', 'kind', '_id']) assert.ok(found.has(name), name)
})

describe('queries that read every column', () => {
  const rows: readonly (readonly [string, boolean])[] = [
    ['SELECT * FROM t', true],
    ['select distinct * from t', true],
    ['SELECT t.*, u.id FROM t, u', true],
    ['SELECT id, * FROM t', true],
    ['SELECT count(*) FROM t', false],
    ['SELECT price * amount FROM t', false],
    ['SELECT id FROM t', false],
    ['{"collection":"t","filter":{"a":1}}', true],
    ['{"collection":"t","pipeline":[{"$group":{"_id":null}}]}', false],
  ]
  for (const [text, all] of rows)
    test(`the query ${text} reads ${all ? 'every column' : 'only some columns'}`, () =>
      assert.equal(readsAll(text), all))
})

test('names are found only at the beginning of a query of a megabyte', () => {
  assert.equal(namesIn(`SELECT ${'"x'.repeat(500_000)} FROM orders`).has('orders'), false)
})
