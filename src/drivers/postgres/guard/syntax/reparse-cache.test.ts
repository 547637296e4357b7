// For a text of a known form, the tree from the cache must equal the parser's. For the printed texts of the corpus,
// test/attacks/postgres/attacks.test.ts tests this.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadModule } from 'libpg-query'
import { formOf, isKnownSame } from './reparse-cache.ts'
import { parseText } from './parse-text.ts'

await loadModule()

/** Returns the tree without positions. */
function treeOf(text: string): object {
  const parsed = parseText(text)
  assert.ok(parsed.kind === 'tree', text)
  const json = JSON.stringify(parsed.tree, (key, value: unknown) =>
    /location$|^list_|_list_/.test(key) ? undefined : value,
  )
  const { stmts } = JSON.parse(json) as { stmts: [{ stmt: { SelectStmt: object } }] }
  return stmts[0].stmt.SelectStmt
}

/** Makes the form known. Then returns the result of isKnownSame(), and how often it called the parser. */
function known(text: string, tree = treeOf(text)): { same: true | undefined; parses: number } {
  let parses = 0
  const parse = (each: string) => (parses++, parseText(each))
  isKnownSame(parse, text, treeOf(text))
  isKnownSame(parse, text, treeOf(text))
  parses = 0
  return { same: isKnownSame(parse, text, tree), parses }
}

const TEXTS = [
  'SELECT "a"."b" AS "c" FROM (SELECT "b" FROM "s"."t" AS "_t0") AS "a" ("b") WHERE ("a"."b" OPERATOR("pg_catalog".=) 7) LIMIT 1001',
  `SELECT (-5), 0, 'x', '', E'\\\\', B'101', 1.5, 12345678901 FROM "t" AS "a"`,
  'SELECT "pg_catalog"."count"(*) FILTER (WHERE ("a"."x" BETWEEN 3 AND 4)) OVER (PARTITION BY "a"."y" ROWS 2 PRECEDING) FROM "t" AS "a"',
  'SELECT CAST("a"."x" AS "pg_catalog"."numeric"(9, 2)), CAST($1 AS "public"."mood"[]), ("a"."x")[3], ("a"."r")."f" FROM "t" AS "a"',
  `SELECT "it""s", "A b", "é", '"n"', 'it''s', 'a"b' FROM "t" AS "a" ORDER BY 1 DESC, 2 OFFSET 3`,
  'WITH "c" ("x") AS (VALUES (1, \'a\'), (2, \'b\')) SELECT "pg_catalog"."f"("n" => 3, VARIADIC ARRAY[1, 2]) FROM "c" AS "d" ("x") GROUP BY GROUPING SETS (("x"), ())',
]

test('a text of a known form is not parsed, and its tree equals the parsed tree', () => {
  for (const text of TEXTS) {
    assert.deepEqual(known(text), { same: true, parses: 0 }, text)
    const others = text
      .replaceAll('"a"', '"other"')
      .replaceAll(/\b[3-9]\b/g, '812345')
      .replaceAll("'x'", "'o t h e r'")
    assert.deepEqual(known(others), { same: true, parses: 0 }, others)
  }
})

test('isKnownSame() finds every difference between the tree and the text', () => {
  for (const text of TEXTS) {
    const json = JSON.stringify(treeOf(text))
    const changes = [...json.matchAll(/:"(\w+)"|:(\d+)|"(\w+)":/g)]
    assert.ok(changes.length > 5)
    for (const { index, 0: found } of changes) {
      const other = found.startsWith(':"') ? ':"other"' : found.startsWith(':') ? ':77' : '"other":'
      const changed = JSON.parse(json.slice(0, index) + other + json.slice(index + found.length)) as object
      assert.equal(known(text, changed).same, undefined, `${found} at ${index} of ${text}`)
    }
  }
})

test('isKnownSame() finds that a tree belongs to a slightly different text, or that tokens have changed places', () => {
  const text = 'SELECT "a"."x" FROM "t" AS "a" WHERE ("a"."x" OPERATOR("pg_catalog".<) "a"."y")'
  assert.equal(known(text).same, true)
  assert.equal(
    known(text, treeOf('SELECT DISTINCT "a"."x" FROM "t" AS "a" WHERE ("a"."x" OPERATOR("pg_catalog".<) "a"."y")'))
      .same,
    undefined,
  )
  assert.equal(
    known(text, treeOf('SELECT "a"."x" FROM "t" AS "a" WHERE ("a"."y" OPERATOR("pg_catalog".<) "a"."x")')).same,
    undefined,
  )
})

test('tokens that the parser shortens, interprets or omits are part of the form', () => {
  const tokens = (text: string): readonly string[] | undefined => formOf(text)?.tokens
  assert.deepEqual(
    tokens(`SELECT 0, '', 00, 1.0, $3, 1e5, "${'a'.repeat(63)}", "pg_catalog"."x", OPERATOR("pg_catalog".=)`),
    [],
  )
  assert.deepEqual(tokens(`SELECT E'a\\'"b"', B'1', X'ff', 'it''s "c"', "d""e", 'f"g"'`), ['f"g"'])
  assert.deepEqual(tokens(`SELECT "${'a'.repeat(62)}", (-7), "h".*, 123456789, 1234567890`), [
    'a'.repeat(62),
    '7',
    'h',
    '123456789',
  ])
  assert.equal(formOf('SELECT "f"("a" FORMAT JSON ENCODING "utf8")'), null)
  assert.equal(formOf(`SELECT "${'a'.repeat(5_000)}"`), null)
})
