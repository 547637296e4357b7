// Every refusal has a hint. The hint may suggest a similar name, or the GoogleSQL form of a word from another dialect.
// Google's analyzer reads the SQL that the guard has printed, but the position of an error must refer to the caller's
// SQL.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { ColumnSets } from '../../../src/drivers/bigquery/guard/column-sets.ts'
import { Work } from '../../../src/drivers/bigquery/guard/work-budget.ts'
import { AppError } from '../../../src/errors.ts'
import { openBrain, type GoogleBrain } from '../../engines/bigquery/evaluate-query.ts'
import { connectBigQuery, soon, WIDE, type ConnectedBigQuery } from '../../support/bigquery-connected.ts'
import { judge, SHOP } from '../../support/bigquery-guard.ts'
import { engineOrSkip } from '../../support/no-such-engine.ts'
import { catalogOf } from './catalog.ts'
import { DEEP, FAMILIES, GROWN } from './growth.ts'
import { ATTACKS, DATASETS, LEGIT, shownOf, WORLD } from './sample-project.ts'

const CATALOG = catalogOf(WORLD, shownOf)

test('every refusal of the guard has a hint', () => {
  const grown = [...Object.values(FAMILIES), ...Object.values(DEEP)].map((make) => make(3_000)).filter((sql) => sql.length < 100_000)
  const verdicts = [...ATTACKS, ...LEGIT].map(({ sql }) => judge(CATALOG, sql)).concat(grown.map((sql) => judge(GROWN, sql)))
  const denied = verdicts.filter((verdict) => verdict.kind === 'denied')
  assert.ok(denied.length > 30)
  for (const { hint, why } of denied) assert.match(hint, /\w/, why)
})

const HINTS: readonly (readonly [string, RegExp])[] = [
  ['SELECT DATEADD(day, 1, d) FROM shop.orders', /^Write DATE_ADD\(day, INTERVAL n DAY\)/],
  ['SELECT NOW()', /CURRENT_TIMESTAMP\(\)/],
  ['SELECT NVL(id, 0) FROM shop.orders', /IFNULL\(x, y\)/],
  ['SELECT ISNULL(id, 0) FROM shop.orders', /IFNULL/],
  ['SELECT LEN(name) FROM shop.customers', /LENGTH/],
  ["SELECT TO_CHAR(d, 'YYYY') FROM shop.orders", /FORMAT_TIMESTAMP/],
  ['SELECT GROUP_CONCAT(name) FROM shop.customers', /STRING_AGG/],
  ["SELECT TO_DATE('2024')", /PARSE_DATE/],
  ["SELECT SPLIT_PART(name, ',', 1) FROM shop.customers", /SPLIT\(text, ','\)\[SAFE_OFFSET\(n\)\]/],
  ['SELECT GETDATE()', /CURRENT_TIMESTAMP/],
  ["SELECT CHARINDEX('a', name) FROM shop.customers", /STRPOS/],
  ['SELECT DATEDIFF(day, a, b)', /DATE_DIFF/],
  ["SELECT DATE_TRUNC('month', d)", /^Write DATE_TRUNC\(x, MONTH\)/],
  ["SELECT DATE_DIFF('day', a, b)", /^Write DATE_DIFF\(later, earlier, DAY\)/],
  ['SELECT COUNTT(*) FROM shop.orders', /^Did you mean COUNT\(\)/],
  ['SELECT id::string FROM shop.orders', /^Write CAST\(id AS STRING\)\.$/],
  ["SELECT 1 FROM shop.customers WHERE name ILIKE 'a%'", /LOWER\(x\) LIKE/],
  ["SELECT 1 FROM shop.customers WHERE name NOT ILIKE 'a%'", /LOWER\(x\) LIKE/],
  ['SELECT TOP 10 id FROM shop.orders', /^Write LIMIT 10 /],
  ['SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY id) FROM shop.orders', /OVER \(/],
  ['SHOW TABLES', /GET …\/schema/],
  ['DESCRIBE shop.orders', /GET …\/schema/],
  ['SELECT * FROM shop.INFORMATION_SCHEMA.TABLES', /GET …\/schema/],
  ['SELECT * FROM shop.order', /^Did you mean shop\.orders\?/],
  ['SELECT * FROM orders', /Write shop\.orders/],
  ['SELECT * FROM shop.event', /^Did you mean `shop\.events_\*`/],
]
for (const [sql, hint] of HINTS) {
  test(`the hint says what to write instead: ${sql}`, () => {
    const verdict = judge(SHOP, sql)
    assert.equal(verdict.kind, 'denied', JSON.stringify(verdict))
    if (verdict.kind === 'denied') assert.match(verdict.hint, hint)
  })
}

test('the hint suggests the right word for a misspelled first word', () => {
  const verdict = judge(SHOP, 'SELCT 1')
  assert.match(verdict.kind === 'malformed' ? verdict.why : '', /Did you mean SELECT\?$/)
})

for (const sql of ['SELECT ilike FROM shop.orders', 'SELECT id ilike FROM shop.orders', 'SELECT top FROM shop.orders', "SELECT DATE_TRUNC('2024-01-01', MONTH)"]) {
  test(`the guard allows: ${sql}`, () => {
    assert.equal(judge(SHOP, sql).kind, 'confined')
  })
}

/** Each `^` marks the expected position of the error. */
const MARKED: readonly (readonly [string, string, RegExp])[] = [
  ['SELECT ^nme FROM shop.customers', 'QUERY_DENIED', /^Did you mean name\? FROM shows customers \(id, name/],
  ['SELECT ^ssn FROM shop.customers', 'QUERY_DENIED', /FROM shows customers \(id, name/],
  ['SELECT /* é */ c.id,\n\tc.^ssn FROM shop.customers AS c', 'QUERY_DENIED', /FROM shows c \(/],
  ["SELECT '''a\n\té😀''', ^nothing FROM shop.customers", 'QUERY_DENIED', /FROM shows customers/],
  ['WITH a AS (SELECT id AS k FROM shop.customers) SELECT ^kk FROM a', 'QUERY_DENIED', /FROM shows a \(k\)/],
  ['SELECT id FROM shop.customers WHERE id IN (SELECT ^ssn FROM shop.orders)', 'QUERY_DENIED', /orders \(.*customers \(/],
  ['SELECT 1 FROM shop.customers c JOIN shop.orders o ON c.id = o.^margin', 'QUERY_DENIED', /c \(.*o \(/],
  ['SELECT ^id + name FROM shop.customers', 'QUERY_FAILED', /CAST/],
  ['SELECT ^name, COUNT(*) FROM shop.customers', 'QUERY_FAILED', /GROUP BY/],
  ['SELECT ^id FROM shop.customers a, shop.customers b', 'QUERY_FAILED', /alias of its table/],
]

describe('a message of the dry run', () => {
  let at: ConnectedBigQuery
  let brain: GoogleBrain | null = null
  before(async () => {
    brain = await openBrain(WORLD).catch(() => null)
    at = await connectBigQuery({ double: { datasets: DATASETS, ...(brain !== null && { brain }) } })
  })
  after(async () => {
    await at[Symbol.asyncDispose]()
    await brain?.[Symbol.asyncDispose]()
  })
  for (const [marked, code, hint] of MARKED) {
    test(`the position in a message of the dry run refers to the caller's query: ${marked}`, async (t) => {
      if ((await engineOrSkip(t, async () => brain ?? (await openBrain(WORLD)))) === null) return
      const sql = marked.replace('^', '')
      const verdict = await at.driver.confine(at.driver.read({ sql }), CATALOG, WIDE, soon())
      assert.equal(verdict.kind, 'confined', JSON.stringify(verdict))
      if (verdict.kind !== 'confined') return
      const error: unknown = await at.connection.run(verdict.query, WIDE, soon()).catch((thrown: unknown) => thrown)
      assert.ok(error instanceof AppError)
      assert.equal(error.code, code, error.message)
      assert.match(String(error.extra['hint']), hint)
      assert.equal(error.extra['position'], marked.indexOf('^'), error.message)
      assert.doesNotMatch(JSON.stringify([error.message, error.extra]), /_vt/)
    })
  }
})

test('a hint lists a limited number of names, however many are visible', () => {
  const sets = new ColumnSets(new Work())
  const names = Array.from({ length: 10_000 }, (_, n) => `column_${n}`)
  const all = sets.ofNames(names) | sets.ofNames(['last'])
  assert.deepEqual([...sets.namesOf(all, 3)], ['column_0', 'column_1', 'column_2'])
  assert.equal([...sets.namesOf(all, 10_001)].at(-1), 'last')
  assert.equal([...sets.namesOf(all, 10_000)].length, 10_000)
})
