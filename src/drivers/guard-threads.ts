// The threads of a guard: what would hold up other requests is judged by one of them, within a deadline. A thread is ended,
// and another started, when a text breaks it or takes too long.
import type { Catalog } from './driver.ts'
import { GuardThread } from './guard-thread.ts'

export interface GuardThreadsOptions<Asked> {
  /** What a thread runs: it must call serveGuard(). */
  readonly script: URL
  readonly threads: number
  /** How long one text may take. */
  readonly deadlineMs: number
  /** Told of what broke a thread, or took it too long. */
  readonly onLost: (asked: Asked) => void
}

/** Texts waiting for a thread; the next one is turned away as too much. */
const WAITING_MAX = 1_000

interface Job<Asked, Answer> {
  readonly catalog: Catalog
  readonly asked: Asked
  readonly resolve: (answer: Answer | null) => void
  readonly isDropped: () => boolean
}

/** Threads and the texts that wait for one. */
export class GuardThreads<Asked, Answer> {
  readonly #idle: GuardThread<Asked, Answer>[] = []
  readonly #all = new Set<GuardThread<Asked, Answer>>()
  readonly #waiting: Job<Asked, Answer>[] = []
  readonly #options: GuardThreadsOptions<Asked>
  #isEnded = false

  constructor(options: GuardThreadsOptions<Asked>) {
    this.#options = options
  }

  /** Starts all threads now. Without it each is started when a text waits and none is idle. */
  start(): void {
    for (let n = 0; n < this.#options.threads; n++) this.#start()
  }

  /** Null where no thread could judge it. Rejects for an aborted signal alone, with its reason. */
  async judge(catalog: Catalog, asked: Asked, signal: AbortSignal): Promise<Answer | null> {
    signal.throwIfAborted()
    if (this.#isEnded || this.#waiting.length >= WAITING_MAX) return null
    const { promise, resolve, reject } = Promise.withResolvers<Answer | null>()
    const onAbort = (): void => {
      reject(signal.reason)
    }
    signal.addEventListener('abort', onAbort, { once: true })
    this.#waiting.push({ catalog, asked, resolve, isDropped: () => signal.aborted })
    void this.#next()
    try {
      return await promise
    } finally {
      signal.removeEventListener('abort', onAbort)
    }
  }

  async end(): Promise<void> {
    this.#isEnded = true
    for (const job of this.#waiting.splice(0)) job.resolve(null)
    await Promise.all([...this.#all].map((thread) => thread.end()))
  }

  #start(): void {
    const { script, threads, deadlineMs } = this.#options
    if (this.#isEnded || this.#all.size >= threads) return
    const onReady = (): void => {
      this.#idle.push(thread)
      void this.#next()
    }
    const onEnd = (): void => {
      this.#drop(thread)
    }
    const thread = new GuardThread<Asked, Answer>(script, deadlineMs, onReady, onEnd)
    this.#all.add(thread)
  }

  /** Ends a thread and starts another. */
  #drop(thread: GuardThread<Asked, Answer>): void {
    if (!this.#all.delete(thread)) return
    const place = this.#idle.indexOf(thread)
    if (place >= 0) this.#idle.splice(place, 1)
    void thread.end()
    this.#start()
  }

  /** Gives waiting texts to idle threads. */
  async #next(): Promise<void> {
    while (this.#waiting[0]?.isDropped()) this.#waiting.shift()
    if (this.#waiting.length === 0) return
    const thread = this.#idle.pop()
    if (thread === undefined) {
      this.#start()
      return
    }
    const job = this.#waiting.shift()
    if (job === undefined) return
    const answer = await thread.judge(job.catalog, job.asked)
    job.resolve(answer)
    if (answer === null) {
      if (!this.#isEnded) this.#options.onLost(job.asked)
      this.#drop(thread)
    } else if (this.#all.has(thread)) this.#idle.push(thread)
    await this.#next()
  }
}
