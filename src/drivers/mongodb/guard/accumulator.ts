// Accumulators of $group, $bucket and $bucketAuto, and the operators of $setWindowFields: by their lists.
import { fieldsOf, operatorOf, textOf } from './arguments.ts'
import { reasonAgainst, type Fields } from './expression-list.ts'
import { expression } from './expression.ts'
import { isArray, isDocument, type Bson, type BsonDocument } from '../query.ts'
import { Broken, refusedOperator, shown } from './refusal.ts'
import { needVersion, type Scope } from './scope.ts'
import { sortSpecOf } from './sort.ts'

type Form = 'expression' | 'nothing' | 'sorted' | Fields

const INPUT_N: Fields = { needed: ['input', 'n'], optional: [] }

const SHARED: readonly (readonly [string, Form])[] = [
  ...'$addToSet $avg $concatArrays $first $last $max $mergeObjects $min $push $setUnion $stdDevPop $stdDevSamp $sum'
    .split(' ')
    .map((name): [string, Form] => [name, 'expression']),
  ['$count', 'nothing'],
  ['$top', 'sorted'],
  ['$topN', 'sorted'],
  ['$bottom', 'sorted'],
  ['$bottomN', 'sorted'],
  ['$firstN', INPUT_N],
  ['$lastN', INPUT_N],
  ['$maxN', INPUT_N],
  ['$minN', INPUT_N],
  ['$median', { needed: ['input', 'method'], optional: [] }],
  ['$percentile', { needed: ['input', 'p', 'method'], optional: [] }],
]

const ACCUMULATORS: ReadonlyMap<string, Form> = new Map(SHARED)

const WINDOW: ReadonlyMap<string, Form> = new Map<string, Form>([
  ...SHARED,
  ...'$covariancePop $covarianceSamp $linearFill $locf'.split(' ').map((name): [string, Form] => [name, 'expression']),
  ...'$denseRank $documentNumber $rank'.split(' ').map((name): [string, Form] => [name, 'nothing']),
  ['$derivative', { needed: ['input'], optional: ['unit'] }],
  ['$integral', { needed: ['input'], optional: ['unit'] }],
  ['$expMovingAvg', { needed: ['input'], optional: ['N', 'alpha'] }],
  ['$shift', { needed: ['output', 'by'], optional: ['default'] }],
  ['$minMaxScaler', { needed: ['input'], optional: ['min', 'max'] }],
])

/** {$sum: …} as it is printed. Throws Refusal and Broken. */
export function accumulator(of: string, value: Bson, scope: Scope): BsonDocument {
  const operator = operatorOf(value)
  if (operator === null) throw refusedShape(of, value)
  return { [operator[0]]: operand('accumulator', ACCUMULATORS, operator, scope) }
}

/** An operator of $setWindowFields beside its window. */
export function windowOperator(value: Bson, scope: Scope, sortKeys: number): BsonDocument {
  if (!isDocument(value)) throw new Broken('$setWindowFields takes an object for each output')
  const { window, ...rest } = value
  const operator = operatorOf(rest)
  if (operator === null) throw refusedShape('$setWindowFields', rest)
  const [name] = operator
  if ((name === '$rank' || name === '$denseRank') && sortKeys !== 1) {
    throw new Broken(`${name} needs a sortBy of one field`)
  }
  const printed = { [name]: operand('window', WINDOW, operator, scope) }
  return window === undefined ? printed : { ...printed, window: frame(window) }
}

function refusedShape(of: string, value: Bson): Error {
  const names = isDocument(value) ? Object.keys(value).filter((name) => name.startsWith('$')) : []
  const denied = names.find((name) => !ACCUMULATORS.has(name) && !WINDOW.has(name))
  if (denied !== undefined) return refusedOperator(denied, reasonAgainst(denied), hint(ACCUMULATORS))
  return new Broken(`${of} takes one accumulator for each output, such as {"$sum": 1}`)
}

function hint(list: ReadonlyMap<string, Form>): string {
  return `Allowed here: ${[...list.keys()].sort().join(' ')}.`
}

function operand(
  vocabulary: 'accumulator' | 'window',
  list: ReadonlyMap<string, Form>,
  [name, value]: readonly [string, Bson],
  scope: Scope,
): Bson {
  const form = list.get(name)
  if (form === undefined) throw refusedOperator(name, reasonAgainst(name), hint(list))
  needVersion(vocabulary, name, scope.exposed)
  if (form === 'expression') return expression(value, scope)
  if (form === 'nothing') {
    fieldsOf(name, value, [], [])
    return {}
  }
  if (form === 'sorted') return sorted(name, value, scope)
  const printed: Record<string, Bson> = {}
  for (const [field, below] of Object.entries(fieldsOf(name, value, form.needed, form.optional))) {
    printed[field] = expression(below, scope)
  }
  return printed
}

function sorted(name: string, value: Bson, scope: Scope): Bson {
  const many = name.endsWith('N')
  const { sortBy, output, n } = fieldsOf(name, value, many ? ['sortBy', 'output', 'n'] : ['sortBy', 'output'], [])
  if (!isDocument(sortBy)) throw new Broken(`${name} takes an object for sortBy`)
  return {
    sortBy: sortSpecOf(name, sortBy, scope).printed,
    output: expression(output, scope),
    ...(many ? { n: expression(n, scope) } : {}),
  }
}

function frame(window: Bson): Bson {
  const { documents, range, unit } = fieldsOf('window', window, [], ['documents', 'range', 'unit'])
  return {
    ...(documents === undefined ? {} : { documents: bounds(documents) }),
    ...(range === undefined ? {} : { range: bounds(range) }),
    ...(unit === undefined ? {} : { unit: textOf('unit', unit) }),
  }
}

export function bounds(value: Bson): Bson {
  if (!isArray(value) || value.length !== 2) throw new Broken('a window has a lower and an upper bound')
  for (const bound of value) {
    if (typeof bound === 'string' && !['current', 'unbounded', 'full', 'partition'].includes(bound)) {
      throw new Broken(`${shown(bound)} is no bound`)
    }
    if (isArray(bound) || isDocument(bound)) throw new Broken('a bound is a number or a text')
  }
  return value
}
