import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readTypes } from './captured-types.ts'
import { catalogTables } from './catalog-tables.ts'

const TABLES = 4_000

test('building a catalog of many tables gives other requests a turn', async () => {
  const types = readTypes(
    { types: [], attributes: [], support: [], checks: [], ranges: [] },
    new Map(),
    () => new Map(),
  )
  const numbers = Array.from({ length: TABLES }, (_, n) => String(n + 20_000))
  const rows = {
    tables: numbers.map((oid) => [oid, 'public', `t${oid}`, 'r', '1', '1', null, null, null]),
    columns: numbers.flatMap((oid) =>
      Array.from({ length: 20 }, (_, n) => [
        ...[oid, String(n + 1), `c${n}`, '23', '-1', 'pg_catalog', 'int4', 'integer', 'f', null, 't', null],
      ]),
    ),
    ...{ primaryKeys: [], foreignKeys: [], targets: [], children: [], viewRelations: [], enumLabels: [], checks: [] },
    warnings: new Map(),
  }
  let turns = 0
  const count = (): void => {
    turns++
    setImmediate(count).unref()
  }
  setImmediate(count).unref()
  const tables = await catalogTables(rows, types, [])
  assert.deepEqual([tables.length, tables[0]?.columns.length], [TABLES, 20])
  assert.ok(turns > 1, `${turns} turns`)
})
