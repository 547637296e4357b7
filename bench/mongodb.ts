// node bench/mongodb.ts: measures MongoDB. Four contenders take turns in one run: the client library alone, Vitrine's
// driver alone, a minimal HTTP service over the client library (floor-mongodb.ts), and Vitrine's bundle over HTTP. Compare only ratios. Linux only (/proc). BENCH_TURNS (300) is the
// number of queries per workload and contender. Workloads with large answers have a twentieth of these turns. Under
// load with several clients, BENCH_ROUNDS (7) is the number of rounds, BENCH_MS (5000) the time of a contender in all
// rounds, and BENCH_WARM_MS (10000) its longest warm-up. BENCH_ONLY is a pattern for the names of the workloads.
// BENCH_BEFORE is a checkout whose bundle runs under the same load.
import { Pool } from 'undici'
import { memory } from './cpu-time.ts'
import { load, median, post, type Sample } from './load.ts'
import { DOCUMENTS, openMongoWorld, ours, plain, type Asked } from './mongodb-world.ts'
import type { Contender } from './world.ts'

const TURNS = Number(process.env['BENCH_TURNS'] ?? 300)
const MS = Number(process.env['BENCH_MS'] ?? 5000)
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 7)
const WARM_ANSWERS = 10_000
const WARM_MS = Number(process.env['BENCH_WARM_MS'] ?? 10_000)
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

/** A team's default limit on rows. Only an answer with a higher limit takes several batches. */
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

await using world = await openMongoWorld(process.env['BENCH_BEFORE'])
const { floor, vitrine, before } = world
await using stack = new AsyncDisposableStack()

/** Makes a function that sends queries over one connection. */
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

/** The contenders alternate, and the first turns are a warm-up. Returns the p50 of each contender. */
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
/** The contenders take turns. Their order rotates with each round. */
async function loaded({ asked, clients }: Workload): Promise<string> {
  const contenders = [floor, vitrine, ...(before === null ? [] : [before])]
  const sample = (at: Contender): Promise<Sample> => {
    const body = at === floor ? plain : ours
    return load(at, () => body(asked(++turn)), clients, MS / ROUNDS)
  }
  for (const at of contenders) await warmUp(() => sample(at))
  const rounds: ReadonlyMap<string, Sample>[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const samples = new Map<string, Sample>()
    for (let n = 0; n < contenders.length; n++) {
      const at = contenders[(n + round) % contenders.length] ?? floor
      samples.set(at.name, await sample(at))
    }
    rounds.push(samples)
  }
  return `c=${clients}: ${[...contenders].map((at) => under(rounds, at)).join('; ')}`
}

/** A service that has just started spends much of its time compiling. */
async function warmUp(sample: () => Promise<Sample>): Promise<void> {
  const until = performance.now() + WARM_MS
  for (let answers = 0; answers < WARM_ANSWERS && performance.now() < until;) answers += (await sample()).requests
}

/** Returns the medians of the rounds. Each ratio compares with the floor in the same round. */
function under(rounds: readonly ReadonlyMap<string, Sample>[], { name }: Contender): string {
  const of = (pick: (own: Sample, other: Sample) => number): number =>
    median(
      rounds.flatMap((samples) => {
        const [own, other] = [samples.get(name), samples.get('floor')]
        return own === undefined || other === undefined ? [] : [pick(own, other)]
      }),
    )
  const cpu = `CPU ${of((own) => own.cpuMicros).toFixed(0)} + ${of((own) => own.databaseMicros).toFixed(0)} us`
  if (name === 'floor') return `floor ${cpu}`
  const times = (pick: (sample: Sample) => number): string => of((own, other) => pick(own) / pick(other)).toFixed(2)
  return (
    `${name} ${times(({ perSecond }) => perSecond)} x the floor's answers a second, ${cpu} ` +
    `(${times(({ cpuMicros }) => cpuMicros)} x, ${times(({ databaseMicros }) => databaseMicros)} x, ` +
    `both ${times(({ cpuMicros, databaseMicros }) => cpuMicros + databaseMicros)} x)`
  )
}

for (const work of WORKLOADS.filter(({ name }) => ONLY.test(name))) {
  const throughput = await loaded(work) // Runs first, because it warms up the floor and the bundle.
  const p50 = await inTurns(work)
  const ms = (name: Name): string => `${name} ${p50[name].toFixed(2)}`
  const ratio = (of: Name, to: Name): string => `${(p50[of] / p50[to]).toFixed(2)} x`
  console.log(
    `${work.name}: p50 ms ${CONTENDERS.map(ms).join(', ')}; vitrine ${ratio('vitrine', 'floor')} floor (goal <= 1.3), ` +
      `${ratio('vitrine', 'raw')} raw; driver ${ratio('driver', 'raw')} raw (goal <= 1.3); ${throughput}`,
  )
}

/** Prints the memory of a new process. Each of its answers has 10,000 documents. */
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
  await peak('one answer', 1, 1)
  await peak('answers in sequence', TURNS / 5, 1)
  await peak('four answers at a time', TURNS / 5, 4)
  await pool.close()
  console.log(`resident MB of answers of 10,000 documents: ${rest} at rest, peaks ${peaks.join(', ')} (goal <= 250)`)
}

if (ONLY.test('resident')) await resident()
