// A `Stop` tells a piece of work to end early. Every AbortSignal is a `Stop`. A query has a lighter `Stop`, because
// creating and observing an AbortSignal took four per cent of the time of a small query.

export interface Stop {
  readonly aborted: boolean
  readonly reason: unknown
  throwIfAborted(): void
  addEventListener(type: 'abort', listener: () => void): void
  removeEventListener(type: 'abort', listener: () => void): void
  /** Returns an AbortSignal that aborts when this Stop does. An AbortSignal itself does not have this method. */
  readonly toSignal?: () => AbortSignal
}

/** Returns a real AbortSignal for the work that needs one. */
export function signalOf(stop: Stop): AbortSignal {
  if (stop instanceof AbortSignal) return stop
  if (stop.toSignal === undefined) throw new TypeError('a Stop must be an AbortSignal or make one')
  return stop.toSignal()
}
