// The operator's language model writes proposals. It gets only exposed names and values.
import type { ModelSettings } from '../config.ts'
import type { WriterContext } from './writer-context.ts'
import { readAnswer } from './model-answer.ts'
import { openClient, type Ask } from './model-client.ts'
import { INSTRUCTIONS, questionOf } from './model-prompt.ts'
import type { ColumnMentions } from './column-mentions.ts'
import type { Proposal } from './proposal.ts'
import { ValueMentions } from './value-mentions.ts'

export interface Model {
  /** Throws if no valid answer comes in time. If `signal` aborts, throws its reason. */
  propose(about: WriterContext, naming: ColumnMentions, signal: AbortSignal): Promise<Proposal>
}

/** The time limit for one table, including retries. */
const TABLE_MS = 60_000

export function openModel(settings: ModelSettings, timeoutMs = TABLE_MS): Model {
  let ask: Promise<Ask> | null = null
  return {
    async propose(about, naming, signal) {
      ask ??= openClient(settings, timeoutMs)
      const within = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)])
      const answering = (await ask)(INSTRUCTIONS, questionOf(about), within)
      const answer = await Promise.race([answering, ended(within)])
      return readAnswer(answer, about.table, naming, new ValueMentions(about.profile.values()))
    },
  }
}

/** Rejects when the signal aborts. The library ignores an abort while it waits for the time in Retry-After. */
function ended(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const end = () => {
      reject(signal.reason instanceof Error ? signal.reason : new Error('ended'))
    }
    if (signal.aborted) end()
    else signal.addEventListener('abort', end, { once: true })
  })
}
