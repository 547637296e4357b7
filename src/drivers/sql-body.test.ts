import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AppError } from '../errors.ts'
import { sqlBodyReader } from './sql-body.ts'

const list = sqlBodyReader({ bytesMax: 200, params: 'byPlace' })
const named = sqlBodyReader({ bytesMax: 200, params: 'byPlaceOrName' })

const BAD = [
  ['not a list', list, { a: 1 }, 'params: must be an array'],
  ['a string', named, 'x', 'params: must be an array, or an object of names'],
  ['null', named, null, 'params: must be an array, or an object of names'],
  ['a nested list', list, [1, [2]], 'params.1: must be null, a boolean'],
  ['an unknown field', list, [{ type: 'int4', value: 1, x: 1 }], 'params.0: must be null, a boolean'],
  ['a rounded number', list, [2 ** 53], 'params.0: is a whole number beyond 2^53'],
  ['a rounded number with a type', list, [{ type: 'int8', value: 2 ** 60 }], 'params.0: is a whole number beyond'],
  ['a NUL', list, ['a\0'], 'params.0: must not contain NUL'],
  ['half of a surrogate pair', named, { x: '\ud800' }, 'params.x: must not contain NUL'],
  ['too many values', list, new Array(1001).fill(1), 'params: has more than 1000 values'],
  ['too long', list, ['x'.repeat(200)], 'params: is longer than 200 bytes'],
] as const

for (const [name, read, params, message] of BAD) {
  test(`a SQL body is refused if its parameters are wrong: ${name}`, () => {
    assert.throws(
      () => read({ sql: 'SELECT $1', params }),
      (error) => {
        assert.ok(error instanceof AppError)
        assert.equal(error.code, 'INVALID_REQUEST')
        const [first] = error.extra['details'] as string[]
        assert.ok(first?.startsWith(message), first)
        return true
      },
    )
  })
}

test('parameters of a SQL body by position and by name are accepted unchanged', () => {
  const params = [null, true, 1.5, 'x', { type: 'int8', value: '9007199254740993' }]
  assert.deepEqual(list({ sql: 's', params }).params, { values: params, json: JSON.stringify(params) })
  const json = '{"__proto__":1,"constructor":"c"}'
  const values = new Map<string, unknown>([
    ['__proto__', 1],
    ['constructor', 'c'],
  ])
  assert.deepEqual(named({ sql: 's', params: JSON.parse(json) }).params, { values, json })
})

test('a SQL body with parameters is refused if the kind of database takes none', () => {
  const none = sqlBodyReader({ bytesMax: 200, params: 'none' })
  assert.throws(() => none({ sql: 's', params: [] }), /params: is not a field/)
})

test('a SQL body without parameters is read without parameters', () => {
  assert.deepEqual(list({ sql: 's', limit: 3 }), { text: 's', limit: 3 })
})

test('parameters of a SQL body that are nested 100,000 levels deep are refused with INVALID_REQUEST', () => {
  const deep = JSON.parse('['.repeat(100_000) + ']'.repeat(100_000))
  for (const params of [deep, [deep], [{ type: 'int8', value: deep }]]) {
    assert.throws(() => list({ sql: 's', params }), { code: 'INVALID_REQUEST' })
  }
})
