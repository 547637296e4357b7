// A closed-loop load for a fixed time: each of `clients` callers sends its next request when its previous one is
// answered.
import type { Pool } from 'undici'
import { Caller, headOf, requestOf } from './caller.ts'
import { cpuMicros } from './cpu-time.ts'
import type { Contender } from './world.ts'

export interface Sample {
  readonly requests: number
  readonly perSecond: number
  /** Milliseconds from a request to its answer. */
  readonly p50: number
  /**
   * Microseconds per request. `databaseMicros` is the CPU time of the database, or 0 if the contender names no database
   * process.
   */
  readonly cpuMicros: number
  readonly databaseMicros: number
}

export type NextBody = () => object

/** `clients` callers post `next()` to one contender for `ms` milliseconds. */
export function load(at: Contender, next: NextBody, clients: number, ms: number): Promise<Sample> {
  const head = headOf('POST', at.url, at.headers)
  return loadAny(at, () => requestOf(head, next()), clients, ms)
}

/** Like load(), but the requests may have any method and path. */
export async function loadAny(at: Contender, next: () => string, clients: number, ms: number): Promise<Sample> {
  const callers = await Promise.all(Array.from({ length: clients }, () => Caller.open(at.url)))
  const took: number[] = []
  const spent = () => Promise.all([cpuMicros(at.pid), at.databasePid === undefined ? 0 : cpuMicros(at.databasePid)])
  const [service, database] = await spent()
  const started = performance.now()
  const askAll = async (caller: Caller): Promise<void> => {
    while (performance.now() - started < ms) {
      const sent = performance.now()
      await caller.ask(next())
      took.push(performance.now() - sent)
    }
  }
  await Promise.all(callers.map(askAll))
  const seconds = (performance.now() - started) / 1000
  const [serviceNow, databaseNow] = await spent()
  for (const caller of callers) caller.close()
  return {
    requests: took.length,
    perSecond: took.length / seconds,
    p50: median(took),
    cpuMicros: (serviceNow - service) / took.length,
    databaseMicros: (databaseNow - database) / took.length,
  }
}

/** Reads the whole answer. Throws unless the status is 200. */
export async function post(pool: Pool, path: string, headers: Contender['headers'], asked: object): Promise<void> {
  const body = JSON.stringify(asked)
  await read(
    await pool.request({ method: 'POST', path, headers: { 'content-type': 'application/json', ...headers }, body }),
  )
}

async function read(res: Awaited<ReturnType<Pool['request']>>): Promise<void> {
  if (res.statusCode !== 200) throw new Error(`${res.statusCode} ${await res.body.text()}`)
  await res.body.dump({ limit: 1 << 28 })
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[sorted.length >> 1] ?? Number.NaN
}
