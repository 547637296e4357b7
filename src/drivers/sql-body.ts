// Checks the form and the encoding of the body of a SQL query, {sql, limit?, params?}. The SQL is not parsed here.
import { z } from 'zod'
import { invalidRequest } from '../errors.ts'
import type { Param, Params, QueryBody } from './driver.ts'

/** PostgreSQL's protocol allows 65,535 parameters, but no caller needs so many. */
const PARAMS_MAX = 1_000
const TYPE_NAME_MAX = 200
/** How many problems an error lists. To find more would delay other requests. */
const DETAILS_MAX = 50

interface Forms {
  /** The limit of the query text in UTF-8 bytes. The JSON of all parameters has the same limit. */
  readonly bytesMax: number
  /** How parameters may be written: not at all, by position, or also by name (`@name`). */
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
      // JSON.parse has rounded such a number, so the query would search for another value than the caller wrote.
      .refine((value) => !Number.isInteger(value) || Number.isSafeInteger(value), {
        error: 'is a whole number beyond 2^53: write it as a string',
      }),
    z.string().refine(isText, 'must not contain NUL or half of a surrogate pair'),
  ],
  { error: SCALAR },
)
const Typed = z.strictObject(
  { type: z.string().min(1).max(TYPE_NAME_MAX).refine(isText), value: Scalar },
  { error: SCALAR },
)
const Value = z.union([Scalar, Typed], { error: SCALAR })

/** Returns a function that checks a body. It throws AppError INVALID_REQUEST, with each wrong field in `details`. */
export function sqlBodyReader({ bytesMax, params: form }: Forms): (body: unknown) => QueryBody {
  const Body = z.strictObject({
    sql: z
      .string({ error: 'must be a string' })
      .refine((text) => Buffer.byteLength(text) <= bytesMax, `is longer than ${bytesMax} bytes`)
      .refine((text) => !text.includes('\0'), 'contains a NUL')
      .refine((text) => text.isWellFormed(), 'contains half of a surrogate pair'),
    limit: z.int({ error: 'must be a whole number' }).min(1, 'must be at least 1').optional(),
    ...(form !== 'none' && { params: z.unknown().optional() }),
  })
  return (body) => {
    const simple = simpleText(body, bytesMax)
    if (simple !== null) return { text: simple, limit: null }
    const read = Body.safeParse(body)
    if (!read.success) throw invalidRequest(read.error.issues.flatMap(detailsOf))
    const { sql, limit, params } = read.data
    const rest = params === undefined ? {} : { params: readParams(params, bytesMax, form === 'byPlaceOrName') }
    return { text: sql, limit: limit ?? null, ...rest }
  }
}

/**
 * A short cut for a body that has only `sql`: returns the text if the schema would accept it, and null if the schema
 * must decide.
 */
function simpleText(body: unknown, bytesMax: number): string | null {
  if (typeof body !== 'object' || body === null || Object.getPrototypeOf(body) !== Object.prototype) return null
  for (const key in body) if (key !== 'sql') return null
  const text: unknown = Object.hasOwn(body, 'sql') ? Reflect.get(body, 'sql') : null
  // A UTF-16 unit takes at most three bytes in UTF-8.
  return typeof text === 'string' && text.length * 3 <= bytesMax && isText(text) ? text : null
}

function readParams(raw: unknown, bytesMax: number, named: boolean): Params {
  const entries = entriesOf(raw, named)
  if (entries === null) throw invalidRequest([`params: must be an array${named ? ', or an object of names' : ''}`])
  if (entries.length > PARAMS_MAX) throw invalidRequest([`params: has more than ${PARAMS_MAX} values`])
  const details: string[] = []
  const values = new Map<string, Param>()
  for (const [name, value] of entries) {
    if (details.length >= DETAILS_MAX) break
    const read = Value.safeParse(value)
    if (read.success) values.set(name, read.data)
    else details.push(`params.${name.slice(0, 60)}: ${reasonOf(read.error)}`)
  }
  if (details.length > 0) throw invalidRequest(details)
  // JSON.stringify is recursive. The previous check has refused nested values.
  const json = JSON.stringify(raw)
  if (Buffer.byteLength(json) > bytesMax) throw invalidRequest([`params: is longer than ${bytesMax} bytes`])
  return { values: Array.isArray(raw) ? [...values.values()] : values, json }
}

function entriesOf(raw: unknown, named: boolean): [string, unknown][] | null {
  if (Array.isArray(raw)) return raw.map((value, at) => [String(at), value])
  return named && typeof raw === 'object' && raw !== null ? Object.entries(raw) : null
}

/** Returns the most specific sentence of the error. */
function reasonOf(error: z.ZodError): string {
  for (const issue of error.issues) {
    if (issue.code !== 'invalid_union') return issue.message
    const custom = issue.errors.flat().find((nested) => nested.code === 'custom')
    if (custom !== undefined) return custom.message
  }
  return SCALAR
}

function detailsOf(issue: z.core.$ZodIssue): string[] {
  if (issue.code === 'unrecognized_keys')
    return issue.keys.slice(0, DETAILS_MAX).map((key) => `${key.slice(0, 60)}: is not a field`)
  if (issue.path.length === 0) return ['the body must be {sql, limit?, params?}']
  return [`${issue.path.join('.')}: ${issue.message}`]
}
