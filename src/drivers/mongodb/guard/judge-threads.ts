// The threads that judge long bodies: the pool of all guards, running judge-worker.ts.
import { setImmediate } from 'node:timers/promises'
import { GuardThreads } from '../../guard-threads.ts'
import { defectReporter, type TellDefect } from '../../report-defect.ts'
import type { Answer, Threads } from './confine.ts'

export interface ThreadsOptions {
  /** More than two long bodies rarely need one at once. */
  readonly threads?: number
  /** How long one body may take. */
  readonly deadlineMs?: number
  /** Where a defect of ours is told. */
  readonly report?: TellDefect
}

/** What a thread is asked of a catalog that it holds: the body as the audit keeps it. */
export interface Asked {
  readonly text: string
  readonly rowCap: number
}

/** Ten times what the largest body takes at rest. */
const DEADLINE_MS = 2_000

/** The first long body starts a thread. */
export function openThreads(options: ThreadsOptions = {}): Threads & { end(): Promise<void> } {
  const report = defectReporter(options.report)
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  const pool = new GuardThreads<Asked, Answer>({
    script: new URL(`./judge-worker.${extension}`, import.meta.url),
    threads: options.threads ?? 2,
    deadlineMs: options.deadlineMs ?? DEADLINE_MS,
    onLost: ({ text }) => {
      report('a body broke a thread of the guard, or took it too long', text)
    },
  })
  return {
    judge: ({ catalog, body: { text }, rowCap }, signal) => pool.judge(catalog, { text, rowCap }, signal),
    turn: () => setImmediate(),
    end: () => pool.end(),
  }
}
