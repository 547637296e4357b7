// One query for each allowed expression operator, accumulator, window operator and stage, with the largest arguments
// that the guard allows. If an allowed name has no entry here, sweep.test.ts fails.
import type { Document } from 'mongodb'

/**
 * One letter for each argument. a: array, s: text, o: object, p: pairs, n: number, m: decimal, d: date, i: number as a
 * text, c: date as a text, h: id as a text, x: any value, y: another value, b: boolean. Longer arguments are JSON.
 */
type Arguments = string

const each = (names: string, args: Arguments): [string, Arguments][] => names.split(' ').map((name) => [name, args])

const LISTED: Readonly<Record<string, Arguments>> = Object.fromEntries([
  ...each('$abs $ceil $floor $exp $ln $log10 $sqrt $sigmoid', 'm'),
  ...each(
    '$acos $acosh $asin $asinh $atan $atanh $cos $cosh $degreesToRadians $radiansToDegrees $sin $sinh $tan $tanh',
    'm',
  ),
  ...each('$add $multiply', 'm m n m n m'),
  ...each('$atan2 $divide $log $mod $pow $subtract', 'm n'),
  ...each('$round $trunc', 'm 3'),
  ...each('$allElementsTrue $anyElementTrue', '[a]'),
  ...each('$and $or', 'b b b b'),
  ...each('$arrayElemAt', 'a n'),
  ...each('$first $last $isArray $size $reverseArray $type $isNumber $not', 'a'),
  ...each('$avg $sum $stdDevPop $stdDevSamp $max $min', 'a'),
  ...each('$binarySize $strLenBytes $strLenCP $toLower $toUpper', 's'),
  ...each('$toUUID $toArray $toObject $toBool', 's'),
  ...each('$bitAnd $bitOr $bitXor', 'n n n'),
  ...each('$bitNot $tsIncrement $tsSecond $subtype', 'n'),
  ...each('$bsonSize $objectToArray', 'o'),
  ...each('$arrayToObject', 'p'),
  ...each('$cmp $eq $gt $gte $lt $lte $ne', 'x y'),
  ...each('$concat', 's s s'),
  ...each('$concatArrays $setDifference $setEquals $setIntersection $setIsSubset $setUnion', 'a e'),
  ...each('$ifNull', 'x x'),
  ...each('$in', 's a'),
  ...each('$indexOfArray', 'a s'),
  ...each('$indexOfBytes $indexOfCP $split $strcasecmp', 's t'),
  ...each('$mergeObjects', 'o o'),
  ...each('$similarityCosine $similarityDotProduct $similarityEuclidean', 'a a'),
  ...each('$slice', 'a 20000'),
  ...each('$substr $substrBytes $substrCP', 's 1 90000'),
  ...each('$toDate', 'c'),
  ...each('$toDecimal $toDouble $toInt $toLong', 'i'),
  ...each('$toObjectId', 'h'),
  ...each('$toString', 'm'),
])

const DATES =
  '$dayOfMonth $dayOfWeek $dayOfYear $hour $isoDayOfWeek $isoWeek $isoWeekYear $millisecond $minute $month $second $week $year'
const ZONE = '"America/Argentina/Buenos_Aires"'

/** These operators take an object. In its JSON, a letter in backquotes stands for an argument. */
const NAMED: Readonly<Record<string, Arguments>> = Object.fromEntries([
  ...each(DATES, `{"date": \`d\`, "timezone": ${ZONE}}`),
  ...each('$dateAdd $dateSubtract', `{"startDate": \`d\`, "unit": "month", "amount": \`n\`, "timezone": ${ZONE}}`),
  ...each(
    '$dateDiff',
    `{"startDate": {"$toDate": \`c\`}, "endDate": \`d\`, "unit": "week", "timezone": ${ZONE}, "startOfWeek": "fri"}`,
  ),
  ...each('$dateTrunc', `{"date": \`d\`, "unit": "month", "binSize": 7, "timezone": ${ZONE}}`),
  ...each('$dateToParts', `{"date": \`d\`, "timezone": ${ZONE}, "iso8601": true}`),
  ...each(
    '$dateToString',
    `{"date": \`d\`, "format": "${'%Y-%m-%dT%H:%M:%S.%L%z %j %u %V '.repeat(30)}", "timezone": ${ZONE}}`,
  ),
  ...each('$dateFromParts', `{"year": \`n\`, "month": \`n\`, "day": \`n\`, "timezone": ${ZONE}}`),
  ...each('$dateFromString', `{"dateString": \`s\`, "onError": 1}`),
  ...each('$convert', '{"input": `s`, "to": "decimal", "onError": 1}'),
  ...each('$deserializeEJSON $serializeEJSON', '{"input": `o`, "onError": 1}'),
  ...each('$firstN $lastN $maxN $minN', '{"input": `a`, "n": 20000}'),
  ...each('$median', '{"input": `a`, "method": "approximate"}'),
  ...each(
    '$percentile',
    `{"input": \`a\`, "p": [${Array.from({ length: 100 }, (_, k) => k / 100).join()}], "method": "approximate"}`,
  ),
  ...each('$replaceAll $replaceOne', '{"input": `s`, "find": `t`, "replacement": "ab"}'),
  ...each('$ltrim $rtrim $trim', '{"input": `s`, "chars": `t`}'),
  ...each('$zip', '{"inputs": [`a`, `a`], "useLongestLength": true, "defaults": [1, 2]}'),
  ...each('$cond', '{"if": `b`, "then": `a`, "else": `x`}'),
  ...each('$filter', '{"input": `a`, "as": "f", "cond": {"$ne": ["$$f", 5]}}'),
  ...each('$map', '{"input": `a`, "as": "f", "in": {"$add": [1, 2]}}'),
  ...each('$reduce', '{"input": `a`, "initialValue": 0, "in": {"$max": ["$$value", "$$this"]}}'),
  ...each('$getField', '{"field": {"$concat": ["f9", "99"]}, "input": `o`}'),
  ...each('$setField', '{"field": "f999", "input": `o`, "value": `n`}'),
  ...each('$unsetField', '{"field": "f999", "input": `o`}'),
  ...each('$let', '{"vars": {"v": `a`}, "in": {"$size": "$$v"}}'),
  ...each('$literal', '{"a": [1, "x", {"b": 2}]}'),
  ...each('$range', '[0, 9000]'),
  ...each('$regexFind $regexMatch', '{"input": `s`, "regex": "[a-f]+x"}'),
  ...each('$regexFindAll', '{"input": `s`, "regex": "o"}'),
  ...each('$sortArray', '{"input": `a`, "sortBy": 1}'),
  ...each(
    '$switch',
    '{"branches": [{"case": {"$eq": [`x`, `y`]}, "then": `a`}, {"case": {"$lt": [`a`, `e`]}, "then": 2}], "default": 3}',
  ),
])

const GATHERED: Readonly<Record<string, Arguments>> = Object.fromEntries([
  ...each('$addToSet $first $last $max $min $push $locf', '`x`'),
  ...each('$avg $stdDevPop $stdDevSamp $sum $linearFill', '`m`'),
  ...each('$concatArrays $setUnion', '`a`'),
  ...each('$count $denseRank $documentNumber $rank', '{}'),
  ...each('$covariancePop $covarianceSamp', '[`m`, `n`]'),
  ...each('$mergeObjects', '`o`'),
  ...each('$top $bottom', '{"sortBy": {"BY": 1}, "output": `n`}'),
  ...each('$topN $bottomN', '{"sortBy": {"BY": -1}, "output": `n`, "n": 3}'),
  ...each('$firstN $lastN $maxN $minN', '{"input": `x`, "n": 3}'),
  ...each('$median', '{"input": `m`, "method": "approximate"}'),
  ...each('$percentile', '{"input": `m`, "p": [0.1, 0.9], "method": "approximate"}'),
  ...each('$derivative $integral $minMaxScaler', '{"input": `m`}'),
  ...each('$expMovingAvg', '{"input": `m`, "N": 5}'),
  ...each('$shift', '{"output": `x`, "by": -1}'),
])

const K = Array.from({ length: 30 }, (_, k) => k)
const STAGES: Readonly<Record<string, readonly Arguments[]>> = {
  $match: ['{"$expr": {"$ne": [`x`, `y`]}}', `{"$nor": [${K.map((k) => `{"BY": "${'y'.repeat(90)}${k}"}`).join()}]}`],
  $project: ['{"BY": 0}'],
  $set: [`{${K.map((k) => `"w${k}": \`x\``).join()}}`],
  $addFields: ['{"u.v": `x`}'],
  $unset: ['["BY.a", "BY.b"]'],
  $sort: [`{${K.map((k) => `"${k === 0 ? 'BY' : `k${k}`}": 1`).join()}}`],
  $limit: ['10'],
  $skip: ['10'],
  $sample: ['{"size": 9000}'],
  $group: ['{"_id": `x`}', `{"_id": {${K.map((k) => `"g${k}": \`x\``).join()}}}`],
  $bucket: ['{"groupBy": `x`, "boundaries": [1, 2, 3], "default": "z"}'],
  $bucketAuto: ['{"groupBy": `x`, "buckets": 9}'],
  $sortByCount: ['`x`'],
  $count: ['"n"'],
  $unwind: ['{"path": "$BY", "includeArrayIndex": "i"}'],
  $replaceRoot: ['{"newRoot": {"x": `x`}}'],
  $replaceWith: ['{"$mergeObjects": ["$$ROOT", {"x": `x`}]}'],
  $redact: ['{"$cond": [{"$eq": [`x`, `y`]}, "$$PRUNE", "$$DESCEND"]}'],
  $facet: [
    `{${K.slice(0, 9)
      .map((k) => `"b${k}": [{"$sort": {"BY": 1}}, {"$limit": 3}]`)
      .join()}}`,
  ],
  $lookup: [
    '{"from": "orders", "localField": "BY", "foreignField": "total", "as": "o"}',
    '{"from": "orders", "let": {"v": `x`}, "pipeline": [{"$match": {"$expr": {"$eq": ["$$v", "$total"]}}}], "as": "o"}',
  ],
  $unionWith: ['"orders"'],
  $graphLookup: ['{"from": "orders", "startWith": `a`, "connectFromField": "_id", "connectToField": "_id", "as": "o"}'],
  $setWindowFields: ['{"partitionBy": `x`, "sortBy": {"BY": 1}, "output": {"w": {"$sum": 1}}}'],
  $densify: ['{"field": "z", "partitionByFields": ["BY"], "range": {"step": 1, "bounds": "full"}}'],
  $fill: ['{"sortBy": {"BY": 1}, "output": {"w": {"method": "locf"}}}'],
}

export const SWEPT = { expression: { ...LISTED, ...NAMED }, gathered: GATHERED, stage: STAGES }

/** The values of one run: an expression for each letter of Arguments, and the field to sort by. */
export interface Values {
  readonly letters: Readonly<Record<string, unknown>>
  readonly by: string
}

const range = (n: number): object => ({ $range: [0, n] })
const many = (n: number, of: unknown): object => ({ $map: { input: range(n), as: 'i', in: of } })
/** The query makes these values in an earlier stage, so the guard knows their sizes. */
export const OWN: Document = {
  $set: {
    ints: { $concatArrays: [range(9_000), range(9_000), range(9_000)] },
    words: many(2_700, 'lorem ipsum dolor sit amet consectetur'),
    text: {
      $reduce: {
        input: range(2_000),
        initialValue: '',
        in: { $concat: ['$$value', 'lorem ipsum dolor sit amet consectetur adipiscing '] },
      },
    },
    other: {
      $reduce: {
        input: range(2_000),
        initialValue: 'x',
        in: { $concat: ['$$value', 'lorem ipsum dolor sit amet consectetur adipiscing '] },
      },
    },
    fields: { $arrayToObject: many(1_000, [{ $concat: ['f', { $toString: '$$i' }] }, 'value']) },
    deep: { $let: { vars: { v: many(9_000, 'abcdefg') }, in: { a: '$$v' } } },
  },
}
const DECIMAL = { $numberDecimal: '1.234567890123456789012345678901234E+300' }
const DATE = { $date: '1999-12-31T23:59:59.999Z' }
const TEXTS = { i: { $toString: '$z' }, c: '1999-12-31T23:59:59.999+05:00', h: 'aaaaaaaaaaaaaaaaaaaaaaaa' }
const SHORT = 'consectetur adipiscing lorem'

const one = (a: unknown, e: unknown, [x, y]: readonly unknown[], s: unknown, by: string, o: unknown): Values => ({
  letters: {
    a,
    e,
    x,
    y,
    s,
    t: s === '$text' || s === '$name' ? SHORT : s,
    o,
    p: { $objectToArray: o },
    n: 7,
    m: DECIMAL,
    d: DATE,
    b: true,
    ...TEXTS,
  },
  by,
})
export const OWN_VALUES: readonly Values[] = [
  one('$ints', '$words', ['$ints', '$ints'], '$text', 'ints', '$fields'),
  one('$words', '$words', ['$text', '$text'], '$other', 'text', '$fields'),
  one('$words', '$ints', ['$deep', '$deep'], '$text', 'deep', '$deep'),
]
export const STORED_VALUES: readonly Values[] = [
  one('$tags', '$tags', ['$tags', '$tags'], '$name', 'tags', '$boss'),
  one('$tags', [1], ['$name', '$name'], '$name', 'name', '$boss'),
  {
    letters: {
      ...one('$tags', '$tags', ['$boss', '$boss'], '$name', 'boss', '$boss').letters,
      m: '$score',
      n: '$score',
      d: '$since',
    },
    by: 'boss',
  },
]

/** Documents with long values. The field `land` selects one of them. */
export const STORED: readonly Document[] = (['ints', 'words', 'mixed'] as const).map((kind) => ({
  land: 'swept',
  name: 'lorem ipsum dolor sit amet consectetur adipiscing '.repeat(2_000),
  tags: Array.from({ length: 27_000 }, (_, k) =>
    kind === 'ints' ? k : kind === 'words' ? `lorem ipsum ${k}` : k % 2 === 0 ? k : `lorem ${k}`,
  ),
  boss: Object.fromEntries(Array.from({ length: 1_000 }, (_, k) => [`f${k}`, 'value'])),
  since: new Date(0),
}))

function filled(text: string, { letters, by }: Values): unknown {
  const json = text.replaceAll('BY', by).replace(/`([a-z])`/g, (_, letter: string) => JSON.stringify(letters[letter]))
  return JSON.parse(json)
}

function operand(name: string, values: Values): unknown {
  const listed = LISTED[name]
  if (listed === undefined) return filled(NAMED[name] ?? 'null', values)
  const args =
    listed === '[a]'
      ? '`a`'
      : listed
          .split(' ')
          .map((arg) => (/^[a-z]$/.test(arg) ? `\`${arg}\`` : arg))
          .join()
  return filled(`[${args}]`, values)
}

const people = (source: readonly Document[], ...pipeline: Document[]): Document => ({
  collection: 'people',
  pipeline: [{ $match: { land: 'swept' } }, ...source, { $set: { z: range(3_000) } }, { $unwind: '$z' }, ...pipeline],
})

const looped = (n: number, body: unknown): object =>
  n <= 9_000
    ? many(n, body)
    : { $map: { input: range(Math.ceil(n / 9_000)), as: 'j', in: { $size: many(9_000, body) } } }

/** Puts the operator into a loop of n steps, in the key of a group. */
export const ofExpression =
  (name: string, values: Values, source: readonly Document[]) =>
  (n: number): Document =>
    people(source, { $group: { _id: { $size: looped(n, { [name]: operand(name, values) }) } } })

export const ofAccumulator =
  (name: string, values: Values, source: readonly Document[]) =>
  (n: number): Document => {
    const by = { [name]: filled(GATHERED[name] ?? 'null', values) }
    const outputs = Object.fromEntries(Array.from({ length: Math.min(900, Math.ceil(n)) }, (_, k) => [`q${k}`, by]))
    return people(source, { $group: { _id: null, ...outputs } }, { $count: 'n' })
  }

export const ofWindow =
  (name: string, values: Values, source: readonly Document[]) =>
  (n: number): Document => {
    const ranked = [
      '$rank',
      '$denseRank',
      '$documentNumber',
      '$shift',
      '$locf',
      '$linearFill',
      '$derivative',
      '$expMovingAvg',
    ].includes(name)
    const window = ranked && name !== '$derivative' ? {} : { window: { documents: [-60, 0] } }
    const by = { [name]: filled(GATHERED[name] ?? 'null', values), ...window }
    const outputs = Object.fromEntries(Array.from({ length: Math.min(900, Math.ceil(n)) }, (_, k) => [`q${k}`, by]))
    return people(source, { $setWindowFields: { sortBy: { z: 1 }, output: outputs } }, { $count: 'n' })
  }

export const ofStage =
  (name: string, text: string, values: Values, source: readonly Document[]) =>
  (n: number): Document => {
    const repeated = Array.from(
      {
        length: Math.min(
          Math.ceil(n),
          [
            '$group',
            '$bucket',
            '$count',
            '$facet',
            '$sortByCount',
            '$bucketAuto',
            '$replaceRoot',
            '$unset',
            '$project',
            '$unwind',
          ].includes(name)
            ? 1
            : 30,
        ),
      },
      () => ({ [name]: filled(text, values) }),
    )
    return people(source, ...repeated, { $count: 'total' })
  }
