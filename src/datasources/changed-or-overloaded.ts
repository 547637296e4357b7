// Refusals that several folders share. They are here so that their wording is always the same.
import { AppError } from '../errors.ts'

export function changedMeanwhile(): AppError {
  return new AppError('CONFLICT', 'This datasource was changed or deleted in the meantime. Read it again.')
}

/**
 * Returns the error for a call that reached the datasource just before its connection changed. A retry uses the new
 * connection.
 */
export function changedJustNow(): AppError {
  return overloaded('The connection of this datasource has just changed.')
}

/** Returns the error for a query whose exposure was narrowed while it ran. A retry is judged by the new exposure. */
export function narrowedJustNow(): AppError {
  return overloaded('The exposure of this datasource has just changed, and the query was cancelled.')
}

/** Returns the error for a call that is refused because of load. The refused call had no effect. */
export function overloaded(why: string, retryAfter = RETRY_AFTER_SECONDS): AppError {
  return new AppError('OVERLOADED', `${why} Try again in a moment.`, { extra: { retryAfter } })
}

const RETRY_AFTER_SECONDS = 2
