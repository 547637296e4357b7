import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ColumnSets } from './column-sets.ts'
import type { Source } from './source.ts'
import { Work } from './work-budget.ts'

class Searched extends Set<string> {
  times = 0

  override has(name: string): boolean {
    this.times++
    return super.has(name)
  }
}

function tableOf(table: string, columns: readonly string[]): Source & { readonly names: Searched } {
  const known = { dataset: 'd', table, columns, suffixes: null, pseudoColumns: [], closure: [], shards: [] }
  return { ...known, names: new Searched(columns) }
}

test('each table is searched once for a column name', () => {
  const work = new Work()
  const sets = new ColumnSets(work)
  const tables = Array.from({ length: 50 }, (_, n) => tableOf(`t${n}`, ['id', `c${n}`]))
  const bits = tables.map((table) => sets.ofTable(table))
  for (let n = 0; n < 1_000; n++) for (const [at, bit] of bits.entries()) assert.equal(sets.has(bit, 'c7'), at === 7)
  assert.deepEqual(new Set(tables.map(({ names }) => names.times)), new Set([1]))
  assert.equal(work.spent, 50)
})

test('the names of a mask come in the order of their lists, without the names of other lists', () => {
  const sets = new ColumnSets(new Work())
  const bits = Array.from({ length: 200 }, (_, n) => sets.ofNames([`a${n}`, `b${n}`]))
  const columns = [199, 0, 70].reduce((all, n) => all | (bits[n] ?? 0n), 0n)
  assert.deepEqual([...sets.namesOf(columns, 5)], ['a0', 'b0', 'a70', 'b70', 'a199'])
  assert.deepEqual([...sets.namesOf(0n, 5)], [])
})

test('a column name is found in tables and lists that are added after the first search', () => {
  const sets = new ColumnSets(new Work())
  const first = sets.ofTable(tableOf('a', ['id']))
  assert.equal(sets.has(first, 'late'), false)
  const second = sets.ofTable(tableOf('b', ['late']))
  const list = sets.ofNames(['LATE'])
  const third = sets.ofTable(tableOf('c', ['late']))
  assert.deepEqual(
    [first, second, list, third].map((each) => sets.has(each, 'late')),
    [false, true, true, true],
  )
  assert.equal(sets.has(first | third, 'late'), true)
})
