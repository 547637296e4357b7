import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { lex } from './lex.ts'
import { Malformed, Refusal } from './refusal.ts'

const texts = (text: string): string[] => lex(text).map((token) => token.text)
const SELECT = 'SELECT'

describe('comments', () => {
  for (const [name, text, wanted] of [
    ['a dash comment ends at a line feed', 'SELECT 1 -- x\n+ 2', [SELECT, '1', '+', '2']],
    ['a carriage return also ends a dash comment', 'SELECT 1 --\r+ 2', [SELECT, '1', '+', '2']],
    ['a hash comment is a comment', '#standardSQL\nSELECT 1 # no', [SELECT, '1']],
    ['a block comment does not nest', 'SELECT /* /* */ 1', [SELECT, '1']],
    ['a string contains no comments', "SELECT '--', \"/*\", '#'", [SELECT, "'--'", ',', '"/*"', ',', "'#'"]],
    ['backquotes contain no comments', 'SELECT `a--b`, `a/*b`', [SELECT, '`a--b`', ',', '`a/*b`']],
    ['comments separate tokens', 'SELECT/**/a/**/./**/b', [SELECT, 'a', '.', 'b']],
  ] as const)
    test(name, () => assert.deepEqual(texts(text), wanted))
  test('a block comment must be closed', () => assert.throws(() => lex('SELECT 1 /* '), Malformed))
})

describe('strings', () => {
  for (const text of [
    String.raw`'it\'s'`,
    String.raw`"say \"x\""`,
    String.raw`r'\d+\''`,
    String.raw`R"\""`,
    String.raw`rb'\''`,
    String.raw`bR"x"`,
    `b'x'`,
    `'''a'b''c\n'''`,
    `"""a"b""\r\n"""`,
    String.raw`r'''\'''x'''`,
    `''`,
    `''''''`,
    `'\\\\'`,
  ])
    test(`${JSON.stringify(text)} is one token`, () => assert.deepEqual(texts(`SELECT ${text} x`), [SELECT, text, 'x']))
  for (const text of [`'a\nb'`, `"a\rb"`, `'a\\\nb'`, `'a`, `"a'`, `'''a''`, String.raw`r'\'`, `'a''b'`, `'a'"b"`])
    test(`${JSON.stringify(text)} is refused`, () => assert.throws(() => lex(`SELECT ${text}`), Malformed))
  test('a word before a quote is part of the string only if the word is a valid prefix', () => {
    assert.deepEqual(texts(`SELECT DATE'2024-01-01', xr'a'`), [SELECT, 'DATE', `'2024-01-01'`, ',', 'xr', `'a'`])
  })
})

describe('names', () => {
  test('after a dot every word is a name, and is quoted if it would not stay a name without quotes', () => {
    assert.deepEqual(texts('SELECT id.FROM, x.select.y'), [
      SELECT,
      'id',
      '.',
      '`FROM`',
      ',',
      'x',
      '.',
      '`select`',
      '.',
      'y',
    ])
    assert.deepEqual(texts('SELECT t.144A_FLAG, f(x)[0].5x'), [
      ...[SELECT, 't', '.', '`144A_FLAG`', ',', 'f', '(', 'x', ')', '[', '0', ']', '.', '`5x`'],
    ])
  })
  test('a reserved word after a dot is refused if no name comes before the dot', () => {
    for (const text of ['SELECT .FROM x', 'SELECT CASE WHEN a THEN b END.FROM x', 'SELECT 1 .FROM x', 'SELECT ..FROM'])
      assert.throws(() => lex(text), Malformed, text)
  })
  test('a name in backquotes is refused if it is empty or contains a backslash, backquote or control character', () => {
    assert.deepEqual(texts('SELECT `häß lich.x-1*`'), [SELECT, '`häß lich.x-1*`'])
    for (const name of ['``', '`a\\`b`', '`a\nb`', '`a', '`\u0000`'])
      assert.throws(() => lex(`SELECT ${name}`), Malformed)
  })
})

describe('numbers', () => {
  test('numbers are printed unchanged', () => {
    const numbers = ['1', '1.5', '.5', '1.', '1e10', '1.5E-3', '0xFf', '.5e+1']
    assert.deepEqual(
      texts(`SELECT ${numbers.join(' , ')}`)
        .filter((text) => text !== ',')
        .slice(1),
      numbers,
    )
  })
  for (const text of ['1.FROM', '1from', '0x1g', '1e', '1`a`'])
    test(`${text} is refused because a letter or a backquote directly follows a number`, () =>
      assert.throws(() => lex(`SELECT ${text} x`), /directly followed/))
  test('the parts of a project name with dashes are separate tokens, and may begin with a digit', () => {
    assert.deepEqual(texts('FROM my-project-1.d.t'), ['FROM', 'my', '-', 'project', '-', '1', '.', 'd', '.', 't'])
    assert.deepEqual(texts('FROM a-1b.d.t'), ['FROM', 'a', '-', '1b', '.', 'd', '.', 't'])
  })
})

describe('other tokens', () => {
  test('Unicode blanks count as blanks, and unknown signs outside of strings are refused', () => {
    assert.deepEqual(texts('\ufeffSELECT\u00a01\u3000,\u2009 2'), [SELECT, '1', ',', '2'])
    for (const sign of ['$', '{', '}', ':', '\\', 'é', '\u0001', '\u2028'])
      assert.throws(() => lex(`SELECT ${sign}`), Error, sign)
  })
  test('a parameter is always printed in the same spelling', () => {
    assert.deepEqual(
      lex('SELECT @Run_Date ? @select')
        .slice(1)
        .map(({ kind, text }) => `${kind} ${text}`),
      ['parameter @run_date', 'parameter ?', 'parameter @select'],
    )
  })
  test('query hints and system variables are refused by name', () => {
    for (const [text, name] of [
      ['SELECT 1 FROM t@{x=1}', '@'],
      ['SELECT @@project_id', '@@'],
    ] as const) {
      assert.throws(
        () => lex(text),
        (error) => error instanceof Refusal && error.blocked === name,
        text,
      )
    }
  })
  test('semicolons may end a query, but not divide it', () => {
    assert.deepEqual(texts('SELECT 1 ; ; -- end\n;'), [SELECT, '1'])
    assert.throws(() => lex('SELECT 1; SELECT 2'), Refusal)
    assert.throws(() => lex('SELECT 1; ; x'), Refusal)
  })
  test('an operator of several signs is a single token', () => {
    assert.deepEqual(texts('SELECT a||b<<2!=3=>4->5|>6>=7<>8'), [
      ...[SELECT, 'a', '||', 'b', '<<', '2', '!=', '3', '=>', '4', '->', '5', '|>', '6', '>=', '7', '<>', '8'],
    ])
  })
  test("the positions of tokens count UTF-16 units of the caller's SQL", () => {
    const text = "SELECT '😀', x"
    assert.equal(lex(text).at(-1)?.at, text.indexOf('x'))
  })
  test('a query with a NUL, too many characters or too many tokens is refused', () => {
    assert.throws(() => lex("SELECT '\0'"), Malformed)
    assert.throws(() => lex(`SELECT '${'a'.repeat(100_000)}'`), /bound of 100000/)
    assert.throws(() => lex(`SELECT ${','.repeat(20_001)}`), /bound of 20000/)
  })
})
