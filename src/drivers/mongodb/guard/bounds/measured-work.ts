// Prints expressions that measure, right before a stage, the work of the stage for one document. The expressions read
// the values that the stage will read, so it does not matter where these values come from. An amount is an upper bound
// that may depend on the sizes of stored values (amount.ts).
import { replaced, sizeOf, sizesOf, type Amount } from './amount.ts'
import type { Bson, BsonDocument } from '../../confined-query.ts'
import { UNSEEN, type StageWork } from './step-meter.ts'
import { refusedLimit } from '../refusals/refusal.ts'
import { bytesAt, DOCUMENT, ELEMENT_LEAST, isStored, measureOf, type Measure } from './value-size.ts'

/** The maximum number of bytes of the values that a stage makes of one document. */
export const MADE_MAX = 320 * 1024 * 1024
export const DOCUMENT_MAX = 16 * 1024 * 1024
/** The maximum number of steps of a stage for one document, about 0.8 s. */
export const TURNS_MAX = 16_000_000
/**
 * The maximum number of sizes of an amount that mongod measures. If there are more, mongod measures the whole document
 * instead.
 */
const SIZES_MAX = 12

/**
 * Expressions that the database computes for each document. An expression is null if its amount cannot be too large.
 */
export interface Measured {
  readonly steps: Bson | null
  readonly bytes: Bson | null
  /** The variables that `steps` and `bytes` use. */
  readonly vars: BsonDocument
  /** The steps that the stage may take. Absent if the stages of the query share a limit. */
  readonly most?: number
}

export const NOTHING: Measured = { steps: null, bytes: null, vars: {} }

/** The known facts about a document before a stage. */
export interface Before {
  /** The maximum number of bytes of the document. */
  readonly size: number
  /**
   * True if mongod has just read the document from the collection. mongod checks for a cancel before it reads each
   * large document.
   */
  readonly isRead: boolean
  /** The limit on the steps of the stage. Absent if the stages of the query share a limit. */
  readonly most?: number
}

/** The work that all stages of a query together may do for one document without a measurement. */
export class Spare {
  #read = TURNS_MAX
  /** Divided by UNSEEN, because mongod does not check for a cancel between documents that an earlier stage made. */
  #made = TURNS_MAX / UNSEEN
  #bytes = MADE_MAX

  measured({ steps, kept }: StageWork, { size, isRead, most }: Before): Measured {
    const [long, large] = [worstOf(steps, size), worstOf(kept, size)]
    const isLong = long > Math.min(isRead ? this.#read : this.#made, most ?? Infinity)
    const isLarge = large > this.#bytes
    if (!isLong && isRead) this.#read -= long
    if (!isLong && !isRead) this.#made -= long
    if (!isLarge) this.#bytes -= large
    if (!isLong && !isLarge) return NOTHING
    const print = new Printer([steps, kept])
    return {
      ...(most !== undefined && { most }),
      steps: isLong ? print.amount(steps) : null,
      bytes: isLarge ? print.amount(kept) : null,
      vars: print.vars,
    }
  }
}

/**
 * Returns the largest value of an amount, without its constant, for one document of `size` bytes. All fields together
 * have at most this size.
 */
export function worstOf(amount: Amount, size: number): number {
  const fields = new Map<string, number>()
  let rest = 0
  for (const { times, sizes } of amount.terms.values()) {
    const worst = sizes.reduce((all, each) => all * worstSize(measureOf(each), size), times)
    const [only, ...others] = sizes
    const field = only === undefined || others.length > 0 ? null : fieldOf(measureOf(only).place)
    if (field === null) rest += worst
    else fields.set(field, (fields.get(field) ?? 0) + worst)
  }
  return rest + Math.max(0, ...fields.values())
}

function worstSize({ of }: Measure, size: number): number {
  return of === 'length' ? size / ELEMENT_LEAST : size
}

/** Returns the top-level field of the document, or null for the document and for variables. */
function fieldOf(place: string): string | null {
  const [head, field] = place.split('.', 2)
  return head === DOCUMENT && field !== undefined ? field : null
}

/** Prints amounts as expressions. A size that occurs several times is computed once, as a variable. */
class Printer {
  readonly vars: Record<string, Bson> = {}
  readonly #names = new Map<string, string>()
  readonly #isCoarse: boolean

  constructor(amounts: readonly Amount[]) {
    this.#isCoarse = new Set(amounts.flatMap(sizesOf)).size > SIZES_MAX
  }

  amount(written: Amount): Bson {
    const { constant: own, terms } = this.#isCoarse ? replaced(written, wholeOf) : written
    const parts = [...terms.values()].map(({ times, sizes }): Bson => {
      const factors = sizes.map((size) => this.#once(size))
      return { $multiply: [rounded(times), ...factors] }
    })
    const all = own === 0 ? parts : [rounded(own), ...parts]
    const [first = 0, ...others] = all
    return others.length === 0 ? first : { $add: all }
  }

  #once(size: string): Bson {
    // The size of an element has no meaning outside its loop. If such a size is left, the stage has no bound.
    if (!isStored(measureOf(size).place)) throw refusedLimit('steps', 'the work of a stage cannot be bounded')
    const known = this.#names.get(size)
    if (known !== undefined) return known
    const name = `vt_${this.#names.size}`
    this.vars[name] = measured(measureOf(size))
    this.#names.set(size, `$$${name}`)
    return `$$${name}`
  }
}

/** Returns an upper bound for a size: the bytes of the whole document or variable that contains the measured value. */
function wholeOf(size: string): Amount {
  const { of, place } = measureOf(size)
  const [head = DOCUMENT] = place.split('.', 1)
  return sizeOf(bytesAt(head), of === 'length' ? 1 / ELEMENT_LEAST : 1)
}

const rounded = (n: number): number => Number(n.toPrecision(4))

/**
 * Returns the expression that reads a place. If no path can contain a name of the place, the expression reads the value
 * above that name.
 */
function valueAt(place: string): string {
  const [head = '', ...names] = place.split('.')
  const end = names.findIndex((name) => name === '' || name.startsWith('$'))
  const path = end === -1 ? names : names.slice(0, end)
  if (head !== DOCUMENT) return [`$${head.slice(1)}`, ...path].join('.')
  return path.length === 0 ? '$$ROOT' : `$${path.join('.')}`
}

/**
 * Returns the expression for a size. mongod evaluates constant branches in advance, so no branch may fail for any type.
 */
function measured({ of, place, separator }: Measure): Bson {
  const value = valueAt(place)
  if (of === 'bytes') return { $bsonSize: { v: value } }
  if (of === 'length') return lengthOf(value)
  if (of === 'longest') return longestOf(value)
  const isText: Bson = { $eq: [{ $type: value }, 'string'] }
  const text: Bson = { $cond: [isText, value, ''] }
  if (of === 'pieces') return { $size: { $split: [text, { $literal: separator }] } }
  const word: Bson = { $max: { $map: { input: { $split: [text, ' '] }, in: { $strLenBytes: '$$this' } } } }
  return of === 'word' ? word : { $cond: [isText, word, longestOf(value)] }
}

/** In a longer array, the elements are not measured one by one. All elements together then count as the longest. */
const MEASURED_EACH_MAX = 2_000

/**
 * Returns the expression for the bytes of the longest element of an array, or of the value itself if it is no array.
 */
function longestOf(value: string): Bson {
  const isShort: Bson = { $and: [{ $isArray: [value] }, { $lte: [elementsOf(value), MEASURED_EACH_MAX] }] }
  const list: Bson = { $cond: [isShort, value, [value]] }
  // An empty array has no longest element. Without the 0, the size would be null, and so would the whole amount.
  return { $max: [0, { $max: { $map: { input: list, in: { $bsonSize: { v: '$$this' } } } } }] }
}

/** Returns the expression for the number of elements of an array, or of fields of an object. */
function lengthOf(value: string): Bson {
  const isObject: Bson = { $eq: [{ $type: value }, 'object'] }
  const fields: Bson = { $size: { $objectToArray: { $cond: [isObject, value, {}] } } }
  return { $add: [elementsOf(value), fields] }
}

/** Returns the expression for the number of elements, which is 0 for a value that is no array. */
function elementsOf(value: string): Bson {
  return { $size: { $cond: [{ $isArray: [value] }, value, []] } }
}
