import assert from 'node:assert/strict'
import { test } from 'node:test'
import { shop } from '../../../../test/support/postgres-catalog.ts'
import { openParser } from './parser-pool.ts'

const SIGNAL = new AbortController().signal
const catalog = shop()
const of = (text: string) => ({ text, catalog, rowCap: 10, params: [] })
/** A text long enough to keep a thread busy for some time. */
const LONG = `SELECT 1 IN (1${', 1'.repeat(9_900)})`

test('the position of a syntax error counts UTF-16 units', async () => {
  await using parser = await openParser({ threads: 1 })
  const text = "SELECT '😀' FRM x y"
  for (const parsed of [parser.parse(text), await parser.judge(of(text), SIGNAL)]) {
    assert.ok(parsed.kind === 'malformed')
    assert.deepEqual([parsed.why, parsed.position], ['syntax error at or near "x"', 16])
  }
  assert.equal(parser.parse(' ').kind, 'malformed')
})

test('a syntax error repeats at most a short part of the text', async () => {
  await using parser = await openParser({ threads: 1 })
  const long = `SELECT 'a' "${'b'.repeat(60_000)}" "c" FROM`
  const parsed = await parser.judge(of(long), SIGNAL)
  assert.ok(parsed.kind === 'malformed' && parsed.why.length < 200, JSON.stringify(parsed).slice(0, 300))
  const far = parser.parse(`SELECT 1 $a$${'b'.repeat(3_000)}`)
  assert.ok(far.kind === 'malformed' && far.why.length < 200, JSON.stringify(far).slice(0, 300))
})

test('a thread that takes too long is ended, and another thread judges the next text', async () => {
  const problems: string[] = []
  await using parser = await openParser({ threads: 1, deadlineMs: 1, report: (problem) => problems.push(problem) })
  assert.equal((await parser.judge(of(LONG), SIGNAL)).kind, 'lost')
  assert.equal((await parser.judge(of(LONG), SIGNAL)).kind, 'lost')
  assert.equal(problems.length, 2)
})

test('texts for more catalogs than a thread stores are judged', async () => {
  await using parser = await openParser({ threads: 1 })
  const catalogs = Array.from({ length: 6 }, () => shop())
  for (const each of [...catalogs, ...catalogs]) {
    const judged = await parser.judge({ ...of('SELECT id FROM orders'), catalog: each }, SIGNAL)
    assert.equal(judged.kind, 'made')
  }
})

test('judging ends when the caller disconnects, and the next text is judged', async () => {
  await using parser = await openParser({ threads: 1 })
  const gone = new AbortController()
  const waiting = parser.judge(of(LONG), gone.signal)
  gone.abort(new Error('hung up'))
  await assert.rejects(waiting, /hung up/)
  assert.equal((await parser.judge(of('SELECT 1'), SIGNAL)).kind, 'made')
})

test('owners take turns, so the texts of one owner do not wait for all texts of another', async () => {
  await using parser = await openParser({ threads: 1 })
  const judged: string[] = []
  const judge = async (account: string, team: string) => {
    await parser.judge({ ...of('SELECT 1'), owner: { account, team } }, SIGNAL)
    judged.push(team)
  }
  const eve = Array.from({ length: 20 }, (_, n) => judge('eve', `team ${n}`))
  await Promise.all([...eve, judge('vic', 'vic’s')])
  assert.ok(judged.indexOf('vic’s') <= 1, judged.join(' '))
})

test('the teams of one owner take turns', async () => {
  await using parser = await openParser({ threads: 1 })
  const judged: string[] = []
  const judge = async (team: string) => {
    await parser.judge({ ...of('SELECT 1'), owner: { account: 'eve', team } }, SIGNAL)
    judged.push(team)
  }
  const busy = Array.from({ length: 20 }, () => judge('busy'))
  await Promise.all([...busy, judge('quiet')])
  assert.ok(judged.indexOf('quiet') <= 2, judged.join(' '))
})

test('one owner cannot fill the queue: its further texts are refused, and those of others are judged', async () => {
  await using parser = await openParser({ threads: 1 })
  const judge = async (account: string) => parser.judge({ ...of('SELECT 1'), owner: { account, team: '' } }, SIGNAL)
  const eve = Promise.allSettled(Array.from({ length: 1_100 }, () => judge('eve')))
  assert.equal((await judge('vic')).kind, 'made')
  const refused = (await eve).flatMap((each) => (each.status === 'rejected' ? [each.reason] : []))
  assert.equal(refused.length, 900)
  assert.deepEqual([refused[0].code, refused[0].extra], ['OVERLOADED', { retryAfter: 2 }])
})

test('a defect is reported with a hash of the text, never with the text', async () => {
  const problems: string[] = []
  await using parser = await openParser({ report: (problem, hash) => problems.push(problem, hash) })
  parser.report('it differs', 'SELECT secret')
  assert.equal(problems[0], 'it differs')
  assert.match(problems[1] ?? '', /^[0-9a-f]{64}$/)
})

// This test must be the last test, because it breaks the parser of this process.
test('the parser of the main thread is not used again after a text broke it, and the defect is reported once', async () => {
  const problems: string[] = []
  await using parser = await openParser({ threads: 1, report: (problem) => problems.push(problem) })
  assert.equal(parser.parse(`SELECT 1${'+1'.repeat(100_000)}`).kind, 'lost')
  assert.equal(parser.parse('SELECT 1').kind, 'lost')
  assert.equal((await parser.judge(of('SELECT 1'), SIGNAL)).kind, 'made')
  assert.equal(problems.length, 1)
})
