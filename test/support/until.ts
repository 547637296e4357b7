// Waits until a condition is true, for conditions that another process or an unfinished request makes true. The
// timeout is long, because a busy machine may delay the process or the request by many seconds.
import { setTimeout as pause } from 'node:timers/promises'

const LIMIT_MS = 120_000

/** Resolves when `holds` returns true. After two minutes, throws an error that names the condition. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  for (const limit = performance.now() + LIMIT_MS; !(await holds()); await pause(10)) {
    if (performance.now() > limit) throw new Error(`timed out after ${LIMIT_MS / 1000} s waiting for: ${what}`)
  }
}
