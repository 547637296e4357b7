// Compares Vitrine with FLOOR(pg) (floor-postgres.ts) while the number of clients, rows, exposed tables or query shapes
// grows. run.ts runs it.
import { load, median, type Sample } from './load.ts'
import { machine, markdown } from './report.ts'
import { lookUp, page, type Asked } from './workloads.ts'
import { openWorld, type World } from './world.ts'

export interface GrowthOptions {
  readonly rounds: number
  readonly ms: number
  /** A pattern for the names of the parts to run. */
  readonly only: RegExp
  readonly tell: (line: string) => void
}

/** Returns an id from 1 to `most`. The factor is a prime number that does not divide `most`, so every id occurs. */
const at = (turn: number, most: number): number => 1 + ((turn * 7919) % most)

interface Step {
  readonly part: string
  readonly size: number
  readonly clients: number
  readonly next: (turn: number) => Asked
}

const CLIENTS = [1, 2, 4, 8, 16, 32, 64].map((size): Step => {
  return { part: 'clients, a point look-up', size, clients: size, next: (turn) => lookUp(at(turn, 200_000)) }
})
// A team may allow at most 50,000 rows.
const ROWS = [10, 100, 1_000, 10_000, 50_000].map((size): Step => {
  const next = (turn: number): Asked => page(at(turn, 200_000 - size), size)
  return { part: 'rows of one answer', size, clients: 4, next }
})
const SHAPES = [1, 10, 100, 1_000, 10_000].map((size): Step => {
  const next = (turn: number): Asked => {
    const shape = at(turn, size)
    return {
      sql: `SELECT id AS s${shape}, customer_id, total, note, ordered_at FROM orders WHERE id = ${at(turn, 200_000)}`,
    }
  }
  return { part: 'shapes in turns', size, clients: 16, next }
})
const TABLES = [10, 100, 1_000, 10_000]
const TABLES_PART = 'exposed tables, a point look-up'

const HEAD = [
  'what grows',
  'to',
  '× floor',
  'p50 ms: Vitrine, floor',
  'service µs: Vitrine, floor',
  'database µs: Vitrine, floor',
]

/** Returns one Markdown table for all parts. The line above it names the machine and the rounds. */
export async function growth(options: GrowthOptions): Promise<string> {
  const rows: string[][] = []
  const run = async (world: World, step: Step): Promise<void> => {
    const row = await measured(world, step, options)
    options.tell(row.join(' | '))
    rows.push(row)
  }
  let title = ''
  const steps = [...CLIENTS, ...ROWS, ...SHAPES].filter(({ part }) => options.only.test(part))
  if (steps.length > 0) {
    await using world = await openWorld()
    title = await machine(world.postgres)
    for (const step of steps) await run(world, step)
  }
  for (const size of options.only.test(TABLES_PART) ? TABLES : []) {
    const tables = Array.from({ length: size }, (_, n) => `orders_${n + 1}`)
    // One transaction creates all tables, and locks each of them, so the limit on locks must be higher.
    const settings = { max_locks_per_transaction: '1024' }
    await using world = await openWorld({ sql: tablesSql(size), tables, settings })
    title ||= await machine(world.postgres)
    const next = (turn: number): Asked => {
      return { sql: `SELECT id, note, total FROM orders_${at(turn, Math.min(size, 100))} WHERE id = ${at(turn, 10)}` }
    }
    await run(world, { part: TABLES_PART, size, clients: 16, next })
  }
  return `${title}, ${options.rounds} rounds of ${options.ms} ms in turns, medians.\n\n${markdown(HEAD, rows)}`
}

function tablesSql(count: number): string {
  return `CREATE TABLE orders_1 (id int PRIMARY KEY, note text, total numeric, at timestamptz, paid bool);
INSERT INTO orders_1 SELECT n, 'note ' || n, n, now(), true FROM generate_series(1, 10) n;
DO $$ BEGIN
  FOR n IN 2..${count} LOOP
    EXECUTE format('CREATE TABLE orders_%s (LIKE orders_1 INCLUDING ALL)', n);
    EXECUTE format('INSERT INTO orders_%s SELECT * FROM orders_1', n);
  END LOOP;
END $$;`
}

async function measured(world: World, step: Step, { rounds, ms }: GrowthOptions): Promise<string[]> {
  const pairs: { floor: Sample; vitrine: Sample }[] = []
  let turn = 0
  const next = (): object => ({ sql: step.next(++turn).sql })
  for (let round = 0; round <= rounds; round++) {
    const vitrine = await load(world.vitrine, next, step.clients, ms)
    const floor = await load(world.floor, next, step.clients, ms)
    if (round > 0) pairs.push({ vitrine, floor })
  }
  const both = (pick: (each: Sample) => number, digits: number): string => {
    const of = (who: 'vitrine' | 'floor'): string => median(pairs.map((pair) => pick(pair[who]))).toFixed(digits)
    return `${of('vitrine')}, ${of('floor')}`
  }
  const ratio = median(pairs.map(({ vitrine, floor }) => vitrine.perSecond / floor.perSecond)).toFixed(2)
  const cpu = [both(({ cpuMicros }) => cpuMicros, 0), both(({ databaseMicros }) => databaseMicros, 0)]
  return [step.part, step.size.toLocaleString('en'), ratio, both(({ p50 }) => p50, 2), ...cpu]
}
