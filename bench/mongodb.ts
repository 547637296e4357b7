// node bench/mongodb.ts: MongoDB, alternating in one run: the client library alone, our driver alone, FLOOR(mongodb),
// and Vitrine's bundle over HTTP. Compare ratios only. Linux only (/proc). BENCH_TURNS: queries per workload and
// contender (300); BENCH_MS: duration of each load with several clients (1500); BENCH_ONLY: a pattern for the names.
import { Pool } from 'undici'
import { memory } from './cpu.ts'
import { load, median, post, type Sample } from './load.ts'
import { DOCUMENTS, openMongoWorld, ours, plain, type Asked } from './mongodb-world.ts'
import type { Contender } from './world.ts'

const TURNS = Number(process.env['BENCH_TURNS'] ?? 300)
const MS = Number(process.env['BENCH_MS'] ?? 1500)
const ROUNDS = 5
const ONLY = new RegExp(process.env['BENCH_ONLY'] ?? '')

interface Workload {
  readonly name: string
  readonly asked: (turn: number) => Asked
  readonly turns: number
  readonly clients: number
}

const tenThousand = (turn: number): Asked => ({
  filter: { number: { $gte: (turn * 97) % 1000 } },
  pipeline: [{ $limit: 10_000 }],
})

/** The default row cap of a team. Other teams' answers may take several batches. */
const CAP = 1_000

const WORKLOADS: readonly Workload[] = [
  {
    name: 'one document by an indexed path',
    asked: (turn) => ({ filter: { number: (turn * 7919) % DOCUMENTS }, limit: CAP }),
    turns: TURNS,
    clients: 16,
  },
  {
    name: '100 documents by an indexed path',
    asked: (turn) => ({ filter: { customer: (turn * 31) % 1000 }, limit: CAP }),
    turns: TURNS,
    clients: 16,
  },
  {
    name: 'sort and limit by an indexed path',
    asked: () => ({ pipeline: [{ $sort: { number: -1 } }, { $limit: 20 }], limit: CAP }),
    turns: TURNS,
    clients: 16,
  },
  { name: '10,000 documents', asked: tenThousand, turns: Math.ceil(TURNS / 20), clients: 4 },
]

const CONTENDERS = ['raw', 'driver', 'floor', 'vitrine'] as const
type Name = (typeof CONTENDERS)[number]

await using world = await openMongoWorld()
const { floor, vitrine } = world
await using stack = new AsyncDisposableStack()

/** One caller with one connection. */
function caller({ url, headers }: Contender): (body: object) => Promise<void> {
  const { origin, pathname } = new URL(url)
  const pool = new Pool(origin, { connections: 1 })
  stack.defer(() => pool.close())
  return (body) => post(pool, pathname, headers, body)
}

const askFloor = caller(floor)
const askVitrine = caller(vitrine)
const ASK: Readonly<Record<Name, (asked: Asked) => Promise<unknown>>> = {
  raw: world.raw,
  driver: world.driver,
  floor: (asked) => askFloor(plain(asked)),
  vitrine: (asked) => askVitrine(ours(asked)),
}

/** The p50 of each contender, alternating. The first turns are a warm-up. */
async function inTurns(work: Workload): Promise<Readonly<Record<Name, number>>> {
  const took: Record<Name, number[]> = { raw: [], driver: [], floor: [], vitrine: [] }
  const warm = Math.ceil(work.turns / 5)
  for (let turn = 0; turn < work.turns + warm; turn++) {
    for (const name of CONTENDERS) {
      const began = performance.now()
      await ASK[name](work.asked(turn))
      if (turn >= warm) took[name].push(performance.now() - began)
    }
  }
  const { raw, driver, floor, vitrine } = took
  return { raw: median(raw), driver: median(driver), floor: median(floor), vitrine: median(vitrine) }
}

let turn = 0
async function loaded({ asked, clients }: Workload): Promise<string> {
  const pairs: { floor: Sample; vitrine: Sample }[] = []
  for (let round = 0; round <= ROUNDS; round++) {
    const pair = {
      floor: await load(floor, () => plain(asked(++turn)), clients, MS / ROUNDS),
      vitrine: await load(vitrine, () => ours(asked(++turn)), clients, MS / ROUNDS),
    }
    if (round > 0) pairs.push(pair)
  }
  const of = (pick: (pair: { floor: Sample; vitrine: Sample }) => number): string => median(pairs.map(pick)).toFixed(2)
  const cpu = median(pairs.map((pair) => pair.vitrine.cpuMicros)).toFixed(0)
  const cpuFloor = median(pairs.map((pair) => pair.floor.cpuMicros)).toFixed(0)
  return (
    `c=${clients}: ${of((pair) => pair.vitrine.perSecond / pair.floor.perSecond)} x the answers of the floor a second, ` +
    `CPU ${cpu} against ${cpuFloor} us a request`
  )
}

for (const work of WORKLOADS.filter(({ name }) => ONLY.test(name))) {
  const throughput = await loaded(work) // first, because it warms up both
  const p50 = await inTurns(work)
  const ms = (name: Name): string => `${name} ${p50[name].toFixed(2)}`
  const ratio = (of: Name, to: Name): string => `${(p50[of] / p50[to]).toFixed(2)} x`
  console.log(
    `${work.name}: p50 ms ${CONTENDERS.map(ms).join(', ')}; vitrine ${ratio('vitrine', 'floor')} floor (goal <= 1.3), ` +
      `${ratio('vitrine', 'raw')} raw; driver ${ratio('driver', 'raw')} raw (goal <= 1.3); ${throughput}`,
  )
}

/** Peak memory of a process that answers only 10,000 documents at a time. */
async function resident(): Promise<void> {
  const fresh = await world.fresh()
  const { origin, pathname } = new URL(fresh.url)
  const pool = new Pool(origin, { connections: 4, pipelining: 1 })
  const peaks: string[] = []
  const peak = async (name: string, times: number, atOnce: number): Promise<void> => {
    for (let n = 0; n < times; n++) {
      const asks = Array.from({ length: atOnce }, () => post(pool, pathname, fresh.headers, ours(tenThousand(++turn))))
      await Promise.all(asks)
    }
    peaks.push(`${(await memory(fresh.pid)).peak.toFixed(0)} after ${name}`)
  }
  const rest = (await memory(fresh.pid)).now.toFixed(0)
  await peak('one', 1, 1)
  await peak('one after another', TURNS / 5, 1)
  await peak('four at once', TURNS / 5, 4)
  await pool.close()
  console.log(`resident MB of answers of 10,000 documents: ${rest} at rest, peaks ${peaks.join(', ')} (goal <= 250)`)
}

if (ONLY.test('resident')) await resident()
