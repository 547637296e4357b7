// The number of steps that an operator takes, without its arguments' own steps: by elements, by bytes, or by both. The
// numbers were measured on mongod 6.0 and on the newest engine; a step is about 50 ns of the slower engine.
import type { Extent } from './value-size.ts'
import { branchSteps, patternSteps, wideSteps } from './pattern-steps.ts'
import { isDocument, Scalar, type Bson } from '../query.ts'
import { STEP_BUILDS } from './step-meter.ts'

/** The arguments of an operator. */
export interface Given {
  readonly operand: Bson
  readonly args: readonly Extent[]
  readonly bytesOf: (extent: Extent) => number
}

type Steps = (given: Given) => number

const words = (text: string): readonly string[] => text.split(' ')
/** Entries that give each of these names the same. */
export const each = <T>(names: string, value: T): [string, T][] => words(names).map((name) => [name, value])
const steps = (names: string, value: Steps): [string, Steps][] => each(names, value)

const itemsIn = ({ args }: Given): number => args.reduce((all, { items }) => all + items, 0)
const bytesIn = ({ args, bytesOf }: Given): number => args.reduce((all, arg) => all + bytesOf(arg), 0)
const fieldsIn = ({ args }: Given): number => args.reduce((all, arg) => all + (arg.fields?.size ?? arg.items), 0)

/** An argument by its name, or by its index in a list. */
function argument({ operand, args }: Given, name: string, place: number): Extent | undefined {
  return isDocument(operand) ? args[Object.keys(operand).indexOf(name)] : args[place]
}

/** A stored value counts as 1,000 bytes, but a stored string is seldom longer than 30. */
const TEXT_SHARE = 1 / 32

function textLength(text: Extent | undefined, { bytesOf }: Given): number {
  return text === undefined ? 0 : Math.max(text.least, bytesOf(text) * TEXT_SHARE)
}

const textsIn = (given: Given): number => given.args.reduce((all, arg) => all + textLength(arg, given), 0)

/** Steps for each byte of a text, or for each pair of bytes of two texts, however long stored documents make them. */
export interface LongWork {
  readonly texts: readonly Extent[]
  readonly steps: number
}

type Long = (given: Given) => readonly LongWork[]

/** The search for one string at every position of another. */
interface Search {
  readonly perByte: number
  readonly perPair: number
  readonly names: readonly [text: string, part: string]
}

const SEARCHES: ReadonlyMap<string, Search> = new Map<string, Search>([
  ['$indexOfCP', { perByte: 1 / 8, perPair: 1 / 3_000, names: ['', ''] }],
  ['$indexOfBytes', { perByte: 1 / 300, perPair: 1 / 3_000, names: ['', ''] }],
  ['$split', { perByte: 1 / 8, perPair: 1 / 100, names: ['', ''] }],
  ['$replaceAll', { perByte: 1 / 8, perPair: 1 / 3_000, names: ['input', 'find'] }],
  ['$replaceOne', { perByte: 1 / 8, perPair: 1 / 3_000, names: ['input', 'find'] }],
])

const searching =
  ({ perByte, perPair, names: [text, part] }: Search): Steps =>
  (given) => {
    const [length, sought] = [argument(given, text, 0), argument(given, part, 1)].map((each) => textLength(each, given))
    return (length ?? 0) * perByte + (length ?? 0) * (sought ?? 0) * perPair
  }

const searchingLong =
  ({ perByte, perPair, names: [name, part] }: Search): Long =>
  (given) => {
    const [text, sought] = [argument(given, name, 0), argument(given, part, 1)]
    if (text === undefined || sought === undefined) return []
    const put = argument(given, 'replacement', 2)
    // Each match may be replaced by a longer string, which is kept.
    const kept = put === undefined ? [] : [{ texts: [text, put], steps: 1 / STEP_BUILDS / Math.max(1, sought.least) }]
    return [{ texts: [text], steps: perByte }, { texts: [text, sought], steps: perPair }, ...kept]
  }

/** The comparison of a value with each element. Different values are told apart early. */
const finding =
  (value: number, array: number): Steps =>
  (given) =>
    ((given.args[array]?.items ?? 0) / 2) * (1 + textLength(given.args[value], given) / 200)

const trimming: Steps = (given) => {
  const chars = argument(given, 'chars', 1)
  return textLength(argument(given, 'input', 0), given) * Math.max(1 / 6, textLength(chars, given) / 40)
}

const matching: Steps = (given) => {
  const { least = 0 } = argument(given, 'input', 0) ?? {}
  return patternSteps(patternOf(given.operand), Math.max(least, textLength(argument(given, 'input', 0), given) / 2))
}

/** A longer string than most, for patterns that backtrack. */
const LONG_TEXT = 100

/** The steps of a bad case for regular expressions. Cancel points are placed by this number. */
export function worstSteps(name: string, given: Given): number {
  const steps = stepsOf(name, given)
  return name.startsWith('$regex') ? Math.max(steps, patternSteps(patternOf(given.operand), LONG_TEXT)) : steps
}

/** Each match scans the whole string again. */
const scanningAll: Steps = (given) => {
  const length = textLength(argument(given, 'input', 0), given)
  return length * (20 + length / 150)
}
const matchingAll: Steps = (given) => matching(given) + scanningAll(given)

/** Each position of a long text tries each branch. What a pattern repeats is short in most texts, but for wide parts. */
const matchingLong: Long = (given) => {
  const text = argument(given, 'input', 0)
  if (text === undefined) return []
  const pattern = patternOf(given.operand)
  return [
    { texts: [text], steps: branchSteps(pattern) },
    { texts: [text, text], steps: wideSteps(pattern) },
  ]
}

const matchingAllLong: Long = (given) => {
  const text = argument(given, 'input', 0)
  const scans =
    text === undefined
      ? []
      : [
          { texts: [text], steps: 20 },
          { texts: [text, text], steps: 1 / 150 },
        ]
  return [...matchingLong(given), ...scans]
}

const trimmingLong: Long = (given) => {
  const [text, chars] = [argument(given, 'input', 0), argument(given, 'chars', 1)]
  if (text === undefined) return []
  const byChars = chars === undefined ? [] : [{ texts: [text, chars], steps: 1 / 40 }]
  return [{ texts: [text], steps: 1 / 6 }, ...byChars]
}

/** A text that is gone through slowly. */
const byByte =
  (steps: number, name = ''): Long =>
  (given) =>
    (isDocument(given.operand) && name !== '' ? [argument(given, name, 0)] : given.args).flatMap((text) =>
      text === undefined ? [] : [{ texts: [text], steps }],
    )

function patternOf(operand: Bson): string {
  const regex = isDocument(operand) ? operand['regex'] : undefined
  const constant = isDocument(regex) ? regex['$literal'] : regex
  if (constant instanceof Scalar) return constant.of.kind === '$regularExpression' ? constant.of.pattern : ''
  return typeof constant === 'string' ? constant : ''
}

const sorting: Steps = (given) => {
  const { items = 1 } = argument(given, 'input', 0) ?? {}
  const by = isDocument(given.operand) ? given.operand['sortBy'] : undefined
  const keys = isDocument(by) ? Object.keys(by).length * 2 : 1
  return items * Math.log2(items + 1) * keys
}

const STEPS: ReadonlyMap<string, Steps> = new Map<string, Steps>([
  ...steps(
    '$and $arrayElemAt $cond $first $ifNull $isArray $isNumber $last $not $or $size $strLenBytes $type',
    () => 0,
  ),
  ...steps('$cmp $eq $gt $gte $lt $lte $ne', ({ args, bytesOf }) => Math.min(...args.map(bytesOf)) / 200),
  ['$in', finding(0, 1)],
  ['$indexOfArray', finding(1, 0)],
  ...steps('$setDifference $setEquals $setIntersection $setIsSubset $setUnion', (given) => itemsIn(given) * 10),
  ...steps('$concatArrays $reverseArray $slice', (given) => itemsIn(given) / 4),
  ...steps('$firstN $lastN', (given) => itemsIn(given) / 4),
  ...steps('$maxN $minN $median $percentile', (given) => itemsIn(given) * 5),
  ['$sortArray', sorting],
  ['$zip', (given) => fieldsIn(given)],
  ...steps('$objectToArray $mergeObjects', (given) => fieldsIn(given) * 4),
  ['$arrayToObject', (given) => itemsIn(given) * 15],
  ...steps('$getField $setField $unsetField', (given) => fieldsIn(given) / 5),
  ...steps('$concat $substr $substrBytes $strLenCP', (given) => textsIn(given) / 100),
  ['$substrCP', (given) => textsIn(given) / 30],
  ...steps('$strcasecmp $toLower $toUpper', (given) => textsIn(given) / 6),
  ...steps('$bsonSize $binarySize', (given) => bytesIn(given) / 500),
  ...[...SEARCHES].map(([name, search]): [string, Steps] => [name, searching(search)]),
  ...steps('$ltrim $rtrim $trim', trimming),
  ...steps('$regexFind $regexMatch', matching),
  ['$regexFindAll', matchingAll],
  ...steps('$dateFromString', (given) => 80 + textLength(argument(given, 'dateString', 0), given)),
  ...steps('$dateToString', (given) => 30 + textLength(argument(given, 'format', 9), given) * 4),
  ...steps('$dateAdd $dateDiff $dateFromParts $dateSubtract $dateToParts $dateTrunc', () => 40),
  ...steps('$dayOfMonth $dayOfWeek $dayOfYear $hour $isoDayOfWeek $isoWeek $isoWeekYear $millisecond', () => 15),
  ...steps('$minute $month $second $week $year', () => 15),
  // With onError, an error is thrown and caught.
  ['$convert', (given) => (argument(given, 'onError', 9) === undefined ? 10 : 400) + bytesIn(given) / 50],
  ...steps(
    '$toArray $toObject $serializeEJSON $deserializeEJSON',
    (given) => 10 + itemsIn(given) * 8 + bytesIn(given) / 20,
  ),
  ['$toString', (given) => 6 + itemsIn(given) * 6],
  ...steps('$pow $exp $ln $log $log10 $sqrt', () => 20),
])

/** Any other operator looks at each element once. */
export function stepsOf(name: string, given: Given): number {
  return STEPS.get(name)?.(given) ?? 2 + itemsIn(given) / 4
}

/** Operators that look at the head of a value only. */
const AT_A_GLANCE = new Set(
  words('$and $arrayElemAt $cond $first $ifNull $isArray $isNumber $last $not $or $size $strLenBytes $type'),
)
/** Steps for each element of the arguments, however many stored documents make them. */
const BY_ELEMENT: ReadonlyMap<string, number> = new Map<string, number>([
  ...each('$setDifference $setEquals $setIntersection $setIsSubset $setUnion', 10),
  ...each('$maxN $median $minN $percentile', 5),
  ...each('$mergeObjects $objectToArray', 4),
  ['$arrayToObject', 15],
  ['$sortArray', 20],
])

export function stepsByElement(name: string): number {
  return BY_ELEMENT.get(name) ?? 0
}

/** Operators that look at each element, but not at everything in it. */
const ELEMENTS = new Set(
  words('$allElementsTrue $anyElementTrue $avg $concatArrays $max $min $reverseArray $slice $sum $zip'),
)
export const LOOKED_AT = 1 / 8
/** They compare a value with each element. */
const COMPARED = 1 / 5
const COMPARISONS = new Set(words('$cmp $eq $gt $gte $lt $lte $ne'))

/** A comparison reads no more of one value than of the other, and little if one is a value of the query. */
const comparing: Long = ({ args }) => {
  const [first] = args
  return first === undefined || args.some(({ parts }) => parts.size === 0) ? [] : [{ texts: [first], steps: 1 / 20 }]
}

/** Operators that take long for each byte of a value. */
const LONG: ReadonlyMap<string, Long> = new Map<string, Long>([
  ...[...SEARCHES].map(([name, search]): [string, Long] => [name, searchingLong(search)]),
  ...each('$ltrim $rtrim $trim', trimmingLong),
  ...each('$regexFind $regexMatch', matchingLong),
  ['$regexFindAll', matchingAllLong],
  ...each('$strcasecmp $toLower $toUpper', byByte(1 / 6)),
  ...[...COMPARISONS].map((name): [string, Long] => [name, comparing]),
  ['$substrCP', byByte(1 / 30)],
  ['$dateToString', byByte(4, 'format')],
  ['$dateFromString', byByte(1)],
  ...each('$convert $deserializeEJSON $serializeEJSON $toArray $toObject $toString', byByte(1 / 20)),
])

export function longWork(name: string, given: Given): readonly LongWork[] {
  return LONG.get(name)?.(given).filter(({ steps }) => steps > 0) ?? []
}

/** How often an operator reads its arguments. */
export function readsOf(name: string, { operand }: Given): number {
  if (COMPARISONS.has(name)) return 0
  // Each group copies what it has matched.
  if (name.startsWith('$regexFind')) return 1 + patternOf(operand).split('(').length
  if (AT_A_GLANCE.has(name)) return 0
  if (name === '$in' || name === '$indexOfArray') return COMPARED
  return ELEMENTS.has(name) ? LOOKED_AT : 1
}
