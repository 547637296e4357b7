// If a query doubles in length, the guard's work may grow 2.5 times at most. No query may block the event loop for
// long. Variables of the environment: GROW is the number of random queries, SEED repeats a run.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Document } from 'mongodb'
import { AppError } from '../../../src/errors.ts'
import { unseal } from '../../../src/drivers/confined.ts'
import { judged } from '../../../src/drivers/mongodb/guard/confine.ts'
import { HERE, judge } from '../../../src/drivers/mongodb/guard/judge.ts'
import { readBody, type MongoBody } from '../../../src/drivers/mongodb/guard/body/read-body.ts'
import { redactedJson } from '../../../src/drivers/mongodb/guard/redact.ts'
import type { MongoQuery } from '../../../src/drivers/mongodb/confined-query.ts'
import { catalog, checkSent } from './ask.ts'
import { FAMILIES, randomGrown } from './grown.ts'

const COUNT = Number(process.env['GROW'] ?? 300)
const SEED = Number(process.env['SEED'] ?? 23)
const LIMITS = { rowCap: 1000, maxResponseBytes: 8 << 20, timeoutMs: 15_000, maxCost: 1e6 }
/** Limits the CPU time of this thread, which does not depend on other processes. */
const BLOCK_MS = 500

interface Taken {
  readonly work: number
  readonly milliseconds: number
  readonly end: string
}

/** Does what the service does before it sends a query to the database. This includes the texts for the audit. */
function take(body: Document): Taken {
  const text = JSON.stringify(body)
  const began = process.threadCpuUsage()
  const ended = (work: number, end: string): Taken => {
    const { user, system } = process.threadCpuUsage(began)
    return { work, milliseconds: (user + system) / 1000, end }
  }
  try {
    const read = readBody(JSON.parse(text))
    const { verdict, work } = judged(read, CATALOG, LIMITS)
    if (verdict.kind === 'confined') {
      const query = unseal<MongoQuery>(verdict.query, 'MONGODB')
      redactedJson(query.printed())
      query.outline()
    }
    redactedJson(read.text)
    return ended(work, verdict.kind === 'confined' ? 'confined' : verdict.why)
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    return ended(0, error.code)
  }
}

const CATALOG = catalog([8, 3, 0])

test(`a query of twice the length costs at most 2.5 times the work: ${FAMILIES.length} families`, () => {
  for (const { name, body } of FAMILIES) {
    for (const n of [100, 400]) {
      const [one, two] = [take(body(n)), take(body(2 * n))]
      assert.ok(two.work <= 2.5 * one.work + 500, `${name}: ${one.work} steps for ${n}, ${two.work} for twice as many`)
    }
  }
})

test(`the main thread does little work, and a query survives the transfer from a guard thread: ${FAMILIES.length} families`, async () => {
  const ends = new Set<string>()
  for (const { name, body } of FAMILIES) {
    for (const n of [20, 200, 2_000]) {
      const asked = readIn(body(n))
      if (asked === null) continue
      let spent = 0
      const here = judge({ body: asked, catalog: CATALOG, rowCap: 1_000 }, HERE, (work) => {
        spent = work
      })
      ends.add(here.kind)
      // When the guard copies an object, it counts all fields at once. So its count may exceed the limit by a few
      // thousand.
      assert.ok(spent <= HERE.work + 5_000, `${name} of ${n}: ${spent} steps on the main thread`)
      const { verdict } = judged(asked, CATALOG, LIMITS)
      if (here.kind === 'denied') assert.deepEqual(here, verdict)
      if (verdict.kind === 'confined') await checkSent(unseal<MongoQuery>(verdict.query, 'MONGODB'))
    }
  }
  assert.deepEqual([...ends].sort(), ['denied', 'heavy', 'made', 'malformed'])
})

function readIn(body: Document): MongoBody | null {
  try {
    return readBody(JSON.parse(JSON.stringify(body)))
  } catch (error) {
    if (error instanceof AppError) return null
    throw error
  }
}

test(`no query blocks the event loop for long: ${FAMILIES.length} families`, (t) => {
  let most = { milliseconds: 0, name: '' }
  for (const { name, body } of FAMILIES) {
    for (const n of [1_000, 6_000, 20_000]) {
      const { milliseconds, end } = take(body(n))
      assert.ok(milliseconds < BLOCK_MS, `${name} of ${n}: ${milliseconds} ms, ${end}`)
      if (milliseconds > most.milliseconds) most = { milliseconds, name: `${name} of ${n}` }
    }
  }
  t.diagnostic(`the slowest: ${JSON.stringify(most)}`)
})

test(`work is proportional to the length of a query, and does not block the event loop for long: ${COUNT} random queries`, (t) => {
  const tally = { confined: 0, refused: 0, steepest: 0, slowest: 0 }
  for (let n = 0; n < COUNT; n++) {
    const { small, large } = randomGrown(SEED + n)
    const [one, two] = [take(small), take(large)]
    const note = `#${n} ${JSON.stringify(small).slice(0, 300)}`
    const [size, twice] = [JSON.stringify(small).length, JSON.stringify(large).length]
    const steeper = two.work / (one.work + 500) / (twice / size)
    assert.ok(steeper <= 2.5, `${note}: ${one.work} steps for ${size} characters, ${two.work} for ${twice}`)
    assert.ok(two.milliseconds < BLOCK_MS, `${note}: ${two.milliseconds} ms`)
    tally[two.end === 'confined' ? 'confined' : 'refused']++
    tally.steepest = Math.max(tally.steepest, Math.round(steeper * 100) / 100)
    tally.slowest = Math.max(tally.slowest, Math.round(two.milliseconds))
  }
  t.diagnostic(JSON.stringify(tally))
  assert.ok(tally.confined > COUNT / 10, `only ${tally.confined} were let through`)
})
