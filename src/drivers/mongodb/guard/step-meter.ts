// Counts the steps that a query takes in the database for one document, multiplied by the loops around them, and finds the
// largest value. mongod checks for a cancel between documents (old versions: every 128 documents of a pipeline), never
// within an operator. The work for one document must therefore be small before the query is sent.
import { isStored, ITEMS, lengthsOf, type Extent } from './value-size.ts'
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

/** An array of stored documents that a loop runs over, and its estimated length. */
export interface Over {
  readonly parts: readonly string[]
  readonly items: number
  readonly variable?: string
}

/** Loops whose lengths only stored documents tell. */
export interface Turn {
  readonly parts: readonly string[]
  /** The estimated length. */
  readonly items: number
  /** The loop runs over what is below the parts, at any depth: it is bounded by their bytes. */
  readonly isBelow: boolean
  /** The loop variables that are elements of it. */
  readonly variables: readonly string[]
}

/** Steps that a query takes in each iteration of these loops. */
export interface Turned {
  readonly over: readonly Turn[]
  readonly steps: number
}

/** A part of stored documents that the query reads `times` times in each iteration of the loops around it. */
export interface Read {
  readonly part: string
  readonly over: readonly Over[]
  readonly times: number
}

function keyOf(part: string, over: readonly Over[]): string {
  return JSON.stringify([part, ...over.map(({ parts }) => parts)])
}

/** The work of all stages of one query for one document. */
export class Load {
  readonly work: Work
  /** The assumed length of arrays that $push, $lookup and similar operators gather. */
  readonly #length: number
  readonly #reads = new Map<string, Read>()
  readonly #turned = new Map<string, Turned>()
  /** The most copies of each part in a value that is computed on the way. */
  readonly #copies = new Map<string, number>()
  /** The estimated lengths of stored parts. */
  readonly lengths = new Map<string, number>()
  #gathers = false
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

  /** One entry for each part and the loops around it. */
  get reads(): readonly Read[] {
    const all = new Map(this.#reads)
    for (const [part, copies] of this.#copies) {
      const key = keyOf(part, [])
      all.set(key, { part, over: [], times: Math.max(copies, all.get(key)?.times ?? 0) })
    }
    return [...all.values()]
  }

  /** One entry for each nest of loops. */
  get turned(): readonly Turned[] {
    return [...this.#turned.values()]
  }

  turn({ over, steps }: Turned): void {
    const key = JSON.stringify(over.map(({ parts, isBelow }) => [parts, isBelow]))
    this.#turned.set(key, { over, steps: steps + (this.#turned.get(key)?.steps ?? 0) })
  }

  copied(part: string, times: number): void {
    this.#copies.set(part, Math.max(times, this.#copies.get(part) ?? 0))
  }

  read({ part, over, times }: Read): void {
    const key = keyOf(part, over)
    this.#reads.set(key, { part, over, times: times + (this.#reads.get(key)?.times ?? 0) })
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

/** Counts the work of one stage. */
export class Meter {
  readonly work: Work
  readonly #load: Load
  readonly #sizes = new Map<string, number>()
  /** The estimated lengths of parts of variables. */
  readonly #lengths = new Map<string, number>()
  /** The arrays whose elements the loop variables are. */
  readonly #origins = new Map<string, Pick<Extent, 'parts' | 'items'>>()
  #over: readonly Over[] = []
  #turns: readonly Turn[] = []
  #turnSteps = 0
  #worst = 0
  #loops = 1
  #trials = 0
  #tried = 0
  #variables = 0

  constructor(load: Load) {
    this.#load = load
    this.work = load.work
  }

  /** The steps that the stage takes in a bad case. */
  get worst(): number {
    return this.#worst
  }

  /** The assumed length of arrays gathered from documents. */
  gathered(): number {
    return this.#load.gathered()
  }

  /** Throws Refusal if there are too many steps. */
  step(units = 1, worst = units): void {
    this.work.spend(1)
    if (this.#trials > 0) {
      this.#tried += units * this.#loops
      return
    }
    this.#worst += worst * this.#loops
    this.#turnSteps += units * this.#loops
    this.#load.add(units * this.#loops)
  }

  /** Counts steps that only matter where stored documents tell how many iterations there are. */
  turn(steps: number): void {
    if (this.#trials === 0) this.#turnSteps += steps * this.#loops
  }

  /** Counts what each iteration keeps in memory, as turn() does. */
  build(bytes: number): void {
    this.turn(bytes / STEP_BUILDS)
  }

  /** Counts `body` once for each of `items` elements; `of` is their array, if known. */
  loop<T>(items: number, body: () => T, of?: Looped): T {
    const [before, around] = [this.#loops, this.#over]
    const parts = [...(of?.array.parts.keys() ?? [])].filter(isStored)
    this.#loops *= items
    if (parts.length > 0 && of?.below !== 'document') this.#over = [...around, { ...of, parts, items }]
    try {
      return this.#turning(of === undefined ? this.#turns : this.#entered(items, of), body)
    } finally {
      this.#loops = before
      this.#over = around
    }
  }

  /** Records the steps of `body` under these loops, without those of the loops in it. */
  #turning<T>(turns: readonly Turn[], body: () => T): T {
    if (turns === this.#turns) return body()
    const [around, steps] = [this.#turns, this.#turnSteps]
    this.#turns = turns
    this.#turnSteps = 0
    try {
      return body()
    } finally {
      const often = turns.reduce((all, { items }) => all * Math.max(1, items), 1)
      if (this.#turnSteps > 0) this.#load.turn({ over: turns, steps: this.#turnSteps / often })
      this.#turns = around
      this.#turnSteps = steps
    }
  }

  /** Notes how long a stored value, or a value in a variable, is estimated to be. */
  seen({ parts, counts, items }: Extent): void {
    const [only, ...others] = parts
    if (only === undefined || others.length > 0 || only[1] !== 1 || counts !== undefined) return
    const [part] = only
    const lengths = isStored(part) ? this.#load.lengths : this.#lengths
    lengths.set(part, Math.min(items, lengths.get(part) ?? Infinity))
  }

  /**
   * The length that an array is estimated to have by the lengths of the parts that bound it. If it has more elements, as
   * `$concatArrays` of a part with itself, the rest counts for each turn.
   */
  #lengthBy(array: Extent, items: number): number {
    let length = 0
    for (const part of lengthsOf(array)) length += this.#load.lengths.get(part) ?? this.#lengths.get(part) ?? ITEMS
    return Math.max(1, Math.min(items, length ** (array.degree ?? 1)))
  }

  /** The loops around the body of a loop. */
  #entered(all: number, { array, variable, below }: Looped): readonly Turn[] {
    this.seen(array)
    const items = this.#lengthBy(array, all)
    const found = new Set<string>()
    const variables = variable === undefined ? [] : [variable]
    let turns = this.#turns
    for (const part of lengthsOf(array)) {
      const [name = ''] = part.split('.', 1)
      const at = turns.findIndex((turn) => turn.variables.includes(name))
      if (at === -1) for (const each of this.#storedIn(part)) found.add(each)
      // An array in an element: all such arrays together are below the array of the loop.
      else turns = turns.flatMap((turn, n) => (n === at ? belowOf(turn, items, variables, array.degree) : [turn]))
    }
    if (found.size === 0) return turns
    const isBelow = below !== undefined || array.isSpread === true
    const { degree = 1 } = array
    const turn = { parts: [...found], items: items ** (1 / degree), isBelow, variables }
    return [...turns, ...Array.from({ length: degree }, () => turn)]
  }

  /** The stored parts that a part of a variable can be. */
  #storedIn(part: string): readonly string[] {
    this.work.spend(1)
    if (isStored(part)) return [part]
    const [name = '', ...path] = part.split('.')
    const parts = [...(this.#origins.get(name)?.parts.keys() ?? [])].flatMap((each) => this.#storedIn(each))
    const named = parts.filter((each) => path.length > 0 && each.split('.')[1] === path[0])
    return named.length > 0 ? named : parts
  }

  /** Counts the work of the guard in `body`, but not the work of the database, which it returns. */
  trial<T>(body: () => T): { readonly value: T; readonly steps: number } {
    const [loops, tried] = [this.#loops, this.#tried]
    this.#trials++
    this.#loops = 1
    this.#tried = 0
    try {
      const value = body()
      return { value, steps: this.#tried }
    } finally {
      this.#trials--
      this.#loops = loops
      this.#tried = tried
    }
  }

  /** A new name for a loop variable; `bytes` is its size, `of` is the array whose element it is. */
  variable(bytes: number, of?: Pick<Extent, 'parts' | 'items'>): string {
    const name = String(++this.#variables)
    this.#sizes.set(name, bytes)
    if (of !== undefined) this.#origins.set(name, of)
    return name
  }

  /** Counts an operator that reads a whole value and may copy it. */
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
      // All elements together are the whole array.
      const others = over.filter((each) => each.variable !== variable)
      this.#read(origin.parts, (often * times) / Math.max(1, origin.items), others)
    }
  }

  /** Counts copies of stored arrays. Loops may keep the copies of all iterations. */
  copied({ parts }: Extent): void {
    if (this.#trials > 0) return
    for (const [part, times] of parts) if (isStored(part)) this.#load.copied(part, times * this.#loops * COPY_GROWS)
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

  /** Returns the extent of a new value. Throws Refusal if the value is too large. */
  made(extent: Extent): Extent {
    this.work.spend(extent.parts.size)
    if (this.#trials > 0) return extent
    const bytes = this.bytesOf(extent)
    if (bytes > BYTES_MAX) throw tooLarge('size', bytes)
    return extent
  }
}

function belowOf(turn: Turn, items: number, variables: readonly string[], degree = 1): readonly Turn[] {
  const own = {
    ...turn,
    isBelow: true,
    items: turn.items * Math.max(1, items),
    variables: [...turn.variables, ...variables],
  }
  const again = Array.from({ length: degree - 1 }, () => ({ ...own, items: 1, variables: [] }))
  return [own, ...again]
}

/** What a loop runs over. */
interface Looped {
  readonly array: Extent
  /** The element. */
  readonly variable?: string
  /** The loop runs over the objects below an array, or in a document, at any depth. */
  readonly below?: 'array' | 'document'
}

/** mongod takes so many times the stored bytes of an array that it builds anew. */
const COPY_GROWS = 3
/** Bytes that an iteration keeps, for a step. */
const STEP_BUILDS = 20

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
