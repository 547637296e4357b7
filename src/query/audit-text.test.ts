// These tests are about teams that redact literals.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { redactedSql } from '../drivers/postgres/guard/redact.ts'
import type { Blocked } from '../drivers/driver.ts'
import type { Code } from '../errors.ts'
import { auditText } from './audit-text.ts'

const driver = { redacted: redactedSql }
const SQL = "SELECT nope FROM customers WHERE city = 'New York' AND pin = 4711 -- of Anna"
const numbers = { position: 7, estimate: 2, limit: 1 }

function kept(
  code: Code,
  error: string,
  more: { query?: string; isRead?: boolean; blocked?: Blocked; params?: string } = {},
) {
  const { query = SQL, isRead = true, blocked = { kind: 'column', name: 'nope' } } = more
  const reason = { error, hint: error, ...numbers }
  const params = { values: [1], json: more.params ?? '[1]' }
  const trail = { query, params, printed: query, isRead, blocked, refusal: { code, reason } }
  const { error: left, hint, position, estimate, limit, ...rest } = auditText(driver, trail, true)
  assert.deepEqual([{ position, estimate, limit }, hint, 'params' in rest], [numbers, left, false])
  return left
}

test('the audit keeps an error text that contains no word of a literal', () => {
  const sentence = 'column nope of customers does not exist or is not exposed'
  assert.equal(kept('QUERY_DENIED', sentence), sentence)
})

test('the audit drops an error text with a word, or a part of a number, that the query has only in a literal or comment', () => {
  for (const error of [
    'no York here',
    'NEW is not allowed',
    'the value 4711 is',
    'more than 47',
    'anna may not',
    'Yorkshire',
  ])
    assert.equal(kept('QUERY_DENIED', error), error === 'Yorkshire' ? error : undefined, error)
})

test('the audit drops an error text that contains a parameter value', () => {
  assert.equal(
    kept('QUERY_DENIED', 'York is not allowed', { query: 'SELECT nope FROM customers', params: '["York"]' }),
    undefined,
  )
})

test('the audit drops every error text of QUERY_FAILED, INVALID_QUERY and INVALID_REQUEST', () => {
  for (const code of ['QUERY_FAILED', 'INVALID_QUERY', 'INVALID_REQUEST'] as const)
    assert.equal(kept(code, 'nope'), undefined)
})

test('the audit keeps the error texts of codes that never quote a query, even if the query was not parsed', () => {
  const sentence = 'The database took longer than the 4711 ms that New York allows.'
  assert.equal(kept('QUERY_TIMEOUT', sentence, { isRead: false }), sentence)
})

test('if the literals of a query or their values are unknown, the audit keeps only error texts about limits', () => {
  const unread = { query: `${SQL} \\`, isRead: false }
  const limit = { kind: 'limit', name: 'joins' } as const
  assert.equal(kept('QUERY_DENIED', 'column nope does not exist', unread), undefined)
  assert.equal(kept('QUERY_DENIED', 'more than 64 joins', { ...unread, blocked: limit }), 'more than 64 joins')
  assert.equal(kept('QUERY_DENIED', 'more than 64 of York', { ...unread, blocked: limit }), undefined)
  // The query text does not contain the character that the escape sequence represents.
  const escaped = { query: "SELECT nope FROM customers WHERE city = E'\\x59ork'" }
  assert.equal(kept('QUERY_DENIED', 'York is not allowed', escaped), undefined)
  // SQL concatenates both parts, so the query text does not contain the word 'York'.
  for (const between of ['\n', ' -- more\n \t-- and more\n']) {
    const continued = { query: `SELECT nope FROM customers WHERE city = 'Yo'${between}'rk'` }
    assert.equal(kept('QUERY_DENIED', 'York is not allowed', continued), undefined)
  }
  const separate = { query: "SELECT nope FROM customers WHERE city IN ('Yo',\n'rk', '')" }
  assert.equal(kept('QUERY_DENIED', 'nope is not allowed', separate), 'nope is not allowed')
})
