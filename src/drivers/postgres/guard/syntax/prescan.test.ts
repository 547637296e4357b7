// Tests which texts the prescan refuses before the parser reads them.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { prescan } from './prescan.ts'

describe('comments', () => {
  const handedOn = (text: string): string => {
    const scanned = prescan(text)
    return scanned.kind === 'fine' ? scanned.text : scanned.kind
  }
  test('comments become spaces for the parser, one for each UTF-16 unit', () => {
    for (const [text, expected] of [
      ['SELECT 1 /* a /* b */ c */, 2 -- d\n', 'SELECT 1                  , 2     \n'],
      ['SELECT/**/1', 'SELECT    1'],
      ['SELECT \'/* a */\', $$-- b$$, "--"', 'SELECT \'/* a */\', $$-- b$$, "--"'],
      ['SELECT 1 /* 😀é */ , 2', 'SELECT 1           , 2'],
      ["SELECT 'a' -- c\n'b'", "SELECT 'a'     \n'b'"],
    ] as const) {
      assert.equal(handedOn(text), expected)
      assert.equal(expected.length, text.length)
    }
  })
  test('comments of the form /*…*/ still separate two strings that a line break would join', () => {
    assert.equal(handedOn("SELECT 'a' /* c */\n'b'"), "SELECT 'a' /**/   \n'b'")
    assert.equal(handedOn("SELECT 'a' -- c\n /* c *//**/ 'b'"), "SELECT 'a'     \n /**/        'b'")
  })
  test('a comment that never ends is refused with the position of its start', () => {
    const scanned = prescan('SELECT 1 /* a /* b */')
    assert.deepEqual(scanned, { kind: 'malformed', why: 'unterminated /* comment', at: 9 })
  })
  test('comments may be nested at most eight deep', () => {
    const nested = (depth: number) => `SELECT ${'/*'.repeat(depth)}${'*/'.repeat(depth)} 1`
    assert.equal(prescan(nested(8)).kind, 'fine')
    const why = 'comments are nested too deep'
    assert.deepEqual(prescan(nested(9)), { kind: 'malformed', why, at: 7 })
    assert.deepEqual(prescan(nested(10_000)), { kind: 'malformed', why, at: 7 })
  })
})

test('runs of more than 63 operator characters are refused', () => {
  assert.equal(prescan(`SELECT 1 ${'+-'.repeat(31)} 1`).kind, 'fine')
  for (const run of ['+-', '+', '<', '@-', '*']) {
    assert.equal(prescan(`SELECT 1 ${run.repeat(64)} 1`).kind, 'malformed', run)
  }
})

test('too many tokens are refused, with their number', () => {
  assert.equal(prescan(`SELECT 1 IN (1${', 1'.repeat(9_990)})`).kind, 'fine')
  const scanned = prescan(`SELECT 1 IN (1${', 1'.repeat(10_000)})`)
  assert.ok(scanned.kind === 'many' && scanned.tokens === 20_006, JSON.stringify(scanned))
})

describe('depth', () => {
  const depthOf = (text: string): number => {
    const scanned = prescan(text)
    return scanned.kind === 'fine' ? scanned.depth : Number.POSITIVE_INFINITY
  }
  test('the depth of a flat list is small, whatever its length', () => {
    const flat = [
      `SELECT 1 IN (${'1, '.repeat(9_900)}1)`,
      `VALUES ${"(1, 'a'), ".repeat(3_000)}(1, 'b')`,
      `SELECT 1 WHERE ${'a = 1 AND '.repeat(4_000)}b = 2`,
      `SELECT 1 WHERE ${'(a = 1 OR b < 2) AND '.repeat(1_500)}b = 2`,
      `SELECT ${'a + 1, '.repeat(4_000)}1`,
      `SELECT ${'CASE WHEN a = 1 THEN 2 END, '.repeat(2_000)}1`,
    ]
    for (const text of flat) assert.ok(depthOf(text) < 10, text.slice(0, 40))
  })
  test('the depth of a chain of 500 parts is 500 to 1,199', () => {
    const chains = [
      `SELECT 1${' + 1'.repeat(500)}`,
      `SELECT ${'- '.repeat(500)}1`,
      `SELECT ${'('.repeat(500)}1${')'.repeat(500)}`,
      `SELECT a${'::text'.repeat(500)}`,
      `SELECT ${'NOT '.repeat(500)}a`,
      `SELECT ${'CASE WHEN a THEN '.repeat(500)}1${' END'.repeat(500)}`,
      `SELECT 1, 2${' UNION SELECT 1, 2'.repeat(500)}`,
      `SELECT 1 FROM a${' JOIN b USING (x, y)'.repeat(500)}`,
    ]
    for (const text of chains) assert.ok(depthOf(text) >= 500 && depthOf(text) < 1_200, text.slice(0, 40))
  })
  test('a depth of more than 1,600 is refused', () => {
    assert.equal(prescan(`SELECT ${'('.repeat(1_601)}`).kind, 'deep')
    assert.equal(prescan(`SELECT 1${'+1'.repeat(1_601)}`).kind, 'deep')
  })
})
