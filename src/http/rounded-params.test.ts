import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { roundedParams } from './rounded-params.ts'

const refusedIn = (params: string): unknown => {
  const text = `{"sql":"SELECT 1","params":${params},"limit":5}`
  JSON.parse(text)
  const details: unknown = roundedParams(text)?.extra['details'] ?? []
  return Array.isArray(details) ? details.map((each) => String(each).split(':')[0]) : details
}

describe('numeric parameters of a query', () => {
  for (const [written, place] of [
    ['[0.12345678901234567890]', 'params.0'],
    ['[1, 0.1000000000000000055511151231257827]', 'params.1'],
    ['[1.00000000000000000001]', 'params.0'],
    ['[0.10000000000000001]', 'params.0'],
    ['[1e400]', 'params.0'],
    ['[-1E-400]', 'params.0'],
    [`[0.${'0'.repeat(500)}]`, 'params.0'],
    ['{"price": 99999999999999.999}', 'params.price'],
    ['{"price": {"type": "NUMERIC", "value": 123456789012.3456789}}', 'params.price'],
    ['[{"type": "numeric", "value": 0.12345678901234567890}]', 'params.0'],
  ] as const) {
    test(`a parameter that parsing would round is refused by name: ${written.slice(0, 70)}`, () => {
      assert.deepEqual(refusedIn(written), [place])
    })
  }

  for (const written of [
    '[0.1, 0.30000000000000004, 1e21, 1.7976931348623157e308, 5e-324, 2.50, 100.000000000000000000, -0.0]',
    '[0.000000000000000000000000000001, 1E+2, 12345678901234.5, 0e999]',
    '["0.12345678901234567890", {"type": "NUMERIC", "value": "0.12345678901234567890"}]',
    '{"e999": "[0.12345678901234567890]"}',
    '[9007199254740993]',
  ]) {
    test(`a parameter that is exact is accepted: ${written}`, () => assert.deepEqual(refusedIn(written), []))
  }

  test('numbers outside the parameters are accepted although parsing rounds them, because a MongoDB filter may have doubles', () => {
    assert.equal(roundedParams('{"filter":{"params":0.12345678901234567890}}'), null)
    assert.equal(roundedParams('{"params":[],"filter":{"x":0.12345678901234567890}}'), null)
  })
})
