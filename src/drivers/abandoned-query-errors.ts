// The errors for abandoned queries: the deadline passed, or the caller disconnected, before the database had answered.
// If the database itself reports that it cancelled a query, the driver throws QUERY_TIMEOUT instead.
import { AppError } from '../errors.ts'
import type { Stop } from './stop.ts'

/** Returns the error if it is unknown whether the database has stopped the work. */
export function noAnswer(cause?: unknown): AppError {
  const message = 'The query took too long. The database was asked to stop it; whether it did is not known.'
  return new AppError('QUERY_TIMEOUT', message, { cause })
}

/** Returns the error for work that a Stop ended. After a disconnect nobody reads the error, so any error will do. */
export function gaveUp({ reason }: Stop): AppError {
  return reason instanceof AppError ? reason : noAnswer(reason)
}
