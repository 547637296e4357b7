// Confines expressions. Operators must be on the list, every path and variable is looked up, and the expression is
// printed again from its parsed form. Everything that the guard does not understand is refused.
import { arrayOf, booleanOf, fieldsOf, textOf } from '../body/read-arguments.ts'
import { EXPRESSION_HINT, EXPRESSIONS, reasonAgainst, type Fields } from '../allowed/expression-list.ts'
import { numberOf } from '../body/parse-ejson.ts'
import { parsePattern, WORK_EACH } from '../body/pattern-tree.ts'
import { isArray, isDocument, Scalar, type Bson, type BsonDocument } from '../../confined-query.ts'
import { capped, isShort } from '../bounds/range-length.ts'
import { within } from '../refusals/error-place.ts'
import { checkReduce } from './reduce-depth.ts'
import { Broken, refusedOperator, refusedPath } from '../refusals/refusal.ts'
import { ordered } from '../body/literal.ts'
import { checkName, checkOrder } from '../body/field-names.ts'
import { fieldsHint, needVersion, resolve, variable, withVariables, type Scope } from '../documents/scope.ts'
import { sortSpecOf } from './sort-spec.ts'
import { suggested } from '../refusals/suggestions.ts'

/** Throws Broken if the expression is malformed, and Refusal if it is not allowed. */
export function expression(value: Bson | undefined, scope: Scope): Bson {
  if (value === undefined) throw new Broken('an expression is missing')
  scope.meter.work.spend(1)
  if (typeof value === 'string') return textExpression(value, scope)
  if (isArray(value)) return value.map((element, n) => within(value, n, () => expression(element, scope)))
  if (!isDocument(value)) return value
  const names = Object.keys(value)
  const operator = names.find((name) => name.startsWith('$'))
  if (operator === undefined) return objectExpression(value, scope)
  return within(value, operator, () => {
    const form = EXPRESSIONS.get(operator)
    if (form === undefined) throw unknownOperator(operator)
    if (names.length > 1) throw new Broken(`${operator} must be the only key of its object`)
    needVersion('expression', operator, scope.exposed)
    if (operator === '$range') return range(value[operator], scope)
    const printed = operand(operator, form, value[operator], scope)
    if (operator === '$setEquals') return equalSets(printed)
    return operator === '$setIsSubset' ? subset(printed) : { [operator]: printed }
  })
}

function unknownOperator(name: string): Error {
  return refusedOperator(name, reasonAgainst(name), suggested(name, EXPRESSIONS.keys(), EXPRESSION_HINT))
}

/**
 * Prints $setIsSubset as $setDifference. mongod's own $setIsSubset and $setEquals hash their elements, and compare an
 * element with all elements of the same hash. Decimals that are equal as doubles have the same hash. $setDifference
 * sorts its elements instead.
 */
function subset(args: Bson): BsonDocument {
  return isArray(args) && args.length === 2 ? { $eq: [{ $size: { $setDifference: args } }, 0] } : { $setIsSubset: args }
}

/** Prints $setEquals as $setDifference of the first set and each other set, in both directions. */
function equalSets(args: Bson): BsonDocument {
  if (!isArray(args) || args.length < 2) return { $setEquals: args }
  const vars = Object.fromEntries(args.map((arg, n) => [`vt_set${n}`, arg]))
  const [first = '', ...others] = Object.keys(vars).map((name) => `$$${name}`)
  const missing = others.flatMap((other) => [
    { $size: { $setDifference: [first, other] } },
    { $size: { $setDifference: [other, first] } },
  ])
  return { $let: { vars, in: { $eq: [{ $add: missing }, 0] } } }
}

function range(value: Bson | undefined, scope: Scope): Bson {
  const short = isShort(value)
  const ends = arrayOf('$range', value).map((end) => expression(end, scope))
  return short ? { $range: ends } : capped(ends)
}

function textExpression(text: string, scope: Scope): string {
  if (text.startsWith('$$')) variable(text, scope)
  else if (text.startsWith('$')) resolve(text.slice(1), scope)
  return text
}

function objectExpression(value: BsonDocument, scope: Scope): BsonDocument {
  const printed: Record<string, Bson> = {}
  checkOrder(Object.keys(value))
  for (const [name, below] of Object.entries(value)) {
    printed[name] = within(value, name, () => {
      checkName('an object', name)
      return expression(below, scope)
    })
  }
  return printed
}

function operand(name: string, form: 'any' | 'date' | 'special' | Fields, value: Bson | undefined, scope: Scope): Bson {
  const printed = operandOf(name, form, value, scope)
  if (name === '$split' && isArray(printed)) return printed.map((each, n) => (n === 1 ? textOnly(name, each) : each))
  if ((name === '$replaceAll' || name === '$replaceOne') && isDocument(printed))
    return { ...printed, find: textOnly(name, printed['find'] ?? null) }
  return printed
}

/**
 * The newest MongoDB would also search for a regular expression. So the printed expression fails if its value is
 * neither a string nor null.
 */
function textOnly(name: string, printed: Bson): Bson {
  if (typeof printed === 'string' && !printed.startsWith('$')) return printed
  if (printed instanceof Scalar && printed.of.kind === '$regularExpression') {
    throw refusedOperator(name, 'it searches for a string here', 'Find matches with $regexFindAll.')
  }
  return isDocument(printed) && ('$concat' in printed || typeof printed['$literal'] === 'string')
    ? printed
    : { $concat: [printed] }
}

function operandOf(
  name: string,
  form: 'any' | 'date' | 'special' | Fields,
  value: Bson | undefined,
  scope: Scope,
): Bson {
  if (form === 'special') return special(name, value, scope)
  if (form === 'any') return expression(value, scope)
  if (form === 'date') {
    const parts = isDocument(value) && Object.hasOwn(value, 'date')
    return parts ? named(name, fieldsOf(name, value, ['date'], ['timezone']), scope) : expression(value, scope)
  }
  return named(name, fieldsOf(name, value, form.needed, form.optional), scope)
}

function named(of: string, value: BsonDocument, scope: Scope): BsonDocument {
  const printed: Record<string, Bson> = {}
  for (const [name, below] of Object.entries(value)) {
    printed[name] = within(value, name, () =>
      name === 'useLongestLength' ? booleanOf(of, below) : expression(below, scope),
    )
  }
  return printed
}

function special(name: string, value: Bson | undefined, scope: Scope): Bson {
  switch (name) {
    case '$literal':
      if (value === undefined) throw new Broken('$literal needs a value')
      return ordered(value)
    case '$cond':
      return condition(value, scope)
    case '$switch':
      return switched(value, scope)
    case '$let':
      return bound(value, scope)
    case '$map':
    case '$filter':
      return over(name, value, scope)
    case '$reduce':
      return reduced(value, scope)
    case '$getField':
    case '$setField':
    case '$unsetField':
      return field(name, value, scope)
    case '$sortArray': {
      const { input, sortBy } = fieldsOf(name, value, ['input', 'sortBy'], [])
      return {
        input: expression(input, scope),
        sortBy: isDocument(sortBy) ? sortSpecOf(name, sortBy, null).printed : direction(sortBy),
      }
    }
    default:
      return matching(name, value, scope)
  }
}

function condition(value: Bson | undefined, scope: Scope): Bson {
  if (!isDocument(value)) {
    const branches = arrayOf('$cond', value)
    if (branches.length !== 3) throw new Broken('$cond takes three expressions')
    return expression(branches, scope)
  }
  return named('$cond', fieldsOf('$cond', value, ['if', 'then', 'else'], []), scope)
}

function switched(value: Bson | undefined, scope: Scope): Bson {
  const { branches, default: otherwise } = fieldsOf('$switch', value, ['branches'], ['default'])
  const printed = arrayOf('$switch', branches).map((branch) =>
    named('$switch', fieldsOf('a branch of $switch', branch, ['case', 'then'], []), scope),
  )
  return otherwise === undefined ? { branches: printed } : { branches: printed, default: expression(otherwise, scope) }
}

function bound(value: Bson | undefined, scope: Scope): Bson {
  const { vars, in: body } = fieldsOf('$let', value, ['vars', 'in'], [])
  if (!isDocument(vars)) throw new Broken('$let takes an object of variables')
  const inner = withVariables(scope, Object.keys(vars))
  const printed: Record<string, Bson> = {}
  for (const [name, below] of Object.entries(vars)) {
    printed[name] = within(vars, name, () => expression(below, scope))
  }
  return { vars: printed, in: isDocument(value) ? within(value, 'in', () => expression(body, inner)) : null }
}

function over(name: '$map' | '$filter', value: Bson | undefined, scope: Scope): Bson {
  const body = name === '$map' ? 'in' : 'cond'
  const optional = ['as', 'arrayIndexAs']
  const read = fieldsOf(name, value, ['input', body], name === '$map' ? optional : [...optional, 'limit'])
  const { limit } = read
  const names = namesOf(name, read, { as: 'this' }, scope)
  return {
    input: within(read, 'input', () => expression(read['input'], scope)),
    ...names,
    [body]: within(read, body, () => expression(read[body], withElement(names, scope))),
    ...(limit === undefined ? {} : { limit: expression(limit, scope) }),
  }
}

function reduced(value: Bson | undefined, scope: Scope): Bson {
  const read = fieldsOf('$reduce', value, ['input', 'initialValue', 'in'], ['as', 'valueAs', 'arrayIndexAs'])
  const { input, initialValue, in: step } = read
  const names = namesOf('$reduce', read, {}, scope)
  const { as = 'this', valueAs = 'value' } = names
  checkReduce(step, valueAs)
  return {
    input: within(read, 'input', () => expression(input, scope)),
    initialValue: within(read, 'initialValue', () => expression(initialValue, scope)),
    ...names,
    in: within(read, 'in', () => expression(step, withElement({ ...names, as, valueAs }, scope))),
  }
}

/** The variables of a loop have the names in the query, or default names. */
function namesOf(
  of: string,
  read: BsonDocument,
  defaults: Readonly<Record<string, string>>,
  scope: Scope,
): Readonly<Record<string, string>> {
  const names: Record<string, string> = { ...defaults }
  for (const key of ['as', 'valueAs', 'arrayIndexAs']) {
    if (!Object.hasOwn(read, key)) continue
    if (key !== 'as' || of === '$reduce') needVersion('expression', 'arrayIndexAs', scope.exposed)
    names[key] = textOf(of, read[key])
  }
  return names
}

function withElement(names: Readonly<Record<string, string>>, scope: Scope): Scope {
  const inner = withVariables(scope, Object.values(names))
  return { ...inner, iterating: true }
}

function field(name: '$getField' | '$setField' | '$unsetField', value: Bson | undefined, scope: Scope): Bson {
  if (name === '$getField' && (!isDocument(value) || Object.keys(value).some((key) => key.startsWith('$')))) {
    return { field: fieldName(value, undefined, scope), input: expression('$$CURRENT', scope) }
  }
  const read = fieldsOf(
    name,
    value,
    name === '$getField' ? ['field'] : name === '$setField' ? ['field', 'input', 'value'] : ['field', 'input'],
    name === '$getField' ? ['input'] : [],
  )
  const { input = '$$CURRENT', value: set } = read
  return {
    field: fieldName(read['field'], name === '$getField' ? input : null, scope),
    input: expression(input, scope),
    ...(set === undefined ? {} : { value: expression(set, scope) }),
  }
}

/** Prints a constant name as a literal. If the field is read from the document itself, it must be a known field. */
function fieldName(written: Bson | undefined, input: Bson | undefined, scope: Scope): Bson {
  const literal = isDocument(written) && Object.keys(written).length === 1 ? written['$literal'] : undefined
  const name =
    typeof literal === 'string' ? literal : typeof written === 'string' && !written.startsWith('$') ? written : null
  if (name === null) return expression(written, scope)
  const offDocument = input === undefined || input === '$$CURRENT' || input === '$$ROOT'
  const { kids, open } = scope.shape
  if (offDocument && kids?.has(name) === false && !open) throw refusedPath(name, fieldsHint(name, scope.shape))
  return { $literal: name }
}

function direction(value: Bson | undefined): Bson {
  const number = numberOf(value)
  if (value === undefined || (number !== 1 && number !== -1))
    throw new Broken('$sortArray takes 1, -1 or an object of fields for sortBy')
  return value
}

/** The pattern of $regexMatch, $regexFind and $regexFindAll must be constant. */
function matching(name: string, value: Bson | undefined, scope: Scope): Bson {
  const { input, regex, options } = fieldsOf(name, value, ['input', 'regex'], ['options'])
  const literal = isDocument(regex) && Object.keys(regex).length === 1 ? regex['$literal'] : undefined
  const constant = literal ?? regex
  const pattern =
    constant instanceof Scalar && constant.of.kind === '$regularExpression' ? constant.of.pattern : constant
  const named =
    typeof pattern === 'string' && (literal !== undefined || constant instanceof Scalar || !pattern.startsWith('$'))
  if (pattern !== null && !named) {
    expression(regex, scope)
    throw refusedOperator(name, 'its pattern must be a constant', `Write the pattern of ${name} as a constant string.`)
  }
  if (options !== undefined && options !== null && !(typeof options === 'string' && /^[imsux]*$/.test(options)))
    throw refusedOperator(name, 'its options must be a constant of the letters i m s u x', `Write {"options": "i"}.`)
  const own = constant instanceof Scalar && constant.of.kind === '$regularExpression' ? constant.of.options : ''
  if (typeof pattern === 'string' && isDocument(value))
    within(value, 'regex', () => {
      scope.meter.work.spend(WORK_EACH * parsePattern(pattern, own + (options ?? '')).length)
    })
  return {
    input: expression(input, scope),
    regex: literal === undefined ? (constant ?? null) : { $literal: literal },
    ...(options === undefined ? {} : { options }),
  }
}
