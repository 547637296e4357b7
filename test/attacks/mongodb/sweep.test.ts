// Allowed operators, accumulators, window operators and stages must end soon after the timeout. Each runs with the
// largest arguments that the guard allows, on values that the query makes and on stored values. A run ends after some
// time. SEED repeats the order of a run. SWEEP=all runs everything, and only prints the slow queries.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Document } from 'mongodb'
import { ACCUMULATOR_NAMES, WINDOW_NAMES } from '../../../src/drivers/mongodb/guard/expressions/accumulator.ts'
import { EXPRESSIONS } from '../../../src/drivers/mongodb/guard/allowed/expression-list.ts'
import { STAGE_NAMES } from '../../../src/drivers/mongodb/guard/stages/stages.ts'
import { startMongod, startNewest, type TestMongo } from '../../support/mongodb.ts'
import { engineOrSkip } from '../../support/no-such-engine.ts'
import { catalog, judge } from './ask.ts'
import { BARE, FULL, load } from './fixture.ts'
import { ask, watched } from './run-heavy.ts'
import {
  ofAccumulator,
  ofExpression,
  ofStage,
  ofWindow,
  OWN,
  OWN_VALUES,
  STORED,
  STORED_VALUES,
  SWEPT,
  type Values,
} from './sweep.ts'

const TIMEOUT_MS = 100
const CPU_MS = TIMEOUT_MS + 3_000

const SEED = Number(process.env['SEED'] ?? process.env['RUN_SEED'] ?? 14)
const [EVERY, ONLY] = [process.env['SWEEP'] === 'all', process.env['ONLY']]

/** Makes a generator of numbers from 0 to 1 (mulberry32). */
function seeded(seed: number): () => number {
  let at = seed
  return () => {
    at = (at + 0x6d2b79f5) | 0
    let n = Math.imul(at ^ (at >>> 15), 1 | at)
    n = (n + Math.imul(n ^ (n >>> 7), 61 | n)) ^ n
    return ((n ^ (n >>> 14)) >>> 0) / 2 ** 32
  }
}

/** The length of a loop, or the number of operators or stages. The largest size is tried first. */
const SIZES = [1e6, 1e5, 20_000, 5_000, 1_000, 200, 50, 10, 3, 1]
/** The error code of a document that has more values than the guard allows. */
const TOO_MUCH = 28_729
/** Error codes of queries that have run: the timeout, and the memory limits. */
const RUNS: ReadonlySet<number> = new Set([50, 146, 292, 16819, 5643011])

type Made = (values: Values, source: readonly Document[]) => (n: number) => Document

function swept(): readonly (readonly [name: string, Made])[] {
  const [gathered, stages] = [Object.keys(SWEPT.gathered), Object.entries(SWEPT.stage)]
  return [
    ...Object.keys(SWEPT.expression).map((name): [string, Made] => [name, (...at) => ofExpression(name, ...at)]),
    ...gathered
      .filter((name) => ACCUMULATOR_NAMES.includes(name))
      .map((name): [string, Made] => [`${name} in $group`, (...at) => ofAccumulator(name, ...at)]),
    ...gathered.map((name): [string, Made] => [`${name} in a window`, (...at) => ofWindow(name, ...at)]),
    ...stages.flatMap(([name, all]) =>
      all.map((text): [string, Made] => [name, (...at) => ofStage(name, text, ...at)]),
    ),
  ]
}

test('the sweep runs every allowed name', () => {
  assert.deepEqual(Object.keys(SWEPT.expression).sort(), [...EXPRESSIONS.keys()].sort())
  assert.deepEqual(Object.keys(SWEPT.gathered).sort(), [...new Set([...ACCUMULATOR_NAMES, ...WINDOW_NAMES])].sort())
  assert.deepEqual(Object.keys(SWEPT.stage).sort(), [...STAGE_NAMES].sort())
})

for (const [engine, start, budget] of [
  ['the real mongod', () => startMongod({ args: ['--setParameter', 'ttlMonitorEnabled=false'] }), 20_000],
  ['the newest engine', startNewest, 8_000],
] as const) {
  test(`operators and stages end in time with their largest arguments: ${engine} (SEED=${SEED})`, async (t) => {
    const mongo = await engineOrSkip<TestMongo>(t, start)
    if (mongo === null) return
    await using _ = mongo
    const full = mongo.client.db(FULL)
    await load(full, mongo.client.db(BARE))
    await full.collection<Document>('people').insertMany(STORED.map((each) => ({ ...each })))
    const { pid } = await mongo.client.db('admin').command({ serverStatus: 1 })
    await using watch = await watched(Number(pid))
    const exposed = catalog(mongo.version)
    const random = seeded(SEED)
    const pick = <T>(of: readonly T[]): readonly T[] => (EVERY ? of : of.slice(0, 1))
    const shuffled = <T>(of: readonly T[]): readonly T[] =>
      of
        .map((each) => [random(), each] as const)
        .toSorted(([one], [other]) => one - other)
        .map(([, each]) => each)
    const all: { name: string; late: number; cpuMs: number }[] = []
    const began = performance.now()
    const [ran, failed] = [new Set<string>(), new Map<string, number>()]
    let left = 0
    for (const [name, made] of shuffled(swept())) {
      if (ONLY !== undefined && !name.includes(ONLY)) continue
      const bodies = [
        ...pick(shuffled(OWN_VALUES)).map(
          (values) => [`${name} of own values by ${values.by}`, made(values, [OWN])] as const,
        ),
        ...pick(shuffled(STORED_VALUES)).map(
          (values) => [`${name} of stored values by ${values.by}`, made(values, [])] as const,
        ),
      ]
      for (const [heavy, body] of bodies) {
        if (!EVERY && performance.now() - began > budget) {
          left++
          continue
        }
        for (const n of SIZES) {
          const query = judge(exposed, body(n))
          if ('kind' in query) continue
          const before = await watch.cpuMs()
          const { late, code } = await ask(full, query, TIMEOUT_MS)
          const cpuMs = (await watch.cpuMs()) - before
          all.push({ name: `${heavy}, ${n}`, late, cpuMs })
          if (EVERY && cpuMs > 700) console.log(heavy, n, late, cpuMs)
          else assert.ok(EVERY || cpuMs < CPU_MS, `${heavy}, ${n}: ${cpuMs} ms of work`)
          if (code === TOO_MUCH) continue
          if (code === null || RUNS.has(code)) ran.add(name)
          else failed.set(name, code)
          break
        }
      }
    }
    if (EVERY)
      console.log(
        'NEVER RAN',
        [...failed]
          .filter(([name]) => !ran.has(name))
          .map(String)
          .join(' | '),
      )
    const longest = all.toSorted((one, other) => other.cpuMs - one.cpuMs)
    t.diagnostic(JSON.stringify({ seed: SEED, asked: all.length, left, longest: longest.slice(0, 10) }))
    // On a busy machine, time is up after a few queries.
    assert.ok(all.length > 0 && (left > 0 || all.length > 50), `only ${all.length} were let through`)
  })
}
