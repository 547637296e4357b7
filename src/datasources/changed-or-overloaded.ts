// Errors that several folders throw with the same text.
import { AppError } from '../errors.ts'

export function changedMeanwhile(): AppError {
  return new AppError('CONFLICT', 'This datasource was changed or deleted in the meantime. Read it again.')
}

/** The connection changed just after this call had read the datasource. A retry uses the new connection. */
export function changedJustNow(): AppError {
  return overloaded('The connection of this datasource has just changed.')
}

/** The exposure was narrowed while a query ran. The guard checks a retry against the new exposure. */
export function narrowedJustNow(): AppError {
  return overloaded('The exposure of this datasource has just changed, and the query was cancelled.')
}

/** The call is refused because of load. It had no effect. */
export function overloaded(why: string, retryAfter = RETRY_AFTER_SECONDS): AppError {
  return new AppError('OVERLOADED', `${why} Try again in a moment.`, { extra: { retryAfter } })
}

const RETRY_AFTER_SECONDS = 2
