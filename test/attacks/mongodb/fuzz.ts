// Non-interference: the full database must answer each allowed query exactly like an unguarded copy that lacks the
// hidden data. Variables of the environment: FUZZ is the number of queries (default 600), SEED repeats a run.
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { Db, Document } from 'mongodb'
import type { TestMongo } from '../../support/mongodb.ts'
import { engineOrSkip } from '../../support/no-such-engine.ts'
import { ask, catalog, equal, leaks, unguarded } from './ask.ts'
import { BARE, EXPOSED, FULL, load } from './fixture.ts'
import { Generator, know } from './random-query.ts'

export const COUNT = Number(process.env['FUZZ'] ?? 600)
export const SEED = Number(process.env['SEED'] ?? process.env['RUN_SEED'] ?? 14)

/**
 * With `checks.cache`, each query also goes through the cache of shapes. Only one of the two test files does this,
 * because the cache is the same for both engines.
 */
export async function fuzz(
  t: TestContext,
  start: () => Promise<TestMongo>,
  checks: { readonly seed: number; readonly cache: boolean },
): Promise<void> {
  const mongo = await engineOrSkip<TestMongo>(t, start)
  if (mongo === null) return
  await using _ = mongo
  const [full, bare] = [mongo.client.db(mongo.database(FULL)), mongo.client.db(mongo.database(BARE))]
  await load(full, bare)
  const tally = await run(full, bare, mongo.version, checks)
  t.diagnostic(JSON.stringify({ ...tally, wrong: tally.wrong.length, refused: tally.refused.length }))
  assert.deepEqual(tally.wrong.slice(0, 5), [])
  assert.ok(
    tally.refused.length < COUNT / 100,
    `${tally.refused.length} refused: ${tally.refused.slice(0, 3).join('\n')}`,
  )
  assert.ok(tally.early > 0, 'no answer came from a pipeline that sorts before the projection')
  assert.ok(tally.withRows > COUNT / 4, `only ${tally.withRows} answers had rows`)
}

interface Tally {
  /**
   * Answers that equal the answer without a guard. An answer of more than 1,000 documents counts as equal without a
   * comparison.
   */
  equal: number
  withRows: number
  /**
   * Equal answers with rows, for queries that may sort before the projection: `early` if the pipeline that does so
   * returned the answer, `late` if it failed.
   */
  early: number
  late: number
  /** Queries that the engine refuses on the copy without hidden data, and that got no answer on the full database. */
  invalid: number
  /** Queries that name something hidden and were refused. */
  denied: number
  readonly refused: string[]
  readonly wrong: string[]
}

async function run(
  full: Db,
  bare: Db,
  version: readonly number[],
  { seed, cache }: { readonly seed: number; readonly cache: boolean },
): Promise<Tally> {
  const exposed = catalog(version)
  const documents = new Map<string, readonly Document[]>()
  for (const collection of Object.keys(EXPOSED)) {
    const found = bare.collection(collection).find({}, { promoteValues: false, bsonRegExp: true }).limit(40)
    documents.set(collection, await found.toArray())
  }
  const generator = new Generator(seed, know(documents))
  const tally: Tally = { equal: 0, withRows: 0, early: 0, late: 0, invalid: 0, denied: 0, refused: [], wrong: [] }
  for (let n = 0; n < COUNT; n++) {
    const { body, clean, ordered, loose } = generator.next()
    const [outcome, oracle] = await Promise.all([ask(full, exposed, body, { cache }), unguarded(bare, body)])
    const note = `#${n} ${JSON.stringify(body)}`
    if (leaks(outcome, body)) tally.wrong.push(`LEAK ${note}`)
    else if (outcome.kind === 'refused' && !clean) tally.denied++
    else if (oracle === null) {
      if (outcome.kind === 'answered') tally.wrong.push(`ANSWERED ${note}`)
      else tally.invalid++
    } else if (outcome.kind !== 'answered') tally.refused.push(`${outcome.why} ${note}`)
    else if (oracle.length > 1000 || equal(outcome.documents, oracle, { ordered, loose })) {
      tally.equal++
      if (oracle.length > 0) tally.withRows++
      if (oracle.length > 0 && outcome.query.early !== null) tally[outcome.early ? 'early' : 'late']++
    } else tally.wrong.push(`DIFFERS ${note} ${JSON.stringify(outcome.query.pipeline)}`)
  }
  return tally
}
