// The deadline of a call: one signal for the caller's hang-up and the timeout, whichever comes first. Cheaper than
// AbortSignal.any with AbortSignal.timeout on the hot path of queries. `using` removes the timer and the listener.
import type { AppError } from './errors.ts'

export interface Deadline extends Disposable {
  readonly signal: AbortSignal
  /** True if the timeout, not the caller, ended the call. */
  readonly timedOut: boolean
  /** The first refusal passed to end(), if nothing else had ended the call. */
  readonly ended: AppError | null
  /** Ends the call with this refusal, unless it has already ended. */
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

/** True if a timeout aborted the signal, ours or that of AbortSignal.timeout. */
export function isTimeout(signal: AbortSignal): boolean {
  return signal.aborted && signal.reason instanceof Error && signal.reason.name === 'TimeoutError'
}
