// The parsers: a few threads with a deadline, and one on the spot for texts so small that nothing can come of them. A
// thread is ended, and another started, when a text breaks it or takes too long.
import { createHash } from 'node:crypto'
import { setFlagsFromString } from 'node:v8'
import { Worker } from 'node:worker_threads'
import { loadModule } from 'libpg-query'
import type { Parsed, Parser } from './parser.ts'
import { parseText } from './parse-text.ts'
import { warmUp } from './warm-up.ts'

export interface ParserOptions {
  /** Threads; more than two queries rarely need one at once. */
  readonly threads?: number
  /** How long one text may take. */
  readonly deadlineMs?: number
  /** Where a defect of ours is told: a sentence, and a hash of the text. */
  readonly report?: (problem: string, hash: string) => void
}

const THREADS = 2
const DEADLINE_MS = 500
/** Texts waiting for a thread; the next one is turned away as too much. */
const WAITING_MAX = 1_000

/** Starts the parsers, warm. */
export async function openParser(options: ParserOptions = {}): Promise<Parser & AsyncDisposable> {
  // V8's optimizing compiler takes 600 MB for the grammar's one huge function, and parses no faster for it. Process-wide:
  // the threads' parsers heed it too.
  setFlagsFromString('--no-wasm-tier-up')
  setFlagsFromString('--no-wasm-dynamic-tiering')
  await loadModule()
  const pool = new Pool(options.threads ?? THREADS, options.deadlineMs ?? DEADLINE_MS)
  const report = options.report ?? toStandardError
  let isBroken = false
  const parser: Parser & AsyncDisposable = {
    parse: async (text, isSmall, signal) => {
      signal.throwIfAborted()
      if (!isSmall || isBroken) return pool.parse(text, signal)
      const parsed = parseText(text)
      // Never seen of a small text. This thread's parser is not to be trusted again, and cannot be ended.
      if (parsed.kind === 'lost') isBroken = true
      return parsed
    },
    report: (problem, text) => {
      report(problem, createHash('sha256').update(text).digest('hex'))
    },
    [Symbol.asyncDispose]: () => pool.end(),
  }
  await warmUp(parser)
  // Only now, so that they do not take the processor from what the caller waits for; a text until then waits for one.
  pool.start()
  return parser
}

function toStandardError(problem: string, hash: string): void {
  process.stderr.write(`${JSON.stringify({ level: 'error', room: 'guard', problem, sha256: hash })}\n`)
}

interface Job {
  readonly text: string
  readonly resolve: (parsed: Parsed) => void
  readonly isDropped: () => boolean
}

/** Threads and the texts that wait for one. */
class Pool {
  readonly #idle: Worker[] = []
  readonly #all = new Set<Worker>()
  readonly #waiting: Job[] = []
  readonly #threads: number
  readonly #deadlineMs: number
  #isEnded = false

  constructor(threads: number, deadlineMs: number) {
    this.#threads = threads
    this.#deadlineMs = deadlineMs
  }

  start(): void {
    for (let n = 0; n < this.#threads; n++) this.#start()
  }

  async parse(text: string, signal: AbortSignal): Promise<Parsed> {
    if (this.#isEnded || this.#waiting.length >= WAITING_MAX) return { kind: 'lost' }
    const { promise, resolve, reject } = Promise.withResolvers<Parsed>()
    const onAbort = (): void => {
      reject(signal.reason)
    }
    signal.addEventListener('abort', onAbort, { once: true })
    this.#waiting.push({ text, resolve, isDropped: () => signal.aborted })
    this.#next()
    try {
      return await promise
    } finally {
      signal.removeEventListener('abort', onAbort)
    }
  }

  async end(): Promise<void> {
    this.#isEnded = true
    for (const job of this.#waiting.splice(0)) job.resolve({ kind: 'lost' })
    await Promise.all([...this.#all].map((worker) => worker.terminate()))
  }

  #start(): void {
    if (this.#isEnded || this.#all.size >= this.#threads) return
    const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
    const worker = new Worker(new URL(`./parse-worker.${extension}`, import.meta.url))
    // It must not keep the process alive.
    worker.unref()
    this.#all.add(worker)
    worker.once('message', () => {
      this.#idle.push(worker)
      this.#next()
    })
    worker.once('error', () => {
      this.#drop(worker)
    })
    worker.once('exit', () => {
      this.#drop(worker)
    })
  }

  /** Ends a thread and starts another. */
  #drop(worker: Worker): void {
    if (!this.#all.delete(worker)) return
    const place = this.#idle.indexOf(worker)
    if (place >= 0) this.#idle.splice(place, 1)
    void worker.terminate()
    this.#start()
  }

  #next(): void {
    while (this.#waiting[0]?.isDropped()) this.#waiting.shift()
    const worker = this.#waiting.length > 0 ? this.#idle.pop() : undefined
    if (!worker) return
    const job = this.#waiting.shift()
    if (job) this.#run(worker, job)
  }

  #run(worker: Worker, job: Job): void {
    const finish = (parsed: Parsed): void => {
      clearTimeout(timer)
      worker.off('message', onMessage)
      worker.off('exit', onExit)
      job.resolve(parsed)
      if (parsed.kind === 'lost') this.#drop(worker)
      else this.#idle.push(worker)
      this.#next()
    }
    const onMessage = (message: unknown): void => {
      finish(parsedOf(message))
    }
    const onExit = (): void => {
      finish({ kind: 'lost' })
    }
    const timer = setTimeout(onExit, this.#deadlineMs)
    worker.on('message', onMessage)
    worker.once('exit', onExit)
    worker.postMessage(job.text)
  }
}

function parsedOf(message: unknown): Parsed {
  const parsed: unknown = typeof message === 'string' ? JSON.parse(message) : undefined
  return isParsed(parsed) ? parsed : { kind: 'lost' }
}

function isParsed(message: unknown): message is Parsed {
  return typeof message === 'object' && message !== null && 'kind' in message
}
