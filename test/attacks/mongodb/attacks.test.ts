// Every attack must be refused with the right code before anything is sent, or get the answer of a database copy
// without the hidden data. No answer or error may show hidden data, and the engine must survive.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startMongod, startNewest, type TestMongo } from '../../support/mongodb.ts'
import { engineOrSkip } from '../../support/no-such-engine.ts'
import { ask, catalog, equal, judge, leaks, unguarded, type Body } from './ask.ts'
import { ATTACKS } from './attacks.ts'
import { BARE, FULL, load } from './fixture.ts'

test(`each forbidden query is refused by name, with a hint, before anything is sent: ${ATTACKS.length} attacks`, () => {
  const exposed = catalog([8, 2, 0])
  for (const [n, { family, expected, body }] of ATTACKS.entries()) {
    const verdict = judge(exposed, body)
    const code = 'kind' in verdict ? verdict.code : 'alike'
    const text = family === 'too much' ? `#${n}` : JSON.stringify(body).slice(0, 300)
    assert.equal(code, expected, `${family}: ${text} ${'kind' in verdict ? verdict.why : ''}`)
    if ('kind' in verdict) assert.ok(!leaks(verdict, body), `${family}: ${text}`)
    if ('kind' in verdict && code === 'QUERY_DENIED')
      assert.ok(verdict.blocked?.kind && typeof verdict.blocked.name === 'string')
  }
})

test('a hidden name and an unknown name are refused with the same sentence', () => {
  const exposed = catalog([8, 2, 0])
  const why = (body: unknown, name: string): string => {
    const verdict = judge(exposed, body)
    return 'kind' in verdict ? verdict.why.replaceAll(name, '…') : 'answered'
  }
  assert.equal(why({ collection: 'vault' }, 'vault'), why({ collection: 'nowhere' }, 'nowhere'))
  assert.equal(
    why({ collection: 'people', filter: { ssn: 1 } }, 'ssn'),
    why({ collection: 'people', filter: { never: 1 } }, 'never'),
  )
})

test('an operator that is newer than the server is refused, and the refusal names the required version', () => {
  const verdict = judge(catalog([6, 0, 5]), {
    collection: 'people',
    pipeline: [{ $project: { m: { $median: { input: '$score', method: 'approximate' } } } }],
  })
  assert.ok('kind' in verdict)
  assert.match(verdict.why, /MongoDB 6\.0\.5.*needs MongoDB 7\.0/)
})

for (const [name, start] of [
  ['the real mongod', startMongod],
  ['the newest engine', startNewest],
] as const) {
  test(`attacks that are allowed get the answer of a database without hidden data: ${name}`, async (t) => {
    const mongo = await engineOrSkip<TestMongo>(t, start)
    if (mongo === null) return
    await using _ = mongo
    const [full, bare] = [mongo.client.db(mongo.database(FULL)), mongo.client.db(mongo.database(BARE))]
    await load(full, bare)
    const exposed = catalog(mongo.version)
    for (const { body } of ATTACKS.filter((attack) => attack.expected === 'alike')) {
      const outcome = await ask(full, exposed, body)
      const text = JSON.stringify(body)
      assert.ok(!leaks(outcome, body), `leaks: ${text}`)
      assert.ok(outcome.kind === 'answered', `${text} ${outcome.kind === 'answered' ? '' : outcome.why}`)
      const oracle = await unguarded(bare, body as Body)
      if (oracle !== null) assert.ok(equal(outcome.documents, oracle, { loose: true }), `differs: ${text}`)
    }
    assert.equal((await mongo.client.db('admin').command({ ping: 1 }))['ok'], 1)
    // A known and documented limit: a $lookup compares raw documents, so null can reveal values that are no objects.
    const pipeline = [
      { $limit: 1 },
      { $set: { none: null } },
      { $lookup: { from: 'orders', localField: 'none', foreignField: 'lines.sku', as: 'j' } },
    ]
    const outcome = await ask(full, exposed, { collection: 'people', pipeline })
    assert.ok(outcome.kind === 'answered' && !leaks(outcome, null), 'a match by null shows what is exposed and no more')
  })
}
