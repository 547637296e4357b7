// Waits for a condition that another process or an unfinished request causes. The limit is long, because a busy machine
// may delay either by many seconds.
import { setTimeout as pause } from 'node:timers/promises'

const LIMIT_MS = 120_000

/** Resolves when `holds` returns true. Fails after two minutes, and names the condition. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  for (const limit = performance.now() + LIMIT_MS; !(await holds()); await pause(10)) {
    if (performance.now() > limit) throw new Error(`waited ${LIMIT_MS / 1000} s in vain: ${what}`)
  }
}
