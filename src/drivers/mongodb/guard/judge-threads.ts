// The guard threads, which judge long bodies and run judge-worker.ts.
import { setImmediate } from 'node:timers/promises'
import { NOBODY } from '../../driver.ts'
import { GuardThreads } from '../../guard-threads.ts'
import { defectReporter, type TellDefect } from '../../report-guard-defect.ts'
import type { Answer, Threads } from './confine.ts'

export interface ThreadsOptions {
  /** More than two long bodies at the same time are rare. */
  readonly threads?: number
  readonly deadlineMs?: number
  /** Receives defects of the guard. */
  readonly report?: TellDefect
}

/**
 * The request to a thread. It has no catalog, because a thread gets each catalog only once. `text` is the body as the
 * audit stores it.
 */
export interface Asked {
  readonly text: string
  readonly rowCap: number
}

/** The deadline for one body. It is ten times as long as the largest body takes on an idle machine. */
const DEADLINE_MS = 2_000

/** A thread starts if a long body waits and no thread is idle. */
export function openThreads(options: ThreadsOptions = {}): Threads & { end(): Promise<void> } {
  const report = defectReporter(options.report)
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  const pool = new GuardThreads<Asked, Answer>({
    script: new URL(`./judge-worker.${extension}`, import.meta.url),
    threads: options.threads ?? 2,
    deadlineMs: options.deadlineMs ?? DEADLINE_MS,
    onLost: ({ text }) => {
      report('a body crashed a guard thread or exceeded its deadline', text)
    },
  })
  return {
    judge: ({ catalog, body: { text }, rowCap, owner = NOBODY }, signal) =>
      pool.judge(catalog, { text, rowCap }, owner, signal),
    turn: () => setImmediate(),
    end: () => pool.end(),
  }
}
