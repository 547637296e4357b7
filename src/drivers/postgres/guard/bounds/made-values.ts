// Adds up the memory and the searches of all expressions of a query for one row. PostgreSQL frees the values of a row
// only after the row, and checks for a cancel only between rows: 1,000 calls on a value of a megabyte took 6 GB, and
// outlived the timeout by 16 s. The guard refuses a query whose constants alone exceed a limit. Only the database knows
// the lengths of stored values, and of values that a query collects from rows. For these, the sums tell which limits
// the guard must print into the query.
import { Refusal } from '../refusal.ts'

/**
 * The kind of a stored column, by its type. `fixed`: values are short. `text`: strings. `numeric`: numbers of any
 * length. `freed`: an operator that compares values frees its decompressed copies. `other`: all other types.
 */
export type StoredKind = 'fixed' | 'numeric' | 'text' | 'freed' | 'other'

/** A column of a table. */
export interface StoredColumn {
  readonly kind: StoredKind
  /** The sub-select that reads the table. */
  readonly table: object
  /** The memory of a value while it is written as text, divided by the bytes of the value. */
  readonly growth: number
  /** True if PostgreSQL may compute the value again at each use, because it replaces the column by its expression. */
  readonly isComputed: boolean
}

/** The copies of columns that a value contains: for each column, its number in `of`, times `by`. */
export interface Copied {
  readonly of: ReadonlyMap<StoredColumn, number>
  readonly by: number
}

/** How many copies of each column a query makes for one row. */
export interface StoredCopies {
  readonly of: ReadonlyMap<StoredColumn, number>
  /** The copies of all columns together. Of the branches of CASE, the one with the most copies counts. */
  readonly all: number
}

/** What expressions create and search. */
interface Counts {
  /** Bytes that come from constants. */
  readonly own: number
  /** Copies of stored values, of parameters and of collected values. */
  readonly copies: number
  /** How many of `copies` are of values whose column is not known. */
  readonly others: number
  /** How many of `copies` are of parameters. They do not count in `others`. */
  readonly params: number
  /** How many of `copies` are of values that a recursive query makes longer in each iteration. */
  readonly grown: number
  /** How many of `copies` are of collected values. */
  readonly collected: number
  /** Copies of collected values that have a limit each. They do not count in `collected`. */
  readonly measured: number
  /** The bytes of all constants that are searched for in stored values. */
  readonly sought: number
  /** The bytes of all constants that are searched for in collected values. */
  readonly soughtCollected: number
  /** Steps of searches and divisions whose operands come from constants. */
  readonly steps: number
  /** The number of products and quotients of two stored numbers. */
  readonly squares: number
  /** The digits of all constants that stored numbers are multiplied with. */
  readonly digits: number
  /** The number of calls whose work only the database can bound. */
  readonly bounded: number
  /** The sum of the limits, in bytes, of all calls on collected values. */
  readonly taken: number
}

export interface Made extends Counts {
  /** The copies and searches of each column of a table. */
  readonly ofColumns: Tally | undefined
}

/** The copies and searches of one value, of the entries `from` to `to` of a list, or of alternatives. */
type Tally =
  | { readonly columns: Copied; readonly copies: number; readonly sought: number }
  | { readonly all: readonly Tally[]; readonly from: number; readonly to: number; readonly times: number }
  | { readonly either: readonly Tally[] }

/** The limit on the bytes from constants in all values of a row. */
const OWN_MAX = 201_326_592
/** The limit on copies of other values. */
const COPIES_MAX = 6_000
/** The limit on copies of other values, including those that steps of the plan keep (countKept()). */
const KEPT_MAX = 65_536
/** The limit on the bytes of all copies of stored values in a row. */
export const STORED_MAX = 134_217_728
/** If the expressions of a query make at most this many copies of stored values, the values need no limit. */
const FREE_COPIES = 8
/** The same, if the copies that steps of the plan (except sorts) keep count too. */
const FREE_KEPT = 24
/** A column whose `growth` is greater has a limit even if its values are only sent. */
const MUCH_GROWTH = 16
/** The copies of a value that is sent: its text, and the message of the row. */
const SENT = 2
/** The limit on the bytes of all copies of collected values. */
const COLLECTED_MAX = 536_870_912
/** The limit on the bytes of all copies of values that recursive queries make. */
const GROWN_MAX = 268_435_456
/** Of COLLECTED_MAX, the part for copies of collected values that have a limit each. */
const MEASURED_BYTES = 268_435_456
/** The limits on searches: the bytes of the values times the bytes of the constants. */
const SOUGHT_MAX = 536_870_912
const SOUGHT_COLLECTED_MAX = 2_147_483_648
/** A search for this many bytes counts as one copy of the searched value. */
const SOUGHT_OF_A_COPY = SOUGHT_MAX / STORED_MAX
const STEPS_MAX = 1_073_741_824
/** The limit on the bytes of collected values that all calls together take: 64 calls of 4 MB. */
const TAKEN_MAX = 268_435_456
/** The steps of a division are the digits of one number times the digits of the other, divided by this. */
export const DIGITS_OF_A_STEP = 40
/** A limit of at least this many digits is not printed: the query then computes few products. */
const MANY_DIGITS = 40_000
/** Up to this many calls may each use their full bound. shareOf() lowers the bound of more calls. */
export const FREE_CALLS = 4
/** A bound of at most this size belongs to a call whose work grows with the square of the size. */
const SQUARED_BOUND = 5_000
const FREE_SQUARED_CALLS = 16

const NONE: Counts = {
  own: 0,
  copies: 0,
  others: 0,
  params: 0,
  grown: 0,
  collected: 0,
  measured: 0,
  sought: 0,
  soughtCollected: 0,
  steps: 0,
  squares: 0,
  digits: 0,
  bounded: 0,
  taken: 0,
}

export function isNothing({ ofColumns: _tally, ...counts }: Made): boolean {
  return Object.values(counts).every((count) => count === 0)
}

/** How many copies of stored values are in a value, of which columns, and copies of which parts of other values. */
interface Value {
  readonly times: number
  readonly columns?: Copied | undefined
  readonly parts?: Parts | undefined
  /** Set if the value may contain parameters. */
  readonly given?: number | undefined
  /** Set if a recursive query makes the value: how many of `times` the value itself counts. */
  readonly grown?: number | undefined
}

/** Copies of parts of values, by partOf(). All parts of a value together are no longer than the value. */
export type Parts = ReadonlyMap<string, number>

/** Returns the key of a part of a value in Parts. */
export function partOf(value: string, name: string): string {
  return `${value}\0${name}`
}

export class MadeValues {
  #made: Counts = NONE
  #countsKept = false
  #isLimited = false
  /** Entries are only appended, because a Tally refers to a range of entries. */
  #log: Tally[] = []
  readonly #sent: Tally[] = []
  /** The copies of each part. */
  readonly #ofPart = new Map<string, number>()
  /** For each value, the copies of that part which has the most. */
  readonly #ofValue = new Map<string, number>()
  /** For each part, the columns of the whole value. */
  readonly #wholes = new Map<string, Copied>()
  readonly #paramBytes: number

  /** `paramBytes` are the bytes that each parameter may have. */
  constructor(paramBytes: number) {
    this.#paramBytes = paramBytes
  }

  /** Adds what an expression makes. Throws Refusal. */
  add({ ofColumns, ...more }: Partial<Made>): void {
    if (ofColumns) this.#log.push(ofColumns)
    this.#made = eachOf(this.#made, { ...NONE, ...more }, (x, y) => x + y)
    const { own, others, params, steps } = this.#made
    if (own > OWN_MAX) throw tooMuch(`make ${Math.round(own)} bytes from constants`, OWN_MAX)
    const othersMax = this.#countsKept ? KEPT_MAX : COPIES_MAX
    if (others > othersMax) throw tooMuch(`make ${Math.round(others)} copies of values`, othersMax)
    const paramsMax = (OWN_MAX / this.#paramBytes) * (this.#countsKept ? KEPT_MAX / COPIES_MAX : 1)
    if (params > paramsMax) throw tooMuch(`make ${Math.round(params)} copies of long parameters`, Math.floor(paramsMax))
    if (steps > STEPS_MAX) throw tooMuch(`take ${Math.round(steps)} steps that cannot be cancelled`, STEPS_MAX)
  }

  /** Adds an expression that PostgreSQL evaluates `times` more times. Throws Refusal. */
  addAgain({ ofColumns, ...counts }: Made, times: number): void {
    if (times <= 0) return
    const again = ofColumns && { all: [ofColumns], from: 0, to: 1, times }
    this.add({ ...eachOf(counts, counts, (count) => count * times), ofColumns: again })
  }

  /** Call this after all expressions are added, before the copies that steps of the plan keep. */
  countKept(): void {
    this.#countsKept = true
    this.#limitFrom(FREE_COPIES)
  }

  /** Call this after all other steps of the plan are added, before the copies that a sort keeps. */
  countSorted(): void {
    this.#limitFrom(FREE_KEPT)
  }

  /** Notes that stored values need a limit, if more than `free` copies of them are added. */
  #limitFrom(free: number): void {
    const { copies, sought } = this.#made
    if (copies + sought / SOUGHT_OF_A_COPY <= free) return
    this.#isLimited ||= sumOf(readsOf(whole(this.#log), greatestOfEach)) > free
  }

  /**
   * Adds copies of a value. If the value contains parts of another value, one copy of each part counts as one copy of
   * that value, because all its parts together are no longer than the value. Throws Refusal.
   */
  addCopies(
    { columns, times, parts, given, grown }: Value,
    copies: number,
    { own = 0, isCollected = false, isMeasured = false } = {},
  ): void {
    if (times === 0) {
      this.add({ own })
      return
    }
    let sum = copies
    for (const [part, count] of parts ?? []) {
      const less = count - this.#copiesOf(part, count)
      const whole = this.#wholes.get(part)
      if (whole && less > 0) this.#log.push({ columns: whole, copies: -less, sought: 0 })
      sum -= less
    }
    sum = Math.max(sum, 0)
    const known = columns ? (copies / times) * copiesIn(columns) : 0
    const unknown = Math.max(sum - known, 0)
    const isParam = given !== undefined && !isCollected
    this.add({
      own,
      copies: sum,
      others: isParam ? 0 : unknown,
      params: isParam ? unknown : 0,
      grown: grown === undefined ? 0 : Math.max(copies, times) / grown,
      collected: isCollected && !isMeasured ? sum : 0,
      measured: isCollected && isMeasured ? sum : 0,
      ofColumns: columns && { columns, copies: copies / times, sought: 0 },
    })
  }

  /** Adds searches of a value for constants. Throws Refusal. */
  addSearch({ columns, times }: Value, sought: number, { steps = 0, isCollected = false } = {}): void {
    if (times === 0) {
      this.add({ steps })
      return
    }
    this.add({
      steps,
      sought,
      soughtCollected: isCollected ? sought : 0,
      ofColumns: columns && { columns, copies: 0, sought: sought / times },
    })
  }

  /** Notes a value that is sent as the table stores it. */
  addSent({ columns }: Value): void {
    if (columns) this.#sent.push({ columns, copies: SENT, sought: 0 })
  }

  /** Notes the columns of the value to which a part belongs. */
  notePart(part: string, whole: Copied): void {
    this.#wholes.set(part, whole)
  }

  /** Counts `times` more copies of a part. Returns how many copies of the whole value this adds. */
  #copiesOf(part: string, times: number): number {
    const value = part.slice(0, part.indexOf('\0'))
    const count = (this.#ofPart.get(part) ?? 0) + times
    const most = this.#ofValue.get(value) ?? 0
    this.#ofPart.set(part, count)
    this.#ofValue.set(value, Math.max(most, count))
    return Math.max(count - most, 0)
  }

  get copies(): number {
    return this.#made.copies
  }

  get own(): number {
    return this.#made.own
  }

  during<T>(run: () => T): { result: T; made: Made } {
    const [before, all] = [this.#made, this.#log]
    const from = all.length
    const result = run()
    const counts = eachOf(this.#made, before, (now, then) => now - then)
    const to = all.length
    return { result, made: { ...counts, ofColumns: to > from ? { all, from, to, times: 1 } : undefined } }
  }

  /**
   * Runs alternatives, such as the branches of CASE. PostgreSQL evaluates one of them for a row, so only the greatest
   * counts. What comes from constants is added up, because the planner computes the constants of all alternatives.
   */
  either<T>(alternatives: readonly (() => T)[]): T[] {
    const [before, log] = [this.#made, this.#log]
    let greatest = before
    const tallies: Tally[] = []
    const results = alternatives.map((run) => {
      this.#made = { ...before, own: this.#made.own, steps: this.#made.steps }
      this.#log = []
      const result = run()
      greatest = eachOf(greatest, this.#made, Math.max)
      if (this.#log.length > 0) tallies.push({ all: this.#log, from: 0, to: this.#log.length, times: 1 })
      return result
    })
    this.#made = greatest
    this.#log = log
    if (tallies.length > 0) log.push({ either: tallies })
    return results
  }

  /**
   * Returns how many copies of each column the query makes for a row, each copy times `growth` of its column. Searches
   * count as copies. Returns undefined if no limit is needed. `growth` is the greatest growth of a column.
   */
  storedCopies(growth: number): StoredCopies | undefined {
    if (!this.#isLimited && growth <= MUCH_GROWTH) return undefined
    const of = readsOf(whole(this.#log), greatestOfEach)
    const sent = readsOf(whole(this.#sent), greatestOfEach)
    const growing = [...of, ...sent].some(([{ growth }]) => growth > MUCH_GROWTH)
    if (!growing && !this.#isLimited) return undefined
    const all = asText(readsOf(whole(this.#log), greatestOfAll))
    const total = asText(of)
    for (const [column, count] of asText(sent)) {
      total.set(column, count + (total.get(column) ?? 0))
      all.set(column, count + (all.get(column) ?? 0))
    }
    return { of: total, all: sumOf(all) }
  }

  /** The maximum number of digits of a stored number. Undefined if the query computes few products of stored numbers. */
  get digitsMax(): number | undefined {
    const { squares, digits } = this.#made
    const product = STEPS_MAX * DIGITS_OF_A_STEP
    const most = Math.floor(Math.min(Math.sqrt(product / squares), product / digits))
    return most < MANY_DIGITS ? most : undefined
  }

  /** The maximum number of bytes that the query may collect. */
  get collectedMax(): number {
    const { collected, measured, soughtCollected } = this.#made
    const most = measured > 0 ? COLLECTED_MAX - MEASURED_BYTES : COLLECTED_MAX
    return Math.floor(Math.min(most / collected, SOUGHT_COLLECTED_MAX / soughtCollected))
  }

  /** The maximum number of bytes of each collected value that has its own limit. */
  get measuredMax(): number {
    return Math.floor(MEASURED_BYTES / this.#made.measured)
  }

  /** The maximum number of bytes of each value that a recursive query makes. */
  get grownMax(): number {
    return Math.floor(GROWN_MAX / this.#made.grown)
  }

  /** Returns the limit on a collected value of one call, lowered so that all calls together take at most TAKEN_MAX. */
  takenShareOf(most: number): number {
    return Math.floor(most * Math.min(1, TAKEN_MAX / this.#made.taken))
  }

  /** Returns the bound of one call, lowered so that all calls together do about the work of FREE_CALLS calls. */
  shareOf(most: number): number {
    const { bounded } = this.#made
    if (most <= SQUARED_BOUND) return Math.floor(most * Math.sqrt(Math.min(1, FREE_SQUARED_CALLS / bounded)))
    return Math.floor(most * Math.min(1, FREE_CALLS / bounded))
  }
}

/** Returns what two expressions make together. */
export function bothOf(a: Made, b: Made): Made {
  return { ...eachOf(a, b, (x, y) => x + y), ofColumns: joined(a.ofColumns, b.ofColumns, (all) => whole(all)) }
}

/** Returns the greater of each count of two expressions. */
export function greaterOf(a: Made, b: Made): Made {
  return { ...eachOf(a, b, Math.max), ofColumns: joined(a.ofColumns, b.ofColumns, (either) => ({ either })) }
}

function joined(a: Tally | undefined, b: Tally | undefined, by: (both: readonly Tally[]) => Tally): Tally | undefined {
  return a && b ? by([a, b]) : (a ?? b)
}

function whole(all: readonly Tally[]): Tally {
  return { all, from: 0, to: all.length, times: 1 }
}

/** Copies and searches of one column. */
interface Reads {
  copies: number
  sought: number
}

type Sums = ReadonlyMap<StoredColumn, Readonly<Reads>>

/** Adds a tally to `sums`, `times` times. `greatest` chooses what counts of alternatives. */
function tallied(
  tally: Tally,
  greatest: (alternatives: readonly Sums[]) => Sums,
  times = 1,
  sums = new Map<StoredColumn, Reads>(),
): Map<StoredColumn, Reads> {
  if ('columns' in tally) {
    const { columns, copies, sought } = tally
    for (const [column, count] of columns.of) {
      const all = count * columns.by * times
      addReads(sums, column, all * copies, all * sought)
    }
  } else if ('all' in tally) {
    for (let at = tally.from; at < tally.to; at += 1) {
      const each = tally.all[at]
      if (each) tallied(each, greatest, times * tally.times, sums)
    }
  } else {
    const most = greatest(tally.either.map((each) => tallied(each, greatest)))
    for (const [column, { copies, sought }] of most) {
      addReads(sums, column, copies * times, sought * times)
    }
  }
  return sums
}

function addReads(sums: Map<StoredColumn, Reads>, column: StoredColumn, copies: number, sought: number): void {
  const reads = sums.get(column)
  if (reads) {
    reads.copies += copies
    reads.sought += sought
  } else {
    sums.set(column, { copies, sought })
  }
}

/** Returns the greatest counts of each column. */
function greatestOfEach(alternatives: readonly Sums[]): Sums {
  const most = new Map<StoredColumn, Reads>()
  for (const [column, { copies, sought }] of alternatives.flatMap((sums) => [...sums])) {
    const before = most.get(column)
    most.set(column, {
      copies: Math.max(copies, before?.copies ?? 0),
      sought: Math.max(sought, before?.sought ?? 0),
    })
  }
  return most
}

/** Returns the counts of the alternative with the most copies. */
function greatestOfAll(alternatives: readonly Sums[]): Sums {
  let [most, greatest]: [Sums, number] = [new Map(), 0]
  for (const sums of alternatives) {
    const all = sumOf(asText(greaterReads(sums)))
    if (all > greatest) [most, greatest] = [sums, all]
  }
  return most
}

/** For each column, returns its copies, or its searches (as copies) if these are more. */
function readsOf(tally: Tally, greatest: (alternatives: readonly Sums[]) => Sums): Map<StoredColumn, number> {
  return greaterReads(tallied(tally, greatest))
}

function greaterReads(sums: Sums): Map<StoredColumn, number> {
  return new Map([...sums].map(([column, { copies, sought }]) => [column, Math.max(copies, sought / SOUGHT_OF_A_COPY)]))
}

/** Multiplies the copies of each column by its growth. */
function asText(copies: ReadonlyMap<StoredColumn, number>): Map<StoredColumn, number> {
  return new Map([...copies].map(([column, count]) => [column, count * column.growth]))
}

function sumOf(copies: ReadonlyMap<StoredColumn, number>): number {
  return [...copies.values()].reduce((sum, count) => sum + count, 0)
}

function copiesIn({ of, by }: Copied): number {
  return sumOf(of) * by
}

function eachOf(a: Counts, b: Counts, by: (x: number, y: number) => number): Counts {
  return {
    own: by(a.own, b.own),
    copies: by(a.copies, b.copies),
    others: by(a.others, b.others),
    params: by(a.params, b.params),
    grown: by(a.grown, b.grown),
    collected: by(a.collected, b.collected),
    measured: by(a.measured, b.measured),
    sought: by(a.sought, b.sought),
    soughtCollected: by(a.soughtCollected, b.soughtCollected),
    steps: by(a.steps, b.steps),
    squares: by(a.squares, b.squares),
    digits: by(a.digits, b.digits),
    bounded: by(a.bounded, b.bounded),
    taken: by(a.taken, b.taken),
  }
}

function tooMuch(what: string, limit: number): Refusal {
  const why = `the expressions of the query ${what} for one row; the limit is ${limit}`
  const hint = 'Compute fewer values in one query: ask for some columns at a time.'
  return new Refusal('limit', 'size', why, hint, undefined)
}
