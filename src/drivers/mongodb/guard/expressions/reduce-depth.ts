// A $reduce must not nest its value deeper with each element (docs/guard/mongodb.md, CVE-2026-1849). So this file
// computes how much deeper than $$value the result of one iteration can be. A literal, $map and similar operators add
// one level. A path or an element removes one level.
import { isArray, isDocument, type Bson } from '../../confined-query.ts'
import { refusedOperator } from '../refusals/refusal.ts'
import { Variables } from '../documents/variables.ts'

/** For a result that does not contain $$value. */
const NONE = Number.NEGATIVE_INFINITY

type Depths = Variables<number>

/** `value` is the name of $$value. Throws Refusal if the result can be deeper than $$value. */
export function checkReduce(step: Bson | undefined, value: string): void {
  if (depthOf(step, new Variables(null, new Map([[value, 0]]))) <= 0) return
  throw refusedOperator(
    '$reduce',
    'its result must not be nested deeper than $$value',
    'Do not put $$value into a new object or array: use $concatArrays, $mergeObjects, or parts such as $$value.total.',
  )
}

function depthOf(value: Bson | undefined, depths: Depths): number {
  if (typeof value === 'string') return ofText(value, depths)
  if (isArray(value)) return 1 + deepest(value, depths)
  if (!isDocument(value)) return NONE
  const entries = Object.entries(value)
  const [first] = entries
  if (first?.[0].startsWith('$') !== true) return 1 + deepest(Object.values(value), depths)
  return ofOperator(first[0], first[1], depths)
}

function ofText(text: string, depths: Depths): number {
  if (!text.startsWith('$$')) return NONE
  const [name = '', ...path] = text.slice(2).split('.')
  return (depths.get(name) ?? NONE) - path.length
}

function deepest(values: readonly Bson[], depths: Depths): number {
  return values.reduce<number>((most, value) => Math.max(most, depthOf(value, depths)), NONE)
}

const SAME = new Set(
  '$ifNull $mergeObjects $concatArrays $setUnion $setIntersection $setDifference $slice $reverseArray $min $max'.split(
    ' ',
  ),
)
/** The arguments of these operators may be the fields of an object. Such an object is no literal. */
const NAMED = new Set('$cond $firstN $lastN $maxN $minN $convert'.split(' '))
const ONE_LESS = new Set(['$arrayElemAt', '$first', '$last', '$arrayToObject'])

function ofOperator(name: string, operand: Bson, depths: Depths): number {
  const field = (key: string): Bson | undefined => (isDocument(operand) ? operand[key] : undefined)
  const args = isArray(operand) ? operand : [operand]
  if (ONE_LESS.has(name)) return deepest(args, depths) - 1
  if (name === '$objectToArray') return deepest(args, depths) + 1
  if (SAME.has(name)) return deepest(args, depths)
  if (NAMED.has(name)) return deepest(isDocument(operand) ? Object.values(operand) : args, depths)
  switch (name) {
    case '$switch':
      return deepest(branchesOf(operand), depths)
    case '$filter':
    case '$sortArray':
    case '$unsetField':
    case '$deserializeEJSON':
      return depthOf(field('input'), depths)
    case '$getField':
      return depthOf(field('input'), depths) - 1
    case '$setField':
      return Math.max(depthOf(field('input'), depths), depthOf(field('value'), depths) + 1)
    // A date becomes {$date: {$numberLong: …}}, which has two more levels.
    case '$serializeEJSON':
      return depthOf(field('input'), depths) + 2
    case '$zip':
      return Math.max(ofList(field('inputs'), depths), ofList(field('defaults'), depths)) + 1
    case '$map':
      return depthOf(field('in'), bind(depths, as(operand), depthOf(field('input'), depths) - 1)) + 1
    case '$let':
      return ofLet(field('vars'), field('in'), depths)
    case '$reduce': {
      const initial = depthOf(field('initialValue'), depths)
      const element = bind(depths, as(operand), depthOf(field('input'), depths) - 1)
      const inner = bind(element, named(operand, 'valueAs', 'value'), initial)
      return Math.max(initial, depthOf(field('in'), inner))
    }
    default:
      return NONE
  }
}

/** Returns the depth of the elements of a list of arrays, or of a path to a list of arrays. */
function ofList(list: Bson | undefined, depths: Depths): number {
  return isArray(list) ? deepest(list, depths) : depthOf(list, depths)
}

function branchesOf(argument: Bson): readonly Bson[] {
  if (!isDocument(argument)) return [argument]
  const { branches, default: otherwise } = argument
  const thens = isArray(branches)
    ? branches.flatMap((branch) => (isDocument(branch) ? [branch['then'] ?? null] : []))
    : []
  return otherwise === undefined ? thens : [...thens, otherwise]
}

function ofLet(vars: Bson | undefined, body: Bson | undefined, depths: Depths): number {
  const own = new Map<string, number>()
  for (const [name, value] of isDocument(vars) ? Object.entries(vars) : []) own.set(name, depthOf(value, depths))
  return depthOf(body, depths.with(own))
}

function as(operand: Bson): string {
  return named(operand, 'as', 'this')
}

function named(operand: Bson, key: string, otherwise: string): string {
  const name = isDocument(operand) ? operand[key] : undefined
  return typeof name === 'string' ? name : otherwise
}

function bind(depths: Depths, name: string, depth: number): Depths {
  return depths.with(new Map([[name, depth]]))
}
