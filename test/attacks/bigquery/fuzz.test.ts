// A fuzzer that checks the guard with Google's analyzer. Variables of the environment: N is the number of mutants
// (default 2,000), SEED repeats a run, WORKERS is the number of threads. With N=100000 WORKERS=2, a run takes some
// minutes.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { once } from 'node:events'
import { openZetasql } from '../../engines/bigquery/zetasql.ts'
import { engineOrSkip } from '../../support/no-such-engine.ts'
import type { Tally } from './fuzz.ts'

const COUNT = Number(process.env['N'] ?? 2000)
const SEED = Number(process.env['SEED'] ?? process.env['RUN_SEED'] ?? 20_261_121)
const WORKERS = Number(process.env['WORKERS'] ?? 1)

test(`no mutant of ${COUNT} reads or reveals hidden data (seed ${SEED})`, { timeout: 900_000 }, async (t) => {
  const engine = await engineOrSkip(t, openZetasql)
  if (engine === null) return
  await engine[Symbol.asyncDispose]()
  const tallies = await tallied(Math.ceil(COUNT / WORKERS))
  for (const { seed, tally } of tallies) t.diagnostic(`seed ${seed}: ${JSON.stringify({ ...tally, strict: Object.keys(tally.strict) })}`)
  for (const { tally } of tallies) {
    assert.deepEqual(tally.leaks, [])
    assert.deepEqual(tally.crashes, [])
    assert.deepEqual(tally.differs, [])
    assert.deepEqual(tally.broken, [])
    assert.ok(tally.judged > tally.mutants / 100, 'too little was judged')
  }
})

/** Each worker makes `count` mutants from its own seed. If one worker fails, all workers are ended. */
async function tallied(count: number): Promise<{ seed: number; tally: Tally }[]> {
  const at = new URL('./fuzz-worker.ts', import.meta.url)
  const seeds = Array.from({ length: WORKERS }, (_, n) => SEED + n)
  const workers = seeds.map((seed) => ({ seed, worker: new Worker(at, { workerData: { seed, count } }) }))
  try {
    // An error of the worker rejects `once`.
    return await Promise.all(workers.map(async ({ seed, worker }) => ({ seed, tally: (await once(worker, 'message'))[0] as Tally })))
  } finally {
    await Promise.all(workers.map(({ worker }) => worker.terminate()))
  }
}
