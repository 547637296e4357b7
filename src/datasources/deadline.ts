// One deadline a call: the caller's hang-up or the time limit, whichever comes first, as one signal. Lighter than
// AbortSignal.any with AbortSignal.timeout, which the hot path would pay for each query; `using` takes it down.

export interface Deadline extends Disposable {
  readonly signal: AbortSignal
  /** True where it was the time, and not the caller, that ended it. */
  readonly timedOut: boolean
}

/** `signal` aborts with the caller's reason, or with a TimeoutError. */
export function deadlineOf(caller: AbortSignal, timeoutMs: number): Deadline {
  const control = new AbortController()
  let timedOut = false
  const hungUp = () => control.abort(caller.reason)
  const timer = setTimeout(() => {
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
