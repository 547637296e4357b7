// Tests parameters with Google’s analyzer and evaluator. A value must never become query text.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { unseal } from '../../../src/drivers/confined.ts'
import type { BigQueryQuery } from '../../../src/drivers/bigquery/confined-query.ts'
import { AppError } from '../../../src/errors.ts'
import { openBrain, type GoogleBrain } from '../../engines/bigquery/evaluate-query.ts'
import { connectBigQuery, soon, WIDE, type ConnectedBigQuery } from '../../support/bigquery-connected.ts'
import { engineOrSkip } from '../../support/no-such-engine.ts'
import { catalogOf } from './catalog.ts'
import { DATASETS, FIXTURE, shownOf, WORLD } from './sample-project.ts'

const CATALOG = catalogOf(WORLD, shownOf)
const HOSTILE = "x' OR TRUE UNION ALL SELECT ssn FROM shop.customers -- `\\"

describe('parameters', () => {
  let at: ConnectedBigQuery
  let brain: GoogleBrain | null = null
  before(async () => {
    brain = await openBrain(WORLD).catch(() => null)
    at = await connectBigQuery({ double: { datasets: DATASETS, ...(brain !== null && { brain }) } })
  })
  after(async () => {
    assert.deepEqual(at.double.violations, [])
    await at[Symbol.asyncDispose]()
    await brain?.[Symbol.asyncDispose]()
  })

  const confined = async (sql: string, params?: unknown) => {
    const body = at.driver.read({ sql, ...(params !== undefined && { params }) })
    return await at.driver.confine(body, CATALOG, WIDE, soon())
  }

  const answered: readonly (readonly [string, string, unknown, unknown])[] = [
    ['by name', 'SELECT @a + 1 AS x', { a: 41 }, [[42]]],
    ['by name, in any case', 'SELECT @Word || @wORD AS x', { word: 'a' }, [['aa']]],
    ['by position', 'SELECT ? - ? AS x', [5, 3], [[2]]],
    ['a string', 'SELECT @s AS x', { s: HOSTILE }, [[HOSTILE]]],
    ['a boolean', 'SELECT IF(@b, 1, 2) AS x', { b: false }, [[2]]],
    ['a fraction', 'SELECT @f * 2 AS x', { f: 1.25 }, [[2.5]]],
    ['null', 'SELECT @n IS NULL AS x', { n: null }, [[true]]],
    ['a typed null', 'SELECT COALESCE(@n, 7) AS x', { n: { type: 'INT64', value: null } }, [[7]]],
    ['a large whole number', 'SELECT @i AS x', { i: { type: 'INT64', value: '9007199254740993' } }, [['9007199254740993']]],
    ['a date', 'SELECT DATE_ADD(@d, INTERVAL 1 DAY) AS x', { d: { type: 'DATE', value: '2024-02-28' } }, [['2024-02-29']]],
    ['a string used as a date', "SELECT DATE '2024-01-02' > @d AS x", { d: '2024-01-01' }, [[true]]],
    ['a decimal', 'SELECT @d + 0.1 AS x', { d: { type: 'decimal', value: '0.2' } }, [[0.3]]],
    ['an instant', 'SELECT @t AS x', { t: { type: 'TIMESTAMP', value: '2024-01-01T00:00:00Z' } }, [['2024-01-01T00:00:00.000000Z']]],
    ['bytes', 'SELECT LENGTH(@b) AS x', { b: { type: 'BYTES', value: 'AAEC' } }, [[3]]],
    ['an array', 'SELECT COUNT(*) AS x FROM UNNEST(@a) AS e WHERE e > 1', { a: { type: 'ARRAY<INT64>', value: '[1, 2, "3"]' } }, [[2]]],
    ['an array of large whole numbers', 'SELECT e AS x FROM UNNEST(@a) AS e', { a: { type: 'ARRAY<INT64>', value: '[9007199254740993]' } }, [['9007199254740993']]],
    ['an array of long decimals', 'SELECT e AS x FROM UNNEST(@a) AS e', { a: { type: 'ARRAY<NUMERIC>', value: '[12345678901234567890.123456789]' } }, [['12345678901234567890.123456789']]],
    ['in IN UNNEST', 'SELECT 2 IN UNNEST(@a) AS x', { a: { type: 'array< int64 >', value: '[1, 2]' } }, [[true]]],
    ['in WHERE of a table', 'SELECT COUNT(*) AS x FROM shop.customers WHERE name = @n', { n: HOSTILE }, [[0]]],
    ['as LIMIT', 'SELECT e AS x FROM UNNEST([1, 2]) AS e ORDER BY e LIMIT @n', { n: 1 }, [[1]]],
    ['in a wildcard’s filter', "SELECT COUNT(*) > 0 AS x FROM `shop.events_*` WHERE _TABLE_SUFFIX >= @s", { s: '20240101' }, [[true]]],
  ]
  for (const [what, sql, params, rows] of answered) {
    test(`a parameter is bound as a value: ${what}`, async (t) => {
      if ((await engineOrSkip(t, async () => brain ?? (await openBrain(WORLD)))) === null) return
      const verdict = await confined(sql, params)
      assert.equal(verdict.kind, 'confined', JSON.stringify(verdict))
      if (verdict.kind !== 'confined') return
      const { text } = unseal<BigQueryQuery>(verdict.query, 'BIGQUERY')
      assert.ok(!text.includes('OR TRUE'), text)
      const answer = await at.connection.run(verdict.query, WIDE, soon())
      assert.deepEqual(JSON.parse(String(answer.rows)), rows)
      assert.deepEqual(at.double.violations, [])
    })
  }

  const wrong: readonly (readonly [string, string, unknown, RegExp])[] = [
    ['a missing value', 'SELECT @a, @b', { a: 1 }, /^params\.b: is missing$/],
    ['no values', 'SELECT @a', undefined, /^params\.a: is missing$/],
    ['a position without a value', 'SELECT ?', undefined, /1 \?|0 values/],
    ['a superfluous value', 'SELECT @a', { a: 1, b: 2 }, /^params\.b: is not used/],
    ['a value without a position', 'SELECT ?', [1, 2], /has 2 values, but the query has 1 \?/],
    ['names instead of positions', 'SELECT ?', { a: 1 }, /must be an array of 1/],
    ['positions instead of names', 'SELECT @a', [1], /a: is missing|0 \?/],
    ['names and positions together', 'SELECT ?, @a', [1], /both \? and @name/],
    ['one name in two cases', 'SELECT @a', { a: 1, A: 2 }, /appears twice/],
    ['an invalid name', 'SELECT @a', { 'a b': 1, a: 1 }, /not a parameter name/],
    ['values for a query without parameters', 'SELECT 1', { a: 1 }, /is not used/],
    ['a parameter in a comment only', 'SELECT 1 -- @a', { a: 1 }, /is not used/],
    ['a parameter in a string only', "SELECT '?'", [1], /has 1 values/],
    ['an unsupported type', 'SELECT @a', { a: { type: 'STRUCT<x INT64>', value: 1 } }, /must be a type/],
    ['a type named like an object property', 'SELECT @a', { a: { type: 'constructor', value: 1 } }, /must be a type/],
    ['an array of arrays', 'SELECT @a', { a: { type: 'ARRAY<ARRAY<INT64>>', value: '[]' } }, /must be a type/],
    ['an invalid whole number', 'SELECT @a', { a: { type: 'INT64', value: '1.5' } }, /a whole number/],
    ['a whole number over 64 bits', 'SELECT @a', { a: { type: 'INT64', value: '9223372036854775808' } }, /64 bits/],
    ['an invalid calendar day', 'SELECT @a', { a: { type: 'DATE', value: '2023-02-29' } }, /a date/],
    ['a number as a date', 'SELECT @a', { a: { type: 'DATE', value: 20230101 } }, /a date/],
    ['too many digits', 'SELECT @a', { a: { type: 'NUMERIC', value: '1'.repeat(30) } }, /a decimal/],
    ['a string as a boolean', 'SELECT @a', { a: { type: 'BOOL', value: 'yes' } }, /true or false/],
    ['invalid base64', 'SELECT @a', { a: { type: 'BYTES', value: 'a' } }, /base64/],
    ['invalid JSON', 'SELECT @a', { a: { type: 'JSON', value: '{' } }, /JSON/],
    ['an array with null', 'SELECT @a', { a: { type: 'ARRAY<INT64>', value: '[null]' } }, /without null/],
    ['a number in an array of strings', 'SELECT @a', { a: { type: 'ARRAY<STRING>', value: '[9007199254740993]' } }, /a string/],
    ['a fraction in an array of whole numbers', 'SELECT @a', { a: { type: 'ARRAY<INT64>', value: '[1.5]' } }, /a whole number/],
    ['a fraction as an instant', 'SELECT @a', { a: { type: 'ARRAY<TIMESTAMP>', value: '[1.5]' } }, /an instant/],
    ['90,000 digits before a letter', 'SELECT @a', { a: { type: 'FLOAT64', value: `${'1'.repeat(90_000)}x` } }, /a number/],
  ]
  for (const [what, sql, params, detail] of wrong) {
    test(`a parameter that does not fit gets 400 INVALID_REQUEST: ${what}`, () => {
      assert.throws(
        () => at.driver.read({ sql, ...(params !== undefined && { params }) }),
        (error) => error instanceof AppError && error.code === 'INVALID_REQUEST' && (error.extra['details'] as string[]).some((each) => detail.test(each)),
      )
    })
  }

  const misplaced: readonly (readonly [string, unknown])[] = [
    ['SELECT * FROM @t', { t: 'shop.customers' }],
    ['SELECT * FROM shop.@t', { t: 'customers' }],
    ['SELECT * FROM `shop`.?', ['customers']],
    ['SELECT 1 AS @a', { a: 'x' }],
    ['SELECT * EXCEPT (@a) FROM shop.customers', { a: 'ssn' }],
    ['SELECT @a.* FROM shop.customers', { a: 'customers' }],
    ['SELECT * FROM shop.customers TABLESAMPLE SYSTEM (@p PERCENT)', { p: 10 }],
    ['SELECT * FROM shop.customers a JOIN shop.orders b USING (@c)', { c: 'id' }],
    ['WITH @a AS (SELECT 1) SELECT 1', { a: 'x' }],
    ['SELECT @f(1)', { f: 'ABS' }],
    ['SELECT c.@a FROM shop.customers c', { a: 'ssn' }],
    ['SELECT * FROM UNNEST(@a.b)', { a: 1 }],
    ['@a', { a: 'SELECT 1' }],
  ]
  for (const [sql, params] of misplaced) {
    test(`a parameter is refused if GoogleSQL allows none in this place: ${sql}`, async (t) => {
      const verdict = await confined(sql, params)
      if (verdict.kind !== 'confined') return assert.ok(verdict.kind === 'denied' || verdict.kind === 'malformed')
      if ((await engineOrSkip(t, async () => brain ?? (await openBrain(WORLD)))) === null) return
      const error: unknown = await at.connection.run(verdict.query, WIDE, soon()).then(() => null, (thrown: unknown) => thrown)
      assert.ok(error instanceof AppError && ['INVALID_QUERY', 'QUERY_FAILED', 'QUERY_DENIED'].includes(error.code), String(error))
      for (const sentinel of FIXTURE.sentinels) assert.ok(!error.message.includes(sentinel))
    })
  }

  for (const sql of ['SELECT @@time_zone', 'SELECT @@project_id', 'SELECT @{x=1} 1', 'SELECT @`a`', 'SELECT @ a', 'SELECT @1']) {
    test(`the guard refuses the parameter: ${sql}`, async () => {
      const verdict = await confined(sql)
      assert.equal(verdict.kind, 'denied')
    })
  }

  test('a redacted text keeps the names of parameters', () => {
    assert.equal(at.driver.redacted?.("SELECT @Name, 'x', ?"), 'SELECT @name , ? , ?')
  })
})
