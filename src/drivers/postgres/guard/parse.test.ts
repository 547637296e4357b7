// The parsers: a text that breaks one costs its sender a refusal, and nobody else anything.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openParser } from './parse.ts'

const SIGNAL = AbortSignal.timeout(60_000)
/** A thousand function calls in one another are more than the scanner's stack holds. */
const BREAKING = `${'SELECT ('.repeat(2_900)}1${')'.repeat(2_900)}`

test('parses the same on the spot and in a thread', async () => {
  await using parser = await openParser({ threads: 1 })
  for (const text of ['SELECT 1', "SELECT 'ü😀' FROM t", `SELECT 1${'+1'.repeat(2_000)}`]) {
    const [here, there] = [await parser.parse(text, true, SIGNAL), await parser.parse(text, false, SIGNAL)]
    assert.equal(here.kind, 'tree')
    assert.equal(JSON.stringify(here), JSON.stringify(there))
  }
})

test('says where a syntax error is, in UTF-16 units', async () => {
  await using parser = await openParser({ threads: 1 })
  for (const isSmall of [true, false]) {
    const parsed = await parser.parse("SELECT '😀' FRM x y", isSmall, SIGNAL)
    assert.deepEqual(parsed, { kind: 'malformed', why: 'syntax error at or near "x"', position: 16 })
    assert.equal((await parser.parse(' ', isSmall, SIGNAL)).kind, 'malformed')
  }
})

test('ends a thread whose parser broke, and goes on with another', async () => {
  await using parser = await openParser({ threads: 1 })
  for (let n = 0; n < 3; n++) {
    const [broken, next] = await Promise.all([
      parser.parse(BREAKING, false, SIGNAL),
      parser.parse('SELECT 2', false, SIGNAL),
    ])
    assert.ok(broken.kind === 'lost' || broken.kind === 'deep', broken.kind)
    assert.equal(next.kind, 'tree')
  }
})

test('ends a thread that takes too long', async () => {
  await using parser = await openParser({ threads: 1, deadlineMs: 1 })
  // Unclosed comments in comments: the scanner starts again at each of them.
  const parsed = await parser.parse(`SELECT 1 ${'/*'.repeat(20_000)}`, false, SIGNAL)
  assert.equal(parsed.kind, 'lost')
})

test('gives up on a caller that has gone', async () => {
  await using parser = await openParser({ threads: 1 })
  const gone = new AbortController()
  const waiting = parser.parse(BREAKING, false, gone.signal)
  gone.abort(new Error('hung up'))
  await assert.rejects(waiting, /hung up/)
  assert.equal((await parser.parse('SELECT 1', false, SIGNAL)).kind, 'tree')
})

test('tells a defect with a hash, never the text', async () => {
  const told: string[] = []
  await using parser = await openParser({ report: (problem, hash) => told.push(problem, hash) })
  parser.report('it differs', 'SELECT secret')
  assert.equal(told[0], 'it differs')
  assert.match(told[1] ?? '', /^[0-9a-f]{64}$/)
})
