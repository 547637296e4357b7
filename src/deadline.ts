// Ends a call when the caller hangs up, when the timeout has passed, or when somebody refuses it. It must be cheap,
// because every query has a deadline: it creates an AbortSignal only if needed, and calls share timers and listeners. A
// `using` block releases its deadline at the end, without an abort.
import type { AppError } from './errors.ts'

export interface Deadline extends Disposable {
  readonly signal: AbortSignal
  /** Like `signal`, but cheaper, for the steps of every query. */
  readonly stop: CallStop
  readonly timedOut: boolean
  readonly ended: AppError | null
  /** Ends the call with this refusal, unless it has ended already. */
  end(refusal: AppError): void
}

interface CallStop {
  readonly aborted: boolean
  readonly reason: unknown
  throwIfAborted(): void
  addEventListener(type: 'abort', listener: () => void): void
  removeEventListener(type: 'abort', listener: () => void): void
  toSignal(): AbortSignal
}

/** `signal` aborts with the caller's reason, a TimeoutError, or the refusal that was passed to end(). */
export function deadlineOf(caller: AbortSignal, timeoutMs: number): Deadline {
  return new CallDeadline(caller, timeoutMs)
}

/** One object without closures, because every query creates one. */
class CallDeadline implements Deadline, CallStop {
  readonly expiresAt: number
  earlier: CallDeadline | null = null
  later: CallDeadline | null = null
  aborted = false
  reason: unknown = undefined
  timedOut = false
  ended: AppError | null = null
  readonly #queue: Queue
  readonly #calls: CallDeadline[]
  #control: AbortController | null = null
  #listener: (() => void) | null = null
  #more: readonly (() => void)[] = NONE
  #isWaiting = false

  constructor(caller: AbortSignal, timeoutMs: number) {
    this.expiresAt = performance.now() + timeoutMs
    this.#queue = queueOf(timeoutMs)
    this.#calls = callsOf(caller)
    if (caller.aborted) {
      this.#abort(caller.reason)
      return
    }
    this.#isWaiting = true
    this.#calls.push(this)
    this.#queue.add(this)
  }

  get signal(): AbortSignal {
    return this.toSignal()
  }

  get stop(): CallStop {
    return this
  }

  toSignal(): AbortSignal {
    if (this.#control === null) {
      this.#control = new AbortController()
      if (this.aborted) this.#control.abort(this.reason)
    }
    return this.#control.signal
  }

  throwIfAborted(): void {
    if (this.aborted) throw this.reason
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    if (this.#listener === null) this.#listener = listener
    else this.#more = [...this.#more, listener]
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    if (this.#listener === listener) this.#listener = null
    else if (this.#more.length > 0) this.#more = this.#more.filter((each) => each !== listener)
  }

  hangUp(reason: unknown): void {
    if (!this.aborted) this.#abort(reason)
  }

  expire(): void {
    if (this.aborted) return
    this.timedOut = true
    this.#abort(new DOMException('The time limit was reached.', 'TimeoutError'))
  }

  end(refusal: AppError): void {
    if (this.aborted) return
    this.ended = refusal
    this.#abort(refusal)
  }

  [Symbol.dispose](): void {
    if (!this.#isWaiting) return
    this.#isWaiting = false
    this.#queue.remove(this)
    const calls = this.#calls
    if (calls.at(-1) === this) calls.pop()
    else calls.splice(calls.indexOf(this), 1)
  }

  #abort(reason: unknown): void {
    this[Symbol.dispose]()
    this.aborted = true
    this.reason = reason
    const listeners = [this.#listener, ...this.#more]
    this.#control?.abort(reason)
    for (const listener of listeners) listener?.()
  }
}

const NONE: readonly (() => void)[] = []

/** The running calls of each caller's signal, for which one listener is enough. */
const running = new WeakMap<AbortSignal, CallDeadline[]>()

function callsOf(caller: AbortSignal): CallDeadline[] {
  const known = running.get(caller)
  if (known !== undefined) return known
  const calls: CallDeadline[] = []
  running.set(caller, calls)
  caller.addEventListener(
    'abort',
    () => {
      for (const call of [...calls]) call.hangUp(caller.reason)
    },
    { once: true },
  )
  return calls
}

/** Calls with the same timeout expire in the order in which they began, so one timer is enough. */
class Queue {
  readonly #timeoutMs: number
  #first: CallDeadline | null = null
  #last: CallDeadline | null = null
  #timer: NodeJS.Timeout | undefined
  #isExpiring = false

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs
  }

  add(call: CallDeadline): void {
    call.earlier = this.#last
    if (this.#last === null) this.#first = call
    else this.#last.later = call
    this.#last = call
    if (this.#isExpiring) return
    if (this.#timer === undefined) this.#arm(this.#timeoutMs)
    else if (this.#first === call) this.#timer.ref()
  }

  /** Keeps the timer for the next call. The timer does not keep the process alive. */
  remove(call: CallDeadline): void {
    const { earlier, later } = call
    if (earlier === null) this.#first = later
    else earlier.later = later
    if (later === null) this.#last = earlier
    else later.earlier = earlier
    call.earlier = null
    call.later = null
    if (this.#first === null) this.#timer?.unref()
  }

  #arm(ms: number): void {
    this.#timer = setTimeout(expireIn, ms, this)
  }

  expire(): void {
    this.#timer = undefined
    // A timer may fire up to a millisecond too early.
    const now = performance.now() + 1
    this.#isExpiring = true
    try {
      while (this.#first !== null && this.#first.expiresAt <= now) this.#first.expire()
    } finally {
      // Also after an error of a listener. A listener may have begun another call.
      this.#isExpiring = false
      if (this.#first === null) queues.delete(this.#timeoutMs)
      else this.#arm(Math.max(1, this.#first.expiresAt - now))
    }
  }
}

function expireIn(queue: Queue): void {
  queue.expire()
}

const queues = new Map<number, Queue>()

function queueOf(timeoutMs: number): Queue {
  const known = queues.get(timeoutMs)
  if (known !== undefined) return known
  const queue = new Queue(timeoutMs)
  queues.set(timeoutMs, queue)
  return queue
}

/** Returns true if a timeout aborted the signal: of a deadline, or of AbortSignal.timeout. */
export function isTimeout(signal: AbortSignal): boolean {
  return signal.aborted && signal.reason instanceof Error && signal.reason.name === 'TimeoutError'
}
