// Asks legitimate questions about exposed data. A database copy without the hidden data must give the same answers.
// Only operators that are too new for the server may be refused.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startMongod, startNewest, type TestMongo } from '../../support/mongodb.ts'
import { engineOrSkip } from '../../support/no-such-engine.ts'
import { ask, catalog, equal, unguarded } from './ask.ts'
import { BARE, FULL, load } from './fixture.ts'
import { LEGIT } from './legit.ts'

for (const [name, start] of [
  ['the real mongod', startMongod],
  ['the newest engine', startNewest],
] as const) {
  test(`legitimate queries are answered unless an operator is newer than the server: ${LEGIT.length} queries on ${name}`, async (t) => {
    const mongo = await engineOrSkip<TestMongo>(t, start)
    if (mongo === null) return
    await using _ = mongo
    const [full, bare] = [mongo.client.db(mongo.database(FULL)), mongo.client.db(mongo.database(BARE))]
    await load(full, bare)
    const exposed = catalog(mongo.version)
    for (const body of LEGIT) {
      const outcome = await ask(full, exposed, body)
      if (outcome.kind === 'refused' && / needs MongoDB \d/.test(outcome.why)) continue
      const text = JSON.stringify(body)
      assert.ok(outcome.kind === 'answered', `${text} ${outcome.kind === 'answered' ? '' : outcome.why}`)
      const oracle = await unguarded(bare, body)
      assert.ok(oracle !== null && equal(outcome.documents, oracle), `differs: ${text}`)
    }
  })
}
