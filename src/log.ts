// The log has one line of JSON for each event, on standard output. It must contain no names or values of any database,
// and no secrets, except a link that cannot be mailed (mail/send-mail.ts). So only harmless parts of an error are
// logged.
import { pino } from 'pino'
import type { Logger } from 'pino'
import type { Config } from './config.ts'

export function openLog(config: Pick<Config, 'logLevel'>): Logger {
  return pino({ level: config.logLevel, base: null, serializers: { err: errorForLog } })
}

interface LoggedError {
  readonly type: string
  readonly code?: string
  readonly message?: string
  /** Innermost first. */
  readonly at: readonly string[]
  readonly cause?: LoggedError
}

/**
 * The messages of these errors are about our code, because they come from the JavaScript engine or from an assertion.
 * Other messages may contain a query, a row or an e-mail address.
 */
const ENGINE_ERRORS: ReadonlySet<string> = new Set(['TypeError', 'RangeError', 'ReferenceError', 'AssertionError'])
const FRAMES_MAX = 20
const CAUSES_MAX = 4

/** Includes the message only if it cannot contain data. */
export function errorForLog(error: unknown, depth = 0): LoggedError {
  if (!(error instanceof Error)) return { type: typeof error, at: [] }
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined
  return {
    type: error.name,
    ...(code === undefined ? {} : { code }),
    ...(ENGINE_ERRORS.has(error.name) ? { message: error.message } : {}),
    at: framesOf(error),
    ...(error.cause === undefined || depth >= CAUSES_MAX ? {} : { cause: errorForLog(error.cause, depth + 1) }),
  }
}

/** Returns only the lines with a location in the code, because the first lines of a stack are the message. */
function framesOf(error: Error): string[] {
  return (error.stack ?? '')
    .split('\n')
    .filter((line) => /^ {4}at .*(:\d+:\d+\)?|\(<anonymous>\))$/.test(line))
    .slice(0, FRAMES_MAX)
    .map((line) => line.trim())
}
