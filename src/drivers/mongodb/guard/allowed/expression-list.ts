// The allowed expression operators, and the form of their arguments (docs/guard/mongodb.md#what-is-allowed).

/**
 * The form of an operator's arguments. `any`: one expression or an array of expressions. `date`: the same, or {date,
 * timezone?}. `special`: a separate function in expression.ts reads them. `Fields`: an object with these fields.
 */
export type Form = 'any' | 'date' | 'special' | Fields

export interface Fields {
  readonly needed: readonly string[]
  readonly optional: readonly string[]
}

const ANY =
  '$abs $acos $acosh $add $allElementsTrue $and $anyElementTrue $arrayElemAt $arrayToObject $asin $asinh $atan $atan2 $atanh $avg $binarySize $bitAnd $bitNot $bitOr $bitXor $bsonSize $ceil $cmp $concat $concatArrays $cos $cosh $degreesToRadians $divide $eq $exp $first $floor $gt $gte $ifNull $in $indexOfArray $indexOfBytes $indexOfCP $isArray $isNumber $last $ln $log $log10 $lt $lte $max $mergeObjects $min $mod $multiply $ne $not $objectToArray $or $pow $radiansToDegrees $reverseArray $round $setDifference $setEquals $setIntersection $setIsSubset $setUnion $sigmoid $similarityCosine $similarityDotProduct $similarityEuclidean $sin $sinh $size $slice $split $sqrt $stdDevPop $stdDevSamp $strLenBytes $strLenCP $strcasecmp $substr $substrBytes $substrCP $subtract $subtype $sum $tan $tanh $toArray $toBool $toDate $toDecimal $toDouble $toInt $toLong $toLower $toObject $toObjectId $toString $toUUID $toUpper $trunc $tsIncrement $tsSecond $type'
const DATE =
  '$dayOfMonth $dayOfWeek $dayOfYear $hour $isoDayOfWeek $isoWeek $isoWeekYear $millisecond $minute $month $second $week $year'
const SPECIAL =
  '$cond $filter $getField $let $literal $map $range $reduce $regexFind $regexFindAll $regexMatch $setField $sortArray $switch $unsetField'

const FIELDS: Readonly<Record<string, Fields>> = {
  $convert: fields('input to', 'onError onNull format base byteOrder'),
  $dateAdd: fields('startDate unit amount', 'timezone'),
  $dateDiff: fields('startDate endDate unit', 'timezone startOfWeek'),
  $dateFromParts: fields('', 'year month day hour minute second millisecond timezone isoWeekYear isoWeek isoDayOfWeek'),
  $dateFromString: fields('dateString', 'format timezone onError onNull'),
  $dateSubtract: fields('startDate unit amount', 'timezone'),
  $dateToParts: fields('date', 'timezone iso8601'),
  $dateToString: fields('date', 'format timezone onNull'),
  $dateTrunc: fields('date unit', 'binSize timezone startOfWeek'),
  $deserializeEJSON: fields('input', 'onError'),
  $firstN: fields('input n', ''),
  $lastN: fields('input n', ''),
  $ltrim: fields('input', 'chars'),
  $maxN: fields('input n', ''),
  $median: fields('input method', ''),
  $minN: fields('input n', ''),
  $percentile: fields('input p method', ''),
  $replaceAll: fields('input find replacement', ''),
  $replaceOne: fields('input find replacement', ''),
  $rtrim: fields('input', 'chars'),
  $serializeEJSON: fields('input', 'relaxed onError'),
  $trim: fields('input', 'chars'),
  $zip: fields('inputs', 'useLongestLength defaults'),
}

function fields(needed: string, optional: string): Fields {
  return { needed: words(needed), optional: words(optional) }
}

function words(text: string): readonly string[] {
  return text === '' ? [] : text.split(' ')
}

export const EXPRESSIONS: ReadonlyMap<string, Form> = new Map<string, Form>([
  ...words(ANY).map((name): [string, Form] => [name, 'any']),
  ...words(DATE).map((name): [string, Form] => [name, 'date']),
  ...words(SPECIAL).map((name): [string, Form] => [name, 'special']),
  ...Object.entries(FIELDS),
])

const JAVASCRIPT = 'it runs JavaScript'
const METADATA = 'metadata reveals fields that are not exposed'
const CHANCE = 'its result differs from run to run'

const REASONS: ReadonlyMap<string, string> = new Map([
  ['$function', JAVASCRIPT],
  ['$accumulator', JAVASCRIPT],
  ['$where', JAVASCRIPT],
  ['$meta', METADATA],
  ['$rand', CHANCE],
  ['$sampleRate', CHANCE],
  ['$createObjectId', CHANCE],
  ['$createUUID', CHANCE],
  ['$currentDate', CHANCE],
  ['$text', 'a text index covers fields that are not exposed'],
  ['$jsonSchema', 'it names arbitrary fields'],
  ['$near', 'it sorts, and $match does not accept it'],
  ['$nearSphere', 'it sorts, and $match does not accept it'],
])

/** Returns why the operator is not allowed, or null for an unknown name. */
export function reasonAgainst(name: string): string | null {
  if (name.startsWith('$_internal')) return 'it is internal to the server'
  return REASONS.get(name) ?? null
}

export const EXPRESSION_HINT =
  'Use the operators of the MongoDB manual for numbers, strings, dates, arrays, objects, conditions and conversions, spelled exactly as there.'
