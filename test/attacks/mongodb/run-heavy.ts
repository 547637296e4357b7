// Runs the heaviest queries that the guard allows, and watches CPU time and memory of mongod.
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { BSON, type Db, type Document } from 'mongodb'
import type { Catalog } from '../../../src/drivers/driver.ts'
import { toBson } from '../../../src/drivers/mongodb/session/to-bson.ts'
import type { MongoQuery } from '../../../src/drivers/mongodb/confined-query.ts'
import { judge } from './ask.ts'
import type { Heavy } from './heavy.ts'

/** If mongod needs more memory, it is killed. */
const KILLED_MB = 1_500

/** Returns the largest allowed query of a family. If the family has sizes, returns one query for each. */
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
  /** After the timeout, in milliseconds. */
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
  /** Before the query, in MB. */
  readonly before: number
  readonly peak: () => Promise<number>
  /** The CPU time so far. */
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
  // The memory of the start must not count, so reset the peak.
  await writeFile(`/proc/${pid}/clear_refs`, '5')
  return {
    before: await read('VmRSS'),
    peak: () => read('VmHWM'),
    cpuMs: async () => {
      // The 14th and 15th field. They are counted from the end of the name, which may contain anything.
      const [, rest = ''] = (await readFile(`/proc/${pid}/stat`, 'utf8')).split(/\) (?=[A-Z] )/)
      const fields = rest.split(' ')
      return (Number(fields[11]) + Number(fields[12])) * TICK_MS
    },
    [Symbol.asyncDispose]: async () => clearInterval(kill),
  }
}
