// Tests the limits on paths and polygons, and on texts in which pg_trgm seeks a word.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { shop, extension } from '../../../../../test/support/postgres-catalog.ts'
import { openGuard, say, type Guard } from '../../../../../test/support/postgres-guard.ts'

let guard: Guard
before(async () => {
  guard = await openGuard()
})
after(() => guard[Symbol.asyncDispose]())

const TRIGRAMS = shop({
  trustedSchemas: ['public'],
  extensions: [
    extension('pg_trgm', '1.6', {
      functions: ['word_similarity', 'strict_word_similarity'],
      operators: ['<%', '%>', '<<%', '<->', '<<->', '<->>'],
    }),
  ],
})

const limits = (printed: string): readonly string[] =>
  [...printed.matchAll(/'vitrine bound: (\d+ (?:comparison|stored_value)) '/g)].map(([, limit = '']) => limit)

const of = (type: string): readonly { readonly type: string; readonly value: string }[] =>
  [1, 2].map((at) => ({ type, value: `((0,0),(1,${at}))` }))

for (const type of ['path', 'polygon']) {
  test(`the sizes of two values of type ${type} are limited before their distance is computed`, async () => {
    const sql = 'SELECT x <-> y FROM (SELECT $1 AS x, $2 AS y OFFSET 0) q'
    assert.deepEqual(limits(say(await guard.judge(sql, shop(), { params: of(type) }))), ['16777216 comparison'])
    const direct = say(await guard.judge('SELECT $1 <-> $2', shop(), { params: of(type) }))
    assert.deepEqual(limits(direct), ['16777216 comparison'])
  })
}

test('a distance to a point has no limit', async () => {
  const sql = "SELECT polygon '((0,0),(1,1))' <-> point '(1,2)', point '(0,0)' <-> $1"
  assert.deepEqual(limits(say(await guard.judge(sql, shop(), { params: [{ type: 'point', value: '(1,1)' }] }))), [])
})

for (const [name, sql, ...params] of [
  ['a parameter', "SELECT word_similarity('0', $1)", 'a'],
  ['a made text', "SELECT strict_word_similarity('0', x) FROM (SELECT repeat('0,', 1000) AS x OFFSET 0) q"],
  ['an operator', "SELECT '0' <% (name || '!') FROM customers"],
  ['an operator in the other direction', "SELECT (name || '!') <->> '0' FROM customers"],
] as const) {
  test(`a text in which a word is sought has a limit: ${name}`, async () => {
    const printed = say(await guard.judge(sql, TRIGRAMS, { params }))
    assert.ok(limits(printed).includes('32768 comparison'), printed)
  })
}

test('a column in which a word is sought has a limit, and no check around it that prevents the use of an index', async () => {
  const sql = "SELECT name FROM customers WHERE 'tea' <% name ORDER BY 'tea' <<-> lower(name) LIMIT 3"
  const printed = say(await guard.judge(sql, TRIGRAMS))
  assert.deepEqual([...new Set(limits(printed))], ['134217728 stored_value'])
  assert.match(printed, /4096/)
  assert.match(printed, /\('tea' <% "t\d+"\."name"\)/)
})
