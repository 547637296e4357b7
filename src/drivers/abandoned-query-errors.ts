// The errors for a deadline or a disconnect that came before the database's answer. If the database confirms the cancel, the driver
// throws a QUERY_TIMEOUT error of its own instead.
import { AppError } from '../errors.ts'

/** The query was abandoned: the database was asked to stop it, and nothing waits for a confirmation. */
export function noAnswer(cause?: unknown): AppError {
  const message = 'The query took too long. The database was asked to stop it; whether it did is not known.'
  return new AppError('QUERY_TIMEOUT', message, { cause })
}

/**
 * The error for work that the signal ended. If the caller disconnected, nobody reads the error, so this error fits that
 * case too.
 */
export function gaveUp(signal: AbortSignal): AppError {
  const reason: unknown = signal.reason
  return reason instanceof AppError ? reason : noAnswer(reason)
}
