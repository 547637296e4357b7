// The worker threads of a guard. A query that could block the event loop is judged in a thread, within a deadline. If
// the query breaks the thread or takes too long, the thread is ended, and another thread starts later.
import { openFairLimit, type FairLimit } from '../concurrency-limit.ts'
import { AppError } from '../errors.ts'
import type { Catalog, Owner } from './driver.ts'
import { GuardThread } from './guard-thread.ts'

export interface GuardThreadsOptions<Task> {
  /** The script must call serveGuard(). */
  readonly script: URL
  readonly threads: number
  readonly deadlineMs: number
  /** Called with a task that broke a thread or took too long. */
  readonly onLost: (task: Task) => void
}

/** The limit for all owners together. One owner gets only a part of it (concurrency-limit.ts). */
const WAITING_MAX = 1_000
const RETRY_AFTER_SECONDS = 2

/**
 * The threads, and the tasks that wait for a thread. Owners take turns, so a task of one owner does not wait for all
 * tasks of another owner. If no thread is idle, the task whose turn it is starts a thread.
 */
export class GuardThreads<Task, Answer> {
  readonly #idle: GuardThread<Task, Answer>[] = []
  readonly #all = new Set<GuardThread<Task, Answer>>()
  readonly #options: GuardThreadsOptions<Task>
  readonly #turns: FairLimit
  readonly #ending = new AbortController()

  constructor(options: GuardThreadsOptions<Task>) {
    this.#options = options
    this.#turns = openFairLimit({ each: options.threads, all: options.threads, waiting: WAITING_MAX })
  }

  /**
   * Returns null if no thread could judge the task. Throws OVERLOADED if too many tasks of the owner wait. Throws the
   * reason of the signal if it aborts.
   */
  async judge(catalog: Catalog, task: Task, owner: Owner, signal: AbortSignal): Promise<Answer | null> {
    signal.throwIfAborted()
    const turn = await this.#turn(owner, signal)
    if (turn === null) return null
    // After an abort, the thread still works on the task. The turn ends when the thread has finished.
    const answer = this.#judged(catalog, task, signal).finally(() => turn[Symbol.dispose]())
    const { promise: aborted, resolve } = Promise.withResolvers<null>()
    const onAbort = (): void => {
      resolve(null)
    }
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      const first = await Promise.race([answer, aborted])
      signal.throwIfAborted()
      return first
    } finally {
      signal.removeEventListener('abort', onAbort)
    }
  }

  async end(): Promise<void> {
    this.#ending.abort()
    await Promise.all([...this.#all].map((thread) => thread.end()))
  }

  async #turn(owner: Owner, signal: AbortSignal): Promise<Disposable | null> {
    const ending = this.#ending.signal
    let turn: Disposable | null
    try {
      turn = await this.#turns.take(owner.account, { signal: AbortSignal.any([signal, ending]), lane: owner.team })
    } catch (error) {
      if (ending.aborted && !signal.aborted) return null
      throw error
    }
    if (turn !== null) return turn
    throw new AppError('OVERLOADED', 'Too many long queries are waiting for their check. Try again in a moment.', {
      extra: { retryAfter: RETRY_AFTER_SECONDS },
    })
  }

  /** Returns null if no thread could judge the task, or if the signal aborted before a thread was ready. */
  async #judged(catalog: Catalog, task: Task, signal: AbortSignal): Promise<Answer | null> {
    const thread = this.#idle.pop() ?? (await this.#started())
    if (thread === null) return null
    const answer = signal.aborted ? undefined : await thread.judge(catalog, task)
    if (answer === null) {
      if (!this.#ending.signal.aborted) this.#options.onLost(task)
      this.#drop(thread)
    } else if (this.#all.has(thread)) this.#idle.push(thread)
    return answer ?? null
  }

  /** Returns null if the thread ended before it was ready. */
  #started(): Promise<GuardThread<Task, Answer> | null> {
    const { promise, resolve } = Promise.withResolvers<GuardThread<Task, Answer> | null>()
    const { script, deadlineMs } = this.#options
    const onReady = (): void => {
      resolve(thread)
    }
    const onEnd = (): void => {
      this.#drop(thread)
      resolve(null)
    }
    const thread = new GuardThread<Task, Answer>(script, deadlineMs, onReady, onEnd)
    this.#all.add(thread)
    return promise
  }

  /** Ends a thread. The next task starts another thread. */
  #drop(thread: GuardThread<Task, Answer>): void {
    if (!this.#all.delete(thread)) return
    const place = this.#idle.indexOf(thread)
    if (place >= 0) this.#idle.splice(place, 1)
    void thread.end()
  }
}
