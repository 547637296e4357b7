import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { catalog as catalogOf, table } from '../../../../test/support/postgres-catalog.ts'
import { unseal } from '../../confined.ts'
import type { Catalog, Limits } from '../../driver.ts'
import { confine } from './confine.ts'
import { openParser } from './parser-pool.ts'
import type { PostgresQuery } from '../confined-query.ts'
import { shapeOf } from './shape-cache.ts'

const parser = await openParser({ threads: 1 })
after(() => parser[Symbol.asyncDispose]())

const limits: Limits = { rowCap: 1_000, maxResponseBytes: 1 << 20, timeoutMs: 1_000, maxCost: 1e6 }
const signal = new AbortController().signal

/** Returns a new catalog object, so that nothing is cached for it. */
const catalog = () => catalogOf([table('orders', ['id int4', 'total numeric', 'note text'], { key: ['id'] })])

/** Returns the printed text, or the refusal as JSON. */
async function ask(text: string, shown: Catalog): Promise<string> {
  const verdict = await confine(parser, { text, limit: null }, shown, limits, signal)
  return verdict.kind === 'confined' ? unseal<PostgresQuery>(verdict.query, 'POSTGRES').text : JSON.stringify(verdict)
}

const TEXTS = [
  'SELECT id, note FROM orders WHERE id = #',
  'SELECT * FROM orders WHERE id > # AND id < # ORDER BY id LIMIT # OFFSET #',
  'SELECT id FROM orders WHERE id IN (#, #, #) ORDER BY # DESC',
  'SELECT note, count(*), sum(total) / # FROM orders GROUP BY # HAVING count(*) > #',
  'SELECT id, total, note FROM orders GROUP BY #, total',
  'SELECT total::numeric(#, #), repeat(note, #), lpad(note, #) FROM orders',
  "SELECT note || 'a#b', -#, id - # FROM orders WHERE note = '#' AND id = -#",
  'SELECT DISTINCT ON (#) id, note FROM orders ORDER BY #, # LIMIT #',
  'SELECT (ARRAY[#, #])[#], id % # AS "c#" FROM orders FETCH FIRST # ROWS ONLY',
  'SELECT ntile(#) OVER (ORDER BY id ROWS # PRECEDING) FROM orders',
  'SELECT # AS one, #.5, 1e#, 0#, # FROM orders UNION ALL SELECT #, #, #, #, # ORDER BY # LIMIT #',
  'WITH c AS (SELECT id, # AS n FROM orders WHERE id < #) SELECT n, id FROM c WHERE n = # ORDER BY #',
  'SELECT ssn FROM orders WHERE id = #',
  'SELECT id, total, note FROM orders GROUP BY DISTINCT #, #',
  'SELECT id, total, note FROM orders GROUP BY - -#, total',
  'SELECT id FROM orders WHERE note = @ AND id > # LIMIT #',
  'SELECT id, note <> @ FROM orders WHERE note IN (@, @, @) OR note BETWEEN @ AND @ OR note NOT BETWEEN @ and @',
  'SELECT id FROM orders WHERE note > @ OR note=@ OR total <= @ OR (id) = @ OR note||note = @ ORDER BY note = @',
  "SELECT id FROM orders WHERE note = 'a'@ OR note = @'b' OR note = @ 'c' OR note = E@",
  'SELECT id FROM orders WHERE note = @\n@ AND note IN (@,@,#)',
  'SELECT id FROM orders WHERE to_char(total, @) = @ AND note = @::text AND note = CAST(@ AS text) AND note LIKE @',
  "SELECT repeat(@, 3) = @, date_trunc('day', now()) > @, (SELECT max(note) FROM orders) = @ FROM orders WHERE note ~ @",
  'SELECT count(*) FILTER (WHERE note = @) FROM orders GROUP BY note = @ HAVING max(note) > @ AND note = @',
  'SELECT o.id FROM orders o JOIN orders p ON o.note = p.note AND p.note = @ WHERE o.note <> @ AND @ = o.note',
  "SELECT id FROM (SELECT id, 'x' AS note FROM orders) s WHERE note = @ AND 1=1 AND @ <> note",
  'WITH c AS (SELECT note AS "a)b" FROM orders WHERE note < @) SELECT * FROM c WHERE "a)b" = @ LIMIT #',
  'SELECT id FROM orders WHERE (note, id) = (@, #) OR ROW(note) = ROW(@) OR note = ANY(ARRAY[@, @]) OR note IN (@, lower(@))',
]

const STRINGS = [
  "''",
  "'a'",
  "'note 7'",
  "'2024-01-01'",
  "'12'",
  "'%a_%'",
  '\'"_t1"."id"\'',
  "'x) OR (1=1'",
  "'YYYY'",
  "'now'",
]

test('a cached shape gives the same result as a text that is confined anew, for various numbers and strings', async () => {
  const shown = catalog()
  let seed = 20_261_121
  const next = (): number => (seed = (seed * 48_271) % 2_147_483_647)
  const number = (): string => String([0, 1, 2, 3, 7, 10, 9_999, 10_001, 999_999_999][next() % 9])
  const string = (): string => STRINGS[next() % STRINGS.length] ?? ''
  for (const pattern of TEXTS) {
    for (let round = 0; round < 40; round++) {
      const text = pattern.replaceAll('#', number).replaceAll('@', string)
      assert.equal(await ask(text, shown), await ask(text, catalog()), text)
    }
  }
})

test('the values of a shape are whole numbers and compared strings, and an unusual text has no shape', () => {
  const read = (text: string): unknown => shapeOf(text)?.values
  assert.deepEqual(read('SELECT 1, a1, 1.5, 1e5, .5, 12345678901, "2", \'3\', -4, x[5:6], 07'), ['1', '4', '5', '6'])
  const strings =
    "SELECT 'a' FROM t WHERE b = 'c' AND d IN ('e', 'f') AND g BETWEEN 'h' AND 'i' AND j LIKE 'k' AND l = E'm' AND n='o'"
  assert.deepEqual(read(strings), ["'c'", "'e'", "'f'", "'h'", "'i'", "'o'"])
  assert.equal(shapeOf('SELECT 1 -- 2'), null)
  assert.equal(shapeOf('SELECT 1 /* 2 */'), null)
  assert.equal(shapeOf("SELECT E'\\'' , 1"), null)
  assert.equal(shapeOf('SELECT $$1$$'), null)
  assert.equal(shapeOf("SELECT 'ü', 1"), null)
  assert.equal(shapeOf('SELECT ü1 FROM t WHERE a = 1'), null)
  assert.equal(shapeOf("SELECT 1 FROM t WHERE a = '\ud800'"), null)
  assert.equal(shapeOf('SELECT \0 FROM t WHERE a = 1'), null)
  assert.deepEqual(read("SELECT 1 FROM t WHERE a = 'ü'"), ['1', "'ü'"])
})

test('the third query of a shape is not parsed', async () => {
  const shown = catalog()
  let parsed = 0
  const counting = { ...parser, parse: (...args: Parameters<typeof parser.parse>) => (parsed++, parser.parse(...args)) }
  const look = (id: number) =>
    confine(counting, { text: `SELECT note FROM orders WHERE id = ${id}`, limit: null }, shown, limits, signal)
  await look(1)
  await look(2)
  const before = parsed
  await look(3)
  assert.equal(parsed, before)
})

/** Returns for each text how often confining it calls the parser, one text after the other. */
async function parses(shown: Catalog, texts: readonly string[]): Promise<number[]> {
  let parsed = 0
  const counting = { ...parser, parse: (...args: Parameters<typeof parser.parse>) => (parsed++, parser.parse(...args)) }
  const counts: number[] = []
  for (const text of texts) {
    const before = parsed
    const verdict = await confine(counting, { text, limit: null }, shown, limits, signal)
    assert.equal(verdict.kind, 'confined', text)
    counts.push(parsed - before)
  }
  return counts
}

test('two texts that differ in a string have one shape only if the string is compared with a column', async () => {
  const compared = (note: string): string =>
    `SELECT id FROM orders WHERE note = '${note}' AND note IN ('${note}x', 'b')`
  assert.deepEqual((await parses(catalog(), ['a', 'b', 'c', 'd'].map(compared))).slice(2), [0, 0])
  const format = (form: string): string => `SELECT to_char(total, '${form}') FROM orders WHERE '${form}' = note`
  assert.ok((await parses(catalog(), ['9', '99', '999', '9999'].map(format))).every((count) => count > 0))
})

test('two texts with different counts after LIMIT have different shapes', async () => {
  const page = (id: number, count: number): string =>
    `SELECT note FROM orders WHERE id = ${id} ORDER BY note LIMIT ${count}`
  const shown = catalog()
  await parses(shown, [page(1, 5_000), page(2, 5_000)])
  const counts = await parses(shown, [
    page(3, 5_000),
    page(4, 10),
    page(5, 10),
    page(6, 10),
    page(7, 5_000),
    page(8, 10),
  ])
  assert.deepEqual([counts[0], ...counts.slice(3)], [0, 0, 0, 0])
})

test('a cached shape stays while thousands of other shapes are seen once', async () => {
  const shown = catalog()
  const look = (id: number): string => `SELECT note FROM orders WHERE id = ${id}`
  await parses(shown, [look(1), look(2)])
  for (let n = 0; n < 2_100; n++) await ask(`SELECT id AS c${n} FROM orders`, shown)
  assert.deepEqual(await parses(shown, [look(3)]), [0])
})

test('a short text with a long printed text is not cached', async () => {
  const shown = catalog()
  const text = (id: number): string =>
    `SELECT ${'*, '.repeat(150)}1 FROM orders a, orders b, orders c WHERE a.id = ${id}`
  let parsed = 0
  const counting = { ...parser, parse: (...args: Parameters<typeof parser.parse>) => (parsed++, parser.parse(...args)) }
  for (const id of [1, 2, 3]) await confine(counting, { text: text(id), limit: null }, shown, limits, signal)
  assert.equal(parsed, 6)
})

test('a text has separate shapes for different exposures and for different row caps', async () => {
  const shown = catalog()
  const text = (id: number): string => `SELECT note FROM orders WHERE id = ${id}`
  for (const id of [1, 2, 3]) await ask(text(id), shown)
  const other: Catalog = { ...shown, tables: [] }
  assert.match(await ask(text(4), other), /denied/)
  const capped = await confine(parser, { text: text(5), limit: 7 }, shown, limits, signal)
  assert.ok(capped.kind === 'confined')
  assert.match(unseal<PostgresQuery>(capped.query, 'POSTGRES').text, /LIMIT .*8/)
})
