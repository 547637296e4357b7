// The body of a query on BigQuery, {sql, limit?}: shape and well-formedness only, nothing of SQL.
import { z } from 'zod'
import { invalidRequest } from '../../../errors.ts'
import type { QueryBody } from '../../driver.ts'

const SQL_BYTES_MAX = 100_000

/** A body of POST …/query for this kind. */
export type BigQueryBody = QueryBody

const Body = z.strictObject({
  sql: z
    .string({ error: 'must be a text' })
    .refine((text) => Buffer.byteLength(text) <= SQL_BYTES_MAX, `is longer than ${SQL_BYTES_MAX} bytes`)
    .refine((text) => !text.includes('\0'), 'holds a NUL')
    .refine((text) => text.isWellFormed(), 'holds half of a surrogate pair'),
  limit: z.int({ error: 'must be a whole number' }).min(1, 'must be at least 1').optional(),
})

/** Throws AppError INVALID_REQUEST; `details` names each field that is wrong. */
export function readBody(body: unknown): BigQueryBody {
  const read = Body.safeParse(body)
  if (read.success) return { text: read.data.sql, limit: read.data.limit ?? null }
  throw invalidRequest(read.error.issues.flatMap(detailsOf))
}

function detailsOf(issue: z.core.$ZodIssue): string[] {
  if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => `${key.slice(0, 60)}: is not a field`)
  if (issue.path.length === 0) return ['the body must be {sql, limit?}']
  return [`${issue.path.join('.')}: ${issue.message}`]
}
