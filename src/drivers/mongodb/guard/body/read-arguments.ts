// Reads the arguments of stages and operators. An error (Broken) names the stage or the operator.
import { isArray, isDocument, Scalar, type Bson, type BsonDocument } from '../../confined-query.ts'
import { numberOf } from './parse-ejson.ts'
import { Broken, shown } from '../refusals/refusal.ts'

/** Throws Broken if the value is no object, lacks a needed field, or has an unknown field. */
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

/** Returns the number as it was given. Throws Broken unless it is whole and at least `least`. */
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

/** If an object has a single key and this key starts with $, returns the key and its value. Otherwise returns null. */
export function operatorOf(value: Bson | undefined): readonly [string, Bson] | null {
  if (!isDocument(value)) return null
  const [first, ...others] = Object.entries(value)
  return first !== undefined && others.length === 0 && first[0].startsWith('$') ? first : null
}

/** Returns how a projection understands the value: 1 means include, 0 means exclude, null means an expression. */
export function flagOf(value: Bson | undefined): 0 | 1 | null {
  if (typeof value === 'boolean') return value ? 1 : 0
  if (value instanceof Scalar && value.of.kind === '$numberDecimal') return Number(value.of.text) === 0 ? 0 : 1
  const number = numberOf(value)
  return number === undefined ? null : number === 0 ? 0 : 1
}
