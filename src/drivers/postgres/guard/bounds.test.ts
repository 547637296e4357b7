// Tests that no text delays other requests. Long texts are judged in a thread, and no text breaks the thread or exceeds
// its deadline.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { shop } from '../../../../test/support/postgres-catalog.ts'
import { openGuard, type Guard } from '../../../../test/support/postgres-guard.ts'

let guard: Guard
before(async () => {
  guard = await openGuard()
})
after(() => guard[Symbol.asyncDispose]())

const TEXT_MAX = 65_536

/** Returns a text of this length in which the piece is repeated. */
function filled(head: string, piece: string, tail = '', length = TEXT_MAX): string {
  return head + piece.repeat(Math.floor((length - head.length - tail.length) / piece.length)) + tail
}

/** Each of these texts was slow or broke the parser, or was suspected of doing so. */
const FAMILIES: Readonly<Record<string, (length: number) => string>> = {
  'runs of comments': (length) => filled('SELECT 1 ', '/**/', '', length),
  'comments in comments': (length) => filled('SELECT 1 ', '/*', '', length),
  'comments that never end': (length) => filled('SELECT 1 ', '/*/**/', '', length),
  'line comments': (length) => filled('SELECT 1 ', '--\n', '', length),
  'operators side by side': (length) => filled('SELECT 1 ', '+-', ' 1', length),
  'an operator': (length) => filled('SELECT 1 ', '<', ' 1', length),
  'a word': (length) => filled('SELECT ', 'a', '', length),
  'a quoted name': (length) => filled('SELECT "', 'a', '"', length),
  'a number': (length) => filled('SELECT ', '1', '', length),
  'string continuations': (length) => filled("SELECT 'a'", "\n'b'", '', length),
  'string continuations over comments': (length) => filled("SELECT 'a'", "--c\n'b'", '', length),
  'comments after an escape string': (length) => filled("SELECT E'a''b\\'c' ", '/**/', '', length),
  'comments after a continued string': (length) => filled("SELECT 'a'\n'b' ", '/**/', '', length),
  'a sum after an escape string': (length) => filled("SELECT E'a''b\\'c' || 1", '+1', '', length),
  'doubled quotes': (length) => filled("SELECT '", "''", "'", length),
  'dollar quotes that fail': (length) => filled('SELECT $a$', '$b$', '$a$', length),
  spaces: (length) => filled('SELECT 1', ' ', ', 2', length),
  'a sum': (length) => filled('SELECT 1', '+1', '', length),
  parentheses: (length) => filled('SELECT ', '(', '', length),
  'a list': (length) => filled('SELECT 1 IN (1', ',1', ')', length),
  AND: (length) => filled('SELECT true', ' AND true', '', length),
  'CASE arms': (length) => filled('SELECT CASE', ' WHEN true THEN 1', ' END', length),
  VALUES: (length) => filled('VALUES (1)', ',(1)', '', length),
  UNION: (length) => filled('SELECT 1', ' UNION SELECT 1', '', length),
  casts: (length) => filled('SELECT 1', '::int', '', length),
  'sort keys': (length) => filled('SELECT 1 AS a ORDER BY a', ',a', '', length),
  fields: (length) => filled('SELECT a', '.a', '', length),
  subscripts: (length) => filled("SELECT '{}'::int[]", '[1]', '', length),
  statements: (length) => filled('SELECT 1', ';SELECT 1', '', length),
  joins: (length) => filled('SELECT 1 FROM orders a', ' JOIN orders USING (id)', '', length),
}

function msOf({ user, system }: NodeJS.CpuUsage): number {
  return (user + system) / 1000
}

describe('a text of 64 KiB', () => {
  for (const [name, make] of Object.entries(FAMILIES)) {
    test(`made of ${name} is judged without breaking a thread, and without delaying other queries`, async () => {
      await guard.judge('SELECT 1', shop())
      const before = process.threadCpuUsage()
      const verdict = await guard.judge(make(TEXT_MAX), shop())
      const busyMs = msOf(process.threadCpuUsage(before))
      const said = JSON.stringify(verdict)
      assert.doesNotMatch(said, /parser ran out of time or memory/)
      assert.ok(said.length < 4_000, `the answer repeats the text: ${said.length}`)
      // Without the bounds, some texts blocked the main thread for seconds. The thread's CPU time does not depend on
      // other load.
      assert.ok(busyMs < 500, `the main thread worked for ${busyMs} ms`)
    })
  }
})

test('a text of 4 KiB, which the main thread may judge, takes less than a second there', async () => {
  for (const [name, make] of Object.entries(FAMILIES)) {
    const before = process.threadCpuUsage()
    await guard.judge(make(4_096), shop())
    assert.ok(msOf(process.threadCpuUsage(before)) < 1_000, name)
  }
  assert.deepEqual(guard.reported, [])
})
