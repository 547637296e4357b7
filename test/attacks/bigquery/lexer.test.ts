// Compares the guard's lexer with Google's parser on random texts of quotes, dots, comment signs and keywords. If the
// tokens are printed with one blank between them, Google must parse them to the same tree as the original text. If each
// literal and quoted name is replaced by another, the form of the tree must stay the same. Both together show that
// lexer and parser see the same token boundaries.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { lex } from '../../../src/drivers/bigquery/guard/lex.ts'
import type { Token } from '../../../src/drivers/bigquery/guard/tokens.ts'
import { languageOptions } from '../../engines/bigquery/engine.ts'
import { openZetasql, ZetasqlError, type Message } from '../../engines/bigquery/zetasql.ts'
import { engineOrSkip } from '../../support/no-such-engine.ts'
import { chance } from './seeded-random.ts'

const COUNT = Number(process.env['N'] ?? 3000)
const SEED = Number(process.env['SEED'] ?? 20_261_121)

const PIECES = [
  ...[' ', ' ', ' ', ',', ',', '.', '.', '.', '(', ')', '[', ']', '\n', '\r', '\t', '\v', '\f', '\u00a0', '\u2028', 'é', '\\', '\\\\', '\\n', '\\`'],
  ...["'", '"', "'''", '"""', '`', "\\'", '``', "''", '""', "'s'", '"s"', "r'", "b'", 'br"', 'r', 'b', 'rb', 'R', '--', '#', '/*', '*/', '*', '-'],
  ...['a', 'x', 'e', 'E5', '1', '0x', '0xF', '.5', '1.', '1e', '-1', '5x', 'a-b', '||', '|', '>', '>>', '<', '<>', '!=', '=>', '->', '+', '/', '~', '='],
  ...['FROM', 'SELECT', 'from', 'JOIN', 't', 'd.t', 'AS', 'END', 'NULL', 'TRUE', 'JSON', 'DATE', 'WHERE', 'IN', 'UNNEST', 'f(', 'f(1)', 'STRUCT(1)'],
  ...['STRUCT<', 'ARRAY<', 'INT64', 'IS', 'NOT', 'INTERVAL', 'DAY', 'EXTRACT(', 'CASE WHEN 1 THEN 2 END', '`q.r`', 'CURRENT_DATE', 'SAFE', '[1]', '(a)'],
]
const ENDS = [' FROM t', ' FROM d.t AS q', '\nFROM t --', '\rFROM t', "'", '"', '`', '', '', '']

function text(next: () => number): string {
  const pick = (from: readonly string[]): string => from[Math.floor(next() * from.length)] ?? ''
  const pieces = Array.from({ length: 1 + Math.floor(next() * 12) }, () => pick(PIECES) + (next() < 0.25 ? ' ' : ''))
  return `SELECT ${pieces.join('')}${pick(ENDS)}`
}

/** Replaces a literal or quoted name by another of the same kind. Other tokens stay unchanged. */
function other({ kind, text: own }: Token): string {
  if (kind === 'string') return /^r?b/i.test(own) ? "b'other'" : "'other'"
  if (kind === 'quoted') return '`other`'
  if (kind === 'number') return /^0x|^\d+$/i.test(own) ? '7' : '7.5'
  return own
}

const SAID = new Set(['string_value', 'bytes_value', 'image', 'id_string'])

/** Returns the tree as JSON, without positions. With `saysNothing`, it also lacks literals and names. */
function form(tree: Message, saysNothing: boolean): string {
  return JSON.stringify(tree, (key, value) => {
    if (key === 'parse_location_range' || value === null || value === false) return undefined
    return saysNothing && SAID.has(key) ? '' : value
  })
}

function tokensOf(sql: string): readonly Token[] | null {
  try {
    return lex(sql)
  } catch {
    return null
  }
}

test(`the lexer splits valid texts into the same tokens as Google's parser: ${COUNT} random texts (seed ${SEED})`, async (t) => {
  const zetasql = await engineOrSkip(t, openZetasql)
  if (zetasql === null) return
  await using _ = zetasql
  const options = await languageOptions(zetasql)
  const parse = async (sql_statement: string): Promise<Message> => {
    try {
      return (await zetasql.call('Parse', { sql_statement, options })).parsed_statement
    } catch (error) {
      if (error instanceof ZetasqlError) return null
      throw error
    }
  }
  const next = chance(SEED)
  let compared = 0
  for (let n = 0; n < COUNT; n++) {
    const sql = text(next)
    const tokens = tokensOf(sql)
    if (tokens === null) continue
    const printed = tokens.map((token) => token.text).join(' ')
    const [originalTree, read, masked] = await Promise.all([parse(sql), parse(printed), parse(tokens.map(other).join(' '))])
    if (read !== null) {
      assert.ok(masked !== null, `with other literals the text is read differently: ${JSON.stringify([sql, printed])}`)
      assert.equal(form(masked, true), form(read, true), JSON.stringify([sql, printed]))
    }
    if (originalTree === null) continue
    assert.ok(read !== null, `the printed text does not parse as a query: ${JSON.stringify([sql, printed])}`)
    assert.equal(form(read, false), form(originalTree, false), JSON.stringify([sql, printed]))
    compared++
  }
  t.diagnostic(`${compared} compared`)
  assert.ok(compared > COUNT / 50, 'too few of the texts are queries')
})
