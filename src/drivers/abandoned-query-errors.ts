// Makes the errors for a deadline or a disconnect that came before the database's answer. If the database confirms the
// cancel, the driver throws a separate QUERY_TIMEOUT error instead.
import { AppError } from '../errors.ts'
import type { Stop } from './stop.ts'

/** Returns the error for work that was given up before the database confirmed that the work has ended. */
export function noAnswer(cause?: unknown): AppError {
  const message = 'The query took too long. The database was asked to stop it; whether it did is not known.'
  return new AppError('QUERY_TIMEOUT', message, { cause })
}

/**
 * Returns the error for work that a Stop ended. A caller who has disconnected reads no error, so for such a caller any
 * error will do.
 */
export function gaveUp({ reason }: Stop): AppError {
  return reason instanceof AppError ? reason : noAnswer(reason)
}
