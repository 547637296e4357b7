// Reads arguments: objects with fixed fields, arrays, numbers, names. A Broken error names the stage or operator.
import { isArray, isDocument, Scalar, type Bson, type BsonDocument } from '../../confined-query.ts'
import { numberOf } from './parse-ejson.ts'
import { Broken, shown } from '../refusals/refusal.ts'

/** Returns the object. Throws Broken if the value is not an object, lacks a required field, or has an unknown field. */
export function fieldsOf(
  of: string,
  value: Bson | undefined,
  needed: readonly string[],
  optional: readonly string[],
): BsonDocument {
  if (!isDocument(value)) throw new Broken(`${of} takes an object`)
  const lacking = needed.find((name) => !Object.hasOwn(value, name))
  if (lacking !== undefined) throw new Broken(`${of} needs the field ${lacking}`)
  const extra = Object.keys(value).find((name) => !needed.includes(name) && !optional.includes(name))
  if (extra !== undefined) throw new Broken(`${of} does not take the field ${shown(extra)}`)
  return value
}

export function arrayOf(of: string, value: Bson | undefined): readonly Bson[] {
  if (!isArray(value)) throw new Broken(`${of} takes an array`)
  return value
}

export function textOf(of: string, value: Bson | undefined): string {
  if (typeof value !== 'string') throw new Broken(`${of} takes a string`)
  return value
}

/** Returns a whole number that is at least `least`, in the form to be printed. */
export function wholeOf(of: string, value: Bson | undefined, least: number): Bson {
  const number = numberOf(value)
  if (value === undefined || number === undefined || !Number.isSafeInteger(number) || number < least) {
    throw new Broken(`${of} takes a whole number of at least ${least}`)
  }
  return value
}

export function booleanOf(of: string, value: Bson | undefined): boolean {
  if (typeof value !== 'boolean') throw new Broken(`${of} takes true or false`)
  return value
}

/** Returns the one key of an object that starts with $, and its value, or null for any other object. */
export function operatorOf(value: Bson | undefined): readonly [string, Bson] | null {
  if (!isDocument(value)) return null
  const [first, ...others] = Object.entries(value)
  return first !== undefined && others.length === 0 && first[0].startsWith('$') ? first : null
}

/** Returns 1 if a projection interprets the value as "include", 0 for "exclude", null for an expression. */
export function flagOf(value: Bson | undefined): 0 | 1 | null {
  if (typeof value === 'boolean') return value ? 1 : 0
  if (value instanceof Scalar && value.of.kind === '$numberDecimal') return Number(value.of.text) === 0 ? 0 : 1
  const number = numberOf(value)
  return number === undefined ? null : number === 0 ? 0 : 1
}
