// Reads the arguments of a tool. A wrong argument is INVALID_REQUEST with one line each, like a wrong field of REST.
import { z, type ZodType } from 'zod'
import { invalidRequest } from '../errors.ts'
import { refusalOf, VALUES_MAX } from '../operations/scan-json.ts'
import { readBody } from '../operations/validate.ts'
import { isObject, type JsonObject } from './records.ts'

/** An id of ours. Whether it exists is decided later. */
export const Id = z.string().max(200)
/** How many tokens the client can take. */
export const BudgetTokens = z.int().min(500).max(1_000_000)

/** The arguments as the schema reads them. Throws INVALID_REQUEST. */
export function readArguments<S extends ZodType>(schema: S, args: JsonObject): z.output<S> {
  readBody({ body: schema }, args)
  return schema.parse(args)
}

/**
 * Many clients send JSON text where an object is asked for. The text is read with the same care as a body. A value that
 * is no text is returned as it is. Throws INVALID_REQUEST for a text that is not JSON.
 */
export async function parsedText(name: string, value: unknown): Promise<unknown> {
  if (typeof value !== 'string') return value
  const refusal = await refusalOf(value, VALUES_MAX)
  if (refusal !== null) throw refusal
  try {
    return JSON.parse(value, (key, inner: unknown) => {
      if (isPoison(key, inner)) throw new SyntaxError('a key that JavaScript gives a meaning')
      return inner
    })
  } catch {
    throw invalidRequest([`${name}: must be an object or array, or its JSON text`])
  }
}

/** Bodies are refused for the same keys. */
function isPoison(key: string, value: unknown): boolean {
  return key === '__proto__' || (key === 'constructor' && isObject(value) && 'prototype' in value)
}
