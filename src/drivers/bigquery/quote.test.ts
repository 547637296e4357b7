// The guard must accept every name as Vitrine writes it in generated texts, because callers copy it from there.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { CAPS, catalogOf } from '../../../test/support/bigquery-guard.ts'
import { questionInSql } from '../write-sql-example.ts'
import { confine } from './guard/confine.ts'
import { identifier, typedPath } from './quote.ts'

const NAMES = ['Plain', 'two words', 'ünïcødé', 'select', 'Group', '1st', "it's", 'say "hi"', 'my-table', '_x']

describe('names in GoogleSQL', () => {
  test('GoogleSQL names are in backquotes only if necessary', () => {
    assert.equal(typedPath(['Billing', 'invoices_2024', 'a.b']), 'Billing.invoices_2024.a.b')
    assert.equal(typedPath(['my-set', 'Order', 'a.my field']), '`my-set`.`Order`.a.`my field`')
  })

  for (const name of NAMES) {
    const exposed = catalogOf([{ name: `shop.${name}`, columns: ['id', name] }])
    const of = { schema: 'shop', table: name }
    const verdictOf = (sql: string) => confine({ text: sql, limit: null }, exposed, CAPS)

    test(`the guard accepts every generated question, and a query with copied names: ${name}`, () => {
      for (const question of [
        { kind: 'countBy', of, column: name },
        { kind: 'newest', of, time: name, columns: ['id', name] },
        { kind: 'rows', of, columns: ['id', name] },
      ] as const) {
        const sql = questionInSql(question, identifier)
        const verdict = verdictOf(sql)
        assert.equal(verdict.kind, 'confined', `${sql}: ${JSON.stringify(verdict)}`)
      }
      const copied = `SELECT ${typedPath([name])} FROM ${typedPath(['shop', name])}`
      assert.equal(verdictOf(copied).kind, 'confined', copied)
    })
  }
})
