// The body of a query in SQL, {sql, limit?}: shape and well-formedness only, nothing of SQL.
import { z } from 'zod'
import { invalidRequest } from '../errors.ts'
import type { QueryBody } from './driver.ts'

/**
 * Reads bodies whose text is at most so many bytes of UTF-8. What it answers with throws AppError INVALID_REQUEST;
 * `details` names each field that is wrong.
 */
export function sqlBodyReader(bytesMax: number): (body: unknown) => QueryBody {
  const Body = z.strictObject({
    sql: z
      .string({ error: 'must be a text' })
      .refine((text) => Buffer.byteLength(text) <= bytesMax, `is longer than ${bytesMax} bytes`)
      .refine((text) => !text.includes('\0'), 'holds a NUL')
      .refine((text) => text.isWellFormed(), 'holds half of a surrogate pair'),
    limit: z.int({ error: 'must be a whole number' }).min(1, 'must be at least 1').optional(),
  })
  return (body) => {
    const read = Body.safeParse(body)
    if (read.success) return { text: read.data.sql, limit: read.data.limit ?? null }
    throw invalidRequest(read.error.issues.flatMap(detailsOf))
  }
}

function detailsOf(issue: z.core.$ZodIssue): string[] {
  if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => `${key.slice(0, 60)}: is not a field`)
  if (issue.path.length === 0) return ['the body must be {sql, limit?}']
  return [`${issue.path.join('.')}: ${issue.message}`]
}
