// Tests which jsonpaths have linear work, which need a bound on the document, and which are refused.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { shop } from '../../../../../test/support/postgres-catalog.ts'
import { openGuard, say, type Guard } from '../../../../../test/support/postgres-guard.ts'
import { degree, pathWork } from './json-path.ts'

let guard: Guard
before(async () => {
  guard = await openGuard()
})
after(() => guard[Symbol.asyncDispose]())

const DEGREES: readonly (readonly [string, number])[] = [
  ['$', 0],
  ['strict $.a.b[0].c', 0],
  ['strict $ ? (@.a == @.b && @.c > $.d)', 0],
  ['$.items[*] ? (@.price > 10 && @.name starts with "a" && !(@.x like_regex "^a" flag "i")).name', 1],
  ['strict $.items[*] ? (@.price > $.limit)', 1],
  ['$.** ? (@.a == 1)', 1],
  ['$.a[last - 1, 0 to 2].datetime("YYYY-MM-DD").type()', 1],
  ['$."a b".*.**{2 to last} ? (exists(@.c ? (@ == "x")))', 1],
  ['($.a == 1) is unknown || -$.b[*] > 0', 1],
  ['$ /* all */ . keyvalue().value.decimal(4, -2)', 1],
  ['$.a[*] ? (@ > 1. && @ < 2.e3 && 1..type() == "number")', 1],
  ['$.a[*] == $.b[*]', 2],
  ['$.a == $.b', 2],
  ['$.items[*] ? (@.price > $.limit)', 2],
  ['$.items[*] ? (@.price > $min)', 2],
  ['$[*] ? (@.a[*] == @.b[*])', 2],
  ['$.**.**', 2],
  ['$.**.keyvalue()', 2],
  ['$.a[*].b[$.c[*]]', 2],
  ['$[*] ? (exists($[*] ? (@ == $[*])))', 3],
  ['exists($[*] ? (@ == $[*] && @ < 0))', 2],
]
for (const [path, expected] of DEGREES) {
  test(`the work of ${path} has the degree ${expected}`, () => {
    assert.equal(Math.max(...(pathWork(path) ?? []).map(degree)), expected)
  })
}

for (const text of [
  '',
  'abc',
  '$.',
  '$[',
  '$ ? @ == 1',
  '$ $',
  '$.a\\u0062',
  "'a'",
  '$.a @ b',
  '('.repeat(200) + '1',
  `$${'[0]'.repeat(2_000)}`,
]) {
  test(`the parser of jsonpath refuses the text: ${text.slice(0, 20)}`, () => {
    assert.equal(pathWork(text), null)
  })
}

const FREE: readonly string[] = [
  "SELECT jsonb_path_query(to_jsonb(name), '$.items[*] ? (@.price > 10)') FROM customers",
  "SELECT jsonb_path_exists(to_jsonb(name), 'strict $ ? (@.a == @.b)'::jsonpath) FROM customers",
  'SELECT 1 FROM customers WHERE to_jsonb(name) @? \'$.tags[*] ? (@ == "x")\'',
  "SELECT 1 FROM customers WHERE to_jsonb(name) @@ '$.size > 3'",
  "SELECT 1 FROM customers WHERE to_tsvector(name) @@ 'US$'",
  "SELECT 1 FROM customers WHERE to_tsvector(name) @@ to_tsquery('simple', 'a')",
  "SELECT jsonb_path_exists(to_jsonb(name), '$[*] ? (@ > $min)', '{\"min\": 1}') FROM customers",
]
for (const sql of FREE) {
  test(`the printed text does not bound the work of the jsonpath: ${sql}`, async () => {
    const said = say(await guard.judge(sql, shop()))
    assert.match(said, /^SELECT/)
    assert.doesNotMatch(said, /vitrine bound: \d+ jsonpath/)
  })
}

const BOUNDED: readonly string[] = [
  "SELECT jsonb_path_query(to_jsonb(name), 'lax $.a[*] ? (@ > $.b)') FROM customers",
  "SELECT jsonb_path_match_tz(path => '$.a == $.b', target => to_jsonb(name)) FROM customers",
  "SELECT 1 FROM customers WHERE to_jsonb(name) @? '$ ? (@.a == @.b)'::jsonpath",
  "SELECT 1 FROM customers WHERE to_jsonb(name) @@ '$.a == $.b'",
  "SELECT jsonb_path_exists(to_jsonb(name), '$[*] ? (@ > $min)', jsonb_build_object('min', id)) FROM customers",
  "SELECT JSON_EXISTS(to_jsonb(name), '$ ? (@.a == @.b)') FROM customers",
  "SELECT JSON_VALUE(name, '$.a ? (@ == $x)' PASSING id AS x) FROM customers",
  "SELECT JSON_QUERY(name, '$.a ? (@ == $.b)') FROM customers",
  "SELECT JSON_QUERY(name, '$.**' WITH WRAPPER) FROM customers",
  "SELECT JSON_QUERY(name, '$.a.** ? (@.id > 1)' WITH CONDITIONAL WRAPPER) FROM customers",
  "SELECT j.a FROM customers, JSON_TABLE(name, '$.x[*]' COLUMNS (a text PATH '$.b ? (@.c == @.d)')) j",
  "SELECT j.a FROM customers, JSON_TABLE(name, '$.**' COLUMNS (NESTED PATH '$.**' COLUMNS (a text PATH '$'))) j",
]
for (const sql of BOUNDED) {
  test(`the printed text bounds the work of the jsonpath: ${sql}`, async () => {
    assert.match(say(await guard.judge(sql, shop())), /^SELECT.*vitrine bound: \d+ jsonpath /s)
  })
}

const REFUSED: readonly (readonly [string, string])[] = [
  ['SELECT jsonb_path_query(to_jsonb(name), name::jsonpath) FROM customers', 'limit: jsonpath'],
  ["SELECT jsonb_path_query(to_jsonb(name), ('$.' || name)::jsonpath) FROM customers", 'limit: jsonpath'],
  ["SELECT to_jsonb(name) @? ANY ('{$.a}') FROM customers", 'limit: jsonpath'],
  ["SELECT q.p FROM (SELECT '$.a == $.b'::jsonpath AS p) q", 'limit: jsonpath'],
  ["SELECT to_jsonb(name) @? '$ ~ 1' FROM customers", 'limit: jsonpath'],
  ["SELECT jsonb_path_query('[1]', '$[0,0,0,0,0,0,0,0,0][0,0,0,0,0,0,0,0]') FROM customers", 'limit: jsonpath'],
  ["SELECT t.p FROM json_to_record('{}') AS t(p jsonpath)", 'type: jsonpath'],
]
for (const [sql, expected] of REFUSED) {
  test(`the jsonpath is refused: ${sql}`, async () => {
    const verdict = await guard.judge(sql, shop())
    assert.equal(say(verdict), expected)
    assert.ok(verdict.kind === 'denied' && verdict.hint !== '')
  })
}

test('a regular expression in a path has the bounds of other regular expressions', async () => {
  const large = '([a-z]{1,255}){1,40}abcdefghijklmnop'
  const paths = [
    `$ ? (@ like_regex "${large}")`,
    `$.a[*] ? (@.b like_regex "${large}" flag "is")`,
    `$ ? (@ like_regex "${large.replace('[', '\\u005b').replace(']', '\\u{5D}').replace('(', '\\x28')}")`,
  ]
  for (const path of paths) {
    for (const sql of [
      `SELECT to_jsonb(name) @? '${path}' FROM customers`,
      `SELECT jsonb_path_exists(to_jsonb(name), '${path}') FROM customers`,
      `SELECT '${path}'::jsonpath`,
      `SELECT x FROM customers, JSON_TABLE(to_jsonb(name), '${path}' COLUMNS (x text PATH '$')) t`,
    ]) {
      assert.equal(say(await guard.judge(sql, shop())), 'limit: regular expression', sql)
    }
  }
  const said = say(
    await guard.judge(
      `SELECT to_jsonb(name) @? '$ ? (@ like_regex "^\\\\d{3}-[a-z]+$" flag "i")' FROM customers`,
      shop(),
    ),
  )
  assert.match(said, /^SELECT/)
  assert.match(
    say(await guard.judge(`SELECT to_jsonb(name) @? '$ ? (@ like_regex "${large}" flag "q")' FROM customers`, shop())),
    /^SELECT/,
  )
})
