// What one stage makes the database do for one document: steps, counted with every loop around them, and the largest value.
// mongod looks for a cancel between documents, often only every 128 of them, and never within an expression; so a stage
// must be small enough for one document before it is sent.
import type { Extent } from './extent.ts'
import { refusedLimit } from './refusal.ts'
import type { Work } from './work.ts'

/** mongod takes 50 to 150 ns for a step: 128 documents take some 2 s. */
const STEPS_MAX = 200_000
/** Four times what a document may have. Loops over stored values are estimates. */
export const BYTES_MAX = 64 * 1024 * 1024

export class Meter {
  readonly work: Work
  readonly #sizes = new Map<string, number>()
  #steps = 0
  #loops = 1
  #trials = 0
  #variables = 0

  constructor(work: Work) {
    this.work = work
  }

  /** Throws Refusal where the steps are too many. */
  step(units = 1): void {
    this.work.spend(1)
    if (this.#trials > 0) return
    this.#steps += units * this.#loops
    if (this.#steps <= STEPS_MAX) return
    throw refusedLimit(
      'steps',
      `a stage takes about ${Math.round(this.#steps)} steps or more for one document; ${STEPS_MAX} is the most`,
      'Loop over fewer elements: shorten what $map, $filter and $reduce run over ($slice, $filter first), nest fewer of them in each other, or $unwind and $group instead.',
    )
  }

  /** What is done once for each of so many elements. */
  loop<T>(items: number, body: () => T): T {
    const before = this.#loops
    this.#loops *= items
    try {
      return body()
    } finally {
      this.#loops = before
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

  /** A name for what a loop binds; `bytes` is how large that is. */
  variable(bytes: number): string {
    const name = String(++this.#variables)
    this.#sizes.set(name, bytes)
    return name
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

  /** A value that is made anew: the time to copy it, and that it is not too large. Throws Refusal. */
  made(extent: Extent): Extent {
    this.work.spend(extent.parts.size)
    if (this.#trials > 0) return extent
    const bytes = this.bytesOf(extent)
    this.step(extent.items / 20 + bytes / 10_000)
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
  return refusedLimit(
    name,
    `a value of the query may grow to about ${size}; ${BYTES_MAX / 1024 / 1024} MiB is the most`,
    'Repeat a value fewer times: put it once into $concat, $concatArrays, an array or an object, and not anew in every stage.',
  )
}
