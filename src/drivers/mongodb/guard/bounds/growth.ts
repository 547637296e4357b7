// mongod builds a value of any size in memory, and no timeout ends this. So before a query is sent, this file bounds
// the size of each expression's value, and the steps to compute the value. Loops multiply both. An extent is what is
// known about a value (value-size.ts).
import { constant, HUGE, isConstant, most, plus, product, scaled, sizeOf, type Amount, type Size } from './amount.ts'
import {
  anyOf,
  anything,
  arrayOf,
  at,
  below,
  bytesWithout,
  ELEMENT_KEPT,
  ELEMENT_LEAST,
  elementOf,
  FIELD_KEPT,
  inside,
  isStored,
  largest,
  list,
  literalExtent,
  moved,
  number,
  object,
  OBJECT_BYTES,
  overEach,
  piecesAt,
  SMALL,
  STORED,
  text,
  TEXT_BYTES,
  together,
  usualOf,
  written,
  type Extent,
} from './value-size.ts'
import { EXPRESSIONS } from '../allowed/expression-list.ts'
import { numberOf } from '../body/parse-ejson.ts'
import type { Meter } from './step-meter.ts'
import { patternOf, STEP_READS, stepsOf } from './operator-steps.ts'
import { afterTurns } from './reduce-growth.ts'
import { isArray, isDocument, type Bson, type BsonDocument } from '../../confined-query.ts'
import { itemsBetween, numberBound, writtenItems } from './range-length.ts'
import type { Variables } from '../documents/variables.ts'

export interface Env {
  readonly meter: Meter
  /**
   * Returns the value at a path of the document. Inside $redact, the document is the object that $redact has descended
   * into.
   */
  readonly document: (path: readonly string[]) => Extent
  /** Returns the value at a path of the whole document. */
  readonly root: (path: readonly string[]) => Extent
  readonly variables: Variables<Extent>
}

/**
 * Returns what is known about the value of an expression, and counts its steps. The expression must be valid. Throws
 * Refusal if it may exceed the bounds.
 */
export function grown(value: Bson | undefined, env: Env): Extent {
  env.meter.step()
  if (value === undefined) return SMALL
  if (typeof value === 'string') return ofText(value, env)
  if (isArray(value)) return env.meter.made(written(value.map((each) => grown(each, env))))
  if (!isDocument(value)) return literalExtent(value)
  const entries = Object.entries(value)
  const operator = entries.find(([name]) => name.startsWith('$'))
  if (operator !== undefined) return moved(ofOperator(operator[0], operator[1], env))
  return env.meter.made(object(new Map(entries.map(([name, each]) => [name, grown(each, env)]))))
}

function ofText(value: string, env: Env): Extent {
  if (!value.startsWith('$')) return literalExtent(value)
  const path = value.replace(/^\$+/, '').split('.')
  env.meter.work.spend(path.length)
  if (!value.startsWith('$$')) return along(path, env.document, env)
  const [name = '', ...rest] = path
  if (name === 'ROOT' || name === 'CURRENT') {
    const document = name === 'ROOT' ? env.root : env.document
    return rest.length === 0 ? readWhole(document([]), env) : along(rest, document, env)
  }
  const known = env.variables.get(name)
  return known === undefined ? SMALL : alongKnown(known, rest, env)
}

/** In an object that the query writes, mongod finds a field without a search. */
function alongKnown(from: Extent, path: readonly string[], env: Env): Extent {
  const [name, ...rest] = path
  if (name !== undefined && from.fields !== null) return alongKnown(below(from, [name]), rest, env)
  const found = below(from, path)
  env.meter.parse(found)
  return read(found, from, env)
}

function along(path: readonly string[], document: Env['document'], env: Env): Extent {
  const found = document(path)
  env.meter.parse(found)
  return path.length === 1 ? found : read(found, document(path.slice(0, 1)), env)
}

/**
 * Counts the reading of a path. If the path goes through an array, mongod visits all elements of `from` and makes a new
 * array.
 */
function read(found: Extent, from: Extent, env: Env): Extent {
  if (found === from) return found
  if (found.isSingle) {
    // To find out that an object lacks the field, mongod visits all fields.
    if (from.fields === null) env.meter.again(scaled(from.bytes, 1 / STEP_READS))
    return found
  }
  env.meter.step(plus(1, scaled(from.bytes, READ_STEPS)))
  return env.meter.made({ ...found, kept: plus(found.kept, scaled(found.items, ELEMENT_KEPT)) })
}

/** mongod 6.0 copies the whole document. */
function readWhole(whole: Extent, env: Env): Extent {
  env.meter.step(scaled(whole.bytes, 1 / STEP_READS))
  return env.meter.made({ ...whole, kept: whole.bytes })
}

/** Steps for each byte of an array that a path goes through. */
const READ_STEPS = 1 / 15

const words = (names: string): ReadonlySet<string> => new Set(names.split(' '))

/** The value is an array of elements of the first argument. */
const CHOSEN = words('$reverseArray $setDifference $slice')
/** The value is an array of elements of all arguments. */
const JOINED = words('$concatArrays $setIntersection $setUnion')
/** The value is one of the arguments, or one element of an argument. */
const AS_THEY_ARE = words('$arrayElemAt $first $ifNull $last $max $min')
/** The value is a part of the argument, or a string of as many bytes. */
const PARTS = words('$ltrim $rtrim $substr $substrBytes $substrCP $toLower $toUpper $trim $unsetField')
/** The value is a string, which may be longer than the arguments. */
const WRITTEN = words('$convert $dateFromString $dateToString $toString')
const WRITTEN_TIMES = 6
/** A string becomes a value, or a value becomes a string. */
const CONVERTED = words('$deserializeEJSON $serializeEJSON $toArray $toObject')
const CONVERTED_TIMES = 70
const WRITTEN_BYTES = 100
/** The value is a number, a date, a short string or a boolean. */
const SCALARS = words(
  '$abs $acos $acosh $add $allElementsTrue $and $anyElementTrue $asin $asinh $atan $atan2 $atanh $avg $binarySize $bitAnd $bitNot $bitOr $bitXor $bsonSize $ceil $cmp $cos $cosh $dateAdd $dateDiff $dateFromParts $dateSubtract $dateTrunc $dayOfMonth $dayOfWeek $dayOfYear $degreesToRadians $divide $eq $exp $floor $gt $gte $hour $in $indexOfArray $indexOfBytes $indexOfCP $isArray $isNumber $isoDayOfWeek $isoWeek $isoWeekYear $ln $log $log10 $lt $lte $median $millisecond $minute $mod $month $multiply $ne $not $or $pow $radiansToDegrees $regexMatch $round $second $setEquals $setIsSubset $sigmoid $similarityCosine $similarityDotProduct $similarityEuclidean $sin $sinh $size $sqrt $stdDevPop $stdDevSamp $strLenBytes $strLenCP $strcasecmp $subtract $subtype $sum $tan $tanh $toBool $toDate $toDecimal $toDouble $toInt $toLong $toObjectId $toUUID $trunc $tsIncrement $tsSecond $type $week $year',
)

function ofOperator(name: string, operand: Bson, env: Env): Extent {
  switch (name) {
    case '$literal':
      return literalExtent(operand)
    case '$cond':
      return largest(isArray(operand) ? all(operand, env).slice(1) : fieldsOf(operand, env, ['then', 'else']))
    case '$switch':
      return ofSwitch(operand, env)
    case '$let':
      return ofLet(operand, env)
    case '$map':
    case '$filter':
      return ofLoop(name, operand, env)
    case '$reduce':
      return ofReduce(operand, env)
    case '$range':
      return ofRange(operand, env)
    case '$setField':
    case '$getField':
      return ofField(name, operand, env)
    default:
      return ofValues(name, operand, env)
  }
}

/** Counts an operator that computes each argument once. */
function ofValues(name: string, operand: Bson, env: Env): Extent {
  const args = argumentsOf(name, operand, env)
  env.meter.step(stepsOf(name, { operand, args, collation: env.meter.collation }))
  const made = valueOf(name, operand, args)
  const isSmall = isConstant(made.bytes) && made.bytes.constant <= SMALL_BYTES
  const isNew = !AS_THEY_ARE.has(name) && !isSmall
  return isNew ? env.meter.made(made) : made
}

/** Values of at most this size are not counted. */
const SMALL_BYTES = 64

function valueOf(name: string, operand: Bson, args: readonly Extent[]): Extent {
  const [first = SMALL] = args
  const { bytes, items } = together(args)
  if (CHOSEN.has(name))
    return shortened(rebuilt([first]), name === '$slice' && isArray(operand) ? operand.at(-1) : undefined)
  if (JOINED.has(name)) return rebuilt(args)
  if (PARTS.has(name))
    return partOf(name, operand, isDocument(operand) && areArguments(name, operand) ? inputOf(operand, args) : first)
  if (WRITTEN.has(name)) return anything(plus(scaled(bytes, WRITTEN_TIMES), WRITTEN_BYTES), 1)
  if (CONVERTED.has(name)) return anything(plus(scaled(bytes, CONVERTED_TIMES), OBJECT_BYTES))
  if (SCALARS.has(name)) return number(numberBound(name, operand, args))
  switch (name) {
    case '$ifNull':
      return largest(args)
    case '$concat':
      return text(
        bytes,
        args.reduce((least, each) => least + each.least, 0),
      )
    case '$arrayElemAt':
    case '$first':
    case '$last':
      return anyOf(first)
    case '$max':
    case '$min':
      return {
        ...(args.length === 1 ? largest([first, anyOf(first)]) : largest(args)),
        number: numberBound(name, operand, args),
      }
    case '$firstN':
    case '$lastN':
    case '$maxN':
    case '$minN':
      return shortened(rebuilt([inputOf(operand, args)]), isDocument(operand) ? operand['n'] : undefined)
    case '$sortArray':
      return rebuilt([inputOf(operand, args)])
    case '$mergeObjects':
      return merged(
        args,
        args.map((_, n) => sureNames(isArray(operand) ? operand[n] : operand)),
      )
    case '$arrayToObject':
      return anything(plus(bytes, scaled(items, 40)), 1)
    case '$objectToArray':
      return ofPairs(first)
    case '$zip':
      return ofZip(args)
    case '$split':
      return ofPieces(operand, first)
    case '$regexFind':
      return ofMatches(operand, args, constant(1), 1)
    case '$regexFindAll':
      return ofMatches(operand, args, inputOf(operand, args).bytes, OBJECT_BYTES)
    case '$replaceAll':
    case '$replaceOne':
      return ofReplace(name, operand, args)
    case '$percentile':
      return list(SMALL, items)
    case '$dateToParts':
      return anything(constant(DATE_PARTS_BYTES), 1)
    // The value of an unknown operator has no bound, so the query is refused.
    default:
      return anything(constant(HUGE))
  }
}

const DATE_PARTS_BYTES = 1_500

/** Returns the extent of a new array with the elements of these arrays. mongod does not copy the elements. */
function rebuilt(arrays: readonly Extent[]): Extent {
  const { bytes, items, kept: own } = together(arrays)
  const kept = plus(own, scaled(items, ELEMENT_KEPT))
  const nested = arrays.filter(({ isScalar }) => !isScalar)
  const each = nested.length > 0 && nested.every((array) => array.each !== null) ? largest(nested.map(anyOf)) : null
  const usual = arrays.reduce((total, array) => total + array.usual, 0)
  const isLoose = nested.some((array) => array.isLoose)
  return { ...anything(bytes, usual), kept, items, isLoose, each: each === null ? null : moved(each) }
}

/** If the query takes at most this many elements of an array, the number in the query is the bound. */
const FEW = 100

function shortened(array: Extent, n: Bson | undefined): Extent {
  const known = numberOf(n ?? null)
  if (known === undefined) return array
  const items = Math.abs(known)
  const isShorter = isConstant(array.items) ? items < array.items.constant : items <= FEW
  return isShorter ? { ...array, items: constant(items), isLoose: false, usual: Math.min(items, array.usual) } : array
}

/** If the query takes at most this many characters of a string, the number in the query is the bound. */
const TEXT_TAKEN = 1_000

function partOf(name: string, operand: Bson, value: Extent): Extent {
  if (name === '$unsetField') return inside(value)
  const length = name.startsWith('$substr') && isArray(operand) ? numberOf(operand[2]) : undefined
  const isShort = length !== undefined && length >= 0 && length <= TEXT_TAKEN
  // mongod first converts a number or a date to a string, so WRITTEN_BYTES is added.
  return text(isShort ? constant(4 * length + TEXT_BYTES) : plus(value.bytes, WRITTEN_BYTES))
}

/** The arguments are the elements of a list, the fields of an object, or the single operand. */
function argumentsOf(name: string, operand: Bson, env: Env): readonly Extent[] {
  if (isArray(operand)) return all(operand, env)
  if (name === '$zip' && isDocument(operand) && isArray(operand['inputs']))
    return [...all(operand['inputs'], env), grown(operand['defaults'], env)]
  if (!isDocument(operand) || !areArguments(name, operand)) return [grown(operand, env)]
  return all(Object.values(operand), env)
}

/** False if the fields of an operand are no arguments, because the operand is an object literal or an operator. */
function areArguments(name: string, operand: BsonDocument): boolean {
  const form = EXPRESSIONS.get(name)
  return form === 'date' ? Object.hasOwn(operand, 'date') : form !== 'any'
}

function all(values: readonly Bson[], env: Env): readonly Extent[] {
  return values.map((value) => grown(value, env))
}

function fieldsIn(operand: Bson, args: readonly Extent[], names: readonly string[]): readonly Extent[] {
  const all = isDocument(operand) ? Object.keys(operand) : []
  return names.map((name) => args[all.indexOf(name)] ?? SMALL)
}

function inputOf(operand: Bson, args: readonly Extent[]): Extent {
  return fieldsIn(operand, args, ['input'])[0] ?? SMALL
}

/** Computes all fields of the operand, but returns only the named ones. */
function fieldsOf(operand: Bson, env: Env, names: readonly string[]): readonly Extent[] {
  if (!isDocument(operand)) return [SMALL]
  const extents = new Map(Object.entries(operand).map(([name, value]) => [name, grown(value, env)]))
  return names.flatMap((name) => extents.get(name) ?? [])
}

function ofSwitch(operand: Bson, env: Env): Extent {
  if (!isDocument(operand)) return SMALL
  const { branches, default: otherwise } = operand
  const found = isArray(branches) ? branches.flatMap((branch) => fieldsOf(branch, env, ['then'])) : []
  return largest(otherwise === undefined ? found : [...found, grown(otherwise, env)])
}

function ofLet(operand: Bson, env: Env): Extent {
  if (!isDocument(operand) || !isDocument(operand['vars'])) return SMALL
  const own = new Map(Object.entries(operand['vars']).map(([name, value]) => [name, grown(value, env)]))
  return grown(operand['in'], { ...env, variables: env.variables.with(own) })
}

function ofRange(operand: Bson, env: Env): Extent {
  const [start = SMALL, end = SMALL] = argumentsOf('$range', operand, env)
  const known = writtenItems(operand)
  const items = known === undefined ? itemsBetween(operand, start.number, end.number) : constant(known)
  env.meter.step(scaled(items, 1 / 4))
  const ends = start.number === null || end.number === null ? null : most(start.number, end.number)
  return env.meter.made(list(number(ends), items))
}

/** $map and $filter compute their body once for each element. */
function ofLoop(name: '$map' | '$filter', operand: Bson, env: Env): Extent {
  if (!isDocument(operand)) return SMALL
  const input = grown(operand['input'], env)
  const own = env.meter.element()
  const inner = { ...env, variables: env.variables.with(elementIn(operand, input, own)) }
  const body = env.meter.loop(input, own, () => {
    env.meter.step()
    return grown(operand[name === '$map' ? 'in' : 'cond'], inner)
  })
  if (operand['limit'] !== undefined) grown(operand['limit'], env)
  if (name === '$map') return env.meter.made(overEach(body, own, input))
  return env.meter.made(shortened(rebuilt([input]), operand['limit']))
}

/** Returns the variables of a loop: the element, whose size is `own`, and its index. */
function elementIn(operand: BsonDocument, input: Extent, own: Size): Map<string, Extent> {
  const { as = 'this', arrayIndexAs: at } = operand
  const variables = new Map([[String(as), elementOf(input, own)]])
  if (typeof at === 'string') variables.set(at, number(input.items))
  return variables
}

function sureNames(value: Bson | undefined): ReadonlySet<string> {
  if (!isDocument(value) || Object.keys(value).some((name) => name.startsWith('$'))) return new Set()
  return new Set(Object.entries(value).flatMap(([name, field]) => (isThere(field) ? [name] : [])))
}

const NEVER_MISSING = words(
  '$add $concat $concatArrays $divide $filter $map $multiply $setUnion $size $subtract $sum $toLower $toString $toUpper',
)

function isThere(value: Bson): boolean {
  if (typeof value === 'string') return !value.startsWith('$')
  if (!isDocument(value)) return true
  const [name = ''] = Object.keys(value)
  return !name.startsWith('$') || NEVER_MISSING.has(name)
}

/**
 * Returns the extent of merged objects. For each argument, `sure` has the names of the fields that its object has in
 * every document. Such a field replaces the same field of an earlier object.
 */
function merged(args: readonly Extent[], sure: readonly ReadonlySet<string>[]): Extent {
  const [first = SMALL, ...others] = args
  const names = [...new Set(sure.flatMap((own) => [...own]))].sort()
  const { place } = first
  const rest = place === null || isStored(place) ? first.bytes : sizeOf(bytesWithout(place, names))
  const all = together(args)
  const [bytes, kept] = [
    plus(OBJECT_BYTES, rest, together(others).bytes),
    plus(OBJECT_BYTES, all.kept, scaled(all.items, FIELD_KEPT)),
  ]
  const made = {
    ...anything(bytes, 1),
    isSingle: true,
    kept,
    items: all.items,
    isLoose: args.some(({ isLoose }) => isLoose),
  }
  // If the only argument is an array, mongod merges the objects in it.
  if (args.length === 1 && first.fields === null)
    return { ...made, items: scaled(bytes, 1 / ELEMENT_LEAST), isLoose: true }
  if (args.some((arg) => arg.fields === null)) return made
  const fields = new Map<string, Extent>()
  for (const [n, arg] of args.entries())
    for (const [name, field] of arg.fields ?? []) {
      const known = sure[n]?.has(name) === true ? undefined : fields.get(name)
      fields.set(name, known === undefined ? field : largest([known, field]))
    }
  return { ...made, items: constant(fields.size), isLoose: false, fields }
}

function ofField(name: '$setField' | '$getField', operand: Bson, env: Env): Extent {
  const isForm = isDocument(operand) && Object.hasOwn(operand, 'field')
  const field = isForm ? operand['field'] : operand
  const literal = isDocument(field) ? field['$literal'] : field
  const key = typeof literal === 'string' && !literal.startsWith('$') ? literal : null
  if (key === null) grown(field, env)
  const input = isForm && operand['input'] !== undefined ? grown(operand['input'], env) : env.document([])
  env.meter.step(plus(1, scaled(input.items, 1 / 5)))
  env.meter.parse(key === null || name === '$setField' ? input : below(input, [key]))
  if (name === '$getField') return key === null || key.includes('.') ? inside(input) : below(input, [key])
  const value = isForm ? grown(operand['value'], env) : SMALL
  const set = object(new Map(key === null ? [] : [[key, value]]))
  if (key !== null) return env.meter.made(merged([input, set], [new Set(), new Set([key])]))
  return env.meter.made({ ...anything(plus(input.bytes, value.bytes, OBJECT_BYTES)), items: plus(input.items, 1) })
}

function ofPairs(value: Extent): Extent {
  const each = value.fields === null ? null : largest([...value.fields.values()])
  const pair =
    each === null
      ? null
      : object(
          new Map([
            ['k', text(value.bytes)],
            ['v', each],
          ]),
        )
  const own = scaled(value.items, OBJECT_BYTES)
  return arrayOf(value.items, {
    bytes: plus(value.bytes, own),
    kept: plus(value.kept, own),
    each: pair,
    usual: usualOf(value.items),
  })
}

/**
 * $zip makes as many elements as the longest input has. Each consists of one element of every input. The last argument
 * has the default values.
 */
function ofZip(args: readonly Extent[]): Extent {
  const inputs = args.slice(0, -1)
  const items = most(...inputs.map((input) => input.items))
  const all = together(inputs)
  const defaults = args.slice(-1).map(({ bytes }) => bytes)
  const own = product(items, plus(40 + args.length * ELEMENT_KEPT, ...defaults))
  const usual = Math.max(...inputs.map((input) => input.usual))
  return arrayOf(items, { bytes: plus(all.bytes, own), kept: plus(all.kept, own), each: null, usual })
}

/** Before the stage, mongod can count the pieces of a stored text. Any other text may have a piece for each byte. */
function ofPieces(operand: Bson, value: Extent): Extent {
  const separator = isArray(operand) ? operand[1] : undefined
  const isCounted = typeof separator === 'string' && separator !== '' && !separator.startsWith('$')
  const { place } = value
  const items =
    isCounted && place !== null && isStored(place) ? sizeOf(piecesAt(place, separator)) : plus(value.bytes, 1)
  const bytes = plus(value.bytes, scaled(items, PIECE_KEPT))
  return arrayOf(items, { bytes, kept: bytes, each: null, usual: usualOf(items) })
}

const PIECE_KEPT = 32

/** Each match of a regular expression contains the text of each group. */
function ofMatches(operand: Bson, args: readonly Extent[], items: Amount, kept: number): Extent {
  const input = inputOf(operand, args)
  const { groups, hasLookaround } = patternOf(operand) ?? { groups: 1, hasLookaround: false }
  // With a lookahead, each match of a group may contain the whole remaining text.
  const ahead = hasLookaround ? product(scaled(input.bytes, groups), input.bytes) : input.bytes
  const all = plus(
    ahead,
    scaled(input.bytes, groups),
    scaled(plus(items, 1), kept + OBJECT_BYTES + groups * ELEMENT_KEPT),
  )
  return kept === 1 ? anything(all, 1) : arrayOf(items, { bytes: all, kept: all, each: null, usual: usualOf(items) })
}

/** A replacement may be longer than the replaced part. */
function ofReplace(name: string, operand: Bson, args: readonly Extent[]): Extent {
  const [input = SMALL, find = SMALL, replacement = SMALL] = fieldsIn(operand, args, ['input', 'find', 'replacement'])
  if (name === '$replaceOne') return text(plus(input.bytes, replacement.bytes))
  const put = plus(replacement.bytes, isConstant(replacement.bytes) ? -TEXT_BYTES : 0)
  if (isConstant(put) && put.constant <= find.least) return text(input.bytes)
  // An empty string matches before and after each character.
  const often = find.least === 0 ? plus(put, 1) : plus(scaled(put, 1 / find.least), 1)
  return text(plus(product(input.bytes, often), put))
}

/**
 * The body of a $reduce is judged twice. The first time, $$value has an unknown size, which shows how much one
 * iteration adds. The second time, $$value has its largest size, which shows the number of steps.
 */
function ofReduce(operand: Bson, env: Env): Extent {
  if (!isDocument(operand)) return SMALL
  const input = grown(operand['input'], env)
  const initial = grown(operand['initialValue'], env)
  const own = env.meter.element()
  const elements = elementIn(operand, input, own)
  const name = String(operand['valueAs'] ?? 'value')
  const step = (value: Extent): Extent =>
    grown(operand['in'], { ...env, variables: env.variables.with(new Map([...elements, [name, value]])) })
  const value = env.meter.place()
  // `usual` is 0 here, so the `usual` of the result is what one iteration adds.
  const turn = env.meter.trial(() => step(at(value, { ...STORED, usual: 0 })))
  const result = env.meter.made(afterTurns({ input, own, initial, turn, value, name }))
  env.meter.loop(input, own, () => {
    env.meter.step()
    step(result)
  })
  return result
}
