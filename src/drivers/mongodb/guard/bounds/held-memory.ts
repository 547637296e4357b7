// Some stages hold documents in memory at the same time. mongod allows 100 MB for each of these stages, and has no
// limit for a whole query. So this file adds them up. A unit is 100 MB of the server's memory.
import { numberOf } from '../body/parse-ejson.ts'
import { isArray, isDocument, type Bson, type BsonDocument } from '../../confined-query.ts'
import { refusedLimit } from '../refusals/refusal.ts'

/** The maximum for the stages of a query, about 1 GB. */
const UNITS_MAX = 10

/** A $group without accumulators. For small keys that take 380 MB, mongod counts 100 MB. */
const KEYS_ONLY = 3
/** A $group that makes sets. For small elements that take 170 MB, mongod counts 100 MB. */
const SETS = 2
/** A $group with $maxN or $minN. For small values that take 375 MB, mongod counts 100 MB. */
const ORDERED = 4
/** A $facet, for the documents that its branches return. */
const FACET = 1

export class Held {
  #first = 0
  #last = 0
  /**
   * The largest sum of two neighbouring stages. The first stage still holds its documents while the second stage fills.
   */
  #pair = 0
  /** The units of all joins. */
  #beside = 0

  /** Throws Refusal if the pipeline holds too much. */
  stage(units: number): void {
    if (units === 0) return
    if (this.#first === 0) this.#first = units
    this.#pair = Math.max(this.#pair, this.#last + units)
    this.#last = units
    this.#check()
  }

  /** The pipeline of a join runs while other stages hold documents. */
  join(units: number): void {
    this.#beside += units
    this.#check()
  }

  /** All branches of a $facet fill at the same time. Then they return their documents one after the other. */
  facet(branches: readonly Held[]): void {
    const filled = branches.reduce((all, branch) => all + branch.#first + branch.#beside, 0)
    this.stage(FACET + filled + Math.max(0, ...branches.map((branch) => branch.#pair - branch.#first)))
  }

  get units(): number {
    return this.#pair + this.#beside
  }

  #check(): void {
    if (this.units <= UNITS_MAX) return
    throw refusedLimit(
      'memory',
      `the query collects documents in stages that together may hold ${this.units} × 100 MB at the same time; the limit is ${UNITS_MAX} × 100 MB`,
      'Use fewer branches with stages such as $group and $sort in a $facet, use fewer of these stages inside $lookup, or split the query. A $group without accumulators counts three times, a $group with $maxN or $minN four times, and a $group with $addToSet twice. In a $bucketAuto, each output that gathers values counts once.',
    )
  }
}

export function unitsOfGroup(key: Bson, outputs: BsonDocument): number {
  const names = Object.values(outputs).map((output) => (isDocument(output) ? (Object.keys(output)[0] ?? '') : ''))
  if (isPlain(key) && names.every((name) => COUNTING.has(name))) return 0
  if (names.length === 0) return KEYS_ONLY
  if (names.some((name) => name === '$maxN' || name === '$minN')) return ORDERED
  return names.some((name) => name === '$addToSet' || name === '$setUnion') ? SETS : 1
}

/** A $bucketAuto needs one unit for its sort, and one for each output that gathers values. */
export function unitsOfBuckets(outputs: BsonDocument): number {
  return 1 + Object.values(outputs).reduce<number>((all, output) => all + unitsOfOutput(output), 0)
}

function unitsOfOutput(output: Bson): number {
  const [name = '', operand = null] = isDocument(output) ? (Object.entries(output)[0] ?? []) : []
  if (!GATHERING.has(name)) return 0
  const n = numberOf(isDocument(operand) ? operand['n'] : undefined)
  return (name === '$maxN' || name === '$minN') && (n === undefined || n > FEW) ? ORDERED : 1
}

/** Accumulators that keep values of many documents. */
const GATHERING = new Set(
  '$addToSet $bottomN $concatArrays $firstN $lastN $maxN $mergeObjects $minN $push $setUnion $topN'.split(' '),
)

/** This many values need less than a unit, however small they are. */
const FEW = 100

/** Accumulators whose value is one number. */
const COUNTING = new Set('$avg $count $stdDevPop $stdDevSamp $sum'.split(' '))

function isPlain(key: Bson): boolean {
  return !isArray(key) && !isDocument(key) && !(typeof key === 'string' && key.startsWith('$'))
}
