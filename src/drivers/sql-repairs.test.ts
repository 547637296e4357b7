import assert from 'node:assert/strict'
import { test } from 'node:test'
import { table } from '../../test/support/postgres-catalog.ts'
import type { CatalogColumn } from './driver.ts'
import { sqlRepairs } from './sql-repairs.ts'

const repairs = sqlRepairs((names) => names.join('.'))
const denied = (name: string, position: number) =>
  ({ kind: 'denied', why: '', hint: '', blocked: { kind: 'column', name }, position }) as const

test('a repair for a text without a table reads only some columns of a large catalog', () => {
  let read = 0
  const counted = (column: CatalogColumn) => ({
    ...column,
    get name() {
      read++
      return column.name
    },
  })
  const { columns } = table(
    't',
    Array.from({ length: 1_000 }, (_, n) => (n === 7 ? 'total int' : `column_${n} int`)),
  )
  const many = { ...table('t', []), columns: columns.map(counted) }
  const exposed = { capturedAt: '', capture: null, tables: Array.from({ length: 100 }, () => many) }
  assert.deepEqual(repairs({ sql: 'SELECT totl' }, denied('totl', 7), exposed), [{ sql: 'SELECT total' }])
  assert.ok(read <= 10_001, String(read))
})
