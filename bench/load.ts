// A closed-loop load: each of `clients` callers sends its next request when the previous one is answered, for a fixed
// time.
import { readFile } from 'node:fs/promises'
import { Pool } from 'undici'
import type { Contender } from './world.ts'

export interface Sample {
  readonly requests: number
  readonly perSecond: number
  /** Milliseconds. */
  readonly p50: number
  /** CPU time of the service's process per request, in microseconds. */
  readonly cpuMicros: number
}

/** The body of one request. Called for each request. */
export type NextBody = () => object

/** Runs `clients` callers for `ms` milliseconds against one contender. */
export async function load(at: Contender, next: NextBody, clients: number, ms: number): Promise<Sample> {
  const url = new URL(at.url)
  const pool = new Pool(url.origin, { connections: clients, pipelining: 1 })
  const took: number[] = []
  const cpu = await cpuTicks(at.pid)
  const started = performance.now()
  const caller = async (): Promise<void> => {
    while (performance.now() - started < ms) {
      const sent = performance.now()
      await post(pool, url.pathname, at.headers, next())
      took.push(performance.now() - sent)
    }
  }
  await Promise.all(Array.from({ length: clients }, caller))
  const seconds = (performance.now() - started) / 1000
  const cpuMicros = (((await cpuTicks(at.pid)) - cpu) * 10_000) / took.length
  await pool.close()
  return { requests: took.length, perSecond: took.length / seconds, p50: median(took), cpuMicros }
}

/** Sends one request and reads the whole answer. Throws unless the status is 200. */
export async function post(pool: Pool, path: string, headers: Contender['headers'], asked: object): Promise<void> {
  const body = JSON.stringify(asked)
  const res = await pool.request({
    method: 'POST',
    path,
    headers: { ...headers, 'content-type': 'application/json' },
    body,
  })
  if (res.statusCode !== 200) throw new Error(`${res.statusCode} ${await res.body.text()}`)
  await res.body.dump({ limit: 1 << 28 })
}

/** Sends GETs instead of queries, for the description. */
export async function loadGet(at: Contender, url: string, clients: number, ms: number): Promise<Sample> {
  const { origin, pathname } = new URL(url)
  const pool = new Pool(origin, { connections: clients, pipelining: 1 })
  const took: number[] = []
  const started = performance.now()
  const caller = async (): Promise<void> => {
    while (performance.now() - started < ms) {
      const sent = performance.now()
      const res = await pool.request({ method: 'GET', path: pathname, headers: at.headers })
      if (res.statusCode !== 200) throw new Error(`${res.statusCode} ${await res.body.text()}`)
      await res.body.dump({ limit: 1 << 28 })
      took.push(performance.now() - sent)
    }
  }
  await Promise.all(Array.from({ length: clients }, caller))
  const seconds = (performance.now() - started) / 1000
  await pool.close()
  return { requests: took.length, perSecond: took.length / seconds, p50: median(took), cpuMicros: 0 }
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[sorted.length >> 1] ?? Number.NaN
}

/** User and system time of a process, in ticks of 10 ms (proc(5)). */
async function cpuTicks(pid: number): Promise<number> {
  const fields = (await readFile(`/proc/${pid}/stat`, 'utf8')).replace(/^.*\) /, '').split(' ')
  return Number(fields[11]) + Number(fields[12])
}

/** Resident memory of a process, current and peak, in MB. */
export async function memory(pid: number): Promise<{ now: number; peak: number }> {
  const text = await readFile(`/proc/${pid}/status`, 'utf8')
  const mb = (name: string): number => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(text)?.[1] ?? Number.NaN) / 1024
  return { now: mb('VmRSS'), peak: mb('VmHWM') }
}
