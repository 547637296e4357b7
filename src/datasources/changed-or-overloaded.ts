// Errors of a datasource that changed during a call, or has too much to do.
import { AppError } from '../errors.ts'

export function changedMeanwhile(): AppError {
  return new AppError('CONFLICT', 'This datasource was changed or deleted in the meantime. Read it again.')
}

/** For a call that reached the datasource just before its connection changed. A retry uses the new connection. */
export function changedJustNow(): AppError {
  return overloaded('The connection of this datasource has just changed.')
}

/** Load shedding: nothing was done. */
export function overloaded(why: string): AppError {
  return new AppError('OVERLOADED', `${why} Try again in a moment.`, { extra: { retryAfter: RETRY_AFTER_SECONDS } })
}

const RETRY_AFTER_SECONDS = 2
