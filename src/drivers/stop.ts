// What ends a piece of work before it is done. An AbortSignal is a Stop. A query has a lighter one, because making an AbortSignal and
// listening to it took four per cent of the time of a small query.

export interface Stop {
  readonly aborted: boolean
  readonly reason: unknown
  throwIfAborted(): void
  addEventListener(type: 'abort', listener: () => void): void
  removeEventListener(type: 'abort', listener: () => void): void
  /** An AbortSignal that aborts with it. Absent from an AbortSignal. */
  readonly toSignal?: () => AbortSignal
}

/** For work that needs a real AbortSignal. */
export function signalOf(stop: Stop): AbortSignal {
  if (stop instanceof AbortSignal) return stop
  if (stop.toSignal === undefined) throw new TypeError('a Stop must be an AbortSignal or make one')
  return stop.toSignal()
}
