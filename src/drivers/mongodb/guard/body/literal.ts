// A literal value is compared and not computed. It contains no key that starts with $.
import { reasonAgainst } from '../allowed/expression-list.ts'
import { checkOrder } from './field-names.ts'
import { isArray, isDocument, type Bson } from '../../confined-query.ts'
import { refusedOperator } from '../refusals/refusal.ts'

/** Throws Refusal if the value contains an operator, and Broken if the order of its fields was lost. */
export function literal(value: Bson): Bson {
  if (isArray(value)) value.forEach(literal)
  else if (isDocument(value)) {
    checkOrder(Object.keys(value))
    for (const [name, below] of Object.entries(value)) {
      if (name.startsWith('$')) {
        throw refusedOperator(
          name,
          isForeign(name)
            ? 'values of this type cannot be sent'
            : `a literal value is expected here; ${reasonAgainst(name)}`,
          HINT,
        )
      }
      literal(below)
    }
  }
  return value
}

/** Checks the value of a $literal, which may have any names. Throws Broken if the order of its fields was lost. */
export function ordered(value: Bson): Bson {
  if (isArray(value)) value.forEach(ordered)
  else if (isDocument(value)) {
    checkOrder(Object.keys(value))
    Object.values(value).forEach(ordered)
  }
  return value
}

const HINT =
  'Write values that JSON does not have as strict Extended JSON: {"$oid": …}, {"$date": …}, {"$numberLong": …}, {"$numberDecimal": …}, {"$binary": …}, {"$uuid": …}, {"$timestamp": …}, {"$regularExpression": …}.'

function isForeign(name: string): boolean {
  return ['$code', '$scope', '$ref', '$id', '$db', '$dbPointer', '$symbol', '$undefined', '$type'].includes(name)
}
