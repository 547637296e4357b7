// Runs a pool of worker threads for a guard. A query that would block the event loop is judged in a thread, with a
// deadline. If a query breaks a thread or takes too long, the thread is ended and replaced.
import type { Catalog } from './driver.ts'
import { GuardThread } from './guard-thread.ts'

export interface GuardThreadsOptions<Task> {
  /** The script of the threads. It must call serveGuard(). */
  readonly script: URL
  readonly threads: number
  /** The deadline of one task. */
  readonly deadlineMs: number
  /** Called with a task that broke a thread or took too long. */
  readonly onLost: (task: Task) => void
}

/** The maximum number of waiting tasks. For a further task, judge() returns null. */
const WAITING_MAX = 1_000

interface Job<Task, Answer> {
  readonly catalog: Catalog
  readonly task: Task
  readonly resolve: (answer: Answer | null) => void
  readonly isDropped: () => boolean
}

/** The threads, and the tasks that wait for a thread. A thread starts when a task waits and no thread is idle. */
export class GuardThreads<Task, Answer> {
  readonly #idle: GuardThread<Task, Answer>[] = []
  readonly #all = new Set<GuardThread<Task, Answer>>()
  readonly #waiting: Job<Task, Answer>[] = []
  readonly #options: GuardThreadsOptions<Task>
  #isEnded = false

  constructor(options: GuardThreadsOptions<Task>) {
    this.#options = options
  }

  /** Returns null if no thread could judge the task. Rejects only if the signal aborts, with its reason. */
  async judge(catalog: Catalog, task: Task, signal: AbortSignal): Promise<Answer | null> {
    signal.throwIfAborted()
    if (this.#isEnded || this.#waiting.length >= WAITING_MAX) return null
    const { promise, resolve, reject } = Promise.withResolvers<Answer | null>()
    const onAbort = (): void => {
      reject(signal.reason)
    }
    signal.addEventListener('abort', onAbort, { once: true })
    this.#waiting.push({ catalog, task, resolve, isDropped: () => signal.aborted })
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
    const thread = new GuardThread<Task, Answer>(script, deadlineMs, onReady, onEnd)
    this.#all.add(thread)
  }

  /** Ends a thread and starts another one. */
  #drop(thread: GuardThread<Task, Answer>): void {
    if (!this.#all.delete(thread)) return
    const place = this.#idle.indexOf(thread)
    if (place >= 0) this.#idle.splice(place, 1)
    void thread.end()
    this.#start()
  }

  /** Gives waiting tasks to idle threads. */
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
    const answer = await thread.judge(job.catalog, job.task)
    job.resolve(answer)
    if (answer === null) {
      if (!this.#isEnded) this.#options.onLost(job.task)
      this.#drop(thread)
    } else if (this.#all.has(thread)) this.#idle.push(thread)
    await this.#next()
  }
}
