// The names that are newer than MongoDB 4.2. A query with a name that is newer than the server is refused, and the hint
// says which version the name needs.

export type Version = readonly [number, number]
export type Vocabulary = 'stage' | 'expression' | 'accumulator' | 'window'

const SINCE: Readonly<Record<Vocabulary, Readonly<Record<string, Version>>>> = {
  stage: { $unionWith: [4, 4], $setWindowFields: [5, 0], $densify: [5, 1], $fill: [5, 3] },
  expression: {
    ...since([4, 4], '$first $last $binarySize $bsonSize $isNumber $replaceOne $replaceAll'),
    ...since([5, 0], '$dateAdd $dateSubtract $dateDiff $dateTrunc $getField $setField $unsetField'),
    ...since([5, 1], '$tsIncrement $tsSecond'),
    ...since([5, 2], '$firstN $lastN $maxN $minN $sortArray'),
    ...since([6, 3], '$bitAnd $bitOr $bitXor $bitNot'),
    ...since([7, 0], '$median $percentile'),
    ...since([8, 0], '$toUUID'),
    ...since([8, 1], '$sigmoid'),
    ...since([8, 3], '$deserializeEJSON $serializeEJSON $similarityCosine $similarityDotProduct $similarityEuclidean'),
    ...since([8, 3], '$subtype $toArray $toObject arrayIndexAs $$IDX'),
  },
  accumulator: {
    ...since([5, 0], '$count'),
    ...since([5, 2], '$top $topN $bottom $bottomN $firstN $lastN $maxN $minN'),
    ...since([7, 0], '$median $percentile'),
    ...since([8, 1], '$concatArrays $setUnion'),
  },
  window: {
    ...since([5, 2], '$top $topN $bottom $bottomN $firstN $lastN $maxN $minN $locf'),
    ...since([5, 3], '$linearFill'),
    ...since([7, 0], '$median $percentile'),
    ...since([8, 1], '$concatArrays $setUnion'),
    ...since([8, 2], '$minMaxScaler'),
    ...since([8, 3], '$mergeObjects'),
  },
}

function since(version: Version, names: string): Record<string, Version> {
  return Object.fromEntries(names.split(' ').map((name) => [name, version]))
}

/** Returns the version that the name needs if the server is older, otherwise null. */
export function missing(vocabulary: Vocabulary, name: string, server: readonly number[]): string | null {
  const known = SINCE[vocabulary]
  const version = Object.hasOwn(known, name) ? known[name] : undefined
  return version === undefined || atLeast(server, version) ? null : version.join('.')
}

export function atLeast(server: readonly number[], [major, minor]: Version): boolean {
  const [ofServer = 0, minorOfServer = 0] = server
  return ofServer > major || (ofServer === major && minorOfServer >= minor)
}
