// Counts the steps that a query takes in the database for one document, multiplied by the enclosing loops, and the
// bytes of the values that it makes. mongod checks for a cancel between documents (old versions: every 128 documents),
// but never within an operator. So either the work for one document is small, or the database measures it before the
// stage.
import {
  constant,
  DEGREE_MAX,
  HUGE,
  isConstant,
  NONE,
  overAll,
  plus,
  scaled,
  sizeOf,
  withSize,
  type Amount,
  type Size,
} from './amount.ts'
import type { Collation } from './collation.ts'
import { bytesAt, isStored, longestAt, type Extent } from './value-size.ts'
import { refusedLimit } from '../refusals/refusal.ts'
import type { BsonDocument } from '../../confined-query.ts'
import type { Work } from './work-budget.ts'

/** The limit for one document, about 0.2 s. A step takes mongod about 50 ns. */
export const STEPS_MAX = 4_000_000
/** Old versions of mongod process this many documents between two checks for a cancel. */
export const UNSEEN = 128
/** The limit for one value, as far as the query alone decides how large it is. */
const BYTES_MAX = 64 * 1024 * 1024
/** The limit for all values of all stages. */
const KEPT_MAX = 512 * 1024 * 1024
/** The bytes that mongod writes in a step. */
const BYTES_WRITTEN = 100

/**
 * The limit on comparisons of alternative values in the filters of a query. It is reached with 550 conditions of one
 * value each. For each condition, the planner compares its values with all values that it has collected for the path. A
 * comparison takes up to 400 ns for each index, and no timeout ends the planner.
 */
const PAIRS_MAX = 150_000

/**
 * The limit on values that the planner copies. mongod 6.0 plans a filter as alternatives: it copies the conditions
 * beside an $or into each branch of the $or, for each plan. A value takes up to 1 µs and 700 bytes in each copy, and no
 * timeout ends the planner.
 */
const COPIES_MAX = 300_000
/** A condition, and a branch beside which there is a condition, take as long as this many more values. */
const CONDITION_COPIED = 4
/** This many bytes of a value take as long as one more value. */
export const BYTES_COPIED = 500
/** This many steps take as long as one more value. */
const STEPS_COPIED = 20
/** A comparison of an excluded value or of an array takes up to 300 ns for each index, as long as two values. */
const PAIR_COPIES = 2

/**
 * The limit on conditions in the $or of a query that has more than one $or. The planner makes up to 64 plans from the
 * choices between indexes in each $or, and copies the whole filter for each plan. A condition takes up to 2 µs in each
 * plan, and no timeout ends the planner. With a single $or, there are only 10 plans.
 */
const CHOSEN_MAX = 5_000

/**
 * The limit on different paths in the filters of a query. For a wildcard index, the planner compares each condition
 * with each path of the filter. Newer versions compare each pair of paths for each compound wildcard index. With two
 * such indexes, 980 paths took 5 s, and no timeout ended it.
 */
const PATHS_MAX = 500

/** The number of plans that the planner makes for a query with this many $or. */
function plansOf(choices: number): number {
  return choices === 0 ? 1 : choices === 1 ? 10 : 64
}

/** Returns how often the planner copies a condition beside this many $or with so many branches. */
export function copiesBeside(choices: number, branches: number): number {
  return plansOf(choices) * Math.max(1, branches)
}

/** Counts what the planner copies for conditions that must all be true. */
export class Conjunction {
  #values = 0
  /** The comparisons of the conditions with each other. */
  #compared = 0
  #exclusions = 0
  #excluded = 0
  #arrays = 0
  /** The arrays in the branches of the $or. */
  #arraysWithin = 0
  /** The branches of the longest $or. */
  #branches = 0
  /** The values that are copied in the branches of the $or. */
  #within = 0

  /** The number of values that the planner copies for each plan. */
  get copies(): number {
    const beside = this.#values === 0 ? 0 : this.#branches * (CONDITION_COPIED + this.#values)
    return this.#within + beside + this.#compared * Math.max(1, this.#branches)
  }

  /**
   * Adds a test with this many values. mongod may make several conditions of it. `steps` are those of a collation, which
   * reads the values again for each copy.
   */
  condition(values: number, bytes: number, { steps = 0, conditions = 1 } = {}): void {
    this.#values += conditions * CONDITION_COPIED + values + bytes / BYTES_COPIED + steps / STEPS_COPIED
  }

  /** The planner makes an interval between each two excluded values. For each condition, it makes all intervals again. */
  exclude(values: number): void {
    this.#compared += PAIR_COPIES * this.#excluded
    this.#exclusions++
    this.#excluded += values
  }

  /** For each array in the list of an $in, the planner sorts all intervals again. */
  list(arrays: number): void {
    this.#compared += sorted(this.#arrays + arrays) - sorted(this.#arrays)
    this.#arrays += arrays
  }

  /** Adds an $or with these branches. The planner may merge their arrays. */
  either(branches: readonly Conjunction[]): void {
    let [scans, arrays] = [0, 0]
    for (const branch of branches) {
      scans += Math.max(1, branch.#branches)
      arrays += branch.#arrays + branch.#arraysWithin
      this.#within += branch.copies
    }
    this.#within += sorted(arrays)
    this.#branches = Math.max(this.#branches, scans)
    this.#arraysWithin += arrays
  }

  /** Adds an $in on a measurement of a time series. mongod rewrites it to an $or of as many branches. */
  rewritten(values: number): void {
    this.#branches = Math.max(this.#branches, values)
  }

  /** Adds other conditions that must be true, too. */
  and(other: Conjunction): void {
    this.#compared +=
      other.#compared + PAIR_COPIES * (this.#excluded * other.#exclusions + this.#arrays * other.#arrays)
    this.#values += other.#values
    this.#exclusions += other.#exclusions
    this.#excluded += other.#excluded
    this.#arrays += other.#arrays
    this.#arraysWithin += other.#arraysWithin
    this.#branches = Math.max(this.#branches, other.#branches)
    this.#within += other.#within
  }
}

function sorted(arrays: number): number {
  return (PAIR_COPIES * arrays * (arrays + 1)) / 2
}

/** The parts of a filter's condition that take the planner long. */
export interface Planned {
  readonly all: Conjunction
  /** The number of values of each condition that stands alone in an $or, and of each comparison in an $expr. */
  readonly alternatives: readonly number[]
  /** A 1 for each branch of an $or that only compares a path with an array. */
  readonly branches: readonly number[]
  /** The paths that the filter tests. */
  readonly paths: ReadonlySet<string>
  /** The number of $or with several branches. */
  readonly choices: number
  /** The number of conditions in these $or. */
  readonly chosen: number
}

/** Counts the comparisons of values: the values of each condition are compared with all values so far. */
class Pairs {
  #values = 0
  #pairs = 0

  add(conditions: readonly number[]): number {
    for (const values of conditions) {
      this.#values += values
      this.#pairs += this.#values
    }
    return this.#pairs
  }

  compared(plans = 1): string {
    return `the database makes about ${this.#pairs * plans} comparisons before it can begin; the limit is ${PAIRS_MAX}`
  }
}

/** The work of all stages for one document, as far as the query alone decides it. */
export class Load {
  readonly work: Work
  /** Null if texts are compared byte by byte. */
  readonly collation: Collation | null
  #steps = 0
  #kept = 0
  #pipeline: Filters = { all: new Conjunction(), joined: [] }
  /** The conditions of each pipeline. mongod plans the pipeline of a $lookup or $unionWith separately. */
  readonly #conjunctions: Conjunction[] = [this.#pipeline.all]
  /** True if a collection of the query is a time series. */
  #readsSeries = false
  readonly #alternatives = new Pairs()
  readonly #branches = new Pairs()
  readonly #paths = new Set<string>()
  /** The names of the conditions of each filter that were counted. */
  readonly #planned = new Map<BsonDocument, Set<string>>()
  #choices = 0
  #chosen = 0

  constructor(work: Work, collation: Collation | null) {
    this.work = work
    this.collation = collation
  }

  /** Throws Refusal if there are too many steps. */
  add(steps: number): void {
    this.#steps += steps
    if (this.#steps <= STEPS_MAX) return
    throw refusedLimit(
      'steps',
      `the query takes about ${rounded(this.#steps)} or more steps for one document; the limit is ${STEPS_MAX}`,
      'Loop over fewer elements: shorten the input of $map, $filter and $reduce with $slice or $filter, nest fewer loops, or use $unwind and $group.',
    )
  }

  /** Counts the filters of a pipeline or a join apart. */
  apart<T>({ isSeries }: { readonly isSeries: boolean }, body: () => T): T {
    const before = this.#pipeline
    const own: Filters = { all: new Conjunction(), joined: [] }
    this.#pipeline = own
    this.#readsSeries ||= isSeries
    this.#conjunctions.push(own.all)
    try {
      return body()
    } finally {
      before.joined.push(own.all, ...own.joined)
      this.#pipeline = before
    }
  }

  /** True if mongod may rewrite a list of values to an $or. It moves filters into the joins before them. */
  get readsSeries(): boolean {
    return this.#readsSeries
  }

  /**
   * Counts a condition of a filter once, even if it is printed both before and after the projection. Throws Refusal if
   * the planner takes too long.
   */
  plan(filter: BsonDocument, name: string, { all, alternatives, branches, paths, choices, chosen }: Planned): void {
    const names = this.#planned.get(filter) ?? new Set()
    if (names.has(name)) return
    this.#planned.set(filter, names.add(name))
    if (this.#alternatives.add(alternatives) > PAIRS_MAX)
      throw refusedLimit(
        'alternatives',
        `for the $or and $expr of the query, ${this.#alternatives.compared()}`,
        'Write one $in with a list of values instead of many conditions on a path.',
      )
    for (const path of paths) this.#paths.add(path)
    if (this.#paths.size > PATHS_MAX)
      throw refusedLimit(
        'paths',
        `the filters of the query test ${this.#paths.size} different paths; the limit is ${PATHS_MAX}`,
        'Test fewer paths, or send several queries.',
      )
    this.#choices += choices
    // mongod moves a $match into the joins before it.
    for (const each of [this.#pipeline.all, ...this.#pipeline.joined]) each.and(all)
    const copies = this.#conjunctions.reduce((sum, each) => sum + each.copies, 0) * plansOf(this.#choices)
    if (copies > COPIES_MAX)
      throw refusedLimit(
        'copies',
        `the database copies or compares about ${Math.round(copies)} values of the filters before it can begin; the limit is ${COPIES_MAX}`,
        'Use shorter lists, fewer branches in each $or, and fewer $or. Write one $nin with a list of values instead of many conditions on a path. Or send several queries.',
      )
    // The $or of the branches is one of the choices itself.
    const others = plansOf(Math.max(this.#choices - 1, 0))
    if (this.#branches.add(branches) * others > PAIRS_MAX)
      throw refusedLimit(
        'arrays',
        `for the arrays in the $or of the query, ${this.#branches.compared(others)}`,
        'Compare fewer arrays, or use only one $or.',
      )
    this.#chosen += chosen
    if (this.#choices < 2 || this.#chosen <= CHOSEN_MAX) return
    throw refusedLimit(
      'alternatives',
      `the $or of the query have ${this.#chosen} conditions together; with more than one $or, the limit is ${CHOSEN_MAX}`,
      'Write one $in with a list of values instead of many conditions on a path, or send several queries.',
    )
  }

  /** Throws Refusal if an amount of the stage is HUGE, or if all stages together need too much memory. */
  settle({ steps, kept }: StageWork): void {
    if (steps.constant > STEPS_MAX) this.add(steps.constant)
    this.#kept += kept.constant
    if (this.#kept > KEPT_MAX) throw tooLarge('sizes', 'all values of the query', this.#kept, KEPT_MAX)
  }
}

/** The filters of a pipeline that were counted so far. */
interface Filters {
  readonly all: Conjunction
  /** The filters of the joins that come earlier in the pipeline. */
  readonly joined: Conjunction[]
}

function rounded(n: number): string {
  return n < 1e15 ? String(Math.round(n)) : 'countless'
}

export interface StageWork {
  readonly steps: Amount
  /** The memory of the values that exist at the same time. */
  readonly kept: Amount
  /** The bytes of the values, with everything in them. */
  readonly bytes: Amount
}

/** The steps for each byte of an array that mongod parses. */
const PARSE_STEPS = 1 / 10

/** What was counted before a loop began. */
type Open = Readonly<Record<keyof StageWork, readonly (Amount | number)[]>>

export class Meter {
  readonly work: Work
  readonly #load: Load
  readonly #isRead: boolean
  /** The stored arrays that the stage reads. */
  readonly #parsed = new Map<string, Amount>()
  #steps: (Amount | number)[] = []
  #kept: (Amount | number)[] = []
  #bytes: (Amount | number)[] = []
  /** The product of the constant lengths of the enclosing loops. */
  #loops = 1
  #trials = 0
  #places = 0
  #depth = 0

  /** `isRead` is true if mongod has just read the document from the collection. */
  constructor(load: Load, isRead: boolean) {
    this.#load = load
    this.#isRead = isRead
    this.work = load.work
  }

  /** Null if texts are compared byte by byte. */
  get collation(): Collation | null {
    return this.#load.collation
  }

  get readsSeries(): boolean {
    return this.#load.readsSeries
  }

  plan(filter: BsonDocument, name: string, condition: Planned): void {
    this.#load.plan(filter, name, condition)
  }

  /**
   * Counts the comparison of a value with a value of another document. If mongod may not check for a cancel between the
   * documents, the steps count UNSEEN times.
   */
  compareKept(steps: Amount): void {
    this.step(this.#isRead ? steps : scaled(steps, UNSEEN))
  }

  get stage(): StageWork {
    const { steps, ...sizes } = this.#counted
    return { ...sizes, steps: plus(steps, ...this.#parsed.values()) }
  }

  get #counted(): StageWork {
    return { steps: plus(...this.#steps), kept: plus(...this.#kept), bytes: plus(...this.#bytes) }
  }

  /** Counts steps. Throws Refusal if there are too many. */
  step(steps: Amount | number = 1): void {
    this.#spend(steps)
    if (this.#trials > 0) return
    this.#steps.push(steps)
    this.#load.add((typeof steps === 'number' ? steps : steps.constant) * this.#loops)
  }

  /** mongod parses a stored array once for each copy of the document. */
  parse({ place, bytes, isSingle }: Extent): void {
    if (this.#isRead || isSingle || place === null || !isStored(place) || isConstant(bytes)) return
    this.#parsed.set(place, scaled(bytes, PARSE_STEPS))
  }

  /**
   * Counts steps inside a loop. Outside a loop, these steps are never more than the bytes of the document, so they are
   * ignored.
   */
  again(steps: Amount): void {
    if (this.#depth > 0) this.step(steps)
  }

  /** Counts the value that a stage makes. Throws Refusal if it is too large. */
  made(extent: Extent): Extent {
    this.#spend(extent.kept)
    if (this.#trials > 0) return extent
    if (extent.bytes.constant > BYTES_MAX)
      throw tooLarge('size', 'a value of the query', extent.bytes.constant, BYTES_MAX)
    this.step(scaled(extent.kept, 1 / BYTES_WRITTEN))
    this.#kept.push(extent.kept)
    this.#bytes.push(extent.bytes)
    return extent
  }

  #spend(amount: Amount | number): void {
    this.work.spend(typeof amount === 'number' ? 1 : 1 + amount.terms.size)
  }

  /** Returns a new size, for the element of a loop. */
  element(): Size {
    return bytesAt(this.place())
  }

  place(): string {
    return String(++this.#places)
  }

  /** Counts `body` once for each element of an array. In `body`, `own` is the size of the element. */
  loop<T>(array: Pick<Extent, 'items' | 'bytes'> & { readonly place?: string | null }, own: Size, body: () => T): T {
    const [before, loops] = [this.#open(), this.#loops]
    this.#loops *= array.items.constant
    this.#depth++
    try {
      return body()
    } finally {
      this.#depth--
      const { steps, kept, bytes } = this.#counted
      const whole = (amount: Amount): Amount => withSize(amount, own, array.bytes)
      this.#spend(steps)
      this.#loops = loops
      // mongod frees the values of one iteration before the next one. The result of the loop is counted as a value.
      this.#close(before, {
        steps: overAll(steps, own, { ...array, ...longestIn(array.place) }),
        kept: whole(kept),
        bytes: whole(bytes),
      })
    }
  }

  repeat<T>(times: number, body: () => T): T {
    return this.loop({ items: constant(times), bytes: NONE }, this.element(), body)
  }

  /** Also returns the work that `body` has counted. */
  workOf<T>(body: () => T): readonly [made: T, work: StageWork] {
    const before = this.#open()
    try {
      const made = body()
      return [made, this.#counted]
    } finally {
      this.#close(before, this.#counted)
    }
  }

  #open(): Open {
    const before = { steps: this.#steps, kept: this.#kept, bytes: this.#bytes }
    this.#steps = []
    this.#kept = []
    this.#bytes = []
    return before
  }

  #close(before: Open, { steps, kept, bytes }: StageWork): void {
    this.#steps = [...before.steps, steps]
    this.#kept = [...before.kept, kept]
    this.#bytes = [...before.bytes, bytes]
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
}

/** Returns the size of the longest element, if the database can measure it before the stage. */
function longestIn(place: string | null | undefined): { readonly longest?: Amount } {
  return place === null || place === undefined || !isStored(place) ? {} : { longest: sizeOf(longestAt(place)) }
}

function tooLarge(name: string, what: string, bytes: number, most: number): Error {
  const limit = `the limit is ${most / 1024 / 1024} MiB`
  const size =
    bytes < HUGE
      ? `to about ${Math.ceil(bytes / 1024 / 1024)} MiB`
      : `beyond any memory, because more than ${DEGREE_MAX} stored sizes multiply`
  return refusedLimit(
    name,
    `${what} may grow ${size}; ${limit}`,
    'Repeat a value fewer times: put it into $concat, $concatArrays, an array or an object once, not again in every stage.',
  )
}
