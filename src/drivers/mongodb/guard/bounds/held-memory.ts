// Adds up the memory of the stages of a query that hold documents at the same time. mongod allows each such stage 100
// MB, and has no limit for a whole query. A unit is 100 MB of the server's memory.
import { numberOf } from '../body/parse-ejson.ts'
import { isArray, isDocument, type Bson, type BsonDocument } from '../../confined-query.ts'
import { refusedLimit } from '../refusals/refusal.ts'

/** The limit on units that the stages of a query hold at the same time: about 1 GB. */
const UNITS_MAX = 10

/** The units of a $group without accumulators: mongod counts 100 MB for small keys that take 380 MB. */
const KEYS_ONLY = 3
/** The units of a $group that makes sets: mongod counts 100 MB for small elements that take 170 MB. */
const SETS = 2
/** The units of a $group with $maxN or $minN: mongod counts 100 MB for small values that take 375 MB. */
const ORDERED = 4
/** The units of a $facet, for the documents that its branches return. */
const FACET = 1

/** The units that a pipeline holds. */
export class Held {
  #first = 0
  #last = 0
  /** The largest sum of two consecutive stages. The first still holds documents while the second fills. */
  #pair = 0
  /** The units of all joins. */
  #beside = 0

  /** Adds the next stage that holds documents. Throws Refusal if the pipeline holds too much. */
  stage(units: number): void {
    if (units === 0) return
    if (this.#first === 0) this.#first = units
    this.#pair = Math.max(this.#pair, this.#last + units)
    this.#last = units
    this.#check()
  }

  /** Adds a join, whose pipeline runs while other stages hold documents. */
  join(units: number): void {
    this.#beside += units
    this.#check()
  }

  /** Adds a $facet. All branches fill at the same time. Then they return their documents one after the other. */
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
      'Use fewer branches with $group, $sort and the like in a $facet, fewer of them inside $lookup, or split the query. A $group without accumulators counts three times, one with $maxN or $minN four times, one with $addToSet twice. In a $bucketAuto, each output that gathers values counts once.',
    )
  }
}

/** Returns the units of a $group or $bucket with this key and these outputs. */
export function unitsOfGroup(key: Bson, outputs: BsonDocument): number {
  const names = Object.values(outputs).map((output) => (isDocument(output) ? (Object.keys(output)[0] ?? '') : ''))
  if (isPlain(key) && names.every((name) => COUNTING.has(name))) return 0
  if (names.length === 0) return KEYS_ONLY
  if (names.some((name) => name === '$maxN' || name === '$minN')) return ORDERED
  return names.some((name) => name === '$addToSet' || name === '$setUnion') ? SETS : 1
}

/** Returns the units of a $bucketAuto: one for its sort, and one for each output that gathers values. */
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

/** So few values take less memory than a unit, however small they are. */
const FEW = 100

/** Accumulators whose value is one number. */
const COUNTING = new Set('$avg $count $stdDevPop $stdDevSamp $sum'.split(' '))

/** Returns whether a key is the same for all documents. */
function isPlain(key: Bson): boolean {
  return !isArray(key) && !isDocument(key) && !(typeof key === 'string' && key.startsWith('$'))
}
