// Runs the heaviest queries that the guard allows, and watches CPU time and memory of mongod.
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { BSON, type Db, type Document } from 'mongodb'
import type { Catalog } from '../../../src/drivers/driver.ts'
import { toBson } from '../../../src/drivers/mongodb/session/to-bson.ts'
import type { MongoQuery } from '../../../src/drivers/mongodb/confined-query.ts'
import { judge } from './ask.ts'
import type { Heavy } from './heavy.ts'

/** A mongod that needs more memory is killed. */
const KILLED_MB = 1_500

/** Returns one query for each size of the family. Without sizes, returns the largest query that the guard allows. */
export function heaviest({ body, sizes }: Heavy, exposed: Catalog): MongoQuery[] {
  const judged = (n: number): MongoQuery | null => {
    const written = body(n)
    if (JSON.stringify(written).length > 200_000) return null
    const query = judge(exposed, written)
    return 'kind' in query ? null : query
  }
  if (sizes !== undefined) return sizes.flatMap((n) => judged(n) ?? [])
  let found: MongoQuery | null = null
  let [passes, fails] = [1, 2]
  for (; fails < 1e7; fails *= 2) {
    const query = judged(fails)
    if (query === null) break
    ;[found, passes] = [query, fails]
  }
  for (let n = (passes + fails) / 2; fails > passes * 1.1; n = (passes + fails) / 2) {
    const query = judged(n)
    if (query === null) fails = n
    else [found, passes] = [query, n]
  }
  return found === null ? [] : [found]
}

export interface Ended {
  /** Milliseconds from the timeout to the end of the query. */
  readonly late: number
  /** The error code with which mongod failed the query, or null if it answered. */
  readonly code: number | null
}

export async function ask(full: Db, query: MongoQuery, timeoutMs: number): Promise<Ended> {
  const pipeline: Document[] = query.pipeline.map((stage) => toBson({ BSON }, stage))
  const began = performance.now()
  const code = await full
    .collection(query.collection)
    .aggregate(pipeline, { maxTimeMS: timeoutMs, allowDiskUse: false })
    .toArray()
    .then(
      () => null,
      (error: unknown) => {
        const found: unknown = Reflect.get(Object(error), 'code')
        assert.ok(typeof found === 'number', String(error))
        return found
      },
    )
  return { late: Math.round(performance.now() - began - timeoutMs), code }
}

interface Watch extends AsyncDisposable {
  /** Memory at the start, in MB. */
  readonly before: number
  readonly peak: () => Promise<number>
  /** CPU time since mongod started. */
  readonly cpuMs: () => Promise<number>
}

/** The kernel counts CPU time in hundredths of a second. */
const TICK_MS = 10

export async function watched(pid: number): Promise<Watch> {
  const read = async (field: string): Promise<number> => {
    const status = await readFile(`/proc/${pid}/status`, 'utf8')
    return Number(new RegExp(`${field}:\\s+(\\d+)`).exec(status)?.[1]) / 1024
  }
  const kill = setInterval(() => {
    read('VmRSS').then(
      (size) => size > KILLED_MB && process.kill(pid, 'SIGKILL'),
      () => undefined,
    )
  }, 20)
  // Resets the peak, so that memory from the start of mongod does not count.
  await writeFile(`/proc/${pid}/clear_refs`, '5')
  return {
    before: await read('VmRSS'),
    peak: () => read('VmHWM'),
    cpuMs: async () => {
      // utime and stime are the 14th and 15th field (proc(5)). They are counted from the end of the program's name,
      // which may contain spaces.
      const [, rest = ''] = (await readFile(`/proc/${pid}/stat`, 'utf8')).split(/\) (?=[A-Z] )/)
      const fields = rest.split(' ')
      return (Number(fields[11]) + Number(fields[12])) * TICK_MS
    },
    [Symbol.asyncDispose]: async () => clearInterval(kill),
  }
}
