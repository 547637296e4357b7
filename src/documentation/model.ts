// The operator's language model as a writer. It is told what the exposure shows, and what it answers is read as what
// anybody could have written.
import type { ModelSettings } from '../config.ts'
import type { WriterContext } from './writer-context.ts'
import { readAnswer } from './model-answer.ts'
import { openClient, type Ask } from './model-client.ts'
import { INSTRUCTIONS, questionOf } from './model-prompt.ts'
import type { ColumnMentions } from './column-mentions.ts'
import type { Proposal } from './proposal.ts'
import { ValueMentions } from './value-mentions.ts'

export interface Model {
  /** Throws where no answer comes in time or it is nonsense, and the reason of `signal`. */
  propose(about: WriterContext, naming: ColumnMentions, signal: AbortSignal): Promise<Proposal>
}

/** For one table, repetitions included. */
const TABLE_MS = 60_000

/** Opens nothing yet: without a question there is no network. */
export function openModel(settings: ModelSettings, timeoutMs = TABLE_MS): Model {
  let ask: Promise<Ask> | null = null
  return {
    async propose(about, naming, signal) {
      ask ??= openClient(settings, timeoutMs)
      const within = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)])
      const asked = (await ask)(INSTRUCTIONS, questionOf(about), within)
      const answer = await Promise.race([asked, ended(within)])
      return readAnswer(answer, about.table, naming, new ValueMentions(about.profile.values()))
    },
  }
}

/** The libraries sleep through an end while an endpoint has told them to come later. */
function ended(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const end = () => {
      reject(signal.reason instanceof Error ? signal.reason : new Error('ended'))
    }
    if (signal.aborted) end()
    else signal.addEventListener('abort', end, { once: true })
  })
}
