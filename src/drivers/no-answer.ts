// The error for a deadline that passed before the database answered. Only QUERY_TIMEOUT errors made elsewhere say that
// the database stopped the query, after it has confirmed the cancel.
import { AppError } from '../errors.ts'

/** We gave up the query. We asked the database to stop it and do not wait for a confirmation. */
export function noAnswer(cause?: unknown): AppError {
  const message = 'The query took too long. The database was asked to stop it; whether it did is not known.'
  return new AppError('QUERY_TIMEOUT', message, { cause })
}
