import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseEjson } from './parse-ejson.ts'
import { Scalar } from '../../confined-query.ts'
import { Broken, Refusal } from '../refusals/refusal.ts'

function of(value: unknown): unknown {
  const lifted = parseEjson(value)
  assert.ok(lifted instanceof Scalar)
  return lifted.of
}

test('every Extended JSON wrapper is read in its exact form', () => {
  assert.deepEqual(of({ $oid: 'A'.repeat(24) }), { kind: '$oid', hex: 'a'.repeat(24) })
  assert.deepEqual(of({ $date: '2024-02-29T23:30:00.5-01:30' }), {
    kind: '$date',
    milliseconds: Date.UTC(2024, 2, 1, 1, 0, 0, 500),
  })
  assert.deepEqual(of({ $date: '2024-05-31' }), { kind: '$date', milliseconds: Date.UTC(2024, 4, 31) })
  assert.deepEqual(of({ $date: { $numberLong: '-1' } }), { kind: '$date', milliseconds: -1 })
  assert.deepEqual(of({ $numberLong: '-9223372036854775808' }), { kind: '$numberLong', value: -(2n ** 63n) })
  assert.deepEqual(of({ $numberDouble: '-Infinity' }), { kind: '$numberDouble', value: -Infinity })
  assert.deepEqual(of({ $numberDecimal: '1E-6176' }), { kind: '$numberDecimal', text: '1E-6176' })
  assert.deepEqual(of({ $binary: { base64: 'aGk=', subType: '80' } }), {
    kind: '$binary',
    base64: 'aGk=',
    subType: 128,
  })
  assert.deepEqual(of({ $regularExpression: { pattern: 'a', options: 'si' } }), {
    kind: '$regularExpression',
    pattern: 'a',
    options: 'is',
  })
  assert.deepEqual(of({ $timestamp: { t: 1, i: 4294967295 } }), { kind: '$timestamp', t: 1, i: 4294967295 })
  assert.deepEqual(parseEjson({ a: [1, 'x', null], $gt: 1e30 }), { a: [1, 'x', null], $gt: 1e30 })
})

test('an Extended JSON wrapper beside another key or in another form is refused', () => {
  for (const value of [
    { $oid: 'aa' },
    { $oid: 'a'.repeat(24), $gt: '' },
    { $date: 5 },
    { $date: '2024-02-30' },
    { $date: '2024-05-31T12:00:00' },
    { $date: { $numberLong: '9000000000000000' } },
    { $numberInt: 5 },
    { $numberLong: '1e3' },
    { $numberLong: '9223372036854775808' },
    { $numberDouble: '0x10' },
    { $numberDecimal: '1'.repeat(35) },
    { $numberDecimal: '1E7000' },
    { $binary: 'aGk=' },
    { $binary: { base64: 'aGk', subType: '00' } },
    { $binary: { base64: 'aGk=', subType: '00', $where: '1' } },
    { $uuid: 'x' },
    { $regularExpression: { pattern: 'a', options: 'g' } },
    { $timestamp: { t: -1, i: 0 } },
    { $minKey: true },
    9007199254740992,
    Number.POSITIVE_INFINITY,
  ]) {
    assert.throws(() => parseEjson({ deep: [value] }), Broken, JSON.stringify(value))
  }
  assert.throws(() => parseEjson({ $regularExpression: { pattern: 'a'.repeat(513), options: '' } }), Refusal)
})
