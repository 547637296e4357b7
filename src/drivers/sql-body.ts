// The body of a query in SQL, {sql, limit?, params?}: shape and well-formedness only, nothing of SQL.
import { z } from 'zod'
import { invalidRequest } from '../errors.ts'
import type { Param, Params, QueryBody } from './driver.ts'

/** Parameters of one query. PostgreSQL's protocol takes 65,535; no caller needs that many. */
const PARAMS_MAX = 1_000
const TYPE_NAME_MAX = 200

interface Forms {
  /** UTF-8 bytes of the query's text, and of all its parameters together. */
  readonly bytesMax: number
  /** How parameters may be given: not at all, by place, or also by name (`@name`). */
  readonly params: 'none' | 'byPlace' | 'byPlaceOrName'
}

const isText = (text: string) => text.isWellFormed() && !text.includes('\0')
const SCALAR = 'must be null, a boolean, a number, a string, or {type, value}'
const Scalar = z.union(
  [
    z.null(),
    z.boolean(),
    z
      .number()
      // JSON.parse has already rounded a longer one: binding it would ask for another value than the caller wrote.
      .refine((value) => !Number.isInteger(value) || Number.isSafeInteger(value), {
        error: 'is a whole number beyond 2^53: write it as a string',
      }),
    z.string().refine(isText, 'must not hold NUL or half of a surrogate pair'),
  ],
  { error: SCALAR },
)
const Typed = z.strictObject(
  { type: z.string().min(1).max(TYPE_NAME_MAX).refine(isText), value: Scalar },
  { error: SCALAR },
)
const Value = z.union([Scalar, Typed], { error: SCALAR })

/**
 * Reads bodies within the bounds. What it answers with throws AppError INVALID_REQUEST; `details` names each field that
 * is wrong.
 */
export function sqlBodyReader({ bytesMax, params: form }: Forms): (body: unknown) => QueryBody {
  const Body = z.strictObject({
    sql: z
      .string({ error: 'must be a string' })
      .refine((text) => Buffer.byteLength(text) <= bytesMax, `is longer than ${bytesMax} bytes`)
      .refine((text) => !text.includes('\0'), 'holds a NUL')
      .refine((text) => text.isWellFormed(), 'holds half of a surrogate pair'),
    limit: z.int({ error: 'must be a whole number' }).min(1, 'must be at least 1').optional(),
    ...(form !== 'none' && { params: z.unknown().optional() }),
  })
  return (body) => {
    const read = Body.safeParse(body)
    if (!read.success) throw invalidRequest(read.error.issues.flatMap(detailsOf))
    const { sql, limit, params } = read.data
    const told = params === undefined ? {} : { params: readParams(params, bytesMax, form === 'byPlaceOrName') }
    return { text: sql, limit: limit ?? null, ...told }
  }
}

function readParams(raw: unknown, bytesMax: number, named: boolean): Params {
  const entries = entriesOf(raw, named)
  if (entries === null) throw invalidRequest([`params: must be an array${named ? ', or an object of names' : ''}`])
  if (entries.length > PARAMS_MAX) throw invalidRequest([`params: has more than ${PARAMS_MAX} values`])
  const details: string[] = []
  const values = new Map<string, Param>()
  for (const [name, value] of entries) {
    const read = Value.safeParse(value)
    if (read.success) values.set(name, read.data)
    else details.push(`params.${name.slice(0, 60)}: ${reasonOf(read.error)}`)
  }
  if (details.length > 0) throw invalidRequest(details)
  // Only now: writing recurses, and what is not flat was refused.
  const json = JSON.stringify(raw)
  if (Buffer.byteLength(json) > bytesMax) throw invalidRequest([`params: is longer than ${bytesMax} bytes`])
  return { values: Array.isArray(raw) ? [...values.values()] : values, json }
}

function entriesOf(raw: unknown, named: boolean): [string, unknown][] | null {
  if (Array.isArray(raw)) return raw.map((value, at) => [String(at), value])
  return named && typeof raw === 'object' && raw !== null ? Object.entries(raw) : null
}

/** The deepest reason: a union tells its own sentence only where no branch has a better one. */
function reasonOf(error: z.ZodError): string {
  for (const issue of error.issues) {
    if (issue.code !== 'invalid_union') return issue.message
    const told = issue.errors.flat().find((each) => each.code === 'custom')
    if (told !== undefined) return told.message
  }
  return SCALAR
}

function detailsOf(issue: z.core.$ZodIssue): string[] {
  if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => `${key.slice(0, 60)}: is not a field`)
  if (issue.path.length === 0) return ['the body must be {sql, limit?, params?}']
  return [`${issue.path.join('.')}: ${issue.message}`]
}
