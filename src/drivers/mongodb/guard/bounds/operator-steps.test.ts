import assert from 'node:assert/strict'
import { test } from 'node:test'
import { constant, HUGE } from './amount.ts'
import { EXPRESSIONS } from '../allowed/expression-list.ts'
import { COMPARING, COUNTED_APART, STEPS_NAMES, stepsOf } from './operator-steps.ts'

test('every allowed operator has a number of steps, and an unknown operator has no bound', () => {
  const counted = new Set([...STEPS_NAMES, ...COUNTED_APART])
  assert.deepEqual(
    [...EXPRESSIONS.keys()].filter((name) => !counted.has(name)),
    [],
  )
  assert.deepEqual(
    [...counted].filter((name) => !EXPRESSIONS.has(name)),
    [],
  )
  assert.deepEqual(stepsOf('$future', { operand: 1, args: [] }), constant(HUGE))
})

/** Operators that compare no values, or only numbers and types. */
const WITHOUT_COMPARISONS =
  '$abs $acos $acosh $add $allElementsTrue $and $anyElementTrue $arrayElemAt $arrayToObject $asin $asinh $atan $atan2 $atanh $avg $binarySize $bitAnd $bitNot $bitOr $bitXor $bsonSize $ceil $concat $concatArrays $cond $convert $cos $cosh $dateAdd $dateDiff $dateFromParts $dateFromString $dateSubtract $dateToParts $dateToString $dateTrunc $dayOfMonth $dayOfWeek $dayOfYear $degreesToRadians $deserializeEJSON $divide $exp $filter $first $firstN $floor $getField $hour $ifNull $indexOfBytes $indexOfCP $isArray $isNumber $isoDayOfWeek $isoWeek $isoWeekYear $last $lastN $let $literal $ln $log $log10 $ltrim $map $median $mergeObjects $millisecond $minute $mod $month $multiply $not $objectToArray $or $percentile $pow $radiansToDegrees $range $reduce $regexFind $regexFindAll $regexMatch $replaceAll $replaceOne $reverseArray $round $rtrim $second $serializeEJSON $setField $sigmoid $similarityCosine $similarityDotProduct $similarityEuclidean $sin $sinh $size $slice $split $sqrt $stdDevPop $stdDevSamp $strLenBytes $strLenCP $strcasecmp $substr $substrBytes $substrCP $subtract $subtype $sum $switch $tan $tanh $toArray $toBool $toDate $toDecimal $toDouble $toInt $toLong $toLower $toObject $toObjectId $toString $toUUID $toUpper $trim $trunc $tsIncrement $tsSecond $type $unsetField $week $year $zip'.split(
    ' ',
  )

test('every allowed operator is listed as comparing values or not, because a collation makes comparisons slow', () => {
  assert.deepEqual([...COMPARING.keys(), ...WITHOUT_COMPARISONS].sort(), [...EXPRESSIONS.keys()].sort())
})
