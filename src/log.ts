// The log: one JSON line an event, on standard output. It must hold no secret, no name and no value out of anybody's
// database, so of an error only that is kept which a defect is found by.
import { pino } from 'pino'
import type { Logger } from 'pino'
import type { Config } from './config.ts'

/** Opens it at the level of LOG_LEVEL. */
export function openLog(config: Pick<Config, 'logLevel'>): Logger {
  return pino({ level: config.logLevel, base: null, serializers: { err: errorForLog } })
}

interface LoggedError {
  readonly type: string
  readonly code?: string
  readonly message?: string
  /** Where it was made, the innermost first. */
  readonly at: readonly string[]
  readonly cause?: LoggedError
}

/** Errors whose text is the engine's own, about our code. All others may quote a query, a row or an address. */
const OF_THE_ENGINE: ReadonlySet<string> = new Set(['TypeError', 'RangeError', 'ReferenceError', 'AssertionError'])
const FRAMES_MAX = 20
const CAUSES_MAX = 4

/** An error without its text, unless that is harmless: kind, code, frames, and the same of its causes. */
export function errorForLog(error: unknown, depth = 0): LoggedError {
  if (!(error instanceof Error)) return { type: typeof error, at: [] }
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined
  return {
    type: error.name,
    ...(code === undefined ? {} : { code }),
    ...(OF_THE_ENGINE.has(error.name) ? { message: error.message } : {}),
    at: framesOf(error),
    ...(error.cause === undefined || depth >= CAUSES_MAX ? {} : { cause: errorForLog(error.cause, depth + 1) }),
  }
}

/** Only lines that name a place in code: the first lines of a stack are the text. */
function framesOf(error: Error): string[] {
  return (error.stack ?? '')
    .split('\n')
    .filter((line) => /^ {4}at .*(:\d+:\d+\)?|\(<anonymous>\))$/.test(line))
    .slice(0, FRAMES_MAX)
    .map((line) => line.trim())
}
