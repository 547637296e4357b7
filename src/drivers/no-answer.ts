// The error for a deadline that passed before the database answered. If the database confirms the cancel, the driver
// throws a QUERY_TIMEOUT error of its own instead.
import { AppError } from '../errors.ts'

/** The query was abandoned: the database was asked to stop it, and nothing waits for a confirmation. */
export function noAnswer(cause?: unknown): AppError {
  const message = 'The query took too long. The database was asked to stop it; whether it did is not known.'
  return new AppError('QUERY_TIMEOUT', message, { cause })
}
