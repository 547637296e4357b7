// Refusals of several rooms, so that each reads the same wherever it is met.
import { AppError } from '../errors.ts'

export { notIntrospected, requireEnabled } from '../exposure/refusals.ts'

export function changedMeanwhile(): AppError {
  return new AppError('CONFLICT', 'This datasource was changed or deleted meanwhile. Read it again.')
}

/** To somebody who reached it just before its connection changed: the next try meets the new one. */
export function changedJustNow(): AppError {
  return overloaded('This datasource was changed just now.')
}

/** Load is shed: nothing was done. */
export function overloaded(why: string): AppError {
  return new AppError('OVERLOADED', `${why} Try again in a moment.`, { extra: { retryAfter: RETRY_AFTER_SECONDS } })
}

const RETRY_AFTER_SECONDS = 2
