// The deadline of a call: one signal for the caller's hang-up and the timeout, whichever comes first. Cheaper than
// AbortSignal.any with AbortSignal.timeout on the hot path of queries. `using` removes the timer and the listener.
import type { AppError } from './errors.ts'

export interface Deadline extends Disposable {
  readonly signal: AbortSignal
  /** True if the timeout, not the caller, ended the call. */
  readonly timedOut: boolean
  /** The refusal that was passed to end(), if end() was what ended the call. */
  readonly ended: AppError | null
  /** Ends the call with this refusal, unless the call has already ended. */
  end(refusal: AppError): void
}

/** `signal` aborts with the caller's reason, or with a TimeoutError. */
export function deadlineOf(caller: AbortSignal, timeoutMs: number): Deadline {
  return new CallDeadline(caller, timeoutMs)
}

/** One object for each call, without closures. */
class CallDeadline implements Deadline {
  readonly signal: AbortSignal
  timedOut = false
  ended: AppError | null = null
  readonly #control = new AbortController()
  readonly #caller: AbortSignal
  readonly #timer: NodeJS.Timeout

  constructor(caller: AbortSignal, timeoutMs: number) {
    this.signal = this.#control.signal
    this.#caller = caller
    this.#timer = setTimeout(expire, timeoutMs, this)
    if (caller.aborted) this.handleEvent()
    else caller.addEventListener('abort', this)
  }

  /** The caller hung up. */
  handleEvent(): void {
    this.#control.abort(this.#caller.reason)
  }

  expire(): void {
    if (this.signal.aborted) return
    this.timedOut = true
    this.#control.abort(new DOMException('The time limit was reached.', 'TimeoutError'))
  }

  end(refusal: AppError): void {
    if (this.signal.aborted) return
    this.ended = refusal
    this.#control.abort(refusal)
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
    this.#caller.removeEventListener('abort', this)
  }
}

function expire(deadline: CallDeadline): void {
  deadline.expire()
}

/** True if a timeout aborted the signal: ours, or AbortSignal.timeout. */
export function isTimeout(signal: AbortSignal): boolean {
  return signal.aborted && signal.reason instanceof Error && signal.reason.name === 'TimeoutError'
}
