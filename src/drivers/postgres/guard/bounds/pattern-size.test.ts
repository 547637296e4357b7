// Tests that the size of compiled regular expressions is bounded. The sizes were measured with PostgreSQL 15.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { shop } from '../../../../../test/support/postgres-catalog.ts'
import { openGuard, say, type Guard } from '../../../../../test/support/postgres-guard.ts'
import { AppError } from '../../../../errors.ts'
import { arcsOf, largePattern } from './pattern-size.ts'

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
       WHERE name ~ country AND name ~ ('^' || country || '$') AND name ~ ANY (ARRAY[country, 'a{2}'])`,
      shop(),
    ),
  )
  assert.match(said, /^SELECT/)
  assert.doesNotMatch(said, /vitrine bound: \d+ pattern/)
})

test('a parameter is refused if it is too large a regular expression', async () => {
  const sql =
    'SELECT 1 FROM customers WHERE name = $1 AND name ~ $2 AND name SIMILAR TO $3 AND regexp_match(name, $4) IS NULL'
  const asked = (at: number): Promise<unknown> =>
    guard.confined(sql, shop(), { params: ['a', 'b', 'c', 'd'].map((each, n) => (n === at ? LARGE : each)) })
  await asked(0)
  for (const at of [1, 2, 3]) await assert.rejects(asked(at), AppError)
})

test('a parameter may have 50 groups', () => {
  assert.equal(largePattern('(?:a)(b)'.repeat(50)), null)
  assert.match(largePattern('(?:a)(b)'.repeat(51)) ?? '', /more than 50 groups/)
})

test('a pattern is read in linear time, also if it is invalid', () => {
  assert.equal(arcsOf('[[:a:]'.repeat(10_000)), (60_000 * 60_000) / 2)
  assert.equal(arcsOf('a{255}'.repeat(10_000)), Infinity)
  assert.equal(arcsOf('['.repeat(60_000)), (60_000 * 60_000) / 2)
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
]

test('ordinary patterns are far below the limit', () => {
  for (const pattern of ORDINARY) assert.equal(largePattern(pattern), null, pattern.slice(0, 60))
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
    const each = bytes / arcsOf(pattern)
    assert.ok(each > 5 && each < 40, `${pattern.slice(0, 40)}: ${each}`)
  }
})
