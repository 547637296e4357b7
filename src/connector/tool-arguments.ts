// Wrong arguments of a tool are answered with INVALID_REQUEST and one line per problem, as in REST.
import { z, type ZodType } from 'zod'
import { VALUES } from '../contract/route-type.ts'
import { invalidRequest } from '../errors.ts'
import { parseInSlices } from '../operations/parse-json-in-slices.ts'
import { refusalOf } from '../operations/scan-json.ts'
import { readBody } from '../operations/validate.ts'
import type { JsonObject } from './json-object.ts'

export const Id = z.string().max(200)
/** The longest answer that the client accepts, in tokens of a language model. */
export const BudgetTokens = z.int().min(500).max(1_000_000)

/** Throws INVALID_REQUEST. */
export function readArguments<S extends ZodType>(schema: S, args: JsonObject): z.output<S> {
  readBody({ body: schema }, args)
  return schema.parse(args)
}

/**
 * Many clients send JSON text instead of an object. Parses it with the checks for a body, and returns other values
 * unchanged. Throws INVALID_REQUEST.
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
