// Defines the state of one walk over the parse tree of a query: scopes of names, counters, generated aliases. A name
// that the guard cannot resolve is never printed, so the server never looks it up.
import type { PatternUse } from '../../confined-query.ts'
import type { Base, Column, Field, SqlType } from './from-items.ts'
import type { Exposed } from '../exposed.ts'
import type { StoredCopies } from '../bounds/made-values.ts'
import type { Places } from '../syntax/source-position.ts'
import { word, type Node, type Struct } from '../allowed/allowed-nodes.ts'
import { refusedLimit } from '../refusal.ts'
import type { Shown } from './visible-names.ts'

type Phase = 'from' | 'where' | 'group' | 'output'

/** The scope of one SELECT. `parent` is the outer query, if this query can see the outer one. */
export interface Level {
  readonly parent: Level | null
  readonly ctes: CteScope | null
  /** The FROM items whose names are visible so far. On the right side of a join, these include the left side. */
  shown: readonly Shown[]
  phase: Phase
  /** How many aggregates contain the current expression. In their arguments, a column needs no grouping. */
  aggregates: number
  /** The number of grouping sets. Each aggregate has a state and a sort for each set. */
  sets: number
  /** Columns of `covered` tables that must still be added to GROUP BY. The keys are their printed names. */
  readonly ungrouped: Map<string, Node>
  /** The tables whose primary key is in GROUP BY, each with those of its columns that are in GROUP BY. */
  readonly covered: Map<Base, ReadonlySet<string>>
  /** The expressions of GROUP BY as strings. Filled only if the query may compare by ICU. */
  readonly grouped: Set<string>
  /** True if GROUP BY has an expression that is no column. */
  groupsExpressions: boolean
}

/**
 * `added` is true for a column that SEARCH or CYCLE added. An alias list does not rename it, and `*` includes it only
 * in the query that has the WITH.
 */
export interface CteColumn extends Field {
  readonly added?: boolean
}

export interface Cte {
  readonly name: string
  readonly alias: string
  columns(): readonly CteColumn[]
  readonly weight: Weight
  /** The nesting depth of the query that contains the WITH. */
  readonly depth: number
  /** How often the query reads the CTE. PostgreSQL inlines most CTEs that are read once. */
  references: number
  isRecursive(): boolean
  readonly materialized: string | undefined
}

/** The counts of one CTE's body or of the main query: FROM items, sorts, and references to CTEs. */
export interface Weight {
  items: number
  /** The tables of the largest join tree. Of the arms of a UNION, only the largest counts. */
  joined: number
  /** Sorts, hash tables and stored rows. */
  sorts: number
  readonly ctes: Map<Cte, number>
}

export interface CteScope {
  readonly parent: CteScope | null
  readonly find: (name: string) => Cte | undefined
}

export function findCte(scope: CteScope | null, name: string): Cte | undefined {
  for (let at = scope; at; at = at.parent) {
    const cte = at.find(name)
    if (cte) return cte
  }
  return undefined
}

export function newLevel(parent: Level | null, ctes: CteScope | null): Level {
  return {
    parent,
    ctes,
    shown: [],
    phase: 'from',
    aggregates: 0,
    sets: 1,
    ungrouped: new Map(),
    covered: new Map(),
    grouped: new Set(),
    groupsExpressions: false,
  }
}

/** What the guard knows about a parameter. `type` is null if the context decides. Sent to worker threads. */
export interface ParamForm {
  readonly cast: Struct<'TypeName'> | null
  readonly type: SqlType | null
}

/** The parameters of one walk. */
export interface Params {
  readonly forms: readonly ParamForm[]
  /** For each printed parameter, the index (from 0) of the caller's parameter. */
  readonly slots: number[]
  /** The parameters that are regular expressions, without repetitions. */
  readonly patterns: Map<string, PatternUse>
  /** For each number of a typed parameter in the caller's text, its number in the printed text. */
  readonly typed: Map<number, number>
  /** The same for untyped parameters, for each SELECT. In FROM and WHERE, each use has its own number instead. */
  readonly untyped: WeakMap<Level, Map<number, number>>
}

/** The limits on the lengths of stored values. */
export interface Lengths {
  /** The copies of each column that the query makes for a row, or undefined if they need no limit. */
  readonly copies: StoredCopies | undefined
  /** The maximum number of digits of a stored number, or undefined if there is no limit. */
  readonly digitsMax: number | undefined
}

/** A table of FROM. Its sub-select is completed after the walk. */
interface BaseItem {
  readonly base: Base
  /** Adds the columns that the query reads. */
  readonly finish: () => void
  /** Adds the limit on the length of their values. */
  readonly limit: (lengths: Lengths) => void
}

/** The state of one walk. */
export interface Walk {
  readonly exposed: Exposed
  readonly params: Params
  /** The prefix of generated aliases, which no name of the caller has. */
  readonly prefix: string
  aliases: number
  ctes: number
  /** The caller's name of each generated alias. */
  readonly names: Map<string, string>
  readonly bases: BaseItem[]
  weight: Weight
  /** For each sub-select that is used as a value, the name of its first output. PostgreSQL names the value after it. */
  readonly sublinkNames: Map<Struct<'SubLink'>, string>
  /** Counters for costBound(). */
  selects: number
  rowFunctions: number
  operations: number
  sorts: boolean
  /** True if the query has GROUP BY. */
  isGrouped: boolean
  /** The aggregates whose state may grow (mayGrow()). */
  readonly growing: Set<Struct<'FuncCall'>>
  /** True if the query collects values from rows (collected-values.ts). */
  readonly collects: boolean
  /** The maximum number of bytes of a text that is collected from rows, if the query may compare such texts. */
  readonly comparedMax: number
  /** The maximum number of bytes of a value that is collected from rows, if steps of the plan may keep it several times. */
  readonly keptMax: number
  /** True if the query reads a column with a nondeterministic collation. */
  readsLoose: boolean
  /** True if the printed text counts what it collects (collected-rows.ts). */
  counts: boolean
  /** The columns of FROM items that no expression has read. Columns of tables are in `bases` instead. */
  readonly unread: Set<Column>
  /** Sub-queries that PostgreSQL may turn into joins (noteJoined()). */
  readonly joined: Set<Struct<'SubLink'>>
  /** The work done so far (spend()). */
  spent: number
  readonly spentMax: number
  /** The number of nodes that will be printed so far (countPrinted()). */
  printed: number
  readonly printedMax: number
  /** True on the main thread. A query that needs too much work there is judged again in a worker thread. */
  readonly isHere: boolean
  /** The nesting depth of the query that is being walked. */
  depth: number
  /** Maps confined nodes to positions in the caller's text. Null unless an error must be located. */
  readonly places: Places | null
}

/** Thrown if one text needs more work than the main thread may do. */
export class TooMuchHere extends Error {
  override readonly name = 'TooMuchHere'
}

/**
 * Counts work, for example 1 for each expression and each column of `*`. A short text can cause much work: nested stars
 * double the columns at every level. Above the limit, throws TooMuchHere on the main thread, and Refusal in a worker.
 */
export function spend(walk: Walk, count: number): void {
  walk.spent += count
  if (walk.spent <= walk.spentMax) return
  if (walk.isHere) throw new TooMuchHere()
  throw refusedLimit('length', `the query expands to more than ${walk.spentMax} columns and expressions`)
}

/** The maximum number of sorts and hash tables of a query. Each keeps its work_mem (4 MB by default) until the end. */
const SORTS_MAX = 150

/** Counts a sort, a hash table or stored rows. Throws Refusal if one query body alone exceeds the limit. */
export function addSort({ weight }: Walk, times = 1): void {
  weight.sorts += times
  checkSorts(weight.sorts)
}

/** Throws Refusal for more than SORTS_MAX sorts, hash tables and stored rows. */
export function checkSorts(sorts: number): void {
  if (sorts <= SORTS_MAX) return
  const what = 'joins, sorts, groups, windows and functions in FROM, counting each WITH where it is used'
  throw refusedLimit('sorts', `the query has ${Math.ceil(sorts)} ${what}; the limit is ${SORTS_MAX}`)
}

/** PostgreSQL's limit for one select list or row (MaxTupleAttributeNumber). */
const COLUMNS_MAX = 1_664

/** Throws Refusal for more than COLUMNS_MAX columns in one list. */
export function checkColumns(count: number): void {
  if (count > COLUMNS_MAX) throw refusedLimit('columns', `more than ${COLUMNS_MAX} columns in one list`)
}

/** Creates an alias, and stores the caller's name for it (used in error messages). */
export function newAlias(walk: Walk, letter: 't' | 'c', called: string): string {
  walk.aliases += 1
  const alias = `${walk.prefix}${letter}${walk.aliases}`
  walk.names.set(alias, called)
  return alias
}

export function columnRef(...names: string[]): Node {
  return { ColumnRef: { fields: names.map(word) } }
}

/** Makes names unique: the second `a` becomes `a_1`. */
export function distinctNames(names: readonly string[]): string[] {
  const taken = new Set<string>()
  const all = new Set(names)
  const last = new Map<string, number>()
  return names.map((name) => {
    let free = name
    let n = last.get(name) ?? 0
    while (taken.has(free) || (free !== name && all.has(free))) free = `${name}_${++n}`
    last.set(name, n)
    taken.add(free)
    return free
  })
}
