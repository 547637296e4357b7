// Validates the form of a MongoDB query body, {collection, filter?, pipeline?, limit?}. A body may be nested as deeply
// as its bytes allow, so nothing here recurses.
import { z } from 'zod'
import { invalidRequest } from '../../../../errors.ts'
import type { QueryBody } from '../../../driver.ts'
import { isJson } from './parse-ejson.ts'

const BODY_BYTES_MAX = 256 * 1024
/**
 * The text of a deeper body is not stored, because JSON.stringify would recurse in it. Such a body is refused anyway.
 */
const WRITTEN_DEPTH_MAX = 500
const TOO_LONG = `the body is longer than ${BODY_BYTES_MAX} bytes`
const FORBIDDEN_KEYS = new Set(['__proto__', '_bsontype', 'toBSON'])

export interface MongoBody extends QueryBody {
  readonly collection: string
  readonly filter: unknown
  /** JSON objects with one key each. Null if the body has no pipeline. */
  readonly pipeline: readonly unknown[] | null
  /** How deeply arrays and objects are nested in the filter or in a stage. 1 if they are flat. */
  readonly depth: number
  /** The number of values in the filter and the stages, at all depths. */
  readonly nodes: number
  /** The number of fields of the largest object. */
  readonly widest: number
  /** True if `text` cannot represent a number: -0 becomes 0, and Infinity becomes null. */
  readonly hasOddNumber: boolean
}

const Body = z.strictObject({
  collection: z.string({ error: 'must be the name of a collection' }).min(1, 'must be the name of a collection'),
  filter: z.custom<unknown>(isJson, 'must be an object').optional(),
  pipeline: z
    .custom<readonly unknown[]>(Array.isArray, 'must be an array of stages')
    .refine((stages) => stages.every(isStage), 'each stage must be an object with one key, the name of the stage')
    .optional(),
  limit: z.int({ error: 'must be a whole number' }).min(1, 'must be at least 1').optional(),
})

/** Throws AppError INVALID_REQUEST. Its `details` say what is wrong. */
export function readBody(body: unknown): MongoBody {
  const read = Body.safeParse(body)
  if (!read.success) {
    throw invalidRequest([...read.error.issues.slice(0, 20).flatMap(detailsOf), FIELDS])
  }
  const { collection, filter = {}, pipeline = null, limit = null } = read.data
  const found = scan({ collection, filter, pipeline })
  if (found.wrong.size > 0) throw invalidRequest([...found.wrong].slice(0, 20))
  if (found.size > BODY_BYTES_MAX) throw invalidRequest([TOO_LONG])
  const { depth, nodes, widest, hasOddNumber } = found
  const text = depth > WRITTEN_DEPTH_MAX ? JSON.stringify({ collection, nested: depth }) : JSON.stringify(body)
  if (Buffer.byteLength(text) > BODY_BYTES_MAX) throw invalidRequest([TOO_LONG])
  return { text, limit, collection, filter, pipeline, depth, nodes, widest, hasOddNumber }
}

/** Reads the field `text` of a MongoBody again. Throws AppError INVALID_REQUEST for any other text. */
export function rereadBody(text: string): MongoBody {
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    throw invalidRequest(['the text is not a query'])
  }
  return readBody(body)
}

const FIELDS =
  'a MongoDB query takes collection (string), filter (object, optional), pipeline (array of stages, optional) and limit (whole number, optional)'

function isStage(value: unknown): boolean {
  return isJson(value) && Object.keys(value).length === 1
}

function detailsOf(issue: z.core.$ZodIssue): string[] {
  if (issue.code === 'unrecognized_keys')
    return issue.keys.slice(0, 20).map((key) => `${key.slice(0, 60)}: is not a field`)
  if (issue.path.length === 0) return ['the body must be {collection, filter?, pipeline?, limit?}']
  return [`${issue.path.join('.')}: ${issue.message}`]
}

interface Scan {
  readonly depth: number
  readonly nodes: number
  readonly widest: number
  readonly hasOddNumber: boolean
  /** The JSON text has at least this many bytes. */
  readonly size: number
  readonly wrong: ReadonlySet<string>
}

function scan(body: { collection: string; filter: unknown; pipeline: readonly unknown[] | null }): Scan {
  const wrong = new Set<string>()
  const checked = (text: string): number => {
    if (text.includes('\0')) wrong.add('a string contains a NUL character')
    if (!text.isWellFormed()) wrong.add('a string contains half of a surrogate pair')
    return text.length + 3
  }
  let level: unknown[] = [body.filter, ...(body.pipeline ?? [])]
  let depth = 0
  let nodes = 0
  let widest = 0
  let hasOddNumber = false
  let size = checked(body.collection)
  // A body that is too long is refused anyway, so stop reading.
  while (level.length > 0 && size <= BODY_BYTES_MAX) {
    const next: unknown[] = []
    nodes += level.length
    let containers = 0
    for (const value of level) {
      if (typeof value === 'string') size += checked(value)
      else size += 2
      // JSON writes -0 as 0, and Infinity as null.
      if (Object.is(value, -0) || (typeof value === 'number' && !Number.isFinite(value))) hasOddNumber = true
      if (typeof value !== 'object' || value === null) continue
      if (size > BODY_BYTES_MAX) break
      containers++
      if (Array.isArray(value)) {
        for (const element of value) next.push(element)
        continue
      }
      const entries = Object.entries(value)
      widest = Math.max(widest, entries.length)
      for (const [key, below] of entries) {
        if (FORBIDDEN_KEYS.has(key)) wrong.add(`${key}: must not be the name of a field`)
        size += checked(key)
        next.push(below)
      }
    }
    if (containers > 0) depth++
    level = next
  }
  return { depth, nodes, widest, hasOddNumber, size, wrong }
}
