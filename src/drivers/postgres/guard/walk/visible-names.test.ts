import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Shown } from './visible-names.ts'
import type { Column, Item } from './from-items.ts'

const column = (table: string, name: string): Column => ({
  ...{ name, type: null, origin: null },
  read: () => ({ ColumnRef: { fields: [{ String: { sval: `${table}.${name}` } }] } }),
})

function table(name: string, ...columns: string[]): Shown {
  const own = columns.map((each) => column(name, each))
  const item: Item = { name, schema: null, columns: own, base: null, whole: () => ({ node: {}, type: null }) }
  return Shown.of(item)
}

const text = (each: Column | null | undefined): string | null | undefined =>
  each && (each.read().ColumnRef?.fields?.[0]?.String?.sval ?? '')
const stars = (shown: Shown): string => shown.star().map(text).join(' ')

test('the columns of both sides of a comma are visible, and a name of both sides is ambiguous', () => {
  const shown = table('a', 'id', 'x')
  shown.take(table('b', 'id', 'y'), [])
  assert.equal(stars(shown), 'a.id a.x b.id b.y')
  assert.equal(shown.column('id'), null)
  assert.equal(text(shown.column('y')), 'b.y')
  assert.equal(shown.column('z'), undefined)
  assert.deepEqual(
    shown.items.map(({ name }) => name),
    ['a', 'b'],
  )
})

test('* lists the columns of USING first, then the other columns of each side', () => {
  const shown = table('a', 'x', 'id')
  assert.equal(text(shown.column('id')), 'a.id')
  shown.take(table('b', 'y', 'id'), [column('j', 'id')])
  assert.equal(stars(shown), 'j.id a.x b.y')
  assert.equal(text(shown.column('id')), 'j.id')
  shown.take(table('c', 'id', 'x'), [column('k', 'x')])
  assert.equal(stars(shown), 'k.x j.id b.y c.id')
  assert.equal(shown.column('id'), null)
  assert.equal(shown.count, 4)
})

test('a join on the right side of a comma keeps its columns of USING', () => {
  const right = table('b', 'id', 'x')
  right.take(table('c', 'id'), [column('j', 'id')])
  const shown = table('a', 'z')
  shown.take(right, [])
  assert.equal(stars(shown), 'a.z j.id b.x')
  assert.equal(text(shown.column('id')), 'j.id')
})

test('a join of more than 64 columns lists them in the same order as a smaller join', () => {
  const many = Array.from({ length: 100 }, (_, n) => `c${n}`)
  const shown = table('a', 'id', ...many)
  shown.take(table('b', 'id', 'y'), [column('j', 'id')])
  shown.take(table('c', 'id', 'y'), [column('k', 'y'), column('k', 'id')])
  assert.equal(stars(shown), ['k.y', 'k.id', ...many.map((name) => `a.${name}`)].join(' '))
})

test('a FROM item without a schema is found only by its unqualified name', () => {
  const shown = table('a', 'id')
  assert.equal(shown.tables('a', undefined).length, 1)
  assert.equal(shown.tables('a', 'public').length, 0)
  assert.equal(shown.tables('b', undefined).length, 0)
})
