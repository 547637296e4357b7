// Says what the caller sees if a query fails while it runs. It is one of our own sentences, chosen by BigQuery's
// reason. BigQuery's message may contain values, so it is never shown and only helps to choose.
import { AppError } from '../../../errors.ts'
import { overCost } from './cost-refusal.ts'
import { accessFailure, failure, queryFailure } from './failure.ts'
import { ErrorResponse } from './error-response.ts'
import { bytesIn } from './dry-run-failure.ts'

const FAILED = 'BigQuery failed the query while it ran: a value does not fit an operation of the query.'

/** Sentences for the reason invalidQuery, chosen by BigQuery's message. */
const SENTENCES: readonly (readonly [RegExp, string])[] = [
  [/division by zero/i, 'Division by zero; SAFE_DIVIDE returns NULL instead.'],
  [/overflow|out of range/i, 'A number is out of the range of its type.'],
  [
    /bad (?:int64|double|float64|bool|numeric|bignumeric) value/i,
    'A value cannot be cast to the type; SAFE_CAST returns NULL instead.',
  ],
  [
    /could not cast|invalid cast|cannot be cast/i,
    'A value cannot be cast to the type; SAFE_CAST returns NULL instead.',
  ],
  [
    /invalid (?:date|time|timestamp|datetime)|failed to parse|mismatch between format/i,
    'A text is not a date or time of the expected form; SAFE.PARSE_… returns NULL instead.',
  ],
  [/scalar subquery produced more than one element/i, 'A sub-query that must return one value returns several.'],
  [
    /array (?:index|element).*out of bounds|out of bounds/i,
    'An index is outside of an array; SAFE_OFFSET returns NULL instead.',
  ],
  [
    /cannot (?:parse|compile) regular expression|invalid regular expression|regexp/i,
    'A regular expression is not valid.',
  ],
  [/json/i, 'A JSON value does not have the type that the query expects.'],
  [/array cannot have a null element/i, 'An array in the result contains NULL; IGNORE NULLS leaves it out.'],
  [/duplicate column names?/i, 'Two columns of the result have the same name; give them aliases.'],
]

export function runFailure(error: unknown, bytesMax: number): AppError {
  const access = accessFailure(error)
  if (access !== null) return access
  if (!(error instanceof ErrorResponse)) return failure(error)
  if (error.reason === 'bytesBilledLimitExceeded') return overCost(bytesIn(error.googleText), bytesMax, error)
  const known = queryFailure(error)
  if (known !== null) return known
  const sentence = SENTENCES.find(([pattern]) => pattern.test(error.googleText))?.[1]
  return new AppError('QUERY_FAILED', sentence ?? FAILED, { cause: error })
}
