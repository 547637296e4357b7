// What a query makes the database do for one document: steps, counted with every loop around them, and the largest value.
// mongod looks for a cancel between documents, in old versions only at every 128th of a pipeline, and never within an
// operator; so the whole must be small for one document before it is sent.
import { isStored, type Extent } from './value-size.ts'
import { refusedGrowth } from './refusal.ts'
import type { Work } from './work-budget.ts'

/** A step takes mongod some 50 ns, so these take about 0.2 s. */
export const STEPS_MAX = 4_000_000
/** Four times what a document may have. Loops over stored values are estimates. */
export const BYTES_MAX = 64 * 1024 * 1024
/** Elements of an array that is gathered from documents: mongod ends a stage that gathers more than 100 MB. */
const LONGEST = 5_000_000
/** The lengths of gathered arrays that are tried, the longest first. */
export const LENGTHS: readonly number[] = [
  LONGEST,
  ...[1e6, 500_000, 200_000, 100_000, 50_000, 20_000, 10_000, 5_000, 2_000, 1_000, 500, 200, 100, 50],
]

/** An array of stored documents that a loop runs over, with the length it is taken to have. */
export interface Over {
  readonly parts: readonly string[]
  readonly items: number
  readonly variable?: string
}

/** A part of stored documents that is gone through, so many times for each turn of the loops around it. */
export interface Read {
  readonly part: string
  readonly over: readonly Over[]
  readonly times: number
}

/** What all stages of one query ask of the database for one document. */
export class Load {
  readonly work: Work
  /** How long arrays are taken to be that $push, $lookup and the like gather. */
  readonly #length: number
  readonly #reads = new Map<string, Read>()
  #gathers = false
  #steps = 0

  constructor(work: Work, length = LONGEST) {
    this.work = work
    this.#length = length
  }

  /** The query gathers arrays: with shorter ones it takes fewer steps. */
  get gathers(): boolean {
    return this.#gathers
  }

  /** How long a gathered array may be where the printed query must see to it; null where it may have any length. */
  get held(): number | null {
    return this.#length === LONGEST ? null : this.#length
  }

  gathered(): number {
    this.#gathers = true
    return this.#length
  }

  /** Each part and the loops around it once. */
  get reads(): readonly Read[] {
    return [...this.#reads.values()]
  }

  read({ part, over, times }: Read): void {
    const key = JSON.stringify([part, ...over.map(({ parts }) => parts)])
    this.#reads.set(key, { part, over, times: times + (this.#reads.get(key)?.times ?? 0) })
  }

  /** Throws Refusal where the steps are too many. */
  add(steps: number): void {
    this.#steps += steps
    if (this.#steps <= STEPS_MAX) return
    throw refusedGrowth(
      'steps',
      `the query takes about ${Math.round(this.#steps)} steps or more for one document; ${STEPS_MAX} is the most`,
      'Loop over fewer elements: shorten what $map, $filter and $reduce run over ($slice, $filter first), nest fewer of them in each other, or $unwind and $group instead.',
    )
  }
}

/** The share of one stage in it. */
export class Meter {
  readonly work: Work
  readonly #load: Load
  readonly #sizes = new Map<string, number>()
  /** What the variables of loops are elements of. */
  readonly #origins = new Map<string, Pick<Extent, 'parts' | 'items'>>()
  #over: readonly Over[] = []
  #worst = 0
  #loops = 1
  #trials = 0
  #variables = 0

  constructor(load: Load) {
    this.#load = load
    this.work = load.work
  }

  /** The steps that the stage may well take. */
  get worst(): number {
    return this.#worst
  }

  /** How long arrays are taken to be that are gathered from documents. */
  gathered(): number {
    return this.#load.gathered()
  }

  /** Throws Refusal where the steps are too many. */
  step(units = 1, worst = units): void {
    this.work.spend(1)
    if (this.#trials > 0) return
    this.#worst += worst * this.#loops
    this.#load.add(units * this.#loops)
  }

  /** What is done once for each of so many elements, of the array if that is known. */
  loop<T>(items: number, body: () => T, of?: { readonly array: Extent; readonly variable?: string }): T {
    const [before, around] = [this.#loops, this.#over]
    const parts = [...(of?.array.parts.keys() ?? [])].filter(isStored)
    this.#loops *= items
    if (parts.length > 0) this.#over = [...around, { ...of, parts, items }]
    try {
      return body()
    } finally {
      this.#loops = before
      this.#over = around
    }
  }

  /** What is only looked at: it counts as work of the guard, not of the database. */
  trial<T>(body: () => T): T {
    this.#trials++
    try {
      return body()
    } finally {
      this.#trials--
    }
  }

  /** A name for what a loop binds, and what it is an element of; `bytes` is how large that is. */
  variable(bytes: number, of?: Pick<Extent, 'parts' | 'items'>): string {
    const name = String(++this.#variables)
    this.#sizes.set(name, bytes)
    if (of !== undefined) this.#origins.set(name, of)
    return name
  }

  /** An operator goes through a value from end to end, and may copy it. */
  read({ parts }: Extent, times = 1): void {
    if (this.#trials === 0 && times > 0) this.#read(parts, this.#loops * times, this.#over)
  }

  #read(parts: Extent['parts'], times: number, over: readonly Over[]): void {
    this.work.spend(parts.size)
    const turns = over.reduce((all, { items }) => all * Math.max(1, items), 1)
    for (const [part, often] of parts) {
      if (often <= 0) continue
      if (isStored(part)) this.#load.read({ part, over, times: (often * times) / turns })
      const variable = part.split('.', 1)[0] ?? ''
      const origin = this.#origins.get(variable)
      if (origin === undefined) continue
      // All elements together are what they are elements of.
      const others = over.filter((each) => each.variable !== variable)
      this.#read(origin.parts, (often * times) / Math.max(1, origin.items), others)
    }
  }

  bytesOf({ bytes, parts }: Extent): number {
    let total = bytes
    this.work.spend(parts.size)
    for (const [part, times] of parts) {
      const dot = part.indexOf('.')
      total += times * (this.#sizes.get(dot === -1 ? part : part.slice(0, dot)) ?? 0)
    }
    return total
  }

  /** A value that is made anew is not too large. Throws Refusal. */
  made(extent: Extent): Extent {
    this.work.spend(extent.parts.size)
    if (this.#trials > 0) return extent
    const bytes = this.bytesOf(extent)
    if (bytes <= BYTES_MAX) return extent
    throw tooLarge('size', bytes)
  }
}

/** Of a value without variables. Throws Refusal where it is too large. */
export function within(extent: Extent): Extent {
  if (extent.bytes <= BYTES_MAX) return extent
  throw tooLarge('size', extent.bytes)
}

export function tooLarge(name: string, bytes: number): Error {
  const size = bytes < 1e15 ? `${Math.ceil(bytes / 1024 / 1024)} MiB` : 'more than any memory'
  return refusedGrowth(
    name,
    `a value of the query may grow to about ${size}; ${BYTES_MAX / 1024 / 1024} MiB is the most`,
    'Repeat a value fewer times: put it once into $concat, $concatArrays, an array or an object, and not anew in every stage.',
  )
}
