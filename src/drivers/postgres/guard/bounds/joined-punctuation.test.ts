// Tests for which texts the guard limits because glibc compares long runs of punctuation in quadratic time.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { shop } from '../../../../../test/support/postgres-catalog.ts'
import { openGuard, say, type Guard } from '../../../../../test/support/postgres-guard.ts'

let guard: Guard
before(async () => {
  guard = await openGuard()
})
after(() => guard[Symbol.asyncDispose]())

/** The limit of stored values divided by that of texts which are sorted. */
const MANY_COPIES = 134_217_728 / 40_960

/** Returns how often the printed text counts a stored value. */
function copiesIn(text: string): number {
  return Math.max(
    0,
    ...[...text.matchAll(/OPERATOR\("pg_catalog"\.\*\) ([\d.]+)/g)].map(([, count]) => Math.ceil(Number(count))),
  )
}

const removed = (from: string, by: (inner: string, letter: string) => string): string => [...'aeiou'].reduce(by, from)

/** Texts of which glibc may compare long runs, if the stored text is long. */
const JOINED: readonly (readonly [string, string])[] = [
  ['modifier letters', "translate(name, 'abcdef', '\u0640\u0640\u0640\u0640\u0640\u0640')"],
  ['a modifier letter for each letter', "regexp_replace(name, '\\w', '\u02d0', 'g')"],
  ['nested replace', removed('name', (inner, letter) => `replace(${inner}, '${letter}', '')`)],
  ['a few translated letters', "translate(name, 'abc', '')"],
  ['translated letters', "translate(name, 'abc', '---')"],
  ['a pattern that only begins as a class', "regexp_replace(name, '[^a-z]|[a-z]', ' ', 'g')"],
  ['a class that matches nothing', "regexp_replace(name, '[^a-z]{0}[a-zA-Z]', '', 'g')"],
  ['a class that keeps commas', "regexp_replace(name, '[^a-z,]', '', 'g')"],
  ['a range', "regexp_replace(name, '[!-~]', ' ', 'g')"],
  ['letters of other scripts', "regexp_replace(name, '[^a-z]', '-', 'g')"],
  ['a number of matches', "regexp_replace(name, '[a-z]', '', 1, 0)"],
  ['split and joined', "array_to_string(regexp_split_to_array(name, '[a-z]+'), '')"],
  ['split at a letter', "concat_ws('', VARIADIC string_to_array(name, 'e'))"],
  ['letters as NULL', "array_to_string(string_to_array(name, NULL, 'e'), '')"],
  ['removed elements', "array_to_string(array_remove(string_to_array(name, NULL), 'e'), '')"],
  ['removed parts of a document', "(to_jsonb(string_to_array(name, NULL)) - 'e')::text"],
  ['a text that is split at other places', "split_part(regexp_replace(name, '[^a-z,]', '', 'g'), ' ', 1)"],
]

for (const [name, value] of JOINED) {
  const title = `the printed text limits stored texts whose punctuation a sort may compare in long runs: ${name}`
  test(title, async () => {
    const { text } = await guard.confined(`SELECT ${value} FROM customers ORDER BY 1`, shop())
    assert.ok(copiesIn(text) >= MANY_COPIES, text)
    const unsorted = await guard.confined(`SELECT ${value} FROM customers`, shop())
    assert.ok(copiesIn(unsorted.text) < MANY_COPIES, unsorted.text)
  })
}

test('the printed text limits a text inside a collected value', async () => {
  const inside = "SELECT unnest(array_agg(translate(name, 'abc', ''))) AS u FROM customers"
  assert.ok(copiesIn((await guard.confined(`SELECT u FROM (${inside}) q ORDER BY u`, shop())).text) >= MANY_COPIES)
})

/** Texts that have no longer runs than the stored text. */
const APART: readonly (readonly [string, string])[] = [
  ['digits of a telephone number', String.raw`regexp_replace(name, '\D', '', 'g')`],
  ['letters', "regexp_replace(lower(name), '[^a-z0-9]', '', 'g')"],
  ['a slug', "regexp_replace(lower(name), '[^a-z0-9]+', '-', 'g')"],
  ['single spaces', String.raw`regexp_replace(trim(name), '\s+', ' ', 'g')`],
  ['no words', String.raw`regexp_replace(name, '[^\w]', '-', 'g')`],
  ['letters without accents', "translate(name, 'áéí', 'aei')"],
  ['no dashes', "replace(translate(name, '()- ', ''), '.', '')"],
  ['one match', "regexp_replace(name, '^the ', '')"],
  ['words', "unnest(string_to_array(lower(name), ' '))"],
  ['words of cleaned text', "regexp_split_to_table(regexp_replace(name, '[^a-z ]', '', 'g'), ' ')"],
  ['a part', "upper(split_part(coalesce(name, '-'), ' ', 1))"],
  ['a rank', "ts_rank(to_tsvector('simple', name), plainto_tsquery('simple', $1))"],
  ['a difference of numbers', 'sum(id) OVER () - max(id) OVER ()'],
]

for (const [name, value] of APART) {
  test(`the printed text does not limit stored texts whose letters stay between their punctuation: ${name}`, async () => {
    const params = value.includes('$1') ? ['a'] : []
    const { text } = await guard.confined(`SELECT ${value} FROM customers ORDER BY 1`, shop(), { params })
    assert.ok(copiesIn(text) < MANY_COPIES, text)
  })
}

const DASHES = "repeat(repeat(repeat('-', 1000), 16), 16)"

/** Long runs that the text of the query makes. */
const REFUSED: readonly (readonly [string, string])[] = [
  ['digits of other scripts', "SELECT repeat('\u0967', 2000) || 'a' < repeat('\u0967', 2000) || 'A'"],
  [
    'a document without a part',
    `SELECT jsonb_build_array(${DASHES} || 'a') - 'z' < jsonb_build_array(${DASHES}) - 'z'`,
  ],
  ['its text', `SELECT (jsonb_build_array(${DASHES} || 'a') - 'z')::text < (jsonb_build_array(${DASHES}) - 'z')::text`],
  ['equal documents', `SELECT jsonb_build_array(${DASHES} || 'a') - 'z' = jsonb_build_array(${DASHES} || 'A') - 'z'`],
  ['documents in arrays', `SELECT ARRAY[to_jsonb(${DASHES} || 'a')] = ARRAY[to_jsonb(${DASHES} || 'A')]`],
  [
    'elements that are collected',
    `SELECT u FROM (SELECT unnest(array_agg(${DASHES} || name)) AS u FROM customers) q ORDER BY u`,
  ],
  ['elements of a query', `SELECT ARRAY(SELECT ${DASHES} || name FROM customers) AS x ORDER BY x`],
  [
    'a recursion',
    `WITH RECURSIVE t(n, p) AS (SELECT 1, '' UNION ALL SELECT n + 1, CASE WHEN n < 2 THEN ${DASHES} ELSE p END FROM t) SELECT n FROM t ORDER BY p`,
  ],
]

for (const [name, sql] of REFUSED) {
  test(`the guard refuses a comparison of long runs of punctuation: ${name}`, async () => {
    assert.match(say(await guard.judge(sql, shop())), /limit: size/)
  })
}
