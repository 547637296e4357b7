// Bounds how large a confined query can make a value. PostgreSQL limits one value to a gigabyte, and has no other
// memory limit. Nested repeat(), replace() and || grew a few letters to 2.7 GB in one backend. This walk computes sizes
// bottom up through expressions, sub-selects and WITH. The guard refuses a query whose constants multiply too much. The
// walk visits every node. An unknown node counts as the sum of its parts.
import {
  elementCount,
  FREE_BYTES,
  FREE_COUNT,
  FREE_PATTERN,
  givesRows,
  isOnce,
  limitMarkedBy,
  limitOnValue,
  literalText,
  patternsOf,
  REFUSED_COUNT,
  REPEATED_MAX,
  REPEATED_SORTED_MAX,
  SEARCHES,
  soughtBytes,
  wholeNumber,
  type PrintedLimit,
} from './argument-bounds.ts'
import { AGGREGATES, COUNTED_ARGUMENT, COUNT_MAX } from '../allowed/allowed-functions.ts'
import { isNode, word, words, type Node, type SelectStmt, type Struct } from '../allowed/allowed-nodes.ts'
import { TRUE } from '../node-builders.ts'
import type { Exposed } from '../exposed.ts'
import { Refusal } from '../refusal.ts'
import { COLLECTED_MAX, isAggregate, isCollecting, NUMBER_BYTES } from './collected-rows.ts'
import { COLLECTED_VALUE, COMPARED_MAX, isMeasuring, KEPT_MAX } from './collected-values.ts'
import {
  bothOf,
  DIGITS_OF_A_STEP,
  FREE_CALLS,
  greaterOf,
  isNothing,
  MadeValues,
  partOf,
  STORED_MAX,
  type Copied,
  type Made,
  type Parts,
  type StoredColumn,
  type StoredCopies,
  type StoredKind,
} from './made-values.ts'
import { copiedSides, remembered } from './printed-size.ts'
import { afterSplit, joinedBy, SLOW_DIGIT, type Joined } from './joined-punctuation.ts'
import { isPathOperator, ITEMS, LEVELS, returnsLevels, takesPath } from './json-path-bounds.ts'
import {
  CONVERTED_ARRAY,
  KEY_VALUES,
  keptByCall,
  keptByOperator,
  memoryOf,
  SPLIT_LETTERS,
  UNKNOWN,
  WRITES,
  writtenAs,
  writtenBy,
} from './kept-memory.ts'
import { rowsKept, sortWhole } from './kept-rows.ts'
import { CLASSES_WITHIN, readRegex } from './pattern-reader.ts'
import { flagsOf, GROUPS_MAX, groupsIn, NESTED_MAX } from './pattern-size.ts'
import { storedColumn } from './stored-lengths.ts'
import {
  LEVELS_TEXT_MAX,
  levelsIn,
  SEEKING,
  seeks,
  seeksInLeft,
  WORD_FUNCTIONS,
  WORD_OPERATORS,
  WORD_TEXT_MAX,
} from './work-bounds.ts'

/** The maximum number of bytes in one value that come from the query's constants. ICU compares no longer texts in time. */
const OWN_MAX = 4_194_304
/** The maximum number of such bytes in all values of one row together. */
const ROW_MAX = 33_554_432
/** The maximum number of copies of stored data in one value. */
const TIMES_MAX = 2_000
/** The copies in one value that count at most as made: a larger number is mostly an assumption about stored lengths. */
const COPIES_COUNTED = 256
/** The same if both numbers come from stored values: they are rarely so long. */
const DIGITS_OF_A_GUESSED_STEP = 240
/** The same for a power with an exponent from stored values. */
const DIGITS_OF_A_GUESSED_POWER = 2_400
/** The assumed length of stored text where two lengths are multiplied, because the actual length is unknown. */
const STORED_BYTES = 1_024
const FIXED_BYTES = 64
const WHOLE_DIGITS = 131_072
const FRACTION_DIGITS = 16_383
/** The digits of two numbers, multiplied, whose product is as long as a number can be. */
const SQUARED_MAX = (NUMBER_BYTES / 2) ** 2
/** The shortest text of a number that becomes so long, in a list: `1e131071,`. */
const SHORT_NUMBER = 9
/**
 * A value is long if it has more than LONG_VALUE bytes from constants, or more than LONG_COPIES copies of stored
 * values. A row is long if it has more than LONG_ROW bytes from constants.
 */
const LONG_VALUE = 1_024
const LONG_COPIES = 64
const LONG_ROW = 4_096
/** The maximum number of copies of stored values, and of bytes from constants, that all sorts with LIMIT keep together. */
const KEPT_COPIES = 128
const KEPT_BYTES = 67_108_864
/** The maximum nesting of JSON that the database's stack allows, rounded up. */
const JSON_DEPTH = 8_000

/**
 * The largest size of a value: bytes from constants (`own`), copies of stored data (`times`), and copies of a recursive
 * query's columns (`before`).
 */
interface Size {
  readonly own: number
  readonly times: number
  /** True if the value may have any number of elements, collected from rows or split from a string. */
  readonly isMany: boolean
  /**
   * `fixed`: the type bounds the text to FIXED_BYTES (integers, dates). `number`: the type is numeric, which bounds the
   * text to NUMBER_BYTES. `json`: a JSON document, which is not escaped inside another one. Undefined if the type is
   * unknown.
   */
  readonly kind?: 'fixed' | 'number' | 'json' | undefined
  /** True if the value is computed with numbers. It is then no text that a cast could read as a long number. */
  readonly isComputed?: boolean | undefined
  /** True if the type is numeric, and the length is that of stored numbers. */
  readonly isNumeric?: boolean | undefined
  /** Set for a value as a table stores it: see StoredKind. Undefined for any value that PostgreSQL makes. */
  readonly stored?: StoredKind | undefined
  /** True if the value may be one of a table, as the table stores it. */
  readonly isTable?: boolean | undefined
  /** True if comparisons do not free what they decompress: for ranges, XML, shapes and types of extensions. */
  readonly isUnfreed?: boolean | undefined
  /** True for collected values that are sorted, so that two of them are compared in linear time. */
  readonly isSorted?: boolean | undefined
  /** True if the query makes the value, and ICU may compare it. */
  readonly isMade?: boolean | undefined
  /** True for a collected value that several rows may contain. Otherwise, all rows together are not longer than one. */
  readonly isSpread?: boolean | undefined
  /** True if each collected value in the value has a limit in the printed text. */
  readonly isMeasured?: boolean | undefined
  /** Of `own`, the bytes that are no digits of long numbers, if the value may have such numbers. */
  readonly letters?: number | undefined
  /** The longest run of punctuation that parameters may add to the value. */
  readonly given?: number | undefined
  /** True if the value may be or contain a jsonb document, whose strings a collation compares also for equality. */
  readonly isDocument?: boolean | undefined
  /** Set if the query changed a stored value in a way that may join its punctuation to long runs. */
  readonly joined?: Joined | undefined
  /** The columns with joined punctuation in a collected value. */
  readonly within?: ReadonlySet<Copied> | undefined
  /** True if the value repeats a stored value, and so has only the punctuation of that value. */
  readonly isStretched?: boolean | undefined
  /** Set if each iteration of a recursive query may make the value longer: how many of `times` one such value counts. */
  readonly grown?: number | undefined
  /** True if `times` is an assumption about the lengths of stored values. */
  readonly isAssumed?: boolean | undefined
  /** True for an array of numbers. Its text is no text in which a short number stands for a long one. */
  readonly hasNumbers?: boolean | undefined
  /** The digits of a number, or of each element of an array of numbers, if they may be fewer than `own`. */
  readonly digits?: number | undefined
  /** True for a number of any length that is computed from stored values, and for a stored number of a fixed type. */
  readonly isGuess?: boolean | undefined
  /** Of `times`: how many copies of parts of other values the value contains, by part (made-values.ts). */
  readonly parts?: Parts | undefined
  /** Of `times`: how many copies of columns of tables the value contains. */
  readonly columns?: Copied | undefined
  /** What is made again each time that a column of a sub-query is read, because the planner may merge the queries. */
  readonly made?: Made | undefined
  /**
   * For each column: how many copies of the previous iteration's column the value contains. Set only inside a recursive
   * term.
   */
  readonly before: ReadonlyMap<number, number>
  /** The copies of the value that PostgreSQL keeps while it writes it as text: see writtenAs(). Undefined for texts. */
  readonly written?: number | undefined
}

const NONE: ReadonlyMap<number, number> = new Map()
const NOTHING: Size = { own: 0, times: 0, isMany: false, before: NONE }
const FIXED: Size = { ...NOTHING, own: FIXED_BYTES, kind: 'fixed' }
const LONG_NUMBER: Size = { ...NOTHING, own: NUMBER_BYTES, kind: 'number' }
const STORED: Size = { ...NOTHING, times: 1 }

/** Facts about sizes that the planner does not estimate (unhashed.ts). */
export interface Grown {
  /** True if the query compares or sorts texts whose length only the database knows, because it collects them from rows. */
  readonly comparesOpen: boolean
  /** True if steps of the plan keep many copies of collected values that have no limit each. */
  readonly keepsOpen: boolean
  /** True if a FROM item or a sub-query has long rows or long values. */
  readonly hasLongRows: boolean
  /** `long` if an aggregate in `growing` has a long argument, otherwise `stored` if there is such an aggregate. */
  readonly states: 'long' | 'stored' | undefined
  /** The copies of stored values that the query makes for a row, if they are many: see Lengths. */
  readonly copies: StoredCopies | undefined
  /** The maximum number of digits of stored numbers, if the query computes many products of them. */
  readonly digitsMax: number | undefined
}

/**
 * Throws Refusal if a value can grow beyond the bounds, or all values of a row together. Lowers the bounds that the
 * printed text contains if the query has many, and rewrites sorts that would keep long rows in memory. The check takes
 * time linear in the tree. `growing` are the aggregates whose states may grow.
 */
export function checkGrowth(
  select: SelectStmt,
  growing: ReadonlySet<Struct<'FuncCall'>>,
  exposed: Tables,
  newAlias: () => string,
  settings: Settings,
): Grown {
  const growth = new Growth(growing, exposed, settings)
  growth.send(select)
  growth.addKept()
  growth.lowerLimits()
  for (const query of growth.keeping) sortWhole(query, newAlias())
  return growth
}

type Tables = Pick<Exposed, 'comparesByIcu' | 'equatesByIcu' | 'table' | 'type'>

interface Settings {
  /** True if the printed text limits the texts that the query makes and compares. */
  readonly isLimited: boolean
  /** The bytes that each parameter may have. */
  readonly paramBytes: number
}

interface Shown {
  readonly name: string
  readonly size: Size
}

/** The columns of one alias, by name. Generated aliases are unique in the query. */
type Columns = ReadonlyMap<string, Size>

class Growth implements Grown {
  hasLongRows = false
  comparesOpen = false
  keepsOpen = false
  states: Grown['states'] = undefined
  readonly #growing: ReadonlySet<Struct<'FuncCall'>>
  readonly #exposed: Tables
  readonly #isLimited: boolean
  readonly #paramBytes: number
  readonly #values: MadeValues
  /** The most copies of each column in one value that ICU may compare. */
  readonly #compared = new Map<StoredColumn, number>()
  /** The greatest growth of a column as text. */
  #growth = 1
  /** The limits of collected rows, and of calls, that the printed text contains. */
  readonly #collecting = new Set<PrintedLimit>()
  readonly #bounded = new Set<PrintedLimit>()
  readonly #taken = new Set<PrintedLimit>()
  /** The computed columns that were read. */
  readonly #read = new Set<Size>()
  readonly #conjunctions: { readonly all: Struct<'BoolExpr'>; readonly makes: readonly Part[] }[] = []
  /** The sorts with LIMIT, which keep their rows in memory until the query ends. */
  readonly #limited: LimitedSort[] = []
  /** How many partitions and arms of UNION were read. PostgreSQL may sort each of them. */
  #appended = 0
  /** The rows that steps of the plan keep until the query ends, and those that they may sort. */
  readonly #kept: KeptRow[] = []
  readonly #sorted: (readonly Size[])[] = []
  #aggregates = 0
  /** The steps of all comparisons by a collation. */
  #collated = 0
  /** The columns in compared values whose punctuation may be joined, and the number of these comparisons. */
  readonly #joined = new Set<Copied>()
  #joinedTimes = 0
  /** The columns in which words are sought by pg_trgm, and the number of these searches. */
  readonly #words = new Set<Copied>()
  #wordTimes = 0
  /** The comparisons of two texts whose length only the database knows. */
  #openTimes = 0
  #copies: StoredCopies | undefined
  /** True if a step keeps several copies of a collected value that has no limit of its own. */
  #keepsOpen = false
  readonly #aliases = new Map<string, Columns>()
  readonly #queries = new Map<string, readonly Size[]>()
  readonly #copied = new Map<string, Copy>()
  /** What the body of each WITH adds to #appended. */
  readonly #appendedIn = new Map<string, number>()

  constructor(growing: ReadonlySet<Struct<'FuncCall'>>, exposed: Tables, settings: Settings) {
    this.#isLimited = settings.isLimited
    this.#paramBytes = settings.paramBytes
    this.#values = new MadeValues(settings.paramBytes)
    this.#growing = growing
    this.#exposed = exposed
  }

  /** Returns the sorts with LIMIT that would keep too much. Those that keep the least may stay. */
  get keeping(): ReadonlySet<SelectStmt> {
    const sorts = this.#limited.toSorted((a, b) => loadOf(a) - loadOf(b))
    let load = 0
    const keeping = sorts.filter((sort) => {
      load += loadOf(sort)
      return load > 1
    })
    return new Set(keeping.map(({ query }) => query))
  }

  get digitsMax(): number | undefined {
    return this.#values.digitsMax
  }

  get copies(): StoredCopies | undefined {
    return this.#copies
  }

  /** Counts the rows that steps of the plan keep until the query ends, of all alternatives. Throws Refusal. */
  addKept(): void {
    this.#values.countKept()
    for (const { row, copies } of this.#kept) this.#values.addAgain(this.#makeRow(row), copies - 1)
    let greatest: Made | undefined
    for (const row of this.#sorted) {
      const isOne = (size: Size): boolean => isCollected(size) && size.isSpread !== true
      for (const size of row.filter(isOne)) this.#make(size, true)
      const made = this.#makeRow(row.filter((size) => !isOne(size)))
      greatest = greatest ? greaterOf(greatest, made) : made
    }
    this.#values.countSorted()
    if (greatest) this.#values.addAgain(greatest, SORTED)
    this.keepsOpen = this.#keepsOpen && this.#values.collectedMax < KEPT_MAX
  }

  #makeRow(row: readonly Size[]): Made {
    return this.#values.during(() => {
      for (const size of row) {
        this.#make(isNumber(size) ? { ...NOTHING, own: digitsOf(size) / DIGITS_OF_A_BYTE } : size)
        this.#keepsOpen ||= isCollected(size) && !size.isMeasured
      }
    }).made
  }

  /** Notes that a step of the plan keeps so many copies of a row. */
  #keep(row: readonly Size[], copies: number): void {
    const made = row.filter(isKept)
    if (made.length > 0) this.#kept.push({ row: made, copies })
  }

  /** Notes that the plan may sort rows. */
  #sort(row: readonly Size[]): void {
    const made = row.filter(isKept)
    if (made.length > 0) this.#sorted.push(made)
  }

  lowerLimits(): void {
    this.#copies = this.#storedCopies()
    this.#joinConditions()
    for (const limit of this.#collecting) limit.lower(this.#values.collectedMax)
    for (const limit of this.#bounded) limit.lower(this.#values.shareOf(limit.most))
    const comparedMax = Math.floor(SORTED_MAX / Math.sqrt(Math.max(1, this.#openTimes)))
    for (const limit of this.#taken) {
      const most = isOnRows(limit) ? this.#values.measuredMax : Infinity
      const compared = limit.most === SORTED_MAX ? comparedMax : Infinity
      limit.lower(Math.min(this.#values.takenShareOf(limit.most), most, compared, this.#values.grownMax))
    }
  }

  /** Returns the copies of each column. ICU reads fewer bytes of a value than the other limit allows. */
  #storedCopies(): StoredCopies | undefined {
    const copies = this.#values.storedCopies(this.#growth)
    // One comparison takes the square of the length.
    const sorted = SORTED_MAX / Math.sqrt(Math.max(1, this.#joinedTimes))
    for (const columns of this.#joined) this.#limitCompared(columns, COMPARED_MAX / sorted)
    const most = WORD_TEXT_MAX / Math.sqrt(Math.max(1, this.#wordTimes / FREE_CALLS))
    for (const columns of this.#words) this.#limitCompared(columns, COMPARED_MAX / most)
    if (this.#compared.size === 0) return copies
    const of = new Map(copies?.of)
    let all = copies?.all ?? 0
    for (const [column, count] of this.#compared) {
      const [before, compared] = [of.get(column) ?? 0, count * (STORED_MAX / COMPARED_MAX)]
      if (compared <= before) continue
      of.set(column, compared)
      all += compared - before
    }
    return { of, all }
  }

  /** Counts a query whose outputs are sent: the text of each is made once more, and again in the message of the row. */
  send(query: SelectStmt): void {
    const outputs = this.select(query)
    const sent = new Set<string>()
    for (const [at, size] of outputs.entries()) {
      const name = words(query.targetList?.[at]?.ResTarget?.val?.ColumnRef?.fields).join('.')
      this.#write(size)
      if (name === '' || sent.has(name)) this.#make(scaled(size, 2))
      else this.#values.addSent(size)
      sent.add(name)
    }
  }

  /** Returns the sizes of the query's outputs. */
  select(query: SelectStmt): readonly Size[] {
    const before = this.#appended
    for (const { CommonTableExpr: cte } of query.withClause?.ctes ?? []) {
      if (cte) this.#query(cte, query.withClause?.recursive === true)
    }
    const outputs = this.#outputs(query)
    const {
      targetList: _target,
      fromClause: _from,
      valuesLists: _values,
      withClause: _with,
      larg: _l,
      rarg: _r,
      groupClause = [],
      whereClause: _where,
      sortClause = [],
      windowClause = [],
      ...rest
    } = query
    for (const window of windowClause) this.#key(this.#part(window))
    this.#groups(groupClause)
    const keys = sortClause.map((key) => this.#parts(key))
    this.#parts(rest)
    if (keys.length > 0) {
      for (const [at, { SortBy: key }] of sortClause.entries()) {
        const place = wholeNumber(key?.node)
        this.#key((place === undefined ? keys[at] : outputs[place - 1]) ?? NOTHING)
      }
      this.#sort([...outputs, ...keys])
      const parts = Math.max(this.#appended - before, 1)
      this.#limited.push(limitedSort(query, [...outputs, ...keys], parts, this.#paramBytes))
    }
    if (query.distinctClause || (query.larg && query.op !== 'SETOP_UNION') || (query.larg && query.all !== true)) {
      this.#sort(outputs)
      this.#keep(outputs, SLOTS)
      for (const output of outputs) this.#key(output)
    }
    const { own } = total(outputs)
    if (own > ROW_MAX) throw tooLarge(`${Math.round(own)} bytes of literals in one row`, ROW_MAX)
    return outputs
  }

  #outputs(query: SelectStmt): readonly Size[] {
    const { larg, rarg } = query
    if (larg && rarg) {
      this.#appended += 1
      return this.#merged(this.#values.either([() => this.select(larg), () => this.select(rarg)]))
    }
    if (query.valuesLists) {
      const rows = query.valuesLists.map(({ List: list }) => list?.items ?? [])
      // PostgreSQL merges a single row like a sub-query.
      const isMerged = rows.length === 1 && mayBeMerged(query)
      const sizes = this.#values.either(rows.map((row) => () => row.map((value) => this.#output(value, isMerged))))
      return rows.length === 1 ? most(sizes) : this.#merged(sizes)
    }
    const { result: row, made } = this.#values.during(() => {
      const columns = (query.fromClause ?? []).flatMap((item) => this.#from(item))
      if (query.whereClause) this.#condition(query.whereClause)
      return columns.map(({ size }) => size)
    })
    this.#values.addAgain(made, endsOf(query) - 1)
    const isMerged = mayBeMerged(query)
    // A condition outside is moved into groups too, but not an aggregate.
    const isGrouped = query.groupClause !== undefined || query.havingClause !== undefined
    const outputs = (query.targetList ?? []).map(({ ResTarget: target }): Size => {
      const value = target?.val
      return value ? this.#output(value, isMerged && !(isGrouped && hasAggregate(value))) : NOTHING
    })
    return this.#keepRows(query, row, outputs)
  }

  /** Returns the greatest size of each column of several queries, of which PostgreSQL makes values of one type. */
  #merged(rows: readonly (readonly Size[])[]): readonly Size[] {
    for (const row of rows) for (const size of row) this.#convert(size)
    return most(rows)
  }

  /** Notes the rows that the steps of a query keep. Returns its outputs, marked if several rows may contain them. */
  #keepRows(query: SelectStmt, row: readonly Size[], outputs: readonly Size[]): readonly Size[] {
    const all = [...row, ...outputs]
    if (!all.some(isKept)) return outputs
    const joins = joinsIn(query.fromClause)
    const isSpread = all.some(isCollected) && (joins > 0 || givesRows(query.targetList))
    const spread = isSpread ? row.map((size) => ({ ...size, isSpread })) : row
    const marked = !isSpread
      ? outputs
      : outputs.map((size, at) => {
          const value = query.targetList?.[at]?.ResTarget?.val
          return value && isCollected(size) && !hasAggregate(value) ? { ...size, isSpread } : size
        })
    const windows = windowsIn(query)
    if (joins > 0) this.#sort(joins > 1 ? spread : row)
    if (windows > 0 || query.groupClause) {
      const both = [...spread, ...marked]
      this.#sort(both)
      this.#keep(both, SLOTS * windows + (query.groupClause ? SLOTS + setsIn(query.groupClause) : 0))
    }
    return marked
  }

  /** Returns the size of an output. `isMerged` says that the planner may compute it again where it is read. */
  #output(value: Node, isMerged: boolean): Size {
    const { result: size, made } = this.#values.during(() => this.size(value))
    // A column that is passed on is made again, too.
    const again = isNothing(made) && value.ColumnRef ? this.#madeBehind(value.ColumnRef) : made
    return isMerged && again && !isNothing(again) ? { ...size, made: again } : size
  }

  #madeBehind({ fields = [] }: Struct<'ColumnRef'>): Made | undefined {
    const [alias = '', name = ''] = words(fields)
    return this.#aliases.get(alias)?.get(name)?.made
  }

  #query({ ctename = '', ctequery, ...rest }: Struct<'CommonTableExpr'>, mayRecurse: boolean): void {
    const body = ctequery?.SelectStmt
    this.#parts(rest)
    if (!body) return
    if (!mayRecurse || !body.larg || !body.rarg) {
      const [before, first, read] = [this.#kept.length, this.#limited.length, this.#appended]
      const { result: sizes, made } = this.#values.during(() => this.select(body))
      const [kept, limited] = [this.#kept.slice(before), this.#limited.slice(first)]
      if (rest.ctematerialized === 'CTEMaterializeNever') {
        this.#copied.set(ctename, { made, kept, limited, isRead: false })
      }
      this.#appendedIn.set(ctename, this.#appended - read)
      const isKept = rest.ctematerialized === 'CTEMaterializeAlways'
      this.#queries.set(ctename, isKept ? sizes.map(notMade) : sizes)
      return
    }
    const first = this.select(body.larg)
    this.#queries.set(
      ctename,
      first.map((size, place) => ({ ...notMade(size), before: new Map([[place, 1]]) })),
    )
    const next = this.select(body.rarg)
    // A number cannot grow beyond NUMBER_BYTES.
    checkRecursion(next.map((size) => (isNumber(size) ? NONE : size.before)))
    this.#checkCollected(next.filter(({ before }) => before.size > 0))
    // The number of iterations is unknown, so the data that an iteration adds counts as stored data.
    this.#queries.set(ctename, most([first, next]).map(notMade).map(afterTurns))
  }

  /** Returns the columns of a FROM item, in order. */
  #from(item: Node): readonly Shown[] {
    if (item.JoinExpr) return this.#join(item.JoinExpr)
    if (item.RangeSubselect) {
      const query = item.RangeSubselect.subquery?.SelectStmt
      return query ? this.#bind(item.RangeSubselect.alias, this.select(query), outputNames(query)) : []
    }
    if (item.RangeVar) {
      const { relname = '', schemaname, alias } = item.RangeVar
      const tables = schemaname === undefined ? 1 : (this.#exposed.table(schemaname, relname)?.tables ?? 1)
      this.#appended += tables > 1 ? tables : (this.#appendedIn.get(relname) ?? 0)
      const known = schemaname === undefined ? this.#queries.get(relname) : undefined
      const copied = known && this.#copied.get(relname)
      if (copied) {
        // PostgreSQL plans and computes the body again for each further reference.
        if (copied.isRead) {
          this.#values.add(copied.made)
          for (const row of copied.kept) this.#kept.push(row)
          for (const sort of copied.limited) this.#limited.push(sort)
        }
        copied.isRead = true
      }
      // Each step that reads a WITH from the disk keeps a row of it.
      if (known) this.#keep(known, 1)
      return known ? this.#bind(alias, known, []) : []
    }
    if (item.RangeFunction) {
      const { alias, functions } = item.RangeFunction
      const size = this.#parts({ functions })
      const defined = definedSizes(item.RangeFunction, size)
      if (defined) this.#addDefined(item.RangeFunction, size)
      const sizes = defined ?? (alias?.colnames ?? [word('')]).map(() => size)
      const names = definitionsIn(item.RangeFunction).map(({ ColumnDef: column }) => column?.colname ?? '')
      return this.#bind(alias, sizes, names)
    }
    if (item.JsonTable) return this.#jsonTable(item.JsonTable)
    this.#parts(item)
    return []
  }

  /** Counts the values of columns that the caller defines, which a function reads from text. Throws Refusal. */
  #addDefined(item: Struct<'RangeFunction'>, size: Size): void {
    for (const { ColumnDef: column } of definitionsIn(item)) this.#define(size, column?.typeName)
  }

  /** Counts a value of a type that the caller names, which a call reads from a text. Throws Refusal. */
  #define(size: Size, typeName: Struct<'TypeName'> | undefined): Size {
    const name = words(typeName?.names).at(-1) ?? ''
    const made = castSize(undefined, size, typeName)
    if (!isNumber(made) && (made.own > size.own || made.times > size.times)) this.#make(made)
    this.#addLevels(name, undefined, size)
    const memory = isArrayType(typeName) ? 1 : memoryOf(name, false, false)
    if (memory > 1 && !COUNTED_TYPES.test(name)) this.#keepArgument(size, memory)
    return { ...made, written: writtenAs(name, isArrayType(typeName)) }
  }

  /** Returns the columns of JSON_TABLE. Each of them may contain the whole document. Throws Refusal. */
  #jsonTable({ alias, columns = [], pathspec: _path, ...rest }: Struct<'JsonTable'>): readonly Shown[] {
    const document = this.#readJson(rest)
    return this.#bind(alias, this.#jsonColumns(columns, document, alias?.aliasname ?? ''), [])
  }

  /** Returns the sizes in the order of PostgreSQL: the columns of a level come before those of NESTED. */
  #jsonColumns(list: readonly Node[], document: Size, table: string): Size[] {
    const [own, nested]: [Size[], Size[]] = [[], []]
    for (const { JsonTableColumn: column } of list) {
      if (!column) continue
      const { coltype, name = '', pathspec, typeName, on_empty, on_error, columns } = column
      if (columns) nested.push(...this.#jsonColumns(columns, document, table))
      if (coltype === 'JTC_NESTED') continue
      if (coltype !== 'JTC_REGULAR' && coltype !== 'JTC_FORMATTED') {
        own.push(FIXED)
        continue
      }
      const otherwise = this.#parts({ on_empty, on_error })
      const part = memberIn(pathspec, name)
      const parts = part === undefined ? undefined : new Map([[partOf(table, part), document.times]])
      if (parts && document.columns) {
        this.#values.notePart(partOf(table, part ?? ''), scaledColumns(document.columns, 1 / document.times))
      }
      const made = this.#define({ ...document, parts }, typeName)
      if (!isNumber(made)) this.#make(scaled(made, JSON_TABLE_COPIES))
      const size = { ...made, isDocument: isArrayType(typeName) ? true : undefined }
      own.push(isNothingIn(otherwise) ? size : greatest([size, otherwise]))
    }
    return [...own, ...nested]
  }

  /** Returns the size of what SQL/JSON reads: a document, and variables. */
  #readJson({ context_item, ...rest }: Pick<Struct<'JsonFuncExpr'>, 'context_item'>): Size {
    const from = context_item?.raw_expr
    const size = from ? this.size(from) : NOTHING
    // The size of a constant or of a document counts its numbers already.
    const isCounted = (from?.TypeCast?.arg ?? from)?.A_Const !== undefined || size.kind === 'json'
    const all = total([isCounted ? size : documentOf(size), this.#parts(rest)])
    return { ...all, kind: undefined, stored: undefined, isTable: undefined, parts: undefined }
  }

  /**
   * Returns the columns of a join. A column of USING may come from either side. The alias of a join names all columns,
   * those of USING first.
   */
  #join({ larg, rarg, quals, usingClause, join_using_alias, alias }: Struct<'JoinExpr'>): readonly Shown[] {
    const left = larg ? this.#from(larg) : []
    const right = rarg ? this.#from(rarg) : []
    const names = words(usingClause)
    const sizes = new Map(names.map((name): [string, Size[]] => [name, []]))
    for (const { name, size } of [...left, ...right]) sizes.get(name)?.push(size)
    const merged = names.map((name) => ({ name, size: greatest(sizes.get(name) ?? []) }))
    if (join_using_alias)
      this.#bind(
        join_using_alias,
        merged.map(({ size }) => size),
        names,
      )
    for (const both of sizes.values()) this.#collate('=', both, 1)
    if (quals) this.#condition(quals)
    const rest = [...left, ...right].filter(({ name }) => !sizes.has(name))
    const columns = [...merged, ...rest]
    return alias
      ? this.#bind(
          alias,
          columns.map(({ size }) => size),
          columns.map(({ name }) => name),
        )
      : columns
  }

  #bind(alias: Struct<'Alias'> | undefined, sizes: readonly Size[], names: readonly string[]): readonly Shown[] {
    this.#noteRows(sizes)
    const given = words(alias?.colnames)
    const shown = sizes.map((size, at) => ({ name: given[at] ?? names[at] ?? '', size }))
    if (alias?.aliasname !== undefined) {
      this.#aliases.set(alias.aliasname, new Map(shown.map(({ name, size }) => [name, size])))
    }
    return shown
  }

  #noteRows(sizes: readonly Size[]): void {
    const own = sizes.reduce((sum, size) => sum + ownBytes(size), 0)
    this.hasLongRows ||= own > LONG_ROW || sizes.some(isLong)
  }

  /** Returns the size of an aggregate that collects: the rows of all of them together have one limit. */
  #collected(size: Size, isSpread = false): Size {
    this.#aggregates += 1
    const parts = new Map([[partOf(COLLECTED, String(this.#aggregates)), 1]])
    const joined = size.columns && size.joined ? [size.columns] : []
    const within = joined.length > 0 ? new Set([...(size.within ?? []), ...joined]) : size.within
    return { ...size, times: 1, isSpread, isMeasured: undefined, parts, columns: undefined, within }
  }

  /** Refuses long texts in a collected value: the printed text limits only what it collects from tables. */
  #checkCollected(values: readonly Size[]): void {
    const length = Math.max(0, ...values.map(punctuationIn))
    if (this.#isLimited && length > SORTED_MAX) throw tooLong(length)
  }

  /** Visits a condition on rows. Notes the parts of AND that make values. Throws Refusal. */
  #condition(node: Node): void {
    const { boolop, args } = node.BoolExpr ?? {}
    if (!node.BoolExpr || boolop !== 'AND_EXPR' || !args) {
      this.size(node)
      return
    }
    const makes = args.flatMap((node): Part[] => {
      const { made } = this.#values.during(() => this.#condition(node))
      return made.copies > 0 && !asksRows(node) ? [{ node, copies: made.copies }] : []
    })
    this.#conjunctions.push({ all: node.BoolExpr, makes })
  }

  /**
   * Keeps together the parts of AND that make values. PostgreSQL checks the parts of AND in the order of their
   * estimated costs, so each of many cheap parts would come before the check that a stored value is short. 1,500 of
   * them took 2.9 GB.
   */
  #joinConditions(): void {
    const count = this.#conjunctions.reduce((sum, { makes }) => sum + copiesOf(makes), 0)
    if (this.#copies === undefined || count <= FREE_COPIES) return
    for (const { all, makes } of this.#conjunctions) {
      const free = apart(makes)
      const kept = makes.filter((each) => !free.has(each)).map(({ node }) => node)
      if (kept.length < 2) continue
      const both: Node = { BoolExpr: { boolop: 'AND_EXPR', args: kept } }
      const isTrue: Node = { BooleanTest: { arg: both, booltesttype: 'IS_TRUE' } }
      const rest = (all.args ?? []).filter((each) => !kept.includes(each))
      // AND has at least two parts.
      Object.assign(all, { args: [...(rest.length > 0 ? rest : [TRUE]), isTrue] })
    }
  }

  /** Returns the size of an expression. */
  size(node: Node): Size {
    const found = this.#sized(node)
    const isNew = found.stored !== undefined && !node.ColumnRef
    const isDocument = found.kind === 'json' || found.isDocument
    const isSame = !isNew && isDocument === found.isDocument
    const size = isSame ? found : { ...found, isDocument, ...(isNew && { stored: undefined }) }
    if (size.own > OWN_MAX) throw tooLarge(`${Math.round(size.own)} bytes of literals`, OWN_MAX)
    const timesMax = isGivenOnly(size) ? Math.max(TIMES_MAX, GIVEN_MAX / this.#paramBytes) : TIMES_MAX
    if (size.times > timesMax) throw tooLarge(`${Math.round(size.times)} copies of stored values`, timesMax)
    if (!makes(node, size)) return size
    this.#make(size)
    if (!this.#exposed.comparesByIcu || size.kind !== undefined) return size
    if (MAKES_TIMES.test(words(node.FuncCall?.funcname).at(-1) ?? '')) return size
    if ((node.FuncCall ?? node.A_Expr) && !size.isMany && !isComputedNumber(size)) {
      this.#noteCompared(size)
    }
    return { ...size, isMade: true }
  }

  /** Notes a value that ICU may compare, if it contains more than a few copies of stored values. */
  #noteCompared({ times, columns, isAssumed }: Size): void {
    const copies = Math.min(times, isAssumed ? ASSUMED_COPIES : Infinity)
    if (columns && copies > FREE_COMPARED) this.#limitCompared(columns, copies / times)
  }

  /** Limits stored values as if the query compared `times` times as many copies of them. */
  #limitCompared({ of, by }: Copied, times: number): void {
    for (const [column, count] of of) {
      this.#compared.set(column, Math.max(this.#compared.get(column) ?? 0, count * by * times))
    }
  }

  /**
   * Counts comparisons by a collation of glibc, which compares long runs of punctuation in quadratic time. Both texts
   * must have such a run. Throws Refusal.
   */
  #collate(symbol: string, sides: readonly Size[], times: number): void {
    // A join by equality may sort both sides, and jsonb compares its strings by a collation, also for equality.
    const isDocument = EQUALITIES.test(symbol) && sides.some((side) => side.kind === 'json' || side.isDocument === true)
    if (symbol === '=' && !isDocument) {
      const [least = NOTHING] = sides.toSorted((x, y) => punctuationIn(x) - punctuationIn(y))
      if (sides.every((side) => isOpen(side) || punctuationIn(side) > SORTED_MAX)) this.#key(least)
      if (sides.length === 2 && sides.every(({ joined }) => joined)) sides.forEach((side) => this.#noteJoined(side))
      return
    }
    if (!ORDERS.test(symbol) && !isDocument) return
    if (sides.every((side) => side.joined ?? (isOpen(side) || punctuationIn(side) > FREE_BYTES))) {
      for (const side of sides) this.#noteJoined(side, times)
    }
    const lengths = sides.map((side) => {
      const known = punctuationIn(side)
      return isOpen(side) && known <= SORTED_MAX ? Infinity : known
    })
    const length = Math.min(...lengths)
    if (sides.some(isOpen) && length > FREE_BYTES) this.comparesOpen = true
    if (length === Infinity) {
      this.#openTimes += times
      return
    }
    const steps = times * length ** 2
    if (this.#isLimited) this.#values.add({ steps })
    this.#collated += steps
    this.comparesOpen ||= this.#collated > MANY_STEPS
  }

  /** Checks a value by which rows are sorted. Throws Refusal. */
  #key(size: Size): void {
    const length = punctuationIn(size)
    if (length > SORTED_MAX) {
      if (this.#isLimited) throw tooLong(length)
      this.comparesOpen = true
    }
    if (isOpen(size)) this.comparesOpen = true
    this.#noteJoined(size)
  }

  /** Limits the stored values in a text that may have long runs of punctuation, and is compared. */
  #noteJoined(size: Size, times = 0): void {
    if (!isText(size)) return
    const { columns, joined, within = [] } = size
    if (columns && joined) this.#joined.add(columns)
    for (const each of within) this.#joined.add(each)
    this.#joinedTimes += times
  }

  /** Notes the columns in a text in which pg_trgm seeks a word. */
  #noteWords(text: Size | undefined, times: number): void {
    if (!text?.columns) return
    this.#words.add(text.columns)
    this.#wordTimes += times
  }

  /** Counts comparisons of values that the query makes, if ICU reads them in full. Throws Refusal. */
  #compare(symbol: string, sides: readonly Size[], times = 1): void {
    this.#collate(symbol, sides, times)
    const { comparesByIcu, equatesByIcu } = this.#exposed
    if (!comparesByIcu || !(equatesByIcu ? COMPARES : ORDERS).test(symbol)) return
    for (const side of sides)
      if (side.isMade === true && side.kind === undefined && !isComputedNumber(side))
        this.#search(side, times * ICU_COST)
  }

  /**
   * Counts a value that PostgreSQL makes. `isOne` says that all rows together have one copy of what the value collects.
   * Throws Refusal.
   */
  #make(size: Size, isOne = false): void {
    const copies = Math.min(this.#copiesIn(size), isGivenOnly(size) ? Infinity : COPIES_COUNTED)
    const isMeasured = !isOne && size.isMeasured === true
    const value = isMeasured ? unparted(size) : size
    this.#values.addCopies(value, copies, { own: ownBytes(size), isCollected: isCollected(size), isMeasured })
  }

  /**
   * Returns the copies of stored values in a value. A search for long runs of marks repeats the value, and its stored
   * values are limited by #comparedCopies, so assumed copies count less.
   */
  #copiesIn({ times, isAssumed }: Size): number {
    return this.#exposed.comparesByIcu && isAssumed === true ? Math.min(times, ASSUMED_COPIES) : times
  }

  /**
   * Counts the arguments of a call that may be stored values, which the call decompresses. `frees` says for which values
   * the call frees what it has decompressed, or does not decompress them. Throws Refusal.
   */
  #decompress(
    args: readonly Node[],
    sizes: readonly Size[],
    { times = 1, frees = () => false }: { readonly times?: number; readonly frees?: (size: Size) => boolean } = {},
  ): void {
    for (const [at, arg] of args.entries()) {
      const size = sizes[at]
      if (!size || !passes(arg) || isNumber(size) || (isCollected(size) && size.isTable !== true)) continue
      if (!frees(size)) this.#values.addCopies(unparted(size), this.#copiesIn(size) * times)
    }
  }

  /**
   * Counts a value that a call reads, in searches for one byte: its bytes from constants, and collected rows that the
   * printed text does not measure. Throws Refusal.
   */
  #scan(size: Size, cost: number, unmeasured = cost): void {
    if (isNumber(size)) return
    const sought = isCollected(size) ? Math.min(size.times, COPIES_COUNTED) * unmeasured : 0
    this.#values.add({ steps: ownBytes(size) * cost, soughtCollected: sought })
  }

  /** Counts a call or an operator that may read collected values as json. Throws Refusal. */
  #scanJson(name: string, sizes: readonly Size[], args: readonly Node[] = []): void {
    for (const size of sizes) {
      if (READS_JSON.test(name)) this.#values.add({ own: ownBytes(size) * JSON_COPIES })
      if (size.kind === 'json' && MAKES_JSONB.test(name)) {
        this.#parse(size, false)
        this.#values.add({ own: ownBytes(size) * JSONB_COPIES })
      }
    }
    const isLong = READS_JSON.test(name) || (takesPath(name) && args.some(returnsLevels))
    if (isLong && sizes.some(isCollected)) this.#values.add({ taken: JSON_TAKEN })
  }

  /** Counts a test of two values for equality, which reads both if they have the same length. Throws Refusal. */
  #equate(sides: readonly Size[], times: number): void {
    if (sides.every((side) => ownBytes(side) > LONG_VALUE || isCollected(side)))
      for (const side of sides) this.#scan(side, EQUAL_COST * times)
  }

  /** Counts a text as a regular expression reads it, with the places of the groups of each match. Throws Refusal. */
  #widen(text: Size, groups: number): void {
    const bytes = 4 + 8 * (1 + groups)
    this.#make({ ...scaled(text, groups > 0 ? bytes : 4), own: ownBytes(text) * bytes })
  }

  /** Counts a search for a constant of some bytes. Throws Refusal. */
  #search(text: Size | undefined, bytes: number): void {
    if (!text) return
    const sought = Math.min(text.times, COPIES_COUNTED) * bytes
    this.#values.addSearch(text, sought, { steps: ownBytes(text) * bytes, isCollected: text.isMany })
  }

  /** Counts the parsing of a JSON text. The check for unique keys keeps all keys. Throws Refusal. */
  #parse(text: Size, keepsKeys: boolean): void {
    this.#search(text, COSTS.get('jsonb') ?? 0)
    this.#values.addCopies(unparted(text), Math.min(text.times, COPIES_COUNTED) * (keepsKeys ? JSONB_COPIES : 1))
  }

  /** Counts LIKE, whose pattern is searched for from its first % on. `name` is the operator. Throws Refusal. */
  #like(name: string, sides: readonly Size[], given: readonly Node[], isAny: boolean): void {
    const [text, pattern] = given
    const patterns = isAny && pattern ? (patternsOf(pattern)?.map(soughtBytes) ?? [FREE_PATTERN]) : []
    const known = pattern && literalText(pattern)
    const bytes = isAny
      ? patterns.reduce((all, each) => all + each, 0)
      : known === undefined
        ? FREE_PATTERN
        : soughtBytes(known)
    this.#search(sides[0], Math.min(bytes, FREE_PATTERN))
    // The text is decompressed for each pattern, and ILIKE makes it in lower case.
    const count = Math.max(1, patterns.length)
    if (text && sides[0]) this.#decompress([text], sides, { times: count })
    if (name.endsWith('*') && sides[0]) this.#make(scaled(sides[0], 2 * count))
  }

  /** Counts the steps of a division. Throws Refusal. */
  #divide([a, b = a]: readonly Size[]): void {
    if (!a || !b) return
    const isGuess = a.isGuess === true && b.isGuess === true
    this.#products(a, b)
    this.#step(Math.min(digitsOf(a) * digitsOf(b), SQUARED_MAX), isGuess ? DIGITS_OF_A_GUESSED_STEP : DIGITS_OF_A_STEP)
  }

  /** Notes a product or a quotient of stored numbers, whose digits only the database knows. Throws Refusal. */
  #products(a: Size, b: Size): void {
    const [m, n] = [numbersIn(a), numbersIn(b)]
    this.#values.add({ squares: m * n, digits: m * ownBytes(b) + n * ownBytes(a) })
  }

  /** Counts the steps of a multiplication, whose result has the digits of both sides. Throws Refusal. */
  #multiply([a, b]: readonly Size[]): void {
    if (!a || !b) return
    const isGuess = a.isGuess === true && b.isGuess === true
    this.#products(a, b)
    const digits = Math.min(digitsOf(a) * digitsOf(b), SQUARED_MAX)
    this.#step(digits, isGuess ? DIGITS_OF_A_GUESSED_STEP : DIGITS_OF_A_STEP)
  }

  /** Counts the steps of a power: the last multiplication takes most of them. Throws Refusal. */
  #power([, exponent]: readonly Node[], [base, by]: readonly Size[]): void {
    if (!base || !by) return
    const times = exponent && numberIn(exponent)
    const half = (digitsOf(base) * Math.abs(times ?? NUMBER_BYTES)) / 2
    const isGuess = times === undefined && (by.isGuess === true || by.times > 0)
    this.#step(Math.min(half * half, SQUARED_MAX), isGuess ? DIGITS_OF_A_GUESSED_POWER : DIGITS_OF_A_STEP)
  }

  #step(digits: number, ofAStep: number): void {
    this.#values.add({ steps: digits / ofAStep })
  }

  /** Notes a limit that the printed text contains, if the text is the mark of one. Throws Refusal. */
  #note(text: Node | undefined): void {
    const limit = limitMarkedBy(text)
    // Marks are searched for by a regular expression, which can be cancelled.
    if (!limit || COUNTED_ARGUMENT.has(limit.what) || limit.what === 'marks') return
    if (limit.what === COLLECTED_VALUE) {
      this.#taken.add(limit)
      if (limit.most !== KEPT_MAX) this.#values.add({ taken: limit.most })
    } else if (limit.most === COLLECTED_MAX) this.#collecting.add(limit)
    else if (limit.what !== 'LIKE' || limit.most !== FREE_PATTERN) {
      this.#bounded.add(limit)
      this.#values.add({ bounded: limit.what === 'ts_headline' ? FREE_CALLS : 1 })
    }
  }

  #sized(node: Node): Size {
    if (node.A_Const) return literalSize(node.A_Const)
    if (node.ColumnRef) return this.#storedColumn(node.ColumnRef) ?? this.#column(node.ColumnRef)
    if (node.ParamRef) return { ...STORED, given: PUNCTUATION_MAX }
    if (node.FuncCall) return this.#call(node.FuncCall)
    if (node.A_Expr) return this.#operator(node.A_Expr)
    if (node.TypeCast) return this.#cast(node.TypeCast)
    if (node.CaseExpr) {
      // The limit on the items of JSON_TABLE bounds its own work.
      const { defresult } = node.CaseExpr
      if (limitOnValue(node)?.what === ITEMS && defresult) return this.size(defresult)
      const size = this.#case(node.CaseExpr)
      return isOnRows(limitOnValue(node)) ? { ...size, isMeasured: true } : size
    }
    if (node.CoalesceExpr) {
      const sizes = this.#each(node.CoalesceExpr.args)
      for (const size of sizes) this.#convert(size)
      return greatest(sizes)
    }
    if (node.MinMaxExpr) {
      const sizes = this.#each(node.MinMaxExpr.args)
      for (const size of sizes) this.#convert(size)
      this.#compare('<', sizes)
      return greatest(sizes)
    }
    if (node.SubLink) return this.#subLink(node.SubLink)
    if (node.JsonArrayAgg ?? node.JsonObjectAgg) {
      const { over } = (node.JsonArrayAgg ?? node.JsonObjectAgg)?.constructor ?? {}
      return this.#collected({ ...collected(escaped([this.#parts(node)])), kind: 'json' }, over !== undefined)
    }
    // The text of an array, a row or a JSON document escapes the strings in it.
    if (node.JsonObjectConstructor ?? node.JsonArrayConstructor) {
      const size = this.#parts(node)
      this.#write(size)
      this.#keepArgument(size, keptByCall(node.JsonArrayConstructor ? 'json_build_array' : 'json_build_object', false))
      this.#scan(size, CALL_COST, 0)
      return jsonOf([size])
    }
    if (node.A_ArrayExpr) {
      const elements = this.#each(node.A_ArrayExpr.elements)
      const areKnown = elements.every(
        ({ kind, digits }) => kind === 'fixed' || kind === 'number' || digits !== undefined,
      )
      const digits = areKnown ? Math.max(0, ...elements.map(digitsOf)) : undefined
      const hasNumbers = elements.every((size) => isNumber(size) || size.hasNumbers === true)
      const all = total(elements)
      // An element takes at least four bytes: its length.
      const array = scaled({ ...all, own: Math.max(all.own, 4 * elements.length) }, 2)
      return { ...array, digits, hasNumbers, written: Math.max(WRITTEN_ROW, all.written ?? 0) }
    }
    if (node.RowExpr) {
      const row = this.#parts(node)
      return { ...scaled(row, 2), written: Math.max(WRITTEN_ROW, row.written ?? 0) }
    }
    if (node.JsonFuncExpr) {
      const { pathspec, ...json } = node.JsonFuncExpr
      const read = { ...this.#readJson(json), isDocument: true }
      this.#keepPath(read, pathspec)
      const returned = json.output && this.#define(read, json.output.typeName)
      const made = !returned ? read : isNumber(returned) ? returned : greatest([read, returned])
      const isWrapped = /^JSW_(?:UN)?CONDITIONAL$/.test(json.wrapper ?? '')
      const document = isWrapped ? partsLeft(made) : made
      const levels = returnsLevels(pathspec) ? LEVELS : 1
      return total([scaled(document, levels), pathspec ? this.size(pathspec) : NOTHING])
    }
    if (node.JsonParseExpr ?? node.JsonScalarExpr) {
      const text = this.#parts(node)
      this.#parse(text, node.JsonParseExpr?.unique_keys === true)
      return documentOf(text)
    }
    if (node.JsonIsPredicate) {
      this.#parse(this.#parts(node), node.JsonIsPredicate.unique_keys === true)
      return FIXED
    }
    if (node.BoolExpr ?? node.NullTest ?? node.BooleanTest) {
      this.#parts(node)
      return FIXED
    }
    if (node.GroupingFunc) return FIXED
    return this.#parts(node)
  }

  #column({ fields = [] }: Struct<'ColumnRef'>): Size {
    const [alias, name] = words(fields)
    const columns = alias === undefined ? undefined : this.#aliases.get(alias)
    // An alias without a column means the whole row.
    if (name === undefined) {
      if (!columns) return STORED
      const row = total([...columns.values()].map((size) => this.#readColumn(size)))
      // Each read makes the row again.
      this.#make(row)
      // The text of all but numbers is escaped, and is not escaped again in a JSON document. Stored numbers count as short.
      const texts = [...columns.values()].map((size) =>
        isNumber(size) ? (size.stored ? FIXED : size) : scaled(size, 2),
      )
      const written = Math.max(WRITTEN_ROW, row.written ?? 0)
      return { ...notMade(total(texts)), kind: 'json', isNumeric: undefined, digits: undefined, written }
    }
    return this.#readColumn(columns?.get(name) ?? STORED)
  }

  /** Returns the size of a column of a table, inside the sub-select that reads the table. */
  #storedColumn(ref: Struct<'ColumnRef'>): Size | undefined {
    const column = storedColumn(ref)
    if (column === undefined) return undefined
    const { kind: stored, growth } = column
    if (stored === 'fixed') return { ...FIXED, isGuess: true }
    if (stored === 'numeric') return { ...STORED, stored, isTable: true, isNumeric: true }
    this.#growth = Math.max(this.#growth, growth)
    const columns: Copied = { of: new Map([[column, 1]]), by: 1 }
    if (column.isComputed) {
      this.#values.addCopies({ times: 1, columns }, 1)
      return { ...STORED, columns }
    }
    return { ...STORED, stored, columns, isTable: true, isUnfreed: stored === 'other' }
  }

  #readColumn(size: Size): Size {
    if (!size.made) return size
    // Each read but the first computes the value once more.
    if (this.#read.has(size)) this.#values.add(size.made)
    this.#read.add(size)
    return notMade(size)
  }

  #cast({ arg, typeName }: Struct<'TypeCast'>): Size {
    const size = arg ? this.size(arg) : NOTHING
    if (!arg) return castSize(arg, size, typeName)
    this.#decompress([arg], [size])
    const name = words(typeName?.names).at(-1) ?? ''
    this.#addLevels(name, arg, size)
    if (!arg.A_Const) {
      this.#write(size)
      const memory = isArrayType(typeName) ? 1 : memoryOf(name, false, false)
      if (memory > 1 && !COUNTED_TYPES.test(name) && !this.#isEnum(typeName)) this.#keepArgument(size, memory)
    }
    if (!arg.A_Const && size.kind !== 'json') {
      this.#search(size, COSTS.get(name) ?? ((typeName?.arrayBounds ?? []).length > 0 ? LIST_COST : 0))
      if (name === 'jsonb') {
        this.#values.addCopies(unparted(size), Math.min(size.times, COPIES_COUNTED) * JSONB_COPIES)
      }
    }
    const isNumeric = name === 'numeric' && (typeName?.arrayBounds ?? []).length === 0
    const isDocument = /^jsonb?$/.test(name) || (typeName?.arrayBounds ?? []).length > 0 ? size.isDocument : undefined
    const made = castSize(arg, size, typeName)
    // The result of a cast of a parameter stays in memory for each place that has the cast.
    if (arg.ParamRef && !isNumber(made)) this.#values.add({ params: Math.max(made.times - 1, 0) })
    const isComputed = size.isDocument ? undefined : made.isComputed
    return { ...made, isNumeric, isDocument, isComputed, written: writtenAs(name, isArrayType(typeName)) }
  }

  #isEnum(type: Struct<'TypeName'> | undefined): boolean {
    const [name = '', schema = 'pg_catalog'] = words(type?.names).toReversed()
    return this.#exposed.type(schema, name)?.kind === 'enum'
  }

  /**
   * Counts what a call, an operator or a cast keeps of an argument until the row ends: `by` copies of it. `stored` says
   * how many copies of a value as a table stores it. Throws Refusal.
   */
  #keepArgument(size: Size, by: number, stored = 0): void {
    if (by === 0 || isNumber(size) || size.isComputed === true) return
    const isCollectedValue = isCollected(size)
    const isParam = isGivenOnly(size)
    const others = copiesOfOthers(size)
    const copies = isParam ? size.times : size.isAssumed === true ? Math.min(others, 1) : others
    // The limits of collected documents were measured with the calls that read them.
    const isCounted = by >= COLLECTED_FACTOR && by < UNKNOWN && size.kind !== 'json'
    this.#values.add({
      own: ownBytes(size) * by,
      params: isParam ? copies * by : 0,
      others: isCollectedValue || isParam ? 0 : copies * by,
      grown: size.grown === undefined ? 0 : (size.times / size.grown) * by,
      collected: isCollectedValue && isCounted ? copies * by : 0,
    })
    if (stored > 0 && !isCollectedValue) this.#values.addCopies(unparted(size), this.#copiesIn(size) * stored)
  }

  /** Counts the text of a value, while PostgreSQL writes it. Throws Refusal. */
  #write(size: Size): void {
    const { written } = size
    if (written === undefined) return
    this.#keepArgument(size, written)
    if (isCollected(size) && size.kind === 'json') this.#values.add({ collected: copiesOfOthers(size) * written })
  }

  /** Counts a value that PostgreSQL may convert to the type of another one. Throws Refusal. */
  #convert(size: Size): void {
    this.#keepArgument(size, size.written === undefined ? 1 : CONVERTED_ARRAY)
  }

  /** Counts what a path keeps that makes an object of each field. Throws Refusal. */
  #keepPath(document: Size, path: Node | undefined): void {
    const text = path && literalText(path)
    if (path && (text === undefined || text.includes('keyvalue'))) this.#keepArgument(document, KEY_VALUES, KEY_VALUES)
  }

  /** Counts an lquery: it keeps an entry for each `|` in it, for each of its levels. Throws Refusal. */
  #addLevels(type: string, text: Node | undefined, size: Size): void {
    if (!/^_?lquery$/.test(type)) return
    const known = text && literalText(text)
    const given = Math.min(size.times, COPIES_COUNTED) * (text ? LEVELS_TEXT_MAX : PARAMS_MAX)
    const bytes = Math.min(ownBytes(size) + given, text ? LEVELS_TEXT_MAX : Infinity)
    this.#values.add({ own: LEVEL_BYTES * (known === undefined ? bytes ** 2 / 16 : levelsIn(known)) })
  }

  #case({ arg, args = [], defresult }: Struct<'CaseExpr'>): Size {
    const compared = arg && this.size(arg)
    for (const { CaseWhen: when } of args) {
      const size = when?.expr && this.size(when.expr)
      if (compared && size) {
        this.#equate([compared, size], 1)
        for (const each of [compared, size]) this.#convert(each)
        if (compared.kind === 'json') this.#collate('=', [compared, size], 1)
      }
    }
    // NULL has no size and no type.
    const results = [...args.map(({ CaseWhen: when }) => when?.result), defresult].filter(
      (node) => node && !node.A_Const?.isnull,
    )
    const sizes = this.#values.either(results.flatMap((node) => (node ? [() => this.size(node)] : [])))
    if (sizes.length > 1) for (const size of sizes) this.#convert(size)
    return greatest(sizes)
  }

  /**
   * Returns the size of an operator's result. Only a result that is known to be a boolean is fixed. Any other operator
   * may return a value that contains both sides: `||`, and `&&`, `<->`, `+`, `*`, `-` of the types that have them.
   */
  #operator(expr: Struct<'A_Expr'>): Size {
    const { name, lexpr, rexpr, kind } = expr
    const given = [lexpr, rexpr].flatMap((side) => (side ? [side] : []))
    const copies = copiedSides(expr)
    const sides = given.map((side) => {
      const { result, made } = this.#values.during(() => this.size(side))
      this.#values.addAgain(made, side === lexpr ? copies.left : copies.right)
      return result
    })
    const [symbol = ''] = words(name).slice(-1)
    if (seeks(expr)) checkSteps(`operator ${symbol}`, sides)
    // A parameter without a type becomes a tsquery. PostgreSQL reads it in quadratic time, without a check for a cancel.
    if (symbol === '@@' && given.some((side) => side.ParamRef))
      this.#values.add({ steps: this.#paramBytes ** 2 / QUERY_BYTES_OF_A_STEP })
    const isAny = kind === 'AEXPR_OP_ANY' || kind === 'AEXPR_OP_ALL'
    if (LIKES.test(symbol)) this.#like(symbol, sides, given, isAny)
    else {
      for (const [at, side] of given.entries()) {
        const isList = isAny && side === rexpr
        const frees = (size: Size): boolean => !isList && COMPARISONS.test(symbol) && size.isUnfreed !== true
        const again = side === lexpr ? copies.left : copies.right
        const times = isAny && side === lexpr ? LIST_LENGTH : again + 1
        this.#decompress([side], sides.slice(at, at + 1), { times, frees })
      }
    }
    if (!EQUALITIES.test(symbol)) for (const side of sides) this.#scan(side, CALL_COST * (1 + copies.left), 0)
    else if (!isAny) this.#equate(sides, 1 + copies.left)
    else if (sides[1]) this.#scan(sides[1], EQUAL_COST)
    this.#scanJson(symbol, sides)
    const hasDocument = sides.some((side) => side.kind === 'json' || side.isDocument === true)
    const kept = keptByOperator(symbol, hasDocument)
    for (const [at, side] of sides.entries()) {
      const isList = isAny && at === 1 && given[at]?.A_ArrayExpr === undefined
      this.#keepArgument(
        side,
        isList ? Math.max(kept, CONVERTED_ARRAY) : Math.max(kept, Math.min(side.written ?? 0, 4)),
      )
      if (WRITING_OPERATORS.test(symbol)) this.#write(side)
    }
    if (isPathOperator(symbol) && sides[0]) this.#keepPath(sides[0], given[1])
    const pattern = LEVEL_OPERATORS.test(symbol) ? given.flatMap((side) => literalText(side) ?? []) : []
    for (const text of pattern) this.#values.add({ own: LEVEL_BYTES * levelsIn(text) })
    if (symbol === '/' || symbol === '%') this.#divide(sides)
    if (symbol === '*') this.#multiply(sides)
    if (symbol === '^') this.#power(given, sides)
    if (isAny) this.#compare(symbol, sides.slice(0, 1), elementsIn(given[1]))
    else this.#compare(kind?.includes('BETWEEN') ? '<' : symbol, sides, 1 + copies.left)
    if (WORD_OPERATORS.test(symbol)) this.#noteWords(sides[seeksInLeft(symbol) ? 0 : 1], 1 + copies.left)
    if (TRIGRAMS.test(symbol)) for (const side of sides) this.#search(side, TRIGRAM_COST)
    if (kind === 'AEXPR_NULLIF') return sides[0] ?? NOTHING
    if (kind !== undefined && kind !== 'AEXPR_OP') return FIXED
    if (sides.length === 2 && COMPARES.test(symbol)) return FIXED
    if (symbol === '->' || symbol === '->>') return this.#field(symbol, given, sides)
    if (symbol === '#-') return partsLeft(total(sides))
    if (!NUMERIC_OPERATORS.has(symbol)) return total(sides)
    const size = symbol === '^' ? power(given, sides) : computed(given, sides, false)
    if (!COMPUTES.has(symbol)) return size
    // x - 'a' may leave out parts of a document, unless x is known to be a number or a date.
    const [left = NOTHING] = sides
    const isDocument = symbol === '-' && sides.length === 2 && !isNumber(left) && !isComputedNumber(left)
    return { ...(isDocument ? partsLeft(size) : size), isComputed: true }
  }

  /** Returns the size of a field of a JSON document. All fields of a document together are not longer than it. */
  #field(symbol: string, [document, key]: readonly Node[], [size = NOTHING]: readonly Size[]): Size {
    const name = key && (literalText(key) ?? wholeNumber(key))
    const column = words(document?.ColumnRef?.fields).join('.')
    const isPart = name !== undefined && column !== ''
    const part = partOf(column, `${symbol}${name}`)
    const parts = isPart ? new Map([[part, size.times]]) : size.parts
    if (isPart && size.columns) this.#values.notePart(part, scaledColumns(size.columns, 1 / size.times))
    const written = symbol === '->>' ? undefined : size.written
    return { ...size, parts, kind: undefined, isComputed: undefined, written }
  }

  #subLink({ subLinkType, testexpr, operName, subselect }: Struct<'SubLink'>): Size {
    const tested = testexpr && this.size(testexpr)
    const outputs = subselect?.SelectStmt ? this.select(subselect.SelectStmt) : []
    const [first = NOTHING] = outputs
    // IN has no operator.
    if (tested) for (const each of [tested, ...outputs]) this.#convert(each)
    if (tested) this.#collate(words(operName).at(-1) ?? '=', [tested, total(outputs)], 1)
    this.#noteRows(outputs)
    if (subLinkType === 'ARRAY_SUBLINK') {
      this.#checkCollected([first])
      return { ...this.#collected(collected(first)), written: Math.max(WRITTEN_ROW, first.written ?? 0) }
    }
    return subLinkType === 'EXPR_SUBLINK' ? notMade(first) : FIXED
  }

  #call(call: Struct<'FuncCall'>): Size {
    const { funcname, args = [], ...rest } = call
    const [name = ''] = words(funcname).slice(-1)
    const sizes = this.#each(args)
    const { agg_order, ...more } = rest
    const ordered = this.#parts({ agg_order })
    const others = total([ordered, this.#parts(more)])
    if (call.agg_within_group ?? call.agg_order ?? call.agg_distinct) {
      this.#sort([...sizes, others])
      this.#keep([...sizes, others], call.agg_within_group ? SORTED : SORTS)
      if (call.agg_distinct) for (const size of sizes) this.#key(size)
    }
    if (call.agg_within_group ?? call.agg_order ?? call.over) this.#key(others)
    if (!SKIMS.has(name)) {
      this.#decompress(args, sizes, { frees: (size) => SKIMS_TEXT.has(name) && size.stored === 'text' })
    }
    if (!SKIMS.has(name) && !SKIMS_TEXT.has(name)) {
      for (const size of sizes) this.#scan(size, CALL_COST, UNMEASURED.has(name) ? CALL_COST : 0)
    }
    this.#scanJson(name, sizes, args)
    const kept = keptByCall(name, call.func_variadic === true)
    for (const size of sizes) this.#keepArgument(size, kept)
    if (WRITES.test(name)) for (const size of sizes) this.#write(size)
    if (takesPath(name) && sizes[0]) this.#keepPath(sizes[0], args[1])
    if (name === 'regexp_split_to_array' && sizes[0] && maySplitLetters(args[1])) {
      this.#keepArgument(sizes[0], SPLIT_LETTERS, SPLIT_LETTERS)
    }
    if (WORD_FUNCTIONS.test(name)) this.#noteWords(sizes[1], 1)
    if (WIDENS.test(name) && sizes[0]) this.#widen(sizes[0], groupsKept(name, args, sizes))
    const cost = COSTS.get(name)
    if (cost !== undefined) for (const size of sizes) this.#search(size, cost)
    if (SEARCHES.has(name)) this.#search(sizes[0], Math.min(lengthOf(args[1]) ?? 0, FREE_BYTES))
    if (DIVIDES.has(name)) this.#divide(sizes)
    if (POWERS.has(name)) this.#power(args, sizes)
    if (ORDERED.has(name)) this.#compare('<', sizes)
    if (name === 'concat') this.#note(args[0])
    if (this.#growing.has(call) && this.states !== 'long') this.states = sizes.some(isLong) ? 'long' : 'stored'
    if (COUNTS.has(name)) return FIXED
    if (name === 'factorial') return LONG_NUMBER
    if (name === 'round' || name === 'trunc') return rounded(args, sizes)
    if (POWERS.has(name)) return power(args, sizes)
    if (NUMERIC_FUNCTIONS.has(name)) return computed(args, sizes, LONG_RESULTS.has(name))
    if (SUMS.has(name)) return { ...asNumber(total(sizes)), ...NUMBER }
    if (COMPUTES.has(name)) return { ...scaled(total(sizes), name === 'percentile_cont' ? FLOAT_GROWTH : 1), ...NUMBER }
    const found = CHOOSES.has(name) ? chosen(ordered, sizes) : result(call, sizes, this.#paramBytes)
    const made = this.#isLimited ? shortened(name, args, found) : found
    const before = [...sizes, ordered].reduce<Joined | undefined>(
      (all, size) => bothJoined(all, size.joined),
      undefined,
    )
    const joined = (made.columns && joinedBy(name, args)) ?? afterSplit(before, name, args[1])
    const isStretched = name === 'repeat' && sizes[0]?.own === 0 && before === undefined
    const given = made.given !== undefined && joinedBy(name, args) ? PARAMS_MAX : made.given
    const written = writtenBy(name, total([...sizes, ordered]).written)
    // The elements of an array are short numbers, but the text of it may be a long one.
    const keeps = made.kind === 'number' || KEEPS_ELEMENTS.test(name)
    const digits = keeps ? made.digits : undefined
    const isKept = (keeps || !made.digits) && written === made.written
    const isSame = made.joined === joined && !isStretched && given === made.given && isKept
    const size = isSame ? made : { ...made, joined, isStretched, given, digits, hasNumbers: undefined, written }
    if (!isCollecting(call)) return size
    this.#checkCollected(sizes)
    // Geometries are compared by their boxes, and not each point with each point.
    return this.#collected(AGGREGATES.has(name) ? size : { ...collected(size), isMany: false }, call.over !== undefined)
  }

  #each(nodes: readonly Node[] | undefined): Size[] {
    return (nodes ?? []).map((node) => this.size(node))
  }

  /** Returns the sum of the sizes of all parts. */
  #parts(value: unknown): Size {
    const sizes: Size[] = []
    for (const part of Object.values(value ?? {})) {
      if (Array.isArray(part)) for (const each of part) sizes.push(this.#part(each))
      else if (typeof part === 'object' && part !== null) sizes.push(this.#part(part))
    }
    return total(sizes)
  }

  #part(part: unknown): Size {
    if (!isObject(part)) return NOTHING
    if (isSelect(part)) return total(this.select(part.SelectStmt))
    return isExpression(part) ? this.size(part) : this.#parts(part)
  }

  /** Visits what a query groups by. A row in it is a list of values, and no value. */
  #groups(nodes: readonly Node[]): void {
    for (const node of nodes) {
      const inner = node.RowExpr?.args ?? node.GroupingSet?.content
      if (inner) this.#groups(inner)
      else this.#key(this.#part(node))
    }
  }
}

/** A row of which a step of the plan keeps copies. */
interface KeptRow {
  readonly row: readonly Size[]
  readonly copies: number
}

/** What one more read of a WITH … AS NOT MATERIALIZED makes and keeps, and whether the WITH was read before. */
interface Copy {
  readonly made: Made
  readonly kept: readonly KeptRow[]
  readonly limited: readonly LimitedSort[]
  isRead: boolean
}

/** The copies of a row that a window, DISTINCT, UNION or GROUP BY keeps (nodeWindowAgg.c, nodeAgg.c). */
const SLOTS = 3
/**
 * The rows that a sort on disk keeps while it merges (tuplesort.c, with a work_mem of 4 MB). The next sort then keeps
 * only one row, so only one sort counts.
 */
const SORTED = 16

/** The copies of a value that each aggregate with DISTINCT or ORDER BY keeps, because all of them sort at the same time. */
const SORTS = 6

/** Returns whether a row contains the value itself, and not a reference to it. */
function isKept({ stored, kind, own, times }: Size): boolean {
  return !stored && kind !== 'fixed' && own + times > 0
}

/** The decimal digits in a byte of a number (numeric.c). */
const DIGITS_OF_A_BYTE = 2

/** Returns the number of joins in FROM. */
function joinsIn(items: readonly Node[] | undefined): number {
  return (items ?? []).reduce((sum, { JoinExpr: join }) => sum + (join ? joinsIn(sidesOf(join)) + 1 : 1), 0) - 1
}

function sidesOf({ larg, rarg }: Struct<'JoinExpr'>): readonly Node[] {
  return [larg, rarg].flatMap((side) => (side ? [side] : []))
}

/** Returns the number of different windows of a query. */
function windowsIn({ targetList, sortClause }: SelectStmt): number {
  const windows = new Set<string>()
  addWindows([targetList, sortClause], windows)
  return windows.size
}

function addWindows(value: unknown, windows: Set<string>): void {
  if (!isNode(value) || value.SubLink) return
  const { over } = value.FuncCall ?? (value.JsonArrayAgg ?? value.JsonObjectAgg)?.constructor ?? {}
  if (over) windows.add(JSON.stringify(over))
  for (const part of Object.values(value)) addWindows(part, windows)
}

/** Returns the most grouping sets that PostgreSQL computes at the same time. */
function setsIn(nodes: readonly Node[]): number {
  return nodes.reduce(
    (sum, { GroupingSet: set }) => sum + (set ? 1 + (set.content?.length ?? 0) + setsIn(set.content ?? []) : 0),
    0,
  )
}

/** Returns the bytes of a value that come from constants. A number of a fixed type is short. */
function ownBytes({ own, kind }: Size): number {
  return kind === 'fixed' ? 0 : own
}

/** Operators of LIKE and ILIKE. */
const LIKES = /^!?~~\*?$/
/** Operators and functions that compare texts by their collation. */
const ORDERS = /^[<>]=?$/
const ORDERED: ReadonlySet<string> = new Set(['max', 'min', 'width_bucket'])
/** Functions that make dates and times. */
const MAKES_TIMES = /^(?:age|date_\w+|justify_\w+|make_\w+|timezone|to_date|to_timestamp)$/
/** The time that ICU takes for a byte of a text that is hard to compare, in searches for one byte. */
const ICU_COST = 128
/** A text of so many copies of stored values needs no limit. */
const FREE_COMPARED = 3
/** So many copies are counted at most, if their number is an assumption. */
const ASSUMED_COPIES = 32
/** The assumed number of elements of an array. */
const ELEMENTS = 1_000

/** Returns the number of elements of the array of ANY or ALL. */
function elementsIn(array: Node | undefined): number {
  return array?.A_ArrayExpr?.elements?.length ?? ELEMENTS
}

const EQUALITIES = /^(?:=|<>|!=)$/
/** The time that a test for equality, and any other call, take for a byte, in searches for one. */
const EQUAL_COST = 1
const CALL_COST = 4
/** Functions that read a collected value of any length in full. */
const UNMEASURED: ReadonlySet<string> = new Set([
  ...['length', 'char_length', 'character_length', 'textlen', 'max', 'min'],
])
/** Functions and operators that keep up to 16 bytes for each byte of a json value, until the row ends. */
const READS_JSON = /^(?:->>?|#>>?|json_(?:array_|each|extract|object_keys|populate|strip|to_record).*)$/
/** Each of them keeps so many times the bytes of its json value. */
const JSON_COPIES = 16
/** Functions that build a jsonb value from a json value. */
const MAKES_JSONB = /^(?:to_jsonb|jsonb_(?:agg|build|object)\w*)$/
/** Each of them counts as eight calls that take 4 MB. */
const JSON_TAKEN = 7 * 4_194_304
/** Operators that free most values after they have decompressed them: see `isUnfreed`. */
const COMPARISONS = /^(?:=|<>|!=|<|>|<=|>=)$/
/** The assumed number of elements of a list in x = ANY (list). */
const LIST_LENGTH = 64
/** Functions that read no more than the head of a stored value, and those that do so only for strings. */
const SKIMS: ReadonlySet<string> = new Set(['pg_column_size', 'count', 'num_nulls', 'num_nonnulls'])
const SKIMS_TEXT: ReadonlySet<string> = new Set(['octet_length', 'bit_length'])
/** Functions that keep four bytes for each character of their text, and a place of eight bytes for each match. */
const WIDENS = /^regexp_(?:count|instr|substr|match|matches|split_to_array|split_to_table)$/
/** The maximum number of groups in a made pattern that the printed text measures: see roughSize() in pattern-size.ts. */
const GROUPS_MADE = 230

/** Returns how many groups of a pattern a function keeps for each match (setup_regexp_matches() in regexp.c). */
function groupsKept(name: string, args: readonly Node[], sizes: readonly Size[]): number {
  const [, pattern, flags] = args
  const matches = name === 'regexp_matches' && flags !== undefined && (literalText(flags) ?? 'g').includes('g')
  const isPart = /^regexp_(?:instr|substr)$/.test(name) && args.length > 5
  if (!pattern || !(matches || isPart)) return 0
  const text = literalText(pattern)
  if (text !== undefined) return groupsIn(text)
  return pattern.ParamRef ? GROUPS_MAX : Math.max(GROUPS_MADE, (sizes[1]?.own ?? 0) / 2)
}

/** Returns how many groups of a pattern may contain each other. */
function groupsNested(name: string, args: readonly Node[]): number {
  const pattern = args[1]?.TypeCast?.arg ?? args[1]
  if (!pattern || pattern.ParamRef) return NESTED_MAX
  const text = literalText(pattern)
  return text === undefined ? GROUPS_MADE : readRegex(text, { flags: flagsOf(name, args) }).nested
}

/** The maximum run of punctuation in a text that is sorted: one comparison takes 1.7 s in glibc 2.36. */
export const SORTED_MAX = 40_960
/** The maximum run of punctuation in a parameter (param-values.ts). */
export const PUNCTUATION_MAX = 1_000

/** Returns whether the value may be or contain a text that a collation compares. */
function isText(size: Size): boolean {
  return (size.kind === undefined || size.kind === 'json') && !isComputedNumber(size) && !isNumber(size)
}

/** Returns whether the value is computed with numbers, and is no document of which parts are left out. */
function isComputedNumber({ isComputed, isDocument }: Size): boolean {
  return isComputed === true && isDocument !== true
}

/** Returns the size of a document of which an operator leaves out parts, so that the punctuation of others may join. */
function partsLeft(size: Size): Size {
  return { ...size, isDocument: true, joined: size.columns ? 'any' : size.joined }
}

function bothJoined(a: Joined | undefined, b: Joined | undefined): Joined | undefined {
  return a === undefined || a === b ? b : b === undefined ? a : 'any'
}

/** Returns whether the value may be a text whose length only the database knows. */
function isOpen(size: Size): boolean {
  return isText(size) && (isCollected(size) || size.grown !== undefined)
}

/** Returns the longest run of punctuation that constants and parameters may put into a value. */
function punctuationIn(size: Size): number {
  return isText(size) && size.isStretched !== true ? (size.letters ?? size.own) + (size.given ?? 0) : 0
}

/** So many steps of comparisons need a limit. */
const MANY_STEPS = 1e8
/** The bytes of all parameters together. A function may take the letters out of them. */
export const PARAMS_MAX = 65_536
/** The limit on the bytes of a value that consists of parameters. */
const GIVEN_MAX = 201_326_592

/** Functions that return arrays, or elements of them. */
const KEEPS_ELEMENTS = /^(?:unnest|array_(?!to_)\w+|trim_array)$/

/** Returns the result of repeat() with the lower limit that the printed text has if long texts are compared. */
function shortened(name: string, [text, count]: readonly Node[], size: Size): Size {
  const isKnown = text && literalText(text) !== undefined && wholeNumber(count) !== undefined
  const isShort = name === 'repeat' && size.own === REPEATED_MAX && !isKnown
  return isShort ? { ...size, own: REPEATED_SORTED_MAX } : size
}

/** Functions of numbers whose work is the product of the digits of their arguments. */
const DIVIDES: ReadonlySet<string> = new Set([
  ...['div', 'mod', 'sqrt', 'gcd', 'lcm', 'width_bucket'],
  ...['stddev', 'stddev_pop', 'stddev_samp', 'variance', 'var_pop', 'var_samp'],
])
const POWERS: ReadonlySet<string> = new Set(['pow', 'power'])
/** Operators of pg_trgm. */
const TRIGRAMS = /^(?:%|<%|%>|<<%|%>>|<->|<<->|<->>|<<<->|<->>>)$/
/** A tsquery of 60 kB takes 0.45 s: three of them are allowed. */
const QUERY_BYTES_OF_A_STEP = 13
/** The time that these operators take for a byte, in searches for one byte. */
const TRIGRAM_COST = 50
/** The same for a cast of a text to an array. */
const LIST_COST = 8
/** The same for slow functions, and for casts of a text to slow types. */
const COSTS: ReadonlyMap<string, number> = new Map([
  ...['similarity', 'word_similarity', 'strict_word_similarity', 'show_trgm'].map(
    (name) => [name, TRIGRAM_COST] as const,
  ),
  ...['tsvector', 'tsquery', 'to_tsvector', 'to_tsquery', 'ts_headline'].map((name) => [name, 25] as const),
  ...['plainto_tsquery', 'phraseto_tsquery', 'websearch_to_tsquery'].map((name) => [name, 25] as const),
  ...['string_to_array', 'jsonb'].map((name) => [name, 15] as const),
  ...['array_to_tsvector', 'translate', 'replace'].map((name) => [name, 5] as const),
])
/** The copies of a text that the parts of jsonb take while it is built from the text. */
const JSONB_COPIES = 24
function isNothingIn({ own, times }: Size): boolean {
  return own === 0 && times === 0
}

/** Returns whether the type of a value is known to be a number or another type of fixed size. */
function isNumber({ kind, isNumeric }: Size): boolean {
  return kind === 'fixed' || kind === 'number' || isNumeric === true
}

/** Returns whether PostgreSQL makes a new value of this size for the expression. */
function makes({ FuncCall: call, A_Expr: expr, TypeCast: cast, ...rest }: Node, size: Size): boolean {
  if (isNumber(size) || (size.own === 0 && size.times === 0)) return false
  if (call) return !isCollecting(call)
  if (expr) return expr.kind !== 'AEXPR_NULLIF'
  // A constant is read once, before the first row.
  if (cast) {
    const isNumeric =
      words(cast.typeName?.names).at(-1) === 'numeric' && (cast.typeName?.arrayBounds ?? []).length === 0
    return cast.arg?.A_Const === undefined && cast.arg?.ParamRef === undefined && !isNumeric
  }
  const [tag] = Object.keys(rest)
  const isArray = rest.SubLink?.subLinkType === 'ARRAY_SUBLINK'
  return tag !== undefined && !MAKES_NOTHING.has(tag) && !isArray
}

/** Nodes that pass values on, or whose values are counted elsewhere. All others make a value. */
const MAKES_NOTHING: ReadonlySet<string> = new Set([
  ...['A_Const', 'ColumnRef', 'ParamRef', 'CaseExpr', 'CoalesceExpr', 'MinMaxExpr', 'CollateClause', 'NamedArgExpr'],
  ...['JsonArrayAgg', 'JsonObjectAgg'],
])

/** Returns whether the value of an expression may be a stored value, as it is stored. */
function passes({ A_Expr: expr, ...rest }: Node): boolean {
  return expr ? expr.kind === 'AEXPR_NULLIF' : PASSES.some((tag) => tag in rest)
}

const PASSES = ['ColumnRef', 'CaseExpr', 'CoalesceExpr', 'MinMaxExpr', 'CollateClause', 'NamedArgExpr']

/** Returns whether the planner may compute the outputs of a sub-query again where a column of it is read. */
function mayBeMerged({ limitOffset, limitCount }: SelectStmt): boolean {
  return !(limitOffset ?? limitCount)
}

const hasAggregate = remembered((part) => {
  if ('SubLink' in part) return isMeasuring(part) ? undefined : false
  return isCall(part) && isAggregate(part.FuncCall) ? true : undefined
})

function isCall(part: object): part is { readonly FuncCall: Struct<'FuncCall'> } {
  return 'FuncCall' in part
}

/** A part of AND, and how many copies of values it makes. */
interface Part {
  readonly node: Node
  readonly copies: number
}

function copiesOf(parts: readonly Part[]): number {
  return parts.reduce((sum, { copies }) => sum + copies, 0)
}

/** Parts of AND that make so many copies of values together may stay apart. */
const FREE_COPIES = 8

/** Returns the parts of AND that stay apart, because PostgreSQL may join tables or use an index by them. */
function apart(parts: readonly Part[]): ReadonlySet<Part> {
  const links = parts.filter(({ node }) => isLink(node))
  const others = parts.filter(({ node: { A_Expr: expr } }) => isGiven(expr?.lexpr) || isGiven(expr?.rexpr))
  const free = new Set<Part>()
  let copies = 0
  for (const part of [...links, ...others]) {
    if (free.has(part) || copies + part.copies > FREE_COPIES) continue
    free.add(part)
    copies += part.copies
  }
  return free
}

function isGiven(node: Node | undefined): boolean {
  const value = node?.TypeCast?.arg ?? node
  return value?.A_Const !== undefined || value?.ParamRef !== undefined
}

/** Returns whether a condition is EXISTS, IN (SELECT …) or the like, of which the planner may make a join. */
function asksRows({ SubLink: link, BoolExpr: { boolop, args } = {} }: Node): boolean {
  return link !== undefined || (boolop === 'NOT_EXPR' && args?.[0]?.SubLink !== undefined)
}

function isLink({ A_Expr: { kind, name, lexpr, rexpr } = {} }: Node): boolean {
  const isEqual = kind === 'AEXPR_OP' && words(name).at(-1) === '='
  return isEqual && lexpr !== undefined && rexpr !== undefined && !rexpr.A_Const && !lexpr.A_Const
}

function notMade(size: Size): Size {
  return size.made ? { ...size, made: undefined } : size
}

/** Returns how many digits a number may have. */
function digitsOf(size: Size): number {
  if (size.digits !== undefined) return size.digits
  const digits = ownBytes(size) + size.times * STORED_BYTES
  return isOfAnyLength(size) ? Math.max(digits, NUMBER_BYTES) : digits
}

/** Returns whether a number may come from a parameter, from collected rows, or from an iteration of a recursive query. */
function isOfAnyLength(size: Size): boolean {
  // A sorted collection is a multirange.
  if (size.kind === 'fixed' || size.isSorted === true) return false
  const isOfRows = isCollected(size) && (size.columns === undefined || !size.isMany)
  return size.given !== undefined || size.grown !== undefined || size.before.size > 0 || isOfRows
}

/** Returns how many stored numbers a number may be as long as. Numbers in stored texts do not count. */
function numbersIn(size: Size): number {
  return size.digits === undefined && size.kind !== 'fixed' ? size.times : 0
}

/** What a sort with LIMIT keeps. */
interface LimitedSort {
  readonly query: SelectStmt
  readonly copies: number
  readonly own: number
}

/**
 * Returns what a sort with LIMIT keeps of rows with these values, if PostgreSQL sorts so many parts of the rows. A value
 * as the table stores it is not read, so that only a reference to it is kept.
 */
function limitedSort(query: SelectStmt, values: readonly Size[], parts: number, paramBytes: number): LimitedSort {
  const rows = (rowsKept(query) ?? 0) * parts
  const kept = new MadeValues(paramBytes)
  for (const size of values) {
    if (isNumber(size)) kept.add({ own: (size.digits ?? ownBytes(size)) / DIGITS_OF_A_BYTE })
    else if (!size.stored) kept.addCopies(size, size.times, { own: size.own })
  }
  return { query, copies: kept.copies * rows, own: kept.own * rows }
}

/** Returns the share of the limits that a sort takes. */
function loadOf({ copies, own }: LimitedSort): number {
  return Math.max(copies / KEPT_COPIES, own / KEPT_BYTES)
}

function isLong(size: Size): boolean {
  return ownBytes(size) > LONG_VALUE || size.times > LONG_COPIES
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}

function isSelect(value: Readonly<Record<string, unknown>>): value is { readonly SelectStmt: SelectStmt } {
  return isObject(value['SelectStmt'])
}

/** Nodes that are no expressions. All others are. */
const NO_EXPRESSIONS: ReadonlySet<string> = new Set([
  ...['A_Indices', 'A_Star', 'Alias', 'BitString', 'Boolean', 'CTECycleClause', 'CTESearchClause', 'CaseWhen'],
  ...['ColumnDef', 'CommonTableExpr', 'Float', 'GroupingSet', 'Integer', 'JoinExpr', 'JsonAggConstructor'],
  ...['JsonArgument', 'JsonBehavior', 'JsonFormat', 'JsonKeyValue', 'JsonOutput', 'JsonReturning', 'JsonTable'],
  ...['JsonTableColumn', 'JsonTablePathSpec', 'JsonValueExpr', 'List', 'RangeFunction', 'RangeSubselect'],
  ...['RangeTableSample', 'RangeVar', 'ResTarget', 'SelectStmt', 'SortBy', 'String', 'TypeName', 'WindowDef'],
  ...['WithClause'],
])

function isExpression(value: Readonly<Record<string, unknown>>): value is Node {
  const [name = ''] = Object.keys(value)
  return /^[A-Z]/.test(name) && !NO_EXPRESSIONS.has(name)
}

/** Binary operators that return a boolean, for all types. */
const COMPARES = /^(=|<>|!=|<|>|<=|>=|~~|!~~|~~\*|!~~\*|~|~\*|!~|!~\*|@>|<@|\?|\?\||\?&|@@|@\?)$/
/** Operators that return a number if both sides are numbers. */
const NUMERIC_OPERATORS: ReadonlySet<string> = new Set(['+', '-', '*', '/', '%', '^', '@', '|/', '||/', '&', '|', '#'])
/** Functions that return a number if their arguments are numbers. */
const NUMERIC_FUNCTIONS: ReadonlySet<string> = new Set([
  ...['abs', 'ceil', 'ceiling', 'div', 'exp', 'floor', 'gcd', 'lcm', 'ln', 'log', 'log10', 'mod', 'pow'],
  ...['power', 'random', 'sign', 'sqrt', 'trim_scale', 'generate_series', 'numeric', 'to_number'],
])
/** Functions in NUMERIC_FUNCTIONS whose result may have far more digits than their arguments. */
const LONG_RESULTS: ReadonlySet<string> = new Set(['exp', 'pow', 'power', 'numeric', 'to_number'])
/** The result of a function that computes with numbers. */
const NUMBER = { isComputed: true, isDocument: undefined, joined: undefined } as const
/** Operators and functions whose result is computed with numbers: see `isComputed`. */
const COMPUTES: ReadonlySet<string> = new Set([...['+', '-', '*', '/', '%', 'corr', 'percentile_cont']])
/** Functions that return an integer. */
const COUNTS: ReadonlySet<string> = new Set([
  ...['count', 'length', 'char_length', 'character_length', 'octet_length', 'bit_length', 'strpos', 'position'],
  ...['cardinality', 'array_length', 'pg_column_size', 'row_number', 'rank', 'dense_rank', 'ntile'],
])
/** The longest text of a float8 as a numeric. */
const FLOAT_BYTES = 400
const FIXED_TYPES: ReadonlySet<string> = new Set([
  ...['bool', 'int2', 'int4', 'int8', 'float4', 'float8', 'oid', 'date', 'time', 'timetz', 'timestamp', 'timestamptz'],
  ...['interval', 'uuid', 'inet', 'cidr', 'macaddr', 'macaddr8', 'money', 'point', 'box', 'circle', 'line', 'lseg'],
])

/** The maximum number of comparisons: elements of one side times elements of the other. */
const STEPS_MAX = 300_000_000
/** The assumed number of elements of a collection of unknown length. */
const MANY = 100_000

/** Throws Refusal if two collections may be too long to compare element by element. */
function checkSteps(what: string, sides: readonly Size[]): void {
  const [a = 0, b = 0] = sides.map(elements)
  if (sides.length === 2 && a * b > STEPS_MAX) throw eachWithEach(what, a * b)
}

/** Returns the maximum number of elements. An element takes at least two bytes as text: `1,`. */
function elements({ own, times, isMany, isSorted }: Size): number {
  return Math.max(isMany && isSorted !== true ? MANY : 0, (own + times * STORED_BYTES) / 2)
}

/** Aggregates that compute a number from numbers. */
const SUMS: ReadonlySet<string> = new Set([
  ...['avg', 'sum', 'stddev', 'stddev_pop', 'stddev_samp', 'variance', 'var_pop', 'var_samp'],
])
/** Aggregates whose result is no larger than one of their values, or a number with little more digits. */
const NARROWING: ReadonlySet<string> = new Set([
  ...['any_value', 'avg', 'bit_and', 'bit_or', 'bit_xor', 'bool_and', 'bool_or', 'count', 'every', 'max', 'min', 'sum'],
  ...['corr', 'covar_pop', 'covar_samp', 'percentile_cont', 'stddev', 'stddev_pop'],
  ...['stddev_samp', 'variance', 'var_pop', 'var_samp'],
])
const FIXED_RESULTS: ReadonlySet<string> = new Set([
  ...['length', 'char_length', 'character_length', 'octet_length', 'bit_length', 'strpos', 'position', 'ascii', 'md5'],
  ...['sha224', 'sha256', 'sha384', 'sha512', 'starts_with', 'is_normalized', 'cardinality', 'array_length', 'count'],
  ...['row_number', 'rank', 'dense_rank', 'ntile', 'percent_rank', 'cume_dist', 'regexp_count', 'regexp_like'],
  ...['date_trunc', 'date_part', 'extract', 'age', 'now', 'jsonb_array_length', 'json_array_length', 'hashtext'],
  ...['set_config', 'current_setting'],
])

/** Aggregates that return values that WITHIN GROUP orders: one of them, or one for each element of an array. */
const CHOOSES: ReadonlySet<string> = new Set(['mode', 'percentile_disc'])
/** The text of a fraction may have two bytes, as in `0,`. The text of a float8 with a comma may have 25. */
const FRACTION_BYTES = 2
const FLOAT_GROWTH = 13

/** Returns the size of what CHOOSES return. */
function chosen(ordered: Size, [fraction]: readonly Size[]): Size {
  if (!fraction || fraction.kind !== undefined) return ordered
  return scaled(ordered, Math.max(1, (fraction.own + fraction.times * STORED_BYTES) / FRACTION_BYTES))
}

/** Returns the size of a function's result. */
function result(call: Struct<'FuncCall'>, sizes: readonly Size[], paramBytes: number): Size {
  const { args = [], funcname, func_variadic: isVariadic } = call
  const [name = ''] = words(funcname).slice(-1)
  const [first = NOTHING, second = NOTHING, third = NOTHING] = sizes
  if (AGGREGATES.has(name)) {
    if (name === 'count' || name.startsWith('regr_')) return FIXED
    if (NARROWING.has(name)) return greatest(sizes)
    const values = collected(name === 'string_agg' ? total(sizes) : escaped(sizes))
    const digits = sizes.every(({ kind }) => kind === 'fixed') ? FIXED_BYTES : undefined
    return { ...values, digits, isSorted: RANGES.has(name), kind: name.startsWith('json') ? 'json' : undefined }
  }
  if (SEEKING.has(name)) checkSteps(`function ${name}()`, sizes)
  if (FIXED_RESULTS.has(name)) return FIXED
  switch (name) {
    case 'repeat':
      return isOnce(args[1]) ? first : repeated(first, wholeNumber(args[1]))
    case 'lpad':
    case 'rpad':
      return { ...NOTHING, own: 4 * (wholeNumber(args[1]) ?? COUNT_MAX) }
    case 'left':
    case 'right':
      return cut(first, countIn(args[1]))
    case 'substr':
    case 'substring':
      return cut(first, countIn(args[2]))
    case 'array_fill':
      // An element takes at least four bytes: its length.
      return scaled({ ...first, own: Math.max(first.own, 4) }, 2 * (args[1] ? (elementCount(args[1]) ?? COUNT_MAX) : 1))
    case 'replace':
      return replaced(first, lengthOf(args[1]) ?? 1, third, 0, paramBytes)
    case 'regexp_replace': {
      const copies = backReferences(args[2]) + (mayInsert(name, args) ? 1 : 0)
      return replaced(first, 1, third, copies, paramBytes)
    }
    case 'string_to_array':
    case 'regexp_split_to_array':
      // A quotation mark becomes five: `"\"",`.
      return { ...scaled(total(sizes), TEXT_ELEMENT), isMany: true }
    case 'parse_ident':
      // Each letter and its point become a text and a copy of it.
      return { ...scaled(total(sizes), PARSED_IDENTIFIER), isMany: true }
    case 'translate':
      return scaled(first, isAscii(args[2]) ? 1 : 4)
    case 'format':
      return formatted(args[0], sizes)
    case 'concat_ws':
      if (isVariadic === true) return withBetween(total(sizes.slice(1)), first, paramBytes)
      return total([...sizes.slice(1), scaled(first, Math.max(sizes.length - 2, 0))])
    case 'array_to_string':
      return withBetween(first, total([second, third]), paramBytes)
    case 'array_replace':
    case 'ts_rewrite':
      return replaced(first, 1, third, 0, paramBytes)
    case 'ts_headline':
      return headline(args, sizes, paramBytes)
    case 'quote_literal':
    case 'quote_ident':
    case 'quote_nullable':
    case 'encode':
    case 'convert_to':
    case 'decode':
    case 'hstore':
      // Each letter may be escaped, and a byte is printed as two digits.
      return scaled(total(sizes), 2)
    case 'regexp_match':
    case 'regexp_matches':
      // Each group is copied twice, also the groups inside it.
      return scaled(total(sizes), 2 * Math.max(1, groupsNested(name, args)))
    case 'array_append':
      return total([first, scaled(second, 2)])
    case 'array_prepend':
      return total([scaled(first, 2), second])
    case 'to_json':
    case 'to_jsonb':
    case 'array_to_json':
    case 'row_to_json':
    case 'json_build_array':
    case 'jsonb_build_array':
    case 'json_build_object':
    case 'jsonb_build_object':
    case 'json_object':
    case 'jsonb_object':
      return jsonOf(sizes)
    case 'jsonb_path_query_array':
    case 'jsonb_path_query_array_tz':
      return scaled(total(sizes), args.some(returnsLevels) ? LEVELS : 1)
    case 'jsonb_pretty':
      // Each value is on a line of its own, indented by four spaces for each level around it.
      return { ...scaled(first, 2), own: first.own * (2 + 4 * Math.min(first.own, JSON_DEPTH)) }
    case 'convert_from':
    case 'convert':
      return scaled(first, 3)
    case 'to_char':
      return total([first, scaled(second, 16)])
    default: {
      // With one argument, the name of a type is a cast.
      const isCast = name.endsWith('multirange') && args.length === 1
      return {
        ...scaled(total(sizes), isCast ? memoryOf(name, false, args[0]?.A_Const !== undefined) : 1),
        isNumeric: undefined,
      }
    }
  }
}

/** Returns whether the pattern of regexp_split_to_array() may split a text into single letters. */
function maySplitLetters(pattern: Node | undefined): boolean {
  const text = pattern && literalText(pattern)
  return text === undefined || mayMatchNothing(text)
}

/** Returns the size of a value of a fixed type, which is computed from others. */
function fixed(sizes: readonly Size[]): Size {
  return sizes.some(({ isGuess }) => isGuess === true) ? { ...FIXED, isGuess: true } : FIXED
}

/** Returns the size of a sum or an average, which is numeric for whole numbers too. */
function asNumber(size: Size): Size {
  return size.kind === 'fixed' ? { ...size, kind: 'number' } : size
}

/**
 * Returns the size after repetition. A known count multiplies the size if argument-bounds.ts leaves the result
 * unbounded. Otherwise the database stops a query whose result exceeds REPEATED_MAX bytes.
 */
function repeated(text: Size, count: number | undefined): Size {
  if (count === REFUSED_COUNT) return NOTHING
  const isKnown = count !== undefined && (count <= FREE_COUNT || (text.times === 0 && text.before.size === 0))
  return isKnown ? scaled(text, Math.max(count, 0)) : { ...NOTHING, own: REPEATED_MAX }
}

/** Returns the value of a constant that is known to be a number: in substring(x FROM y FOR '5'), '5' is a letter. */
function countIn(node: Node | undefined): number | undefined {
  const isNumber = (node?.A_Const?.ival ?? node?.A_Const?.fval) !== undefined
  const isCast = /^int[248]$/.test(words(node?.TypeCast?.typeName?.names).at(-1) ?? '')
  return isNumber || isCast ? wholeNumber(node) : undefined
}

function cut(size: Size, characters: number | undefined): Size {
  return characters === undefined || characters < 0 ? size : { ...NOTHING, own: 4 * characters }
}

/** Returns whether the value consists of parameters and constants. */
function isGivenOnly(size: Size): boolean {
  return size.given !== undefined && !size.columns && !isCollected(size)
}

/** Returns the size of the elements of an array with another value between them. */
function withBetween(array: Size, between: Size, paramBytes: number): Size {
  const own = array.own * Math.max(1, between.own)
  const isGiven = isGivenOnly(array) && isGivenOnly(between)
  const isAssumed = !isGiven && (between.times > 0 || array.isAssumed)
  const { times, columns } = total([array, scaled(between, isGiven ? paramBytes : STORED_BYTES)])
  const { given } = total([array, between])
  return { ...array, own, times, columns, given, isAssumed }
}

/**
 * Returns the size after every `length` letters are replaced by `by`, which contains `copies` copies of the matched
 * text.
 */
function replaced(text: Size, length: number, by: Size, copies: number, paramBytes: number): Size {
  const grows = Math.max(1, by.own / length + copies)
  const isGiven = isGivenOnly(text) && isGivenOnly(by)
  const places = (text.own + text.times * (isGiven ? paramBytes : STORED_BYTES)) / length
  const { times, before, columns } = scaled(by, places)
  const put: Size = { ...NOTHING, times, before, columns, given: by.given }
  return total([scaled(text, grows), by.times > 0 && !isGiven ? { ...put, isAssumed: true } : put])
}

/** Returns the size of a headline, which has marks around each word that is found. */
function headline(args: readonly Node[], sizes: readonly Size[], paramBytes: number): Size {
  // Only a configuration is a constant: see text-search.ts.
  const first = args[0]?.A_Const ? 1 : 0
  const options = args[first + 2]
  const text = options && literalText(options)
  const marks = text !== undefined && /sel|delimiter/i.test(text) ? text.length : 0
  return replaced(sizes[first] ?? NOTHING, 2, { ...NOTHING, own: '<b></b>'.length + marks }, 1, paramBytes)
}

/** Returns whether regexp_replace() may keep the letters of a text, and insert a text between them. */
function mayInsert(name: string, args: readonly Node[]): boolean {
  const [, pattern, by, flags] = args
  if (!flags || (by && literalText(by) === '')) return false
  const [text, read] = [pattern && literalText(pattern), literalText(flags)]
  if (text === undefined || read === undefined || !/^[gimnpsw]*$/.test(read)) return true
  return read.includes('g') && mayMatchNothing(text)
}

/** Returns whether a regular expression may match no letter. It may also return true for one that cannot. */
function mayMatchNothing(pattern: string): boolean {
  let text = pattern
    .replaceAll(/\\(?:[AmMyYZ]|\d+)/g, '')
    .replaceAll(/\\./gs, 'x')
    .replaceAll(CLASSES_WITHIN, 'x')
    .replaceAll('(?:', '(')
  if (text.includes('(?')) return true
  for (let before = ''; before !== text;) {
    before = text
    text = text.replaceAll(/\(([^()]*)\)/g, (_, inner: string) => (needsLetter(inner) ? 'x' : ''))
  }
  return !needsLetter(text)
}

/** Returns whether each alternative, which has no groups, has a part that is not optional. */
function needsLetter(text: string): boolean {
  return text.split('|').every((each) => {
    const parts = each.replaceAll(/.(?:[*?]|\{0*(?:,\d*)?\})\??/gs, '').replaceAll(/\{[\d,]*\}/g, '')
    return /[^+^$]/.test(parts)
  })
}

function formatted(format: Node | undefined, sizes: readonly Size[]): Size {
  const [text = NOTHING, ...args] = sizes
  const pattern = format && literalText(format)
  const conversions = pattern === undefined ? 64 : (pattern.match(/%(?!%)/g) ?? []).length
  const widths = (pattern?.match(/\d+/g) ?? []).reduce((sum, digits) => sum + Math.min(Number(digits), COUNT_MAX), 0)
  const stars = (pattern?.match(/\*/g) ?? []).length * COUNT_MAX
  return total([text, scaled(greatest(args), conversions), { ...NOTHING, own: widths + stars }])
}

function backReferences(node: Node | undefined): number {
  const text = node && literalText(node)
  return text === undefined ? 8 : (text.match(/\\[\d&]/g) ?? []).length
}

function lengthOf(node: Node | undefined): number | undefined {
  const text = node && literalText(node)
  return text === undefined || text === '' ? undefined : text.length
}

function isAscii(node: Node | undefined): boolean {
  const text = node && literalText(node)
  return text !== undefined && /^[\x00-\x7f]*$/.test(text)
}

/** A digit of another script counts as so many more bytes of punctuation. */
const SLOW_DIGIT_BYTES = 29

/** Returns the size of a constant. A number in it, such as 1e100, counts with all its digits. */
function literalSize(value: Struct<'A_Const'>): Size {
  if (value.ival || value.boolval || value.isnull) return FIXED
  const bits = value.bsval?.bsval
  if (bits !== undefined) return { ...NOTHING, own: 4 * bits.length }
  const isNumber = value.fval !== undefined
  const text = value.fval?.fval ?? value.sval?.sval ?? ''
  let own = Buffer.byteLength(text)
  for (const [, digits] of text.matchAll(/[\d.][eE]([-+]?\d+)/g)) {
    const power = Number(digits)
    own += power < 0 ? Math.min(-power, FRACTION_DIGITS) : Math.min(power, WHOLE_DIGITS)
  }
  if (isNumber) return { ...NOTHING, own: Math.min(own, NUMBER_BYTES), kind: 'number' }
  const slow = SLOW_DIGIT.test(text) ? [...text].filter((letter) => SLOW_DIGIT.test(letter)).length : 0
  return { ...NOTHING, own, ...(slow > 0 && { letters: own + slow * SLOW_DIGIT_BYTES }) }
}

/** Returns the size after a cast. A text of a few bytes may become a range whose two numbers are long. */
function castSize(arg: Node | undefined, size: Size, typeName: Struct<'TypeName'> | undefined): Size {
  const cast = castAs(arg, size, typeName)
  if (!NUMBER_RANGES.test(words(typeName?.names).at(-1) ?? '') || arg?.A_Const) return cast
  // Not of the cast, which counts the memory of a multirange.
  const { own, letters } = documentOf(size)
  return { ...cast, own: cast.own + own - size.own + 2 * NUMBER_BYTES, letters }
}

/** The copies of the value of a column of JSON_TABLE: as a text, in the row, and in the rows that PostgreSQL stores. */
const JSON_TABLE_COPIES = 4

/**
 * Returns the member that a path of JSON_TABLE names: `a` for $.a, and for a column a without a path. Different members
 * are separate parts of the document.
 */
function memberIn(spec: Struct<'JsonTablePathSpec'> | undefined, name: string): string | undefined {
  if (!spec) return name
  return /^\$\.([a-z_]\w*)$/i.exec(spec.string?.A_Const?.sval?.sval ?? '')?.[1]
}

const NUMBER_RANGES = /^num(?:multi)?range$/

function castAs(arg: Node | undefined, size: Size, typeName: Struct<'TypeName'> | undefined): Size {
  const name = (words(typeName?.names).at(-1) ?? '').replace(/^_/, '')
  const isArray = isArrayType(typeName)
  const [length = 0, scale = 0] = (typeName?.typmods ?? []).map((each) => Math.abs(wholeNumber(each) ?? 0))
  const elementsMax = isArray ? Math.max(1, size.own / 2 + size.times * STORED_BYTES) : 1
  const isLiteral = arg?.A_Const !== undefined
  // The server fills values of these types up to their length. For a numeric, `length` and `scale` are its digits.
  if (PADDED.has(name)) {
    const isBits = /bit$/.test(name) && arg?.A_Const === undefined
    const texts = isArray ? scaled(size, PADDED_ELEMENT) : isBits ? scaled(size, BITS_OF_A_DIGIT) : size
    return { ...texts, own: texts.own + elementsMax * Math.max(length, 1), kind: undefined }
  }
  if (FIXED_TYPES.has(name))
    return isArray ? { ...scaledMade(size, 8), digits: FIXED_BYTES } : { ...fixed([size]), before: size.before }
  if (name === 'numeric') {
    if (isArray) return isLiteral || size.hasNumbers ? size : documentOf(size)
    if (length > 0) return { ...NOTHING, own: Math.max(FIXED_BYTES, length + scale + 3), kind: 'number' }
    if (size.isComputed && size.kind === undefined) return { ...size, own: size.own + FLOAT_BYTES }
    // A short text may be a number with an exponent.
    if (isOfAnyLength(size)) return { ...LONG_NUMBER, before: size.before }
    const number = arg ? asNumber(computed([arg], [size], true)) : LONG_NUMBER
    // A text that contains nothing of the caller has at least as many letters as the number has digits.
    return size.own === 0 && number.kind === 'number' ? { ...number, digits: digitsOf(size) } : number
  }
  if (DOCUMENTS.has(name)) {
    if (!isArray || isLiteral || isList(arg)) {
      const { times, columns, parts, before } = scaled(size, name === 'hstore' && !isArray ? HSTORE_COPIES : 1)
      return {
        ...(isLiteral ? size : { ...documentOf(size), times, columns, parts, before }),
        kind: isArray ? undefined : 'json',
      }
    }
    // jsonb_in() keeps a parser for each element.
    const memory = scaled(size, JSONB_ELEMENT)
    const { own, letters } = documentOf(size)
    return { ...memory, own: memory.own + own, letters, kind: undefined }
  }
  if (name === 'json' && !isArray) return { ...size, kind: 'json' }
  if (name === 'bytea' && !isArray) return scaled(size, 2)
  if (isArray && PARSED.test(name)) return scaled(size, PARSED_ELEMENT)
  const memory = memoryOf(name, isArray, isLiteral)
  // The text of an array counted already.
  if (isArray) {
    const by = isList(arg) ? Math.ceil(memory / TEXT_ELEMENT) : memory
    return { ...(memory >= UNKNOWN ? scaledMade(size, by) : scaled(size, by)), kind: undefined }
  }
  if (name.endsWith('multirange')) return scaled(size, memory)
  if (memory >= UNKNOWN && !isNumber(size) && size.isComputed !== true) return scaledOwn(size, memory)
  return size.kind === undefined ? size : { ...size, kind: undefined }
}

/** Types whose elements take so many times their text while PostgreSQL reads an array: 2 bytes of text took 2 kB. */
const PARSED = /^ts(?:vector|query)$/
const PARSED_ELEMENT = 1_000
/** The bytes of an element of bit[] and bpchar[], for each byte of its text. */
const PADDED_ELEMENT = 8
/** The copies of a text that an hstore takes: each pair has two texts, and an entry of 40 bytes. */
const HSTORE_COPIES = 16
/** The bytes of an element of jsonb[], for each byte of its text. */
const JSONB_ELEMENT = 800
/** A hexadecimal digit becomes four bits. */
const BITS_OF_A_DIGIT = 4
/** The same for text[]. */
const TEXT_ELEMENT = 5
const PARSED_IDENTIFIER = 40
/** Types whose sizes castSize() counts. */
const COUNTED_TYPES = new RegExp(
  `^(?:lquery|${[...FIXED_TYPES, 'bit', 'varbit', 'bpchar', 'char'].join('|')})$|multirange$`,
)

function isArrayType(type: Struct<'TypeName'> | undefined): boolean {
  return (type?.arrayBounds ?? []).length > 0 || words(type?.names).at(-1)?.startsWith('_') === true
}

/** Returns whether an expression is an array, and no text of one. */
function isList(node: Node | undefined): boolean {
  if (node?.CoalesceExpr) return isList(node.CoalesceExpr.args?.[0])
  if (node?.ColumnRef) return (storedColumn(node.ColumnRef)?.kind ?? 'text') !== 'text'
  if (node?.FuncCall) return ARRAYS.test(words(node.FuncCall.funcname).at(-1) ?? '')
  if (node?.SubLink) return node.SubLink.subLinkType === 'ARRAY_SUBLINK'
  return node?.A_ArrayExpr !== undefined || isArrayType(node?.TypeCast?.typeName)
}

const ARRAYS = /^(?:array_(?!to_)|string_to_array$|regexp_split_to_array$)/

/** Returns the copies of values in a value that are no stored values. */
function copiesOfOthers({ times, columns }: Size): number {
  const stored = columns ? [...columns.of.values()].reduce((sum, count) => sum + count, 0) * columns.by : 0
  return Math.max(Math.min(times, COPIES_COUNTED) - stored, 0)
}

/** Operators that may write a side as text. */
const WRITING_OPERATORS = /^(?:\|\||->>|#>>)$/
/** The copies of a row or an array that PostgreSQL keeps while it writes them as text. */
const WRITTEN_ROW = 3
/** A call that keeps so many copies of a collected value counts for the limit of collected values. */
const COLLECTED_FACTOR = 8

/** The bytes that an lquery keeps for each of its levels and each `|` (lquery_in() of ltree_io.c). */
const LEVEL_BYTES = 24
/** Operators of ltree, whose pattern may be an lquery. */
const LEVEL_OPERATORS = /^[?^]?~$|^\?$/

/** Types whose values are filled up to their length. */
const PADDED: ReadonlySet<string> = new Set(['bit', 'varbit', 'bpchar', 'char'])
/** Types in which a short text of a number may become a long one. */
const DOCUMENTS: ReadonlySet<string> = new Set(['jsonb', 'hstore'])

/**
 * Returns the size of a document or an array that is read from a text which the query made: each number in it may
 * become long. The size of a constant counts its numbers already.
 */
function documentOf(size: Size): Size {
  const own = size.own + Math.floor(size.own / SHORT_NUMBER) * NUMBER_BYTES
  return { ...size, own, letters: size.letters ?? size.own, kind: undefined }
}

/** Returns the size of a JSON document that contains the values. */
function jsonOf(sizes: readonly Size[]): Size {
  return { ...escaped(sizes), kind: 'json' }
}

/** Returns the size of values whose strings are escaped. A number has nothing to escape. */
function escaped(sizes: readonly Size[]): Size {
  const values = sizes.map((size) => (size.kind === undefined ? scaled(size, 2) : size))
  return { ...total(values), kind: undefined, isNumeric: undefined }
}

/** Scales what the query makes, or a parameter gives. */
function scaledMade(size: Size, by: number): Size {
  return isGivenOnly(size) ? scaled(size, by) : scaledOwn(size, by)
}

function scaledOwn(size: Size, by: number): Size {
  return { ...size, own: size.own * by, kind: undefined }
}

/** Returns the columns that the caller defines: json_to_record(…) AS t(a numeric). */
function definitionsIn({ coldeflist, functions = [] }: Struct<'RangeFunction'>): readonly Node[] {
  return coldeflist ?? functions.flatMap(({ List: list }) => list?.items?.[1]?.List?.items ?? [])
}

/** Returns the sizes of columns that the caller defines: json_to_record(…) AS t(a numeric). */
function definedSizes(item: Struct<'RangeFunction'>, size: Size): Size[] | undefined {
  const definitions = definitionsIn(item)
  if (definitions.length === 0) return undefined
  const sizes = definitions.map(({ ColumnDef: column }) => castSize(undefined, size, column?.typeName))
  return item.coldeflist ? sizes : [...sizes, ...Array<Size>(8).fill(size)]
}

/**
 * Returns the size of a number that is computed from others. If a side may have another type (a path, a range), the
 * result may contain both sides. `isLong` says that the result may have far more digits than the sides.
 */
function computed(nodes: readonly Node[], sizes: readonly Size[], isLong: boolean): Size {
  if (sizes.every(({ kind }) => kind === 'fixed')) return fixed(sizes)
  const isKnown = sizes.every(({ kind }) => kind === 'fixed' || kind === 'number')
  const all = { ...total(sizes), isNumeric: sizes.every(isNumber) }
  const isStored = nodes.every((node) => node.ColumnRef) && all.own === 0
  const isGuess = all.times > 0 || sizes.some((size) => size.isGuess === true)
  const { before } = all
  if (isLong && !isStored) return { ...LONG_NUMBER, isGuess, before }
  if (nodes.some((node) => node.ParamRef)) return isKnown ? { ...LONG_NUMBER, before } : total([all, LONG_NUMBER])
  if (!isKnown) return all
  const digits = sizes.reduce((sum, size) => sum + digitsOf(size), FIXED_BYTES)
  const bytes = Math.max(all.own + all.times * STORED_BYTES + FIXED_BYTES, digits)
  const own = Math.min(bytes, NUMBER_BYTES)
  return { ...NOTHING, own, kind: 'number', isGuess, before, ...(digits < own && { digits }) }
}

/** Returns the size of a power. With a known exponent, it has that many times the digits of the base. */
function power(nodes: readonly Node[], sizes: readonly Size[]): Size {
  const size = computed(nodes, sizes, true)
  const [base] = sizes
  const times = nodes[1] && numberIn(nodes[1])
  if (times === undefined || !base || size.kind !== 'number') return size
  const digits = digitsOf(base) * Math.ceil(Math.abs(times)) + POWER_DIGITS
  return digits < digitsOf(size) ? { ...size, digits } : size
}

/** The digits of a power after the point: at most NUMERIC_MAX_RESULT_SCALE of PostgreSQL. */
const POWER_DIGITS = 2_000

/** Returns the value of a constant number. */
function numberIn(node: Node): number | undefined {
  const text = node.A_Const?.fval?.fval
  return text === undefined ? wholeNumber(node) : Number(text)
}

/** Returns the size of round(x, digits), which fills up with zeros. */
function rounded(args: readonly Node[], sizes: readonly Size[]): Size {
  const [number, digits] = args
  const size = computed(number ? [number] : [], sizes.slice(0, 1), false)
  if (!digits || size.kind === 'fixed') return size
  const zeros = Math.min(Math.abs(wholeNumber(digits) ?? FRACTION_DIGITS), FRACTION_DIGITS)
  return { ...size, own: Math.min(size.own + zeros, size.kind === undefined ? Infinity : NUMBER_BYTES) }
}

/**
 * Returns the size of values that an aggregate collects from rows, as stored data. collected-rows.ts bounds their sum
 * when the query runs.
 */
function collected(each: Size): Size {
  return { ...stored(each), isMany: true }
}

/** Returns whether the value contains rows that the query collected, whose number is limited when the query runs. */
function isCollected({ isMany, parts }: Size): boolean {
  return isMany || [...(parts?.keys() ?? [])].some((part) => part.startsWith(partOf(COLLECTED, '')))
}

/** Returns whether a limit stands where a query collects a value (checkedOnce()). */
function isOnRows(limit: PrintedLimit | undefined): boolean {
  return limit?.what === COLLECTED_VALUE && (limit.most === KEPT_MAX || limit.most === SORTED_MAX)
}

/** The parts that aggregates collect. */
const COLLECTED = 'collected'

/** Aggregates whose results are sorted, and are therefore compared in linear time. */
const RANGES: ReadonlySet<string> = new Set(['range_agg', 'range_intersect_agg'])

/** Returns the size of a recursive query's column after all iterations. */
function afterTurns(size: Size): Size {
  if (size.before.size === 0) return size
  if (size.kind === 'fixed') return { ...size, before: NONE }
  if (size.kind === 'number') return LONG_NUMBER
  const all = stored(size)
  return { ...all, before: NONE, grown: all.times, isMeasured: undefined }
}

function stored(size: Size): Size {
  const times = Math.max(1, size.times + size.own / STORED_BYTES)
  const digits = size.kind === 'fixed' ? FIXED_BYTES : undefined
  return { ...size, own: 0, times, digits, kind: undefined, isNumeric: undefined, isTable: undefined }
}

function scaled(size: Size, by: number): Size {
  if (by === 1) return size
  const before = size.before.size === 0 ? NONE : new Map([...size.before].map(([place, count]) => [place, count * by]))
  const parts = size.parts && new Map([...size.parts].map(([part, count]) => [part, count * by]))
  const columns = size.columns && scaledColumns(size.columns, by)
  const [own, times] = [size.own * by, size.times * by]
  const given = size.given && size.given * by
  const letters = size.letters && size.letters * by
  return { ...size, own, times, given, letters, before, parts, columns, kind: undefined, isNumeric: undefined }
}

function scaledColumns({ of, by }: Copied, times: number): Copied {
  return { of, by: by * times }
}

function scaledMap({ of, by }: Copied): Map<StoredColumn, number> {
  return new Map([...of].map(([column, count]) => [column, count * by]))
}

/** Combines the copies of columns in several values: by their sum, or the greatest of each column. */
function copiedBy(sizes: readonly Size[], by: (a: number, b: number) => number): Copied | undefined {
  let first: Copied | undefined
  let of: Map<StoredColumn, number> | undefined
  for (const { columns } of sizes) {
    if (!columns) continue
    if (!first) {
      first = columns
      continue
    }
    of ??= scaledMap(first)
    for (const [column, count] of columns.of) of.set(column, by(of.get(column) ?? 0, count * columns.by))
  }
  return of ? { of, by: 1 } : first
}

/** Returns a value whose parts are no parts of other values. */
function unparted(size: Size): Size {
  return size.parts ? { ...size, parts: undefined } : size
}

function total(sizes: readonly Size[]): Size {
  const [only, second] = sizes
  return only && !second ? only : combined(sizes, (a, b) => a + b)
}

function greatest(sizes: readonly Size[]): Size {
  const kinds = new Set(sizes.map(({ kind }) => kind))
  const isBoth = kinds.size === 2 && kinds.has('fixed') && kinds.has('number')
  const [only] = kinds.size === 1 ? kinds : []
  const isComputed = sizes.every((size) => size.isComputed ?? size.kind === 'fixed')
  const isNumeric = sizes.length > 0 && sizes.every(isNumber)
  return { ...combined(sizes, Math.max), kind: isBoth ? 'number' : only, isComputed, isNumeric }
}

function combined(sizes: readonly Size[], by: (a: number, b: number) => number): Size {
  let [own, times] = [0, 0]
  let before: Map<number, number> | undefined
  let [isMany, isGuess, isShorter, isUnfreed, isTable] = [false, false, false, false, false]
  let [isMade, isAssumed, isSpread] = [false, false, false]
  let [digits, given, letters, hasNumbers] = [0, 0, 0, false]
  let [isDocument, isMeasured, isOpen, grown] = [false, false, false, 0]
  let parts: Map<string, number> | undefined
  let made: Made | undefined
  let joined: Joined | undefined
  let within: ReadonlySet<Copied> | undefined
  let written = 0
  const columns = copiedBy(sizes, by)
  const addMade = by === Math.max ? greaterOf : bothOf
  for (const size of sizes) {
    if (size.made) made = made ? addMade(made, size.made) : size.made
    isMany ||= size.isMany
    isGuess ||= size.isGuess === true
    isUnfreed ||= size.isUnfreed === true
    isTable ||= size.isTable === true
    isMade ||= size.isMade === true
    isAssumed ||= size.isAssumed === true
    isSpread ||= size.isSpread === true
    isMeasured ||= size.isMeasured === true
    isOpen ||= size.isMeasured !== true && isCollected(size)
    isShorter ||= size.digits !== undefined
    digits = by(digits, digitsOf(size))
    if (size.parts) {
      parts ??= new Map()
      for (const [part, count] of size.parts) parts.set(part, by(parts.get(part) ?? 0, count))
    }
    own = by(own, size.own)
    times = by(times, size.times)
    given = by(given, size.given ?? 0)
    letters = by(letters, size.letters ?? size.own)
    hasNumbers ||= size.letters !== undefined
    isDocument ||= size.isDocument === true || size.kind === 'json'
    joined = bothJoined(joined, size.joined)
    if (size.within) within = within ? new Set([...within, ...size.within]) : size.within
    grown = Math.max(grown, size.grown ?? 0)
    written = Math.max(written, size.written ?? 0)
    for (const [place, count] of size.before) {
      before ??= new Map()
      before.set(place, by(before.get(place) ?? 0, count))
    }
  }
  return {
    own,
    times,
    isMany,
    before: before ?? NONE,
    ...(parts && { parts }),
    ...(made && { made }),
    ...(columns && { columns }),
    ...(isGuess && { isGuess }),
    ...(isUnfreed && { isUnfreed }),
    ...(isTable && { isTable }),
    ...(isMade && { isMade }),
    ...(given > 0 && { given }),
    ...(hasNumbers && { letters }),
    ...(isDocument && { isDocument }),
    ...(joined && { joined }),
    ...(within && { within }),
    ...(grown > 0 && { grown }),
    ...(isAssumed && { isAssumed }),
    ...(isSpread && { isSpread }),
    ...(isMeasured && !isOpen && { isMeasured }),
    ...(sizes.length > 0 && sizes.every((size) => size.isSorted === true) && { isSorted: true }),
    ...(isShorter && { digits }),
    ...(written > 0 && { written }),
  }
}

/** Returns the greatest size of each column over several queries. */
function most(rows: readonly (readonly Size[])[]): readonly Size[] {
  const width = Math.max(0, ...rows.map((row) => row.length))
  return Array.from({ length: width }, (_, at) => greatest(rows.flatMap((row) => row[at] ?? [])))
}

function outputNames(query: SelectStmt): string[] {
  const first = query.larg ? outputNames(query.larg) : []
  return query.larg ? first : (query.targetList ?? []).map(({ ResTarget: target }) => target?.name ?? '')
}

/**
 * Throws Refusal if a recursive query grows exponentially, because a column contains itself more than once, directly or
 * through other columns (`s || s`). Appending (`path || '/' || name`) is linear.
 */
function checkRecursion(columns: readonly ReadonlyMap<number, number>[]): void {
  for (const circle of circlesOf(columns)) {
    for (const place of circle) {
      let copies = 0
      for (const [to, count] of columns[place] ?? []) if (circle.has(to)) copies += count
      if (copies > 1) throw doubles()
    }
  }
}

function doubles(): Refusal {
  const why = 'the recursive query multiplies a value in each iteration'
  return new Refusal(
    'limit',
    'size',
    why,
    'Append to the value in each iteration: path || name, not path || path.',
    undefined,
  )
}

/** Returns the cycles of columns that contain themselves (Tarjan's strongly connected components). */
function circlesOf(columns: readonly ReadonlyMap<number, number>[]): ReadonlySet<number>[] {
  const circles: ReadonlySet<number>[] = []
  const [order, low] = [new Map<number, number>(), new Map<number, number>()]
  const open: number[] = []
  const visit = (place: number): void => {
    const number = order.size
    order.set(place, number)
    low.set(place, number)
    open.push(place)
    for (const to of columns[place]?.keys() ?? []) {
      if (!order.has(to)) visit(to)
      if (open.includes(to)) low.set(place, Math.min(low.get(place) ?? 0, low.get(to) ?? 0))
    }
    if (low.get(place) === number) circles.push(new Set(open.splice(open.indexOf(place))))
  }
  for (const place of columns.keys()) if (!order.has(place)) visit(place)
  return circles
}

/**
 * Returns the refusal of a query in which the database would compare each element with each other element. Cancelling
 * has no effect on the comparison.
 */
function eachWithEach(what: string, steps: number): Refusal {
  const why = `${what} could take ${Math.round(steps)} steps that cannot be cancelled; the limit is ${STEPS_MAX}`
  const hint = 'Compare rows instead: use a join, EXISTS, or IN with a sub-query.'
  return new Refusal('limit', 'size', why, hint, undefined)
}

function tooLong(length: number): Refusal {
  return tooLarge(`${Math.round(length)} bytes of literals in a text that is sorted or compared`, SORTED_MAX)
}

function tooLarge(found: string, limit: number): Refusal {
  const why = `a value of the query can grow to ${found}; the limit is ${limit}`
  return new Refusal(
    'limit',
    'size',
    why,
    'Make the value shorter: use smaller counts and fewer nested repetitions.',
    undefined,
  )
}

/**
 * Returns the number of different min() and max() of a query that has no other aggregates and no groups. PostgreSQL may
 * read each from an index: it then computes FROM and WHERE once for each, and keeps the values of each until the end.
 */
export function endsOf({ targetList, groupClause, havingClause, sortClause }: SelectStmt): number {
  const ends = new Set<string>()
  return groupClause === undefined && onlyEnds([targetList, havingClause, sortClause], ends) ? ends.size : 0
}

/** Adds each min() and max() in a part of a query. Returns false if the part has another aggregate. */
function onlyEnds(value: unknown, ends: Set<string>): boolean {
  if (!isNode(value) || value.SubLink) return true
  const name = value.FuncCall?.over ? '' : (words(value.FuncCall?.funcname).at(-1) ?? '')
  if (name === 'min' || name === 'max') ends.add(JSON.stringify(value))
  else if (AGGREGATES.has(name) || (value.JsonArrayAgg ?? value.JsonObjectAgg)) return false
  return Object.values(value).every((part) => onlyEnds(part, ends))
}
