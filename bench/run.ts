// npm run bench: measures Vitrine's bundle and FLOOR(pg) (floor-postgres.ts) in turns. Compare only ratios. Linux only.
//   -- --peers     also MCP Toolbox, DBHub and PostGraphile, which npm installs in a scratch folder
//   -- --growth    more clients, rows, tables and shapes instead of the workloads
//   -- --write     writes the tables into docs/performance.md
// BENCH_ONLY is a pattern for the names of the workloads. BENCH_ROUNDS (5). BENCH_MS per turn (1500). BENCH_BEFORE is a
// checkout whose bundle runs in the same rounds. With BENCH_CHECK=1, the run fails if the ratio of CPU times of a
// workload is a third below the recorded ratio in three measurements in a row.
import { availableParallelism, loadavg } from 'node:os'
import { benchConnector } from './connector.ts'
import { headOf, requestOf } from './caller.ts'
import { memory, resetPeak } from './cpu-time.ts'
import { growth } from './growth.ts'
import { load, loadAny, median, type Sample } from './load.ts'
import { startPeers, type Peer } from './peers.ts'
import { machine, markdown, writeTable } from './report.ts'
import { lookUp, page, WORKLOADS, type Asked, type Workload } from './workloads.ts'
import { openWorld, type Contender, type World } from './world.ts'

const rounds = Number(process.env['BENCH_ROUNDS'] ?? 5)
const ms = Number(process.env['BENCH_MS'] ?? 1500)
const only = new RegExp(process.env['BENCH_ONLY'] ?? '')
const isChecked = process.env['BENCH_CHECK'] === '1'
const before = process.env['BENCH_BEFORE']
const flags = new Set(process.argv.slice(2))

/** A ratio that is lower than the recorded one by this share is a regression and not noise. */
const FALL_MAX = 1 / 3

/**
 * On a busy machine, V8 may still be compiling in all rounds of a workload. Each retry has longer turns, and the
 * service is warmer.
 */
const RETRIES_MAX = 2
const LONGER = 4
/** At this load average per core, CPU times that are a third higher may still be noise. */
const BUSY = 4

/** The key is the name of the contender. The samples of one round have the same index. */
type Samples = ReadonlyMap<string, readonly Sample[]>

interface Asker {
  readonly at: Contender
  body(asked: Asked): object | null
}

const inSql = (at: Contender): Asker => ({ at, body: ({ sql }) => ({ sql }) })

/** The contenders take turns. Their order rotates with each round. */
async function inTurns(work: Workload, askers: readonly Asker[], turnMs = ms): Promise<Samples> {
  const able = askers.filter(({ body }) => body(work.next()) !== null)
  const samples = new Map(able.map(({ at }): [string, Sample[]] => [at.name, []]))
  for (let round = 0; round <= rounds; round++) {
    for (let n = 0; n < able.length; n++) {
      const asker = able[(n + round) % able.length]
      if (asker === undefined) continue
      const sample = await load(asker.at, () => asker.body(work.next()) ?? {}, work.clients, turnMs)
      if (round > 0) samples.get(asker.at.name)?.push(sample) // the first round is a warm-up
    }
  }
  return samples
}

const HEAD = [
  'workload',
  'service',
  '× floor (least to most)',
  'p50 ms',
  'service µs',
  'database µs',
  'both, × floor',
  'goal',
]

/** Makes one row per contender, with the medians of the rounds. */
function rowsOf({ name, clients, goal }: Pick<Workload, 'name' | 'clients' | 'goal'>, samples: Samples): string[][] {
  const floor = samples.get('floor') ?? []
  const both = (each: Sample | undefined): number => (each?.cpuMicros ?? 0) + (each?.databaseMicros ?? 0)
  return [...samples].map(([who, own]) => {
    const of = (pick: (each: Sample, at: number) => number): number => median(own.map(pick))
    const ratios = own
      .map(({ perSecond }, at) => perSecond / (floor[at]?.perSecond ?? Number.NaN))
      .sort((a, b) => a - b)
    const spread = `${median(ratios).toFixed(2)} (${ratios[0]?.toFixed(2)} to ${ratios.at(-1)?.toFixed(2)})`
    return [
      ...[`${name}, c=${clients}`, who, who === 'floor' ? '1' : spread, of(({ p50 }) => p50).toFixed(2)],
      ...[of(({ cpuMicros }) => cpuMicros).toFixed(0), of(({ databaseMicros }) => databaseMicros).toFixed(0)],
      ...[
        of((each, at) => both(each) / both(floor[at])).toFixed(2),
        who === 'vitrine' && goal !== '' ? `≥ ${goal}` : '',
      ],
    ]
  })
}

/**
 * Returns the ratio of CPU times per request. Noise only increases CPU times, so each contender's best round counts.
 */
function cpuRatioOf(samples: Samples): number {
  const least = (who: string): number => Math.min(...(samples.get(who) ?? []).map(({ cpuMicros }) => cpuMicros))
  return least('floor') / least('vitrine')
}

/**
 * Sets the exit code if the ratio of CPU times is a third below the recorded ratio in all measurements, unless other
 * programs keep the machine busy.
 */
async function check(work: Workload, samples: Samples, again: (turnMs: number) => Promise<Samples>): Promise<void> {
  const { name, cpuRatio } = work
  if (!isChecked || cpuRatio === undefined) return
  let ratio = cpuRatioOf(samples)
  for (let retry = 1; retry <= RETRIES_MAX && ratio < cpuRatio * (1 - FALL_MAX); retry++) {
    console.log(`${name}: the ratio of CPU times is ${ratio.toFixed(2)}, and ${cpuRatio} is recorded. Measured again.`)
    ratio = Math.max(ratio, cpuRatioOf(await again(ms * LONGER ** retry)))
  }
  if (ratio >= cpuRatio * (1 - FALL_MAX)) return
  const [busy = 0] = loadavg()
  if (busy > BUSY * availableParallelism()) {
    console.log(`${name}: not judged: other programs keep this machine busy (load ${busy.toFixed(1)})`)
    return
  }
  console.error(`${name}: the ratio of CPU times fell to ${ratio.toFixed(2)}; ${cpuRatio} is recorded`)
  process.exitCode = 1
}

/** Measures how long Vitrine and the peers take for a description. The floor reads the database's catalog instead. */
async function describe({ vitrine, schemaUrl, floor }: World, peers: readonly Peer[]): Promise<string[][]> {
  const ask = async (at: Contender, url: string, body: object | null): Promise<[string, Sample[]]> => {
    const own: Sample[] = []
    const request = requestOf(headOf(body === null ? 'GET' : 'POST', url, at.headers), body)
    for (let round = 0; round <= rounds; round++) own.push(await loadAny(at, () => request, 16, ms))
    return [at.name, own.slice(1)]
  }
  const catalog = { sql: CATALOG_SQL }
  const samples = [await ask(floor, floor.url, catalog), await ask(vitrine, schemaUrl, null)]
  for (const peer of peers) samples.push(await ask(peer, peer.describe.url, peer.describe.body))
  return rowsOf({ name: 'W5 description', clients: 16, goal: '10' }, new Map(samples))
}

/** The query of a program without a stored description. */
const CATALOG_SQL = `SELECT table_schema, table_name, column_name, data_type, is_nullable FROM information_schema.columns
  WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1, 2, ordinal_position`

/**
 * Measures the peak memory of processes that answer only one workload, and then of the process that has answered all
 * workloads. The password hash of the sign-up takes 32 MB for a moment, so the peak until then counts separately.
 */
async function residents(world: World): Promise<string> {
  const peaks: string[] = []
  for (const [name, next, clients] of [
    ['W1', lookUp, 16],
    ['W3', (n: number) => page(n, 10_000), 4],
  ] as const) {
    const fresh = await world.fresh()
    const { peak: before } = await memory(fresh.pid)
    await resetPeak(fresh.pid)
    let turn = 0
    await load(fresh, () => ({ sql: next(++turn).sql }), clients, rounds * ms)
    peaks.push(
      `${(await memory(fresh.pid)).peak.toFixed(0)} MB in ${name} alone (${before.toFixed(0)} at start and sign-up)`,
    )
  }
  const { peak } = await memory(world.vitrine.pid)
  return `Resident memory at its peak: ${peaks.join(', ')}, ${peak.toFixed(0)} MB after everything above.`
}

async function workloads(): Promise<void> {
  await using world = await openWorld(before === undefined ? {} : { before })
  await using stack = new AsyncDisposableStack()
  const peers = flags.has('--peers') ? await startPeers(world.database, stack) : []
  const rest = (await memory(world.vitrine.pid)).now.toFixed(0)
  console.log(`ready ${world.readyMs.toFixed(0)} ms after npm start (goal <= 1500); resident ${rest} MB`)
  const ours = [world.floor, world.vitrine, ...(world.before === null ? [] : [world.before])].map(inSql)
  const askers = [...ours, ...peers.map((peer): Asker => ({ at: peer, body: (asked) => peer.body(asked) }))]
  const rows: string[][] = []
  const tell = (more: string[][]): void => {
    for (const row of more) console.log(row.join(' | '))
    rows.push(...more)
  }
  console.log(HEAD.join(' | '))
  for (const work of WORKLOADS.filter(({ name }) => only.test(name))) {
    const samples = await inTurns(work, askers)
    tell(rowsOf(work, samples))
    await check(work, samples, (turnMs) => inTurns(work, askers, turnMs))
  }
  if (only.test('W5 description')) tell(await describe(world, peers))
  const resident = only.test('memory') ? await residents(world) : ''
  if (resident !== '') console.log(resident)
  const title = `${await machine(world.postgres)}, ${rounds} rounds of ${ms} ms in turns, medians.`
  if (flags.has('--write')) await writeTable('workloads', `${title} ${resident}\n\n${markdown(HEAD, rows)}`)
}

if (flags.has('--growth')) {
  const title = await growth({ rounds, ms, only, tell: console.log })
  if (flags.has('--write')) await writeTable('growth', title)
} else {
  await workloads()
  if (only.test('connector') && !flags.has('--peers')) await benchConnector()
}
