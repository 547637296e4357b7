// Values that are compared, not computed: at no depth a key that starts with $.
import { reasonAgainst } from './expression-list.ts'
import { checkOrder } from './field-names.ts'
import { isArray, isDocument, type Bson } from '../query.ts'
import { refusedOperator } from './refusal.ts'

/** The value itself. Throws Refusal where an operator hides in it, Broken where the order of its fields is lost. */
export function literal(value: Bson): Bson {
  if (isArray(value)) value.forEach(literal)
  else if (isDocument(value)) {
    checkOrder(Object.keys(value))
    for (const [name, below] of Object.entries(value)) {
      if (name.startsWith('$')) {
        throw refusedOperator(
          name,
          isForeign(name) ? 'such values cannot be sent' : `a value stands here; ${reasonAgainst(name)}`,
          HINT,
        )
      }
      literal(below)
    }
  }
  return value
}

/** A value of $literal: whatever its names are. Throws Broken where the order of its fields is lost. */
export function ordered(value: Bson): Bson {
  if (isArray(value)) value.forEach(ordered)
  else if (isDocument(value)) {
    checkOrder(Object.keys(value))
    Object.values(value).forEach(ordered)
  }
  return value
}

const HINT =
  'What JSON cannot say is written as strict Extended JSON: {"$oid": …}, {"$date": …}, {"$numberLong": …}, {"$numberDecimal": …}, {"$binary": …}, {"$uuid": …}, {"$timestamp": …}, {"$regularExpression": …}.'

function isForeign(name: string): boolean {
  return ['$code', '$scope', '$ref', '$id', '$db', '$dbPointer', '$symbol', '$undefined', '$type'].includes(name)
}
