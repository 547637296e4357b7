// A deadline that passed before the database answered. That the database stopped the query is said only where it was seen.
import { AppError } from '../errors.ts'

/** The work was given up here. The database is asked to stop it, and nobody waits for what it says to that. */
export function noAnswer(cause?: unknown): AppError {
  const message = 'The query took too long. The database was asked to stop it; whether it did is not known.'
  return new AppError('QUERY_TIMEOUT', message, { cause })
}
