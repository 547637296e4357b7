// Counts the steps that a query takes in the database for one document, multiplied by the loops around them, and finds the
// largest value. mongod checks for a cancel between documents (old versions: every 128 documents of a pipeline), never
// within an operator. The work for one document must therefore be small before the query is sent.
import { CONSTANT, countsOf, isShared, isStored, LEAST_BYTES, PIECES, type Extent } from './value-size.ts'
import { refusedGrowth } from './refusal.ts'
import type { Work } from './work-budget.ts'

/** A step takes mongod about 50 ns, so this many take about 0.2 s. */
export const STEPS_MAX = 4_000_000
/** Four times the largest document, because loops over stored values are estimates. */
export const BYTES_MAX = 64 * 1024 * 1024
/** The longest array that a stage gathers from documents: mongod ends a stage that gathers more than 100 MB. */
const LONGEST = 5_000_000
/** The lengths of gathered arrays that the guard tries, longest first. */
export const LENGTHS: readonly number[] = [
  LONGEST,
  ...[1e6, 500_000, 200_000, 100_000, 50_000, 20_000, 10_000, 5_000, 2_000, 1_000, 500, 200, 100, 50],
]

/** What bounds a length: that of a part, so many times. */
export interface Term {
  /** A part of the document or of a variable, or of the element of a loop around. */
  readonly part: string
  readonly times: number
  /** What counts: the length, or the bytes by LEAST_BYTES. */
  readonly by: 'length' | 'bytes'
  /** Set if the pieces count into which this separator splits a text; for an empty one, its bytes. */
  readonly separator?: string
}

/** A loop whose length only stored values tell. */
export interface Loop {
  readonly terms: readonly Term[]
  readonly constant: number
  /** The length is this power of the terms and the constant together. */
  readonly degree: number
  /** The part that the loop runs over; null if it runs over a value that is computed from parts. */
  readonly place: string | null
  /** What all elements together are made of. */
  readonly contents: readonly Term[]
  /** The loop variable that is the element. */
  readonly variable: string | null
}

/** Steps that a stage takes in each iteration of these loops, outermost first. */
export interface Turned {
  readonly loops: readonly Loop[]
  readonly steps: number
}

/** A part that a stage reads `times` times in each iteration of the loops around it. */
export interface Read {
  readonly loops: readonly Loop[]
  readonly part: string
  readonly times: number
}

/** The work of all stages of one query for one document. */
export class Load {
  readonly work: Work
  /** The assumed length of arrays that $push, $lookup and similar operators gather. */
  readonly #length: number
  #gathers = false
  #kept = 0
  #steps = 0

  constructor(work: Work, length = LONGEST) {
    this.work = work
    this.#length = length
  }

  /** Whether the query gathers arrays. With shorter arrays it takes fewer steps. */
  get gathers(): boolean {
    return this.#gathers
  }

  /** The length of gathered arrays that the printed query must enforce; null if any length is allowed. */
  get held(): number | null {
    return this.#length === LONGEST ? null : this.#length
  }

  gathered(): number {
    this.#gathers = true
    return this.#length
  }

  /** Throws Refusal if the large values of all stages are too large together. */
  keep(bytes: number): void {
    this.#kept += bytes
    if (this.#kept > KEPT_MAX) throw tooLarge('sizes', this.#kept)
  }

  /** Throws Refusal if there are too many steps. */
  add(steps: number): void {
    this.#steps += steps
    if (this.#steps <= STEPS_MAX) return
    throw refusedGrowth(
      'steps',
      `the query takes about ${Math.round(this.#steps)} or more steps for one document; the limit is ${STEPS_MAX}`,
      'Loop over fewer elements: shorten the input of $map, $filter and $reduce with $slice or $filter, nest fewer loops, or use $unwind and $group.',
    )
  }
}

/** What the value of a variable is made of; `place` is the array whose element it is. */
type Origin = Pick<Extent, 'parts' | 'items' | 'place'>

interface Nest {
  readonly loops: readonly Loop[]
  steps: number
}

/** Counts the work of one stage. */
export class Meter {
  readonly work: Work
  readonly #load: Load
  readonly #sizes = new Map<string, number>()
  /** What the values of variables are made of. */
  readonly #origins = new Map<string, Origin>()
  readonly #nests: Nest[] = []
  readonly #reads: Read[] = []
  /** The loops around that only stored values tell the lengths of. */
  #nest: Nest = { loops: [], steps: 0 }
  /** The iterations of the other loops around. */
  #fixed = 1
  /** The estimated iterations of all loops around. */
  #loops = 1
  #worst = 0
  #trials = 0
  #variables = 0

  constructor(load: Load) {
    this.#load = load
    this.work = load.work
  }

  /** The steps that the stage takes in a bad case. */
  get worst(): number {
    return this.#worst
  }

  get turned(): readonly Turned[] {
    return this.#nests.filter(({ steps }) => steps > 0)
  }

  get reads(): readonly Read[] {
    return this.#reads
  }

  /** The assumed length of arrays gathered from documents. */
  gathered(): number {
    return this.#load.gathered()
  }

  /** Throws Refusal if there are too many steps. */
  step(units = 1, worst = units): void {
    this.work.spend(1)
    if (this.#trials > 0) return
    this.#worst += worst * this.#loops
    this.#nest.steps += units * this.#fixed
    this.#load.add(units * this.#loops)
  }

  /** Counts steps that only matter where stored documents tell how many iterations there are. */
  turn(steps: number): void {
    if (this.#trials === 0) this.#nest.steps += steps * this.#fixed
  }

  /** Counts what each iteration keeps in memory, as turn() does. */
  build(bytes: number): void {
    this.turn(bytes / STEP_BUILDS)
  }

  /** Counts `body` once for each of `items` elements; `of` is their array, if known. */
  loop<T>(items: number, body: () => T, of?: Looped): T {
    const [before, fixed, around] = [this.#loops, this.#fixed, this.#nest]
    const loop = of === undefined ? null : this.#loopOver(of)
    this.#loops *= items
    if (loop === null) this.#fixed *= items
    else this.#nest = this.#nested(loop)
    try {
      return body()
    } finally {
      this.#loops = before
      this.#fixed = fixed
      this.#nest = around
    }
  }

  #nested(loop: Loop): Nest {
    const nest = { loops: [...this.#nest.loops, loop], steps: 0 }
    this.work.spend(nest.loops.length)
    if (this.#trials === 0) this.#nests.push(nest)
    return nest
  }

  /** Null if the query alone tells the length. */
  #loopOver({ array, variable, below }: Looped): Loop | null {
    const isBytes = below !== undefined || array.isSpread === true
    const counts = countsOf(array)
    const terms = [...counts].flatMap(([part, times]) => this.#termsOf(part, times, isBytes))
    if (terms.length === 0) return null
    const contents = [...array.parts].flatMap(([part, often]) => this.#termsOf(part, often, true))
    const isPlace = below === undefined && array.place !== undefined && this.#isMeasured(array.place)
    const bounds = { terms, constant: counts.get(CONSTANT) ?? 0, degree: array.degree ?? 1 }
    return { ...bounds, contents, variable: variable ?? null, place: isPlace ? (array.place ?? null) : null }
  }

  /** The parts that the database can measure; those of other variables are among what the variables are made of. */
  #termsOf(written: string, times: number, isBytes: boolean): readonly Term[] {
    this.work.spend(1)
    if (written === CONSTANT || times <= 0) return []
    if (written.startsWith(PIECES)) {
      const [part = '', separator = '']: readonly string[] = JSON.parse(written.slice(1))
      return this.#isMeasured(part)
        ? [{ part, times, by: 'length', separator }]
        : this.#termsOf(part, times * LEAST_BYTES, true)
    }
    if (this.#isMeasured(written)) return [{ part: written, times, by: isBytes ? 'bytes' : 'length' }]
    const { parts = [], place } = this.#origins.get(headOf(written)) ?? {}
    if (place !== undefined) return this.#termsOf(place + written.slice(headOf(written).length), times, true)
    return [...parts].flatMap(([origin, often]) => this.#termsOf(origin, times * Math.max(1, often), true))
  }

  #isMeasured(part: string): boolean {
    const name = headOf(part)
    return isStored(part) || this.#nest.loops.some(({ variable }) => variable === name)
  }

  /** Counts the work of the guard in `body`, but not the work of the database. */
  trial<T>(body: () => T): T {
    this.#trials++
    try {
      return body()
    } finally {
      this.#trials--
    }
  }

  /** A new name for a loop variable; `bytes` is its size, `of` is what it is made of. */
  variable(bytes: number, of?: Origin): string {
    const name = String(++this.#variables)
    this.#sizes.set(name, bytes)
    if (of !== undefined) this.#origins.set(name, of)
    return name
  }

  /** Counts steps for each element of an array. */
  elements(array: Extent, steps: number): void {
    this.loop(array.items, () => this.turn(steps), { array })
  }

  /** Counts what mongod keeps for each element of an array. */
  builds(array: Extent, bytes: number): void {
    this.loop(array.items, () => this.build(bytes), { array })
  }

  /** Counts an operator that reads a whole value and may copy it. */
  read(extent: Extent, times = 1): void {
    if (this.#trials > 0 || times <= 0) return
    // Each element may hold all parts.
    const length = isShared(extent) ? null : this.#loopOver({ array: extent })
    const loops = length === null ? this.#nest.loops : [...this.#nest.loops, { ...length, place: null, contents: [] }]
    for (const [part, often] of extent.parts) {
      const each = length === null ? often : Math.max(1, often / Math.max(1, extent.items))
      for (const term of this.#termsOf(part, often <= 0 ? 0 : each * times * this.#fixed, true))
        this.#reads.push({ loops, part: term.part, times: term.times })
    }
  }

  /** Counts steps for each byte of a text, or for each pair of bytes of two texts. */
  long(texts: readonly Extent[], steps: number): void {
    if (this.#trials > 0) return
    const loops = texts.map((text): Loop => {
      const bounds = isShared(text) ? text.parts : countsOf(text)
      const terms = [...bounds].flatMap(([part, often]) => this.#termsOf(part, often, true))
      const constant = (terms.length === 0 ? this.bytesOf(text) : (text.counts?.get(CONSTANT) ?? 0)) / LEAST_BYTES
      const degree = isShared(text) ? 1 : (text.degree ?? 1)
      return { terms, constant, degree, place: null, contents: [], variable: null }
    })
    if (loops.every(({ terms }) => terms.length === 0)) return
    const all = steps * this.#fixed * LEAST_BYTES ** texts.length
    this.#nests.push({ loops: [...this.#nest.loops, ...loops], steps: all })
  }

  /** Counts arrays that are built anew. Their elements are kept once, however many arrays hold them. */
  copied({ parts }: Extent): void {
    if (this.#trials > 0) return
    for (const [part, often] of parts) {
      for (const term of this.#termsOf(part, often * COPY_GROWS, true)) {
        if (isStored(term.part)) this.#reads.push({ loops: [], part: term.part, times: term.times })
      }
    }
  }

  bytesOf({ bytes, parts }: Extent): number {
    let total = bytes
    this.work.spend(parts.size)
    for (const [part, times] of parts) total += times * (this.#sizes.get(headOf(part)) ?? 0)
    return total
  }

  /** Returns the extent of a new value. Throws Refusal if the value is too large. */
  made(extent: Extent): Extent {
    this.work.spend(extent.parts.size)
    if (this.#trials > 0) return extent
    const bytes = this.bytesOf(extent)
    if (bytes > BYTES_MAX) throw tooLarge('size', bytes)
    if (bytes > LARGE_BYTES) this.#load.keep(bytes)
    return extent
  }
}

/** Values of so many bytes are limited together. */
const LARGE_BYTES = 1024 * 1024
const KEPT_MAX = 512 * 1024 * 1024

/** The variable of a part. */
function headOf(part: string): string {
  const dot = part.indexOf('.')
  return dot === -1 ? part : part.slice(0, dot)
}

/** What a loop runs over. */
interface Looped {
  readonly array: Extent
  /** The element. */
  readonly variable?: string
  /** The loop runs over what is below the array, at any depth. */
  readonly below?: true
}

/** mongod takes so many times the stored bytes of an array that it builds anew. */
const COPY_GROWS = 3
/** Bytes that an iteration keeps, for a step. */
export const STEP_BUILDS = 20

/** Returns the extent of a value without variables. Throws Refusal if the value is too large. */
export function within(extent: Extent): Extent {
  if (extent.bytes <= BYTES_MAX) return extent
  throw tooLarge('size', extent.bytes)
}

export function tooLarge(name: string, bytes: number): Error {
  const size = bytes < 1e15 ? `${Math.ceil(bytes / 1024 / 1024)} MiB` : 'more than any memory holds'
  return refusedGrowth(
    name,
    `a value of the query may grow to about ${size}; the limit is ${BYTES_MAX / 1024 / 1024} MiB`,
    'Repeat a value fewer times: put it into $concat, $concatArrays, an array or an object once, not again in every stage.',
  )
}
