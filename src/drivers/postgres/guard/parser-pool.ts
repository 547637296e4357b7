// Parses small texts on the main thread, and judges larger ones in a few worker threads with a deadline. A thread that
// fails or exceeds the deadline is terminated and replaced.
import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { loadModule } from 'libpg-query'
import { NOBODY } from '../../driver.ts'
import { GuardThreads } from '../../guard-threads.ts'
import { defectReporter, type TellDefect } from '../../report-guard-defect.ts'
import type { Answer, Asked, Case, Parse, Parser, Sought } from './syntax/parser.ts'
import { locateHere } from './judge.ts'
import { parseText } from './syntax/parse-text.ts'

export interface ParserOptions {
  /** The number of threads. More than two are rarely needed at the same time. */
  readonly threads?: number
  /** The deadline for one text. On an idle machine, no text takes half of it. */
  readonly deadlineMs?: number
  /** Reports a bug of the service: a sentence, and a hash of the text. */
  readonly report?: TellDefect
}

const THREADS = 2
const DEADLINE_MS = 5_000
const LOST = { kind: 'lost' } as const

/** Starts the parser of the main thread. A worker thread takes 20 MB, so it starts when a text needs it. */
export async function openParser(options: ParserOptions = {}): Promise<Parser & AsyncDisposable> {
  // V8's optimizing compiler takes 600 MB for the grammar's one huge function, without making the parser faster. These
  // flags switch it off in the whole process, including the threads.
  setFlagsFromString('--no-wasm-tier-up')
  setFlagsFromString('--no-wasm-dynamic-tiering')
  await loadModule()
  const report = defectReporter(options.report)
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  const pool = new GuardThreads<Asked, Answer>({
    script: new URL(`./parse-worker.${extension}`, import.meta.url),
    threads: options.threads ?? THREADS,
    deadlineMs: options.deadlineMs ?? DEADLINE_MS,
    onLost: ({ text }) => {
      report('a text broke a thread of the guard, or took it too long', text)
    },
  })
  const ask = async ({ catalog, owner = NOBODY, ...each }: Case, sought: Sought | undefined, signal: AbortSignal) =>
    (await pool.judge(catalog, { ...each, ...(sought && { sought }) }, owner, signal)) ?? LOST
  const parser: Parser & AsyncDisposable = {
    parse: whileWhole(parseText, report),
    judge: async (each, signal) => {
      const answer = await ask(each, undefined, signal)
      return answer.kind === 'place' ? LOST : answer
    },
    locate: async (each, sought, signal) => {
      const here = locateHere(parser.parse, each, sought)
      if (here !== 'heavy') return here
      const answer = await ask(each, sought, signal)
      return answer.kind === 'place' ? answer.at : null
    },
    turn: () => setImmediate(),
    report,
    [Symbol.asyncDispose]: () => pool.end(),
  }
  return parser
}

/**
 * Returns the parser of the main thread. After a text broke it, its memory is undefined, and libpg-query cannot create
 * another one. Later texts are then judged in threads.
 */
function whileWhole(parse: Parse, report: Parser['report']): Parse {
  let isBroken = false
  return (text) => {
    if (isBroken) return { kind: 'lost' }
    const parsed = parse(text)
    if (parsed.kind === 'lost') {
      isBroken = true
      report('a text broke the parser of the main thread, which is not used again', text)
    }
    return parsed
  }
}
