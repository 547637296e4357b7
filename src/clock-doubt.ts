// If the clock of the machine jumps ahead, all data looks old, and would be removed for ever. So for a day after a
// jump, nothing is removed, and an operator can correct the clock.

/** The allowed difference between the clock and the elapsed time. Leap seconds and slow corrections are smaller. */
const JUMP_MS = 3_600_000
/** If the service did not run for longer than this, the clock may have been wrong before, or may be wrong now. */
const PAUSE_MS = 20 * 86_400_000
const BELIEVED_MS = 86_400_000

export interface ClockDoubt {
  /** Returns why nothing may be removed by age now. Null if the clock is trusted. */
  reason(): string | null
}

/**
 * `now` is the clock. `monotonic` returns the elapsed milliseconds, which a correction of the clock does not change.
 * `lastSeen` is the newest time in the store at the start of this process, or null.
 */
export function openClockDoubt(now: () => number, monotonic: () => number, lastSeen: number | null): ClockDoubt {
  let [wall, passed] = [now(), monotonic()]
  let until = -Infinity
  let why = ''
  const doubt = (sentence: string) => {
    why = sentence
    until = monotonic() + BELIEVED_MS
  }
  const pauseMs = lastSeen === null ? 0 : wall - lastSeen
  if (pauseMs > PAUSE_MS) doubt(`the clock is ${days(pauseMs)} days after the last entry`)
  return {
    reason() {
      const jumpedMs = now() - wall - (monotonic() - passed)
      if (Math.abs(jumpedMs) > JUMP_MS) {
        ;[wall, passed] = [now(), monotonic()]
        doubt(`the clock jumped by ${days(jumpedMs)} days`)
      }
      return monotonic() < until ? why : null
    },
  }
}

function days(ms: number): string {
  return (ms / 86_400_000).toFixed(1)
}

const WATCH_MS = 60_000

export function watchClock(
  doubt: ClockDoubt,
  log: { warn(detail: object, message: string): void },
): AsyncDisposable & { look(): void } {
  let told: string | null = null
  const look = () => {
    const why = doubt.reason()
    if (why !== null && why !== told) {
      log.warn({ why }, 'the clock may be wrong: nothing is removed by age for a day')
    }
    told = why
  }
  look()
  const timer = setInterval(look, WATCH_MS)
  timer.unref()
  return {
    look,
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
    },
  }
}
