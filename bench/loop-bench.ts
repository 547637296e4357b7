// Starts the bundle, and measures how much one request delays other requests. The service itself measures the longest
// delay of its event loop, and the processor time of its longest turn. A thread of this process measures the longest
// wait for /health/live. Linux only (signals).
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { median } from './load.ts'
import { startVitrine } from './world.ts'

const ONLY = new RegExp(process.env['BENCH_ONLY'] ?? '')
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 10)

interface LoopBench {
  /** The base URL of the service. */
  readonly base: string
  /** If BENCH_ONLY matches the name, does the work several times and prints its delays. */
  bench(name: string, work: () => Promise<void>): Promise<void>
}

interface Delays {
  /** The longest delay of the event loop, in milliseconds. */
  readonly delay: number
  /** The processor time of the longest turn of the event loop, in milliseconds. */
  readonly turn: number
  /** The longest wait for /health/live, in milliseconds. */
  readonly waited: number
}

/** If BENCH_BEFORE names another checkout, starts its bundle instead. */
export async function openLoopBench(stack: AsyncDisposableStack): Promise<LoopBench> {
  const folder = await mkdtemp(join(tmpdir(), 'vitrine-bench-loop-'))
  stack.defer(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'delays')
  const { base, pid } = await startVitrine(stack, undefined, process.env['BENCH_BEFORE'], {
    BENCH_LOOP_FILE: file,
    NODE_OPTIONS: `--import=${new URL('./loop-monitor.ts', import.meta.url).pathname}`,
  })
  const prober = new Worker(new URL('./loop-prober.ts', import.meta.url), { workerData: base })
  stack.defer(async () => void (await prober.terminate()))

  let lines = 0
  const readDelays = async (): Promise<Delays> => {
    lines++
    process.kill(pid, 'SIGUSR2')
    for (;;) {
      const text = await readFile(file, 'utf8').catch(() => '')
      const all = text.trim().split('\n')
      if (text !== '' && all.length >= lines) {
        prober.postMessage('')
        const [waited] = (await once(prober, 'message')) as [number]
        const [delay = NaN, turn = NaN] = (all.at(-1) ?? '').split(' ').map(Number)
        return { delay, turn, waited }
      }
      await wait(2)
    }
  }

  const measured = async (work: () => Promise<void>): Promise<Delays & { readonly took: number }> => {
    await readDelays()
    const began = performance.now()
    await work()
    const took = performance.now() - began
    await wait(20) // Wait for writes that follow the answer.
    return { ...(await readDelays()), took }
  }

  return {
    base,
    async bench(name, work) {
      if (!ONLY.test(name)) return
      const all: Awaited<ReturnType<typeof measured>>[] = []
      for (let n = 0; n < ROUNDS; n++) all.push(await measured(work))
      const [one, ...others] = all
      const of = (pick: (each: Delays & { readonly took: number }) => number): string =>
        `${median(others.map(pick)).toFixed(1)} (first ${one === undefined ? '-' : pick(one).toFixed(1)}, least ${Math.min(...others.map(pick)).toFixed(1)}, most ${Math.max(...others.map(pick)).toFixed(1)})`
      console.log(
        `${name}: one turn ${of((x) => x.turn)} ms of processor time, event loop ${of((x) => x.delay)} ms, /health/live ${of((x) => x.waited)} ms, the request ${of((x) => x.took)} ms`,
      )
    },
  }
}
