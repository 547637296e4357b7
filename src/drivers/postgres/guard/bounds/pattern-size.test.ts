// Tests that the size of compiled regular expressions is bounded. The sizes were measured with PostgreSQL 15.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { shop } from '../../../../../test/support/postgres-catalog.ts'
import { openGuard, say, type Guard } from '../../../../../test/support/postgres-guard.ts'
import { AppError } from '../../../../errors.ts'
import { readRegex } from './pattern-reader.ts'
import { largePatterns } from './pattern-size.ts'

let guard: Guard
before(async () => {
  guard = await openGuard()
})
after(() => guard[Symbol.asyncDispose]())

const LETTERS = 'abcdefghijklmnopqrstuvwxyz'
/** PostgreSQL keeps 40 MB for this pattern. */
const LARGE = `([a-z]{1,255}){1,40}${LETTERS}`
const LIMIT = 'limit: regular expression'

const REFUSED: readonly (readonly [string, string])[] = [
  ['~', `name ~ '${LARGE}'`],
  ['!~*', `name !~* '${LARGE}'`],
  ['SIMILAR TO', `name SIMILAR TO '${LARGE}'`],
  ['SIMILAR TO with ESCAPE', `name SIMILAR TO '${LARGE}' ESCAPE '#'`],
  ['substring', `substring(name FROM '${LARGE}') = 'a'`],
  ['substring with an escape character', `substring(name SIMILAR '${LARGE}' ESCAPE '#') = 'a'`],
  ['regexp_replace', `regexp_replace(name, '${LARGE}', '') = 'a'`],
  ['regexp_match', `regexp_match(name, '${LARGE}') IS NULL`],
  ['ANY', `name ~ ANY (ARRAY['a', '${LARGE}'])`],
  ['ANY of an array in a string', `name ~ ANY ('{a,"${LARGE.replace(/[{}]/g, '\\$&')}"}')`],
  ['ANY of an array with bounds', `name ~ ANY ('[0:0]={"${LARGE.replace(/[{}]/g, '\\$&')}"}')`],
  ['a collation', `name ~ ('${LARGE}' COLLATE "C")`],
  ['spaces and comments', `name ~ '(?x)( [a-z]{1,255} # a )\n ) {1,40}${LETTERS}'`],
  ['other syntax', `name ~ '(?b)\\([a-z]\\{1,255\\}\\)\\{1,40\\}${LETTERS}'`],
  ['optional parts', `name ~ '${'a?b?c?'.repeat(200)}'`],
  ['groups in groups', `name ~ '${'('.repeat(400)}a${')'.repeat(400)}'`],
]

for (const [name, condition] of REFUSED) {
  test(`a regular expression that compiles to too large an automaton is refused: ${name}`, async () => {
    assert.equal(say(await guard.judge(`SELECT 1 FROM customers WHERE ${condition}`, shop())), LIMIT)
  })
}

const MEASURED: readonly (readonly [string, string])[] = [
  ['||', `name ~ ('${LARGE}' || 'a')`],
  ['replace', `name ~ replace('${LARGE}', '#', '{')`],
  ['a column of a sub-select', `name ~ (SELECT p FROM (VALUES ('${LARGE}')) AS v(p))`],
  ['ANY', `name ~ ANY (ARRAY[lower('${LARGE}')])`],
  ['the rows of ANY', `name ~ ANY (SELECT lower('${LARGE}'))`],
  ['substring', `substring(name FROM concat('${LARGE}', 'a')) = 'a'`],
]

for (const [name, condition] of MEASURED) {
  test(`the printed text bounds the size of a regular expression that the query makes: ${name}`, async () => {
    assert.match(
      say(await guard.judge(`SELECT 1 FROM customers WHERE ${condition}`, shop())),
      /vitrine bound: \d+ pattern /,
    )
  })
}

test('small regular expressions are printed as they are written', async () => {
  const said = say(
    await guard.judge(
      `SELECT substring(name, 2), substring(name FROM id), substring(name, strpos(name, 'a') + 1) FROM customers
       WHERE name ~ 'a+' AND name ~ ANY (ARRAY['b', 'a{2}'])`,
      shop(),
    ),
  )
  assert.match(said, /^SELECT/)
  assert.doesNotMatch(said, /vitrine bound: \d+ pattern/)
})

test('the printed text bounds the bytes of a stored text that is a regular expression', async () => {
  for (const condition of ['name ~ country', "name ~ ('^' || country || '$')", 'name ~ ANY (ARRAY[country])']) {
    const said = say(await guard.judge(`SELECT 1 FROM customers WHERE ${condition}`, shop()))
    assert.match(said, /OPERATOR\("pg_catalog"\.>\) 4096\)/)
    assert.match(said, /vitrine bound: \d+ pattern /)
    assert.doesNotMatch(said, /translate/)
  }
})

test('a parameter is refused if it is too large a regular expression', async () => {
  const sql =
    'SELECT 1 FROM customers WHERE name = $1 AND name ~ $2 AND name SIMILAR TO $3 AND regexp_match(name, $4) IS NULL'
  const asked = (at: number): Promise<unknown> =>
    guard.confined(sql, shop(), { params: ['a', 'b', 'c', 'd'].map((each, n) => (n === at ? LARGE : each)) })
  await asked(0)
  for (const at of [1, 2, 3]) await assert.rejects(asked(at), AppError)
})

test('a parameter is read with the flags of the call', async () => {
  const basic = LARGE.replace(/[(){}]/g, '\\$&')
  for (const [flags, pattern] of [
    ["'b'", basic],
    ["'x'", LARGE.replaceAll('{', ' {')],
    ["lower('B')", basic],
    ['$2', basic],
  ] as const) {
    const sql = `SELECT 1 FROM customers WHERE regexp_like(name, $1, ${flags})`
    const asked = (text: string): Promise<unknown> =>
      guard.confined(sql, shop(), { params: flags === '$2' ? [text, 'b'] : [text] })
    await asked('^([A-Z]{2})-(\\d{4,6})$')
    await assert.rejects(asked(pattern), AppError, flags)
  }
})

function large(...texts: readonly string[]): string {
  const uses = texts.map((_, at) => ({ at, syntax: {} }))
  return largePatterns(uses, texts)
    .map(([, why]) => why)
    .join()
}

test('a parameter may have 50 groups, and 10 inside each other', () => {
  assert.equal(large('(?:a)(b)'.repeat(50)), '')
  assert.match(large('(?:a)(b)'.repeat(51)), /more than 50 groups/)
  assert.equal(large('('.repeat(10) + 'a' + ')'.repeat(10)), '')
  assert.match(large('('.repeat(11) + 'a' + ')'.repeat(11)), /nests more than 10 groups/)
})

test('the patterns in the parameters of a request have a limit together', () => {
  const some = 'a{255}'.repeat(60)
  assert.equal(large(some, some), '')
  assert.match(large(...Array<string>(8).fill(some)), /together/)
  assert.equal(large(...Array<string>(130).fill('^[a-z]{2,40}@example\\.(?:com|org)$')), '')
})

/** Different letters from U+4E00 on. */
const letters = (count: number): string =>
  Array.from({ length: count }, (_, n) => String.fromCodePoint(0x4e00 + n)).join('')

test('a match whose automaton has too many states and letters is refused', async () => {
  const VARIED: readonly string[] = [
    `name ~ '(?:${letters(2_000)}){7}'`,
    `name ~ '(?:${letters(500)}){30}'`,
    `name ~ '***=${letters(2_000)}'`,
    `name SIMILAR TO '${letters(2_000)}'`,
  ]
  for (const condition of VARIED) {
    assert.equal(
      say(await guard.judge(`SELECT 1 FROM customers WHERE ${condition}`, shop())),
      LIMIT,
      condition.slice(0, 40),
    )
  }
  assert.match(large(letters(15_000)), /different letters/)
  assert.equal(large(letters(1_000)), '')
})

test('letters that are written as escape sequences count as different letters', () => {
  const escaped = [...letters(1_000)].map((letter) => `\\u${letter.codePointAt(0)?.toString(16)}`).join('')
  assert.ok(readRegex(`${escaped}.{255}.{255}`).arcs > 500_000)
})

test('the table of letters and classes counts', () => {
  const classes = ['alpha', 'upper', 'lower', 'digit', 'space', 'punct', 'graph', 'print', 'alnum', 'word']
  const all = classes.map((name) => `[:${name}:]`).join('')
  assert.match(large(`[${letters(8_000)}${all}]`), /compiles to more/)
  assert.equal(large(`[${letters(300)}${all}]`), '')
  assert.equal(large(`[${letters(3_000)}[:alpha:]]`), '')
})

test('an escape character of SIMILAR TO is read', async () => {
  const where = (condition: string): string => `SELECT 1 FROM customers WHERE ${condition}`
  assert.equal(say(await guard.judge(where("name SIMILAR TO '(\\{1,255}){1,40}' ESCAPE '#'"), shop())), LIMIT)
  assert.match(say(await guard.judge(where("name SIMILAR TO '10#%|20#%' ESCAPE '#'"), shop())), /^SELECT/)
})

test('flags that the database computes are read in each way', async () => {
  const REFUSED_FLAGS = [
    `regexp_like(name, '\\([a-z]\\{1,255\\}\\)\\{1,40\\}${LETTERS}', lower('B'))`,
    `regexp_like(name, '([a-z] {1,255}) {1,40}${LETTERS}', lower('X'))`,
    `regexp_replace(name, 'a#${LARGE}', 'x') = 'a'`,
    `regexp_like(name, '\\([a-z]\\{1,255\\}\\)\\{1,40\\}${LETTERS}', 'iiiiiiiiib')`,
  ]
  for (const condition of REFUSED_FLAGS) {
    assert.equal(say(await guard.judge(`SELECT 1 FROM customers WHERE ${condition}`, shop())), LIMIT, condition)
  }
  const sql = `SELECT regexp_replace(name, '^(\\d{3})-(\\d{4})$', '\\1', lower('G')) FROM customers`
  assert.match(say(await guard.judge(sql, shop())), /^SELECT/)
})

test('named arguments of functions of regular expressions are put in their places', async () => {
  const sql = (call: string): string => `SELECT 1 FROM customers WHERE ${call}`
  assert.match(
    say(await guard.judge(sql("regexp_like(name, flags => 'i', pattern => 'a+')"), shop())),
    /"regexp_like"\("t1"."name", 'a\+', 'i'\)/,
  )
  assert.match(
    say(
      await guard.judge(
        sql("regexp_replace(string => name, pattern => 'a', replacement => 'b', flags => 'g') = ''"),
        shop(),
      ),
    ),
    /'a', 'b', 'g'\)/,
  )
  assert.equal(say(await guard.judge(sql(`regexp_like(pattern => '${LARGE}', string => name)`), shop())), LIMIT)
  for (const call of ["regexp_like(name, nosuch => 'a')", "regexp_like(string => name, flags => 'i')"]) {
    assert.equal(say(await guard.judge(sql(call), shop())), 'function: regexp_like')
  }
})

test('a pattern is read in linear time, also if it is invalid', () => {
  assert.equal(readRegex('(a)'.repeat(1_000), { flags: null }).arcs, Infinity)
  assert.equal(readRegex('(a)'.repeat(6_600)).arcs > 1e5, true)
  assert.equal(readRegex('[[:a:]'.repeat(3_000)).arcs, (18_000 * 18_000) / 2)
  assert.equal(readRegex('a{255}'.repeat(3_000)).arcs, Infinity)
  assert.equal(readRegex('['.repeat(20_000)).arcs, (20_000 * 20_000) / 2)
  assert.equal(readRegex('a'.repeat(20_001)).arcs, Infinity)
  assert.ok(readRegex('(?:'.repeat(200)).arcs > 1e8)
})

const ORDINARY = [
  '^[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9.-]{1,255}\\.[A-Za-z]{2,63}$',
  '^((25[0-5]|2[0-4]\\d|1?\\d?\\d)\\.){3}(25[0-5]|2[0-4]\\d|1?\\d?\\d)$',
  '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$',
  '^(\\S+) (\\S+) \\[([^\\]]+)\\] "(\\w+) ([^"]*)" (\\d{3}) (\\d+)$',
  '^(?=.*[A-Z])(?=.*\\d).{8,72}$',
  '(\\w+)\\s+\\1',
  `(?:${Array.from({ length: 1_500 }, (_, n) => `word${n}`).join('|')})`,
  '***=([a-z]{1,255}){1,40}',
  Array.from({ length: 400 }, (_, n) => String.fromCodePoint(0x4e00 + n, 0x4e00 + n * 2, 0x4e00 + n * 3)).join('|'),
  Array.from({ length: 300 }, (_, n) => `[а-яё]+слово${n}\\s`).join('|'),
]

test('ordinary arrays of patterns are far below the limit', () => {
  assert.equal(large(`{"^\\\\d{3}-[a-z]{1,40}$","(?:foo|bar)+"}`), '')
})

test('ordinary patterns are far below the limit', () => {
  for (const pattern of ORDINARY) assert.equal(large(pattern), '', pattern.slice(0, 60))
})

test('the number of arcs is proportional to the measured memory of a regular expression', () => {
  // An arc takes 10 to 30 of the measured bytes.
  const measured: readonly (readonly [string, number])[] = [
    [`([a-z]{1,255}){1,5}${LETTERS}`, 4.8e6],
    [`[a-z]{1,255}${LETTERS}`, 0.5e6],
    [`([a-z]{100}){40}${LETTERS}`, 7e6],
    [LETTERS.repeat(500), 1.5e6],
  ]
  for (const [pattern, bytes] of measured) {
    const each = bytes / readRegex(pattern).arcs
    assert.ok(each > 5 && each < 40, `${pattern.slice(0, 40)}: ${each}`)
  }
})
