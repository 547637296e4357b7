// npm run bench: Vitrine's bundle and FLOOR(pg), alternating in one run. Compare ratios only. Linux only (/proc).
// BENCH_ONLY: a pattern for the names of the workloads; BENCH_ROUNDS (5), BENCH_MS per turn (1500). BENCH_CHECK=1: fails if a
// workload's ratio of CPU times is a third below the one recorded here.
import { load, loadGet, median, memory, type Sample } from './load.ts'
import { benchConnector } from './connector.ts'
import { openWorld, type Contender } from './world.ts'

const rounds = Number(process.env['BENCH_ROUNDS'] ?? 5)
const ms = Number(process.env['BENCH_MS'] ?? 1500)
const only = new RegExp(process.env['BENCH_ONLY'] ?? '')

let turn = 0
const id = (): number => (++turn * 7919) % 200_000

interface Workload {
  readonly name: string
  readonly clients: number
  readonly goal: string
  /** CPU time of the floor's process over the service's, as last recorded. Other work on the machine changes it little. */
  readonly cpuRatio?: number
  readonly next: () => string
}

const workloads: readonly Workload[] = [
  {
    name: 'W1 point look-up, other literals each time',
    clients: 16,
    goal: '>= 1.0',
    cpuRatio: 0.58,
    next: () => `SELECT id, customer_id, total, note, ordered_at FROM orders WHERE id = ${id()}`,
  },
  {
    name: 'W1 with one client',
    clients: 1,
    goal: '-',
    next: () => `SELECT id, customer_id, total, note, ordered_at FROM orders WHERE id = ${id()}`,
  },
  {
    name: 'W1s the same text each time',
    clients: 16,
    goal: '-',
    next: () => 'SELECT id, customer_id, total, note, ordered_at FROM orders WHERE id = 4711',
  },
  {
    name: 'W2 100 rows',
    clients: 16,
    goal: '-',
    next: () => `SELECT * FROM orders WHERE id > ${id() % 199_000} ORDER BY id LIMIT 100`,
  },
  {
    name: 'W3 10,000 rows of 8 columns',
    clients: 4,
    goal: '>= 3',
    cpuRatio: 2.9,
    next: () => `SELECT * FROM orders WHERE id > ${id() % 180_000} ORDER BY id LIMIT 10000`,
  },
  {
    name: 'W4 group-by over 200,000 rows',
    clients: 4,
    goal: '>= 0.95',
    next: () => 'SELECT customer_id % 100 AS bucket, count(*), sum(total) FROM orders GROUP BY 1 ORDER BY 1',
  },
  {
    name: 'a shape never seen, one client',
    clients: 1,
    goal: 'adds <= 1 ms',
    next: () => `SELECT id AS c${++turn}, customer_id, total, note, ordered_at FROM orders WHERE id = ${id()}`,
  },
]

const CHECKED = process.env['BENCH_CHECK'] === '1'
/** A ratio this much below the recorded one is a regression, not noise. */
const FALL_MAX = 1 / 3
/** Microseconds. */
const SPENT_MIN = 150_000

async function inTurns(work: Workload, a: Contender, b: Contender): Promise<void> {
  const samples: { a: Sample; b: Sample }[] = []
  for (let round = 0; round <= rounds; round++) {
    const next = () => ({ sql: work.next() })
    const pair = { a: await load(a, next, work.clients, ms), b: await load(b, next, work.clients, ms) }
    if (round > 0) samples.push(pair) // the first round is a warm-up
  }
  const of = (pick: (s: { a: Sample; b: Sample }) => number): number => median(samples.map(pick))
  console.log(
    `${work.name}, c=${work.clients}: ${of((s) => s.a.perSecond / s.b.perSecond).toFixed(2)} x floor (goal ${work.goal}); ` +
      `${of((s) => s.a.perSecond).toFixed(0)} against ${of((s) => s.b.perSecond).toFixed(0)} a second; ` +
      `p50 ${of((s) => s.a.p50).toFixed(2)} against ${of((s) => s.b.p50).toFixed(2)} ms (adds ${of((s) => s.a.p50 - s.b.p50).toFixed(2)}); ` +
      `CPU ${of((s) => s.a.cpuMicros).toFixed(0)} against ${of((s) => s.b.cpuMicros).toFixed(0)} us a request`,
  )
  if (CHECKED && work.cpuRatio !== undefined) check(work.name, work.cpuRatio, samples)
}

/** A turn's CPU time is counted in ticks of 10 ms, so all turns count together. */
function check(name: string, recorded: number, samples: readonly { a: Sample; b: Sample }[]): void {
  const spent = (of: 'a' | 'b') => samples.reduce((sum, pair) => sum + pair[of].cpuMicros * pair[of].requests, 0)
  const requests = (of: 'a' | 'b') => samples.reduce((sum, pair) => sum + pair[of].requests, 0)
  const [service, floor] = [spent('a'), spent('b')]
  if (Math.min(service, floor) < SPENT_MIN) {
    console.log(`${name}: too little was measured to compare with the recorded ratio`)
    return
  }
  const ratio = floor / requests('b') / (service / requests('a'))
  if (ratio >= recorded * (1 - FALL_MAX)) return
  console.error(`${name}: the ratio of CPU times fell to ${ratio.toFixed(2)}; ${recorded} is recorded`)
  process.exitCode = 1
}

await using world = await openWorld()
console.log(
  `ready ${world.readyMs.toFixed(0)} ms after npm start (goal <= 1500); resident ${(await memory(world.vitrine.pid)).now.toFixed(0)} MB`,
)
for (const work of workloads.filter((w) => only.test(w.name))) await inTurns(work, world.vitrine, world.floor)
if (only.test('W5 description')) {
  const w5 = await loadGet(world.vitrine, world.schemaUrl, 16, ms)
  console.log(`W5 description, c=16: ${w5.perSecond.toFixed(0)} a second, p50 ${w5.p50.toFixed(2)} ms`)
}
const rss = await memory(world.vitrine.pid)
console.log(`resident at the end ${rss.now.toFixed(0)} MB, at its peak ${rss.peak.toFixed(0)} MB (goal <= 250)`)
if (only.test('connector')) await benchConnector()
