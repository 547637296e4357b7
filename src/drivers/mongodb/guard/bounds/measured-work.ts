// The work of a stage for one document may depend on the sizes of stored values. The query then contains expressions
// that measure these sizes directly before the stage. They read the values that the stage will read, so it does not
// matter which earlier stage made the values. An amount is an upper bound that depends on sizes (amount.ts).
import { HUGE, replaced, sizeOf, sizesOf, type Amount } from './amount.ts'
import type { Bson, BsonDocument } from '../../confined-query.ts'
import { UNSEEN, type StageWork } from './step-meter.ts'
import { refusedLimit } from '../refusals/refusal.ts'
import { bytesAt, DOCUMENT, ELEMENT_LEAST, isStored, measureOf, type Measure } from './value-size.ts'

/** Limits the bytes of the values that a stage makes of one document. */
export const MADE_MAX = 320 * 1024 * 1024
export const DOCUMENT_MAX = 16 * 1024 * 1024
/** Limits the steps of a stage for one document, to about 0.8 s. */
export const TURNS_MAX = 16_000_000
/** If an amount has more sizes, mongod measures the whole document instead. */
const SIZES_MAX = 12

/**
 * Expressions that the database computes for each document. An expression is null if its amount cannot be too large.
 */
export interface Measured {
  readonly steps: Bson | null
  readonly bytes: Bson | null
  /** The variables that `steps` and `bytes` use. */
  readonly vars: BsonDocument
  /** The limit on the steps of the stage. Absent if the stages of the query share a limit. */
  readonly most?: number
}

export const NOTHING: Measured = { steps: null, bytes: null, vars: {} }

/** What is known about a document before a stage. */
export interface Before {
  readonly size: number
  /**
   * True if mongod has just read the document from the collection. Before mongod reads a large document, it checks for
   * a cancel.
   */
  readonly isRead: boolean
  readonly most?: number
}

/** The work that all stages of a query together may do for one document without a measurement. */
export class Spare {
  #read = TURNS_MAX
  /**
   * The same for documents that an earlier stage made. It is smaller by the factor UNSEEN, because mongod does not
   * check for a cancel between these documents.
   */
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
 * Returns the largest value of an amount, without its constant, for a document of `size` bytes. All fields of the
 * document together have at most this size. An amount of HUGE has no terms, so HUGE is returned.
 */
export function worstOf(amount: Amount, size: number): number {
  if (amount.constant >= HUGE) return HUGE
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
  return of === 'length' || of === 'lists' ? size / ELEMENT_LEAST : size
}

/** Returns the top-level field of a place in the document. Returns null for the document itself and for variables. */
function fieldOf(place: string): string | null {
  const [head, field] = place.split('.', 2)
  return head === DOCUMENT && field !== undefined ? field : null
}

/**
 * Prints amounts as expressions. A size that occurs several times becomes a variable, so that it is computed only once.
 */
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
    // The size of an element means nothing outside of its loop. An amount that still has such a size has no bound.
    if (!isStored(measureOf(size).place)) throw refusedLimit('steps', 'the work of a stage cannot be bounded')
    const known = this.#names.get(size)
    if (known !== undefined) return known
    const name = `vt_${this.#names.size}`
    this.vars[name] = measured(measureOf(size))
    this.#names.set(size, `$$${name}`)
    return `$$${name}`
  }
}

/**
 * Replaces a size by a larger one: the bytes of the whole document or variable that contains the value. The bytes say
 * too little about the number of arrays in an array.
 */
function wholeOf(size: string): Amount | null {
  const { of, place } = measureOf(size)
  if (of === 'lists') return null
  const [head = DOCUMENT] = place.split('.', 1)
  return sizeOf(bytesAt(head), of === 'length' ? 1 / ELEMENT_LEAST : 1)
}

const rounded = (n: number): number => Number(n.toPrecision(4))

/**
 * Returns the path that reads a place. If a name of the place cannot be in a path, returns the path of the enclosing
 * value.
 */
function valueAt(place: string): string {
  const [head = '', ...names] = place.split('.')
  const end = names.findIndex((name) => name === '' || name.startsWith('$'))
  const path = end === -1 ? names : names.slice(0, end)
  if (head !== DOCUMENT) return [`$${head.slice(1)}`, ...path].join('.')
  return path.length === 0 ? '$$ROOT' : `$${path.join('.')}`
}

/** mongod evaluates constant branches in advance, so no branch of the expression may fail, whatever the type is. */
function measured({ of, place, separator }: Measure): Bson {
  const value = valueAt(place)
  if (of === 'bytes') return { $bsonSize: { v: value } }
  if (of === 'length') return lengthOf(value)
  if (of === 'longest') return longestOf(value)
  if (of === 'lists') return listsIn(value, place.split('.').length - 1)
  const isText: Bson = { $eq: [{ $type: value }, 'string'] }
  const text: Bson = { $cond: [isText, value, ''] }
  if (of === 'pieces') return { $size: { $split: [text, { $literal: separator }] } }
  const word: Bson = { $max: { $map: { input: { $split: [text, ' '] }, in: { $strLenBytes: '$$this' } } } }
  return of === 'word' ? word : { $cond: [isText, word, longestOf(value)] }
}

/**
 * In a longer array, elements are not measured one by one. The bytes of the whole array then count as the longest
 * element.
 */
const MEASURED_EACH_MAX = 2_000

/** Measures the bytes of the longest element of an array. For a value that is no array, measures the value. */
function longestOf(value: string): Bson {
  const isShort: Bson = { $and: [{ $isArray: [value] }, { $lte: [elementsOf(value), MEASURED_EACH_MAX] }] }
  const list: Bson = { $cond: [isShort, value, [value]] }
  // An empty array has no longest element. Without the 0, the size would be null, and so would be the whole amount.
  return { $max: [0, { $max: { $map: { input: list, in: { $bsonSize: { v: '$$this' } } } } }] }
}

/** Measures how many elements an array has, or how many fields an object has. */
function lengthOf(value: string): Bson {
  const isObject: Bson = { $eq: [{ $type: value }, 'object'] }
  const fields: Bson = { $size: { $objectToArray: { $cond: [isObject, value, {}] } } }
  return { $add: [elementsOf(value), fields] }
}

/**
 * Measures how many arrays and regular expressions are in an array, and in the arrays in it. A path with `depth` names
 * may find as many arrays in one another.
 */
function listsIn(value: string, depth: number): Bson {
  if (depth === 0) return 0
  const one = `vt_list${depth}`
  const isList: Bson = { $in: [{ $type: `$$${one}` }, ['array', 'regex']] }
  const each: Bson = { $add: [{ $cond: [isList, 1, 0] }, listsIn(`$$${one}`, depth - 1)] }
  return { $sum: { $map: { input: { $cond: [{ $isArray: [value] }, value, []] }, as: one, in: each } } }
}

function elementsOf(value: string): Bson {
  return { $size: { $cond: [{ $isArray: [value] }, value, []] } }
}
