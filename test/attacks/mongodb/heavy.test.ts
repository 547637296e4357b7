// Runs the heaviest queries of many families on real engines. Each query has a timeout of HEAVY_MS (default 100 ms). It
// must end soon after the timeout, and the database may use limited memory.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Document } from 'mongodb'
import type { MongoQuery } from '../../../src/drivers/mongodb/confined-query.ts'
import { mongoCatalog } from '../../support/mongo-catalog.ts'
import { startMongod, startNewest, type TestMongo } from '../../support/mongodb.ts'
import { engineOrSkip } from '../../support/no-such-engine.ts'
import { catalog } from './ask.ts'
import { BARE, EXPOSED, FULL, load } from './fixture.ts'
import { COLLATED, COLLATED_PEOPLE } from './collated.ts'
import { ACROSS, HEAVY, TOGETHER, type Heavy } from './heavy.ts'
import { ask, heaviest, watched } from './run-heavy.ts'

const TIMEOUT_MS = Number(process.env['HEAVY_MS'] ?? 100)
/**
 * How long after its timeout a query may end on a busy machine. On an idle machine, the goal is 2 s
 * (docs/guard/mongodb.md#when-a-query-ends).
 */
const LATE_MS = 60_000
/** Limit on the CPU time of mongod for one query. CPU time does not depend on other load. */
const CPU_MS = TIMEOUT_MS + 3_000
/**
 * Limit on the growth of mongod's memory. 100 MB are for each stage that collects documents
 * (docs/guard/mongodb.md#when-a-query-ends).
 */
const GROWS_MB = 1_200

/** A document that is far larger than those in the guard's sample. */
const LARGE = {
  name: 'aé '.repeat(400_000),
  land: 'large',
  tags: Array.from({ length: 60_000 }, (_, k) => k % 7),
  cards: Array.from({ length: 60_000 }, (_, k) => ({ brand: 'visa', exp: k % 9 })),
  since: new Date(0),
}

for (const [name, start] of [
  ['the real mongod', () => startMongod({ args: ['--setParameter', 'ttlMonitorEnabled=false'] })],
  ['the newest engine', startNewest],
] as const) {
  test(`the heaviest queries end in time and use bounded memory: ${name}`, async (t) => {
    const mongo = await engineOrSkip<TestMongo>(t, start)
    if (mongo === null) return
    await using _ = mongo
    const full = mongo.client.db(FULL)
    await load(full, mongo.client.db(BARE))
    await full.collection('people').insertOne(LARGE)
    const { pid } = await mongo.client.db('admin').command({ serverStatus: 1 })
    await using watch = await watched(Number(pid))
    const exposed = catalog(mongo.version)
    const all: Asked[] = []
    const askAll = async (families: readonly Heavy[]): Promise<void> => {
      for (const heavy of families) {
        for (const query of heaviest(heavy, exposed)) {
          const cpu = await watch.cpuMs()
          const { late } = await ask(full, query, TIMEOUT_MS)
          const asked = { name: heavy.name, late, cpuMs: (await watch.cpuMs()) - cpu }
          assert.ok(late < LATE_MS, `${heavy.name}: ${late} ms late`)
          assert.ok(asked.cpuMs < CPU_MS, `${heavy.name}: ${asked.cpuMs} ms of work`)
          all.push(asked)
        }
      }
    }
    await askAll(HEAVY)
    for (const [name, documents] of Object.entries(TOGETHER))
      await full.collection<Document>(name).insertMany(documents.map((each) => ({ ...each })))
    await full.collection('people_view').drop()
    const stages = [{ $unwind: '$tags' }, { $project: { name: 1, cards: 1 } }]
    await full.createCollection('people_view', { viewOn: 'people', pipeline: stages })
    await askAll(ACROSS)
    const grew = Math.round((await watch.peak()) - watch.before)
    const latest = all.toSorted((one, other) => other.late - one.late)
    t.diagnostic(JSON.stringify({ asked: all.length, grew, latest: latest.slice(0, 10) }))
    assert.ok(all.length > (HEAVY.length + ACROSS.length) * 0.9, `only ${all.length} were let through`)
    assert.ok(grew < GROWS_MB, `it grew by ${grew} MB`)
  })
}

interface Asked {
  readonly name: string
  /** Time between the timeout and the end of the query. */
  readonly late: number
  /** CPU time of all threads of mongod. */
  readonly cpuMs: number
}

/** The guard's verdict is the same for each collation, so both tests run these queries. */
let collated: readonly (readonly [name: string, query: MongoQuery])[] | undefined

// The newest engine has no collations.
for (const collation of [{ locale: 'en', strength: 1 }, { locale: 'vi' }]) {
  test(`queries that compare texts by a collation end in time: ${JSON.stringify(collation)}`, async (t) => {
    const mongo = await engineOrSkip<TestMongo>(t, () =>
      startMongod({ args: ['--setParameter', 'ttlMonitorEnabled=false'] }),
    )
    if (mongo === null) return
    await using _ = mongo
    const db = mongo.client.db(FULL)
    const people = await db.createCollection<Document>('people', { collation })
    await people.insertMany(COLLATED_PEOPLE.map((each) => ({ ...each })))
    const { pid } = await mongo.client.db('admin').command({ serverStatus: 1 })
    await using watch = await watched(Number(pid))
    const exposed = mongoCatalog(EXPOSED, { version: mongo.version, database: FULL, collated: true })
    const asked: Asked[] = []
    collated ??= COLLATED.flatMap((heavy) => heaviest(heavy, exposed).map((query) => [heavy.name, query] as const))
    for (const [name, query] of collated) {
      const cpu = await watch.cpuMs()
      const { late } = await ask(db, query, TIMEOUT_MS)
      const cpuMs = (await watch.cpuMs()) - cpu
      assert.ok(late < LATE_MS && cpuMs < CPU_MS, `${name}: ${late} ms late, ${cpuMs} ms of work`)
      asked.push({ name, late, cpuMs })
    }
    const grew = Math.round((await watch.peak()) - watch.before)
    const latest = asked.toSorted((one, other) => other.late - one.late)
    t.diagnostic(JSON.stringify({ asked: asked.length, grew, latest: latest.slice(0, 5) }))
    assert.ok(asked.length > COLLATED.length * 0.8, `only ${asked.length} were let through`)
    assert.ok(grew < GROWS_MB, `it grew by ${grew} MB`)
  })
}
