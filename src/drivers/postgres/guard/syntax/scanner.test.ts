// The scanner must find the same tokens as PostgreSQL's. Otherwise, the prescan would count wrongly.
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { loadModule, scanSync } from 'libpg-query'
import { fromBytes } from './text-offsets.ts'
import { prescan } from './prescan.ts'
import { Scanner } from './scanner.ts'

before(() => loadModule())

/** Returns where each closed token begins and ends, in UTF-16 units, without spaces and comments. */
function ours(text: string): string[] {
  const out: string[] = []
  const scanner = new Scanner(text)
  while (scanner.next()) {
    if (scanner.isOpen || ['space', 'line comment', 'block comment'].includes(scanner.kind)) continue
    out.push(`${scanner.start}-${scanner.end}`)
  }
  return out
}

/**
 * Returns the tokens of libpg-query's scanner, or null if it refuses the text. It reads the text of the prescan, which
 * has no comments, because it counts comments as tokens, unlike PostgreSQL, and so does not join two strings with a
 * comment between them.
 */
function theirs(text: string): string[] | null {
  try {
    const parsed = withoutComments(text)
    const tokens = scanSync(parsed).tokens.filter(({ tokenName }) => !tokenName.endsWith('COMMENT'))
    return tokens.map(({ start, end }) => `${fromBytes(parsed, start)}-${fromBytes(parsed, end)}`)
  } catch {
    return null
  }
}

/** Returns the text of the prescan, or the unchanged text if the prescan refuses it. */
function withoutComments(text: string): string {
  const scanned = prescan(text)
  return scanned.kind === 'fine' ? scanned.text : text
}

/** Parts that are difficult to separate if one directly follows another. */
const PIECES = [
  ...["'", "''", '"', '""', '$', '$$', '$a$', '$1', '\\', "\\'", "E'", "e'", "b'", "x'", "n'", "U&'", 'U&"', 'u&'],
  ...[
    '-',
    '--',
    '/',
    '*',
    '/*',
    '*/',
    '+',
    '<',
    '>',
    '=',
    '~',
    '!',
    '@',
    '%',
    '^',
    '|',
    '?',
    '&',
    ':',
    '::',
    ':=',
    '.',
  ],
  ...[
    '..',
    '1',
    '0x1',
    '0b1',
    '0o7',
    '1_0',
    '1.5',
    '.5',
    '1e5',
    '1.',
    'e',
    'E',
    'b',
    'x',
    'n',
    'U',
    'a',
    'ab',
    'é',
    '😀',
  ],
  ...[' ', '  ', '\n', '\r', '\t', '\v', '\f', ' -- c\n', '\n-- c\n', '/* c */', '/**/', '(', ')', '[', ']', ',', ';'],
  ...[
    'a$b',
    '_',
    '"a b"',
    "'a'",
    "'a'\n'b'",
    "E'a''b\\'c'",
    "E'a'\n'b\\'c'",
    "U&'d\\0061t'",
    "b'1'\n'0'",
    "x'1f'",
    '\u00a0',
  ],
]

function random(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

const CASES = Number(process.env['SCANNER_CASES'] ?? 20_000)

test('the scanner finds the same tokens as PostgreSQL in texts whose parts are difficult to separate', () => {
  const next = random(23)
  let compared = 0
  for (let n = 0; n < CASES; n++) {
    const length = 1 + Math.floor(next() * 12)
    const text = Array.from({ length }, () => PIECES[Math.floor(next() * PIECES.length)]).join('')
    const expected = theirs(text)
    if (expected === null) continue
    compared += 1
    assert.deepEqual(ours(text), expected, JSON.stringify(text))
  }
  assert.ok(compared > CASES / 10, `only ${compared} texts were readable`)
})

test('the scanner finds the same tokens as PostgreSQL in texts for which a review once found a difference', () => {
  for (const text of [
    `SELECT E'a''b\\'c' || 1`,
    `SELECT 'a'\n'b' || 1`,
    `SELECT 'a' -- one\n -- two\n 'b''c' || 1`,
    `SELECT E'a' -- one\r'b\\'c' || 1`,
    `SELECT b'1'\n'0', x'1'\n'f', n'a'\n'b', U&'a'\n'b' UESCAPE '!'`,
    `SELECT 'a' /* no */ \n 'b'`,
    'SELECT U&"d\\0061t""a" , $é$ $$ $é$, a$b$c',
    'SELECT 1+-+-2, 1 @- 2, 1<--2\n, 1 */* c */ 2, 1 -/**/ 2',
    'SELECT 1..2, 1._5, .5e-3, 0x_ff, 1_000',
    'SELECT\v1,\f2 /* a /* b */ c */',
  ]) {
    const expected = theirs(text)
    if (expected !== null) assert.deepEqual(ours(text), expected, JSON.stringify(text))
  }
})

test('the scanner reads a run of operator characters once, however many operators are in it', () => {
  const scanner = new Scanner('+-'.repeat(200_000))
  const started = performance.now()
  let tokens = 0
  while (scanner.next()) tokens += 1
  assert.equal(tokens, 400_000)
  // If each operator caused another scan of the rest, this would take minutes.
  assert.ok(performance.now() - started < 60_000)
})
