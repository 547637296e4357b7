import assert from 'node:assert/strict'
import { test } from 'node:test'
import { extension } from '../../../../test/support/postgres-catalog.ts'
import { readTypes } from './captured-types.ts'

const POSTGIS = extension('postgis', '3.3.2')

/** Columns of a row: oid, schema, name, typtype; oid, schema and name of the base type; delimiter; four flags. */
function typeRow(oid: number, name: string, type: string, extension = 0, of = 0): (string | null)[] {
  return [String(oid), 'public', name, type, String(of), 'public', 'x', ',', 'f', String(extension), 'f', name, 'f']
}

test('a column cannot be exposed if its type contains a range of geometries', () => {
  const rows = [
    typeRow(20_001, 'geometry', 'b', 1),
    typeRow(20_002, 'shapes', 'r'),
    typeRow(20_003, 'shapes_multirange', 'm'),
    typeRow(20_004, '_shapes', 'b', 0, 20_002),
    typeRow(20_005, 'places', 'c'),
    typeRow(20_006, 'spans', 'r'),
  ]
  const ranges = [
    ['20002', '20001'],
    ['20003', '20002'],
    ['20006', '23'],
  ]
  const attributes = [['20005', 'seen', '20002', 'public', 'shapes']]
  const types = readTypes(
    { types: rows, attributes, support: [], checks: [], ranges },
    new Map([[1, POSTGIS]]),
    () => new Map(),
  )
  assert.deepEqual(
    [20_001, 20_002, 20_003, 20_004, 20_005, 20_006].map((oid) => types.unexposable(oid) === null),
    [true, false, false, false, false, true],
  )
  assert.equal(types.unexposable(20_002), 'shapes is a range of values of PostGIS.')
  assert.ok(types.types.filter(({ refused }) => refused === null).every(({ name }) => !name.includes('shapes')))
})
