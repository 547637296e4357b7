// Waits for a condition that another process or an unfinished request makes true. On a busy machine this may take many
// seconds, so the timeout is long.
import { setTimeout as pause } from 'node:timers/promises'

const LIMIT_MS = 120_000

/** Resolves when `holds` returns true. After two minutes, throws an error that contains `what`. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  for (const limit = performance.now() + LIMIT_MS; !(await holds()); await pause(10)) {
    if (performance.now() > limit) throw new Error(`timed out after ${LIMIT_MS / 1000} s waiting for: ${what}`)
  }
}
