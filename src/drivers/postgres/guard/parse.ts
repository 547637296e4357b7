// Where texts are parsed and judged: a few threads with a deadline, and the main thread for texts so small that nothing can
// come of them. A thread is ended, and another started, when a text breaks it or takes too long.
import { createHash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { loadModule } from 'libpg-query'
import type { Case, Parse, Parser, Sought } from './parser.ts'
import { parseText } from './parse-text.ts'
import { Thread, type Answer } from './thread.ts'
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
const DEADLINE_MS = 2_000
/** Texts waiting for a thread; the next one is turned away as too much. */
const WAITING_MAX = 1_000

/** Starts the parsers, warm. */
export async function openParser(options: ParserOptions = {}): Promise<Parser & AsyncDisposable> {
  // V8's optimizing compiler takes 600 MB for the grammar's one huge function, and parses no faster for it. Process-wide:
  // the threads' parsers heed it too.
  setFlagsFromString('--no-wasm-tier-up')
  setFlagsFromString('--no-wasm-dynamic-tiering')
  await loadModule()
  const tell = options.report ?? toStandardError
  const report = (problem: string, text: string): void => {
    tell(problem, createHash('sha256').update(text).digest('hex'))
  }
  const pool = new Pool(options.threads ?? THREADS, options.deadlineMs ?? DEADLINE_MS, report)
  const parser: Parser & AsyncDisposable = {
    parse: whileWhole(parseText, report),
    judge: async (each, signal) => {
      const answer = await pool.ask(each, undefined, signal)
      return answer.kind === 'place' ? { kind: 'lost' } : answer
    },
    locate: async (each, sought, signal) => {
      const answer = await pool.ask(each, sought, signal)
      return answer.kind === 'place' ? answer.at : null
    },
    turn: () => setImmediate(),
    report,
    [Symbol.asyncDispose]: () => pool.end(),
  }
  await warmUp(parser)
  // Only now, so that they do not take the processor from what the caller waits for; a text until then waits for one.
  pool.start()
  return parser
}

/**
 * The parser of the main thread until a text breaks it: nobody knows what its memory looks like after that, and libpg-query
 * has no way to make another. Every text goes to a thread from then on.
 */
function whileWhole(parse: Parse, report: Parser['report']): Parse {
  let isBroken = false
  return (text) => {
    if (isBroken) return { kind: 'lost' }
    const parsed = parse(text)
    if (parsed.kind === 'lost') {
      isBroken = true
      report('a text broke the parser of the main thread, which is not used again', text)
    }
    return parsed
  }
}

function toStandardError(problem: string, hash: string): void {
  process.stderr.write(`${JSON.stringify({ level: 'error', room: 'guard', problem, sha256: hash })}\n`)
}

interface Job {
  readonly case: Case
  readonly sought: Sought | undefined
  readonly resolve: (answer: Answer) => void
  readonly isDropped: () => boolean
}

/** Threads and the texts that wait for one. */
class Pool {
  readonly #idle: Thread[] = []
  readonly #all = new Set<Thread>()
  readonly #waiting: Job[] = []
  readonly #threads: number
  readonly #deadlineMs: number
  readonly #report: Parser['report']
  #isEnded = false

  constructor(threads: number, deadlineMs: number, report: Parser['report']) {
    this.#threads = threads
    this.#deadlineMs = deadlineMs
    this.#report = report
  }

  start(): void {
    for (let n = 0; n < this.#threads; n++) this.#start()
  }

  async ask(each: Case, sought: Sought | undefined, signal: AbortSignal): Promise<Answer> {
    if (this.#isEnded || this.#waiting.length >= WAITING_MAX) return { kind: 'lost' }
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    const onAbort = (): void => {
      reject(signal.reason)
    }
    signal.addEventListener('abort', onAbort, { once: true })
    this.#waiting.push({ case: each, sought, resolve, isDropped: () => signal.aborted })
    void this.#next()
    try {
      return await promise
    } finally {
      signal.removeEventListener('abort', onAbort)
    }
  }

  async end(): Promise<void> {
    this.#isEnded = true
    for (const job of this.#waiting.splice(0)) job.resolve({ kind: 'lost' })
    await Promise.all([...this.#all].map((thread) => thread.end()))
  }

  #start(): void {
    if (this.#isEnded || this.#all.size >= this.#threads) return
    const onReady = (): void => {
      this.#idle.push(thread)
      void this.#next()
    }
    const onEnd = (): void => {
      this.#drop(thread)
    }
    const thread = new Thread(this.#deadlineMs, onReady, onEnd)
    this.#all.add(thread)
  }

  /** Ends a thread and starts another. */
  #drop(thread: Thread): void {
    if (!this.#all.delete(thread)) return
    const place = this.#idle.indexOf(thread)
    if (place >= 0) this.#idle.splice(place, 1)
    void thread.end()
    this.#start()
  }

  /** Gives waiting texts to idle threads. */
  async #next(): Promise<void> {
    while (this.#waiting[0]?.isDropped()) this.#waiting.shift()
    const thread = this.#waiting.length > 0 ? this.#idle.pop() : undefined
    const job = thread && this.#waiting.shift()
    if (!job) return
    const judged = await thread.judge(job.case, job.sought)
    job.resolve(judged)
    if (judged.kind === 'lost') {
      if (!this.#isEnded) this.#report('a text broke a thread of the guard, or took it too long', job.case.text)
      this.#drop(thread)
    } else if (this.#all.has(thread)) this.#idle.push(thread)
    await this.#next()
  }
}
