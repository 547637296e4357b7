// The steps that an operator takes, without those of its arguments. They depend on elements, on bytes, or on both. The
// numbers were measured on mongod 6.0 and on the newest engine. A step is about 50 ns on the slower engine.
import { constant, HUGE, isConstant, most, NONE, plus, product, scaled, sizeOf, type Amount } from './amount.ts'
import { COMPARISON_STEPS, longestText, readByCollation, textsOf, type Collation } from './collation.ts'
import { isFixed, SMALL, together, wordAt, type Extent } from './value-size.ts'
import { matchSteps, type MatchedText } from './pattern-steps.ts'
import { parsePattern, type ParsedPattern } from '../body/pattern-tree.ts'
import { isDocument, Scalar, type Bson, type BsonDocument } from '../../confined-query.ts'

export interface Given {
  readonly operand: Bson
  readonly args: readonly Extent[]
  /** Null or absent if texts are compared byte by byte. */
  readonly collation?: Collation | null
}

type Steps = (given: Given) => Amount

const words = (names: string): readonly string[] => names.split(' ')
const each = (names: string, steps: Steps): [string, Steps][] => words(names).map((name) => [name, steps])

/** The bytes that mongod reads or copies in a step. */
export const STEP_READS = 100
/** The bytes of an array or an object that mongod reads in a step. They are fewer, because each element costs work. */
const NESTED_READS = 20
const byByte = (perByte: number, { bytes }: Extent = SMALL): Amount => scaled(bytes, perByte)
const readingOne = ({ bytes, isScalar }: Extent): Amount => scaled(bytes, 1 / (isScalar ? STEP_READS : NESTED_READS))
const reading = ({ args }: Given, times = 1): Amount => scaled(plus(...args.map(readingOne)), times)
/** For strings. With other arguments, the query fails in the database. */
const readingText = ({ args }: Given, times = 1): Amount => scaled(together(args).bytes, times / STEP_READS)
const elements = ({ args }: Given, steps: number): Amount => scaled(together(args).items, steps)

/** Returns the argument with this name or, in a list, at this index. */
function argument({ operand, args }: Given, name: string, place: number): Extent | undefined {
  return isDocument(operand) ? args[Object.keys(operand).indexOf(name)] : args[place]
}

/** mongod reads no more bytes of one value than the other value has. */
function comparing({ args }: Given): Amount {
  const [one = SMALL, other = SMALL] = args
  return readingOne(isFixed(one) || !isFixed(other) ? one : other)
}

const sorting: Steps = (given) => plus(elements(given, 20), reading(given, 5))

/** To compare fields, mongod serializes their values. */
const sortingBy: Steps = (given) => {
  const by = isDocument(given.operand) ? given.operand['sortBy'] : undefined
  const own = { ...given, args: [argument(given, 'input', 0) ?? SMALL] }
  return isDocument(by) ? plus(elements(own, 10 + 20 * Object.keys(by).length), reading(own, 15)) : sorting(own)
}

/** Searches for one string at every position of another string. */
const searching =
  (perByte: number, perPair: number, textName = '', partName = ''): Steps =>
  (given) => {
    const [text = SMALL, part = SMALL] = [argument(given, textName, 0), argument(given, partName, 1)]
    return plus(byByte(perByte, text), product(byByte(perPair, text), part.bytes))
  }

const trimming: Steps = (given) => {
  const [text = SMALL, chars = SMALL] = [argument(given, 'input', 0), argument(given, 'chars', 1)]
  return plus(byByte(1 / 6, text), product(byByte(1 / 40, text), chars.bytes))
}

const matching: Steps = (given) => {
  const pattern = patternOf(given.operand)
  if (pattern === null) return constant(2)
  const { bytes, place } = argument(given, 'input', 0) ?? SMALL
  const run = place === null ? bytes : sizeOf(wordAt(place))
  return plus(pattern.folding, searchSteps(pattern, { bytes, longest: bytes, run, starts: constant(1) }))
}

export function searchSteps(pattern: ParsedPattern, texts: MatchedText): Amount {
  // mongod copies the match for each group.
  return plus(matchSteps(pattern, texts), scaled(texts.bytes, pattern.groups / STEP_READS))
}

/** Each match scans the whole string again. */
const matchingAll: Steps = (given) => {
  const { bytes } = argument(given, 'input', 0) ?? SMALL
  return plus(matching(given), scaled(bytes, 20), product(scaled(bytes, 1 / 150), bytes))
}

/** Returns the pattern of a regular expression operator, or null if it is null. */
export function patternOf(operand: Bson): ParsedPattern | null {
  const { regex, options }: BsonDocument = isDocument(operand) ? operand : {}
  const literal = isDocument(regex) ? regex['$literal'] : regex
  const own = typeof options === 'string' ? options : ''
  if (typeof literal === 'string') return parsePattern(literal, own)
  const isPattern = literal instanceof Scalar && literal.of.kind === '$regularExpression'
  return isPattern ? parsePattern(literal.of.pattern, literal.of.options + own) : null
}

/**
 * Returns the steps of a conversion, without its bytes. With onError, mongod may throw and catch an error, which is
 * slow.
 */
function caught(given: Given, steps: number): number {
  return argument(given, 'onError', 9) === undefined ? steps : 400
}

/** $mod is slow for decimals whose exponents are far apart. A number with a known bound is no decimal. */
function dividing({ args }: Given): Amount {
  return constant(args.every(({ number }) => number !== null) ? 2 : 1_500)
}

const united: Steps = (given) => plus(elements(given, 10), reading(given, 4))

/** The guard prints $setEquals as two $setDifference of the first set and each other set. */
function differences(given: Given, steps: Steps): Amount {
  const [first = SMALL, ...others] = given.args
  return plus(...others.map((other) => scaled(steps({ ...given, args: [first, other] }), 2)))
}

const NO_STEPS: Steps = () => NONE

const STEPS: ReadonlyMap<string, Steps> = new Map<string, Steps>([
  ...each(
    '$and $arrayElemAt $cond $first $ifNull $isArray $isNumber $last $literal $not $or $size $strLenBytes $type',
    NO_STEPS,
  ),
  ...each('$abs $add $ceil $divide $floor $multiply $round $subtract $toBool $trunc', () => constant(2)),
  ['$mod', dividing],
  ...each('$cmp $eq $gt $gte $lt $lte $ne', comparing),
  ...each('$in $indexOfArray $max $min', (given) => plus(2, elements(given, 1 / 2), reading(given))),
  ...each('$setDifference $setIntersection $setIsSubset $setUnion', united),
  ['$setEquals', (given) => differences(given, united)],
  ...each('$maxN $minN $median $percentile', sorting),
  ['$sortArray', sortingBy],
  ...each('$concatArrays $firstN $lastN $reverseArray $slice', (given) => elements(given, 1 / 4)),
  ...each('$allElementsTrue $anyElementTrue $avg $stdDevPop $stdDevSamp $sum', (given) => plus(2, elements(given, 1))),
  ['$zip', (given) => plus(2, elements(given, 1 + given.args.length))],
  ...each('$objectToArray $mergeObjects', (given) => plus(elements(given, 4), reading(given, 4))),
  ['$arrayToObject', (given) => plus(elements(given, 15), reading(given))],
  ...each('$getField $setField $unsetField', (given) => plus(elements(given, 1 / 5), 1)),
  ...each('$concat $substr $substrBytes $strLenCP', (given) => plus(2, readingText(given))),
  ['$substrCP', (given) => plus(2, readingText(given, 3))],
  // $toDate parses strings as $dateFromString does.
  ['$toDate', (given) => plus(80, readingText(given, 15))],
  ...each('$toDecimal $toDouble $toInt $toLong $toObjectId', (given) => plus(2, readingText(given, 15))),
  ...each('$strcasecmp $toLower $toUpper', (given) => byByte(1 / 6, { ...SMALL, ...together(given.args) })),
  // The first character of the searched part may occur at each byte.
  ...each('$indexOfBytes $indexOfCP', searching(1 / 6, 1 / 3_000)),
  ['$split', searching(1 / 6, 1 / 100)],
  ['$replaceOne', searching(1 / 6, 1 / 3_000, 'input', 'find')],
  // The searched part may occur at each byte.
  ['$replaceAll', searching(1, 1 / 3_000, 'input', 'find')],
  ...each('$ltrim $rtrim $trim', trimming),
  ...each('$regexFind $regexMatch', matching),
  ['$regexFindAll', matchingAll],
  ['$dateFromString', (given) => plus(caught(given, 80), readingText(given, 100))],
  ['$dateToString', (given) => plus(30, byByte(20, argument(given, 'format', 9)), reading(given))],
  ['$dateFromParts', (given) => plus(100, reading(given))],
  ...each('$dateAdd $dateDiff $dateSubtract $dateToParts $dateTrunc', (given) => plus(80, reading(given))),
  ...each('$dayOfMonth $dayOfWeek $dayOfYear $hour $isoDayOfWeek $isoWeek $isoWeekYear $millisecond', () =>
    constant(15),
  ),
  ...each('$minute $month $second $week $year', () => constant(15)),
  ['$convert', (given) => plus(caught(given, 80), readingText(given, 15))],
  ...each('$toArray $toObject $serializeEJSON $deserializeEJSON', (given) =>
    plus(10, elements(given, 8), readingText(given, 15)),
  ),
  ...each('$binarySize $bitAnd $bitNot $bitOr $bitXor $subtype $tsIncrement $tsSecond', (given) =>
    plus(2, reading(given)),
  ),
  // mongod serializes the value.
  ['$bsonSize', (given) => plus(2, reading(given))],
  ...each('$similarityCosine $similarityDotProduct $similarityEuclidean', (given) => plus(2, elements(given, 2))),
  ['$toUUID', (given) => plus(2, readingText(given, 15))],
  ['$toString', (given) => plus(12, readingText(given, 15))],
  ...each(
    '$acos $acosh $asin $asinh $atan $atan2 $atanh $cos $cosh $degreesToRadians $exp $ln $log $log10 $pow $radiansToDegrees $sigmoid $sin $sinh $sqrt $tan $tanh',
    () => constant(20),
  ),
])

/** Reads a whole value once, for example to hash or compare the key of a group. */
export function keySteps(extent: Extent): Amount {
  const { items, isSingle } = extent
  return isSingle ? readingOne(extent) : plus(scaled(items, 1 / 2), readingOne(extent))
}

/**
 * Puts the elements of an array into a set by their hashes. mongod compares an element with all elements of the same
 * hash. Decimals that are equal as doubles have the same hash. A number with a known bound is no decimal.
 */
export function hashedSteps({ items, each, isSingle }: Extent): Amount {
  return isSingle || (each !== null && each.number !== null) ? NONE : scaled(product(items, items), 1 / 2)
}

/** The steps to read the value by a collation, which are added to keySteps(). */
export function collatedKeySteps(extent: Extent, collation: Collation | null): Amount {
  return collation === null || isSmall(extent)
    ? NONE
    : plus(COMPARISON_STEPS, readByCollation(textsOf(extent), collation))
}

/** True if the value contains no long text. A collation does not make its comparison slower. */
export function isSmall({ isScalar, bytes, fields, each }: Extent): boolean {
  if (isScalar) return isConstant(bytes) && bytes.constant <= SMALL.bytes.constant
  if (fields !== null) return [...fields.values()].every(isSmall)
  return each !== null && isSmall(each)
}

/** The additional steps of comparisons by a collation. Each comparison reads both texts to their ends. */
type CollatedSteps = (given: Given, collation: Collation) => Amount

/** For each element, counts `times` comparisons with the longest of these texts. */
function comparisons(items: Amount, longest: Extent, times: number, collation: Collation): Amount {
  return product(scaled(items, times), plus(COMPARISON_STEPS, readByCollation(longestText(longest), collation)))
}

function readingAll(args: readonly Extent[], collation: Collation): Amount {
  return plus(...args.map((arg) => readByCollation(textsOf(arg), collation)))
}

const pairwise: CollatedSteps = ({ args }, collation) => plus(COMPARISON_STEPS, readingAll(args, collation))

const searchingIn =
  (place: 0 | 1): CollatedSteps =>
  ({ args }, collation) => {
    const [needle = SMALL, array = SMALL] = [args[1 - place], args[place]]
    const each = plus(COMPARISON_STEPS, readByCollation(textsOf(needle), collation))
    return plus(product(plus(array.items, 1), each), readingAll([array], collation))
  }

/** Each value is compared with the smallest value so far, which may be the longest text. */
const choosing: CollatedSteps = ({ args }, collation) => {
  const [only, ...others] = args
  if (only !== undefined && others.length === 0)
    return plus(comparisons(only.items, only, 1, collation), readingAll(args, collation))
  const longest = most(...args.map((arg) => readByCollation(textsOf(arg), collation)))
  return plus(scaled(plus(COMPARISON_STEPS, longest), args.length), readingAll(args, collation))
}

/** For the hash of each element, mongod computes a sort key. It then compares elements of the same hash. */
const inSets: CollatedSteps = ({ args }, collation) =>
  plus(
    ...args.flatMap((all) => args.map((longest) => comparisons(all.items, longest, 1, collation))),
    scaled(readingAll(args, collation), 3),
  )

/** Each element is compared about 20 times, with elements that may be the longest. */
const ordering: CollatedSteps = (given, collation) => {
  const input = argument(given, 'input', 0) ?? SMALL
  return comparisons(input.items, input, 40, collation)
}

/** The operators that compare values, with the additional steps for a collation. */
export const COMPARING: ReadonlyMap<string, CollatedSteps> = new Map<string, CollatedSteps>([
  ...words('$cmp $eq $gt $gte $lt $lte $ne').map((name): [string, CollatedSteps] => [name, pairwise]),
  ['$in', searchingIn(1)],
  ['$indexOfArray', searchingIn(0)],
  ...words('$max $min').map((name): [string, CollatedSteps] => [name, choosing]),
  ...words('$setDifference $setIntersection $setIsSubset $setUnion').map((name): [string, CollatedSteps] => [
    name,
    inSets,
  ]),
  ['$setEquals', (given, collation) => differences(given, (pair) => inSets(pair, collation))],
  ...words('$maxN $minN $sortArray').map((name): [string, CollatedSteps] => [name, ordering]),
])

/** growth.ts counts these operators, because they compute an argument more than once, or not always. */
export const COUNTED_APART: ReadonlySet<string> = new Set(words('$filter $let $map $range $reduce $switch'))

/** Each allowed operator has steps here, or is in COUNTED_APART. */
export const STEPS_NAMES: readonly string[] = [...STEPS.keys()]

/** An operator without steps has no bound, so the query is refused. */
export function stepsOf(name: string, given: Given): Amount {
  const steps = STEPS.get(name)?.(given) ?? constant(HUGE)
  const { args, collation = null } = given
  const collated = collation === null || args.every(isSmall) ? undefined : COMPARING.get(name)
  return collation === null || collated === undefined ? steps : plus(steps, collated(given, collation))
}
