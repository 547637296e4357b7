// One deadline a call: the caller's hang-up or the time limit, whichever comes first, as one signal. Lighter than
// AbortSignal.any with AbortSignal.timeout, which the hot path would pay for each query; `using` takes it down.
import type { AppError } from '../errors.ts'

export interface Deadline extends Disposable {
  readonly signal: AbortSignal
  /** True where it was the time, and not the caller, that ended it. */
  readonly timedOut: boolean
  /** The refusal that end() was called with first, before anything else ended the call. */
  readonly ended: AppError | null
  /** Ends the call with this refusal, unless it has ended already. */
  end(refusal: AppError): void
}

/** `signal` aborts with the caller's reason, or with a TimeoutError. */
export function deadlineOf(caller: AbortSignal, timeoutMs: number): Deadline {
  const control = new AbortController()
  let timedOut = false
  let ended: AppError | null = null
  const hungUp = () => control.abort(caller.reason)
  const timer = setTimeout(() => {
    if (control.signal.aborted) return
    timedOut = true
    control.abort(new DOMException('The time limit was reached.', 'TimeoutError'))
  }, timeoutMs)
  if (caller.aborted) hungUp()
  else caller.addEventListener('abort', hungUp)
  return {
    signal: control.signal,
    get timedOut() {
      return timedOut
    },
    get ended() {
      return ended
    },
    end(refusal) {
      if (control.signal.aborted) return
      ended = refusal
      control.abort(refusal)
    },
    [Symbol.dispose]() {
      clearTimeout(timer)
      caller.removeEventListener('abort', hungUp)
    },
  }
}

/** True where a signal was ended by a time limit, of ours or of AbortSignal.timeout. */
export function isTimeout(signal: AbortSignal): boolean {
  return signal.aborted && signal.reason instanceof Error && signal.reason.name === 'TimeoutError'
}
