// Reads the arguments of a tool. A wrong argument is INVALID_REQUEST with one line each, like a wrong field of REST.
import { z, type ZodType } from 'zod'
import { VALUES } from '../contract/route-type.ts'
import { invalidRequest } from '../errors.ts'
import { parseInSlices } from '../operations/parse-json-in-slices.ts'
import { refusalOf } from '../operations/scan-json.ts'
import { readBody } from '../operations/validate.ts'
import type { JsonObject } from './json-object.ts'

/** An id of ours. Whether it exists is decided later. */
export const Id = z.string().max(200)
/** How many tokens the client can take. */
export const BudgetTokens = z.int().min(500).max(1_000_000)

/** Returns the arguments as the schema reads them. Throws INVALID_REQUEST. */
export function readArguments<S extends ZodType>(schema: S, args: JsonObject): z.output<S> {
  readBody({ body: schema }, args)
  return schema.parse(args)
}

/**
 * Many clients send JSON text in place of an object. The text is read with the same care as a body. A value that is not
 * a text is returned unchanged. Throws INVALID_REQUEST for a text that is not JSON.
 */
export async function parsedText(name: string, value: unknown): Promise<unknown> {
  if (typeof value !== 'string') return value
  const refusal = await refusalOf(value, VALUES.many)
  if (refusal !== null) throw refusal
  try {
    return await parseInSlices(value)
  } catch {
    throw invalidRequest([`${name}: must be an object or array, or its JSON text`])
  }
}
