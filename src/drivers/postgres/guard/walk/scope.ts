// Defines the state of one walk over the parse tree of a query: the scopes in which names are resolved, the counters,
// and the generated aliases. A name that the guard cannot resolve is never printed, so the server never looks it up.
import type { Base, Field, SqlType } from './from-items.ts'
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
  /** The FROM items whose names are visible so far. Inside a join, these include the left side. */
  shown: readonly Shown[]
  phase: Phase
  /** The number of aggregates around the current expression. Inside their arguments, a reference needs no grouping. */
  aggregates: number
  /** The number of grouping sets. Each has a state and a sort of its own for each aggregate. */
  sets: number
  /** The columns of covered tables that must still be added to GROUP BY, by the columns' printed form. */
  readonly ungrouped: Map<string, Node>
  /** The tables whose key is in GROUP BY, each with its columns that are in GROUP BY. */
  readonly covered: Map<Base, ReadonlySet<string>>
  /** The expressions of GROUP BY as strings, if the query may compare by ICU. */
  readonly grouped: Set<string>
  /** True if GROUP BY has an expression that is no column. */
  groupsExpressions: boolean
}

/**
 * `added` is true if SEARCH or CYCLE added the column. An alias list does not rename such a column, and `*` includes it
 * only at the level of its WITH.
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
  /** The number of references, which determines whether the server inlines the expression. */
  references: number
  isRecursive(): boolean
  readonly materialized: string | undefined
}

/** The counts of one CTE's body or of the main query: FROM items, sorts, and references to CTEs. */
export interface Weight {
  items: number
  /** The items of the largest join tree: of the arms of a UNION, only the largest counts. */
  joined: number
  /** Sorts, hash tables and stored rows: see addSort(). */
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

/** The facts that the guard uses about one parameter: its type, or null if the context decides. Plain data. */
export interface ParamForm {
  readonly cast: Struct<'TypeName'> | null
  readonly type: SqlType | null
}

/** The parameters of one walk. */
export interface Params {
  readonly forms: readonly ParamForm[]
  /** For each printed parameter, the index (from 0) of the caller's parameter. */
  readonly slots: number[]
  /** The indexes of the caller's parameters that are regular expressions. */
  readonly patterns: Set<number>
  /**
   * For each typed parameter of the caller (its number from 1), its number in the printed text. All uses in the query
   * share one number.
   */
  readonly typed: Map<number, number>
  /** The same for untyped parameters, but for each SELECT, and only for uses in its outputs and groups. */
  readonly untyped: WeakMap<Level, Map<number, number>>
}

/** What limits the lengths of stored values. */
export interface Lengths {
  /** The copies of each column that the query makes for a row. Undefined if they are few. */
  readonly copies: StoredCopies | undefined
  /** The maximum number of digits of a stored number. Undefined if there is no limit. */
  readonly digitsMax: number | undefined
}

/** A table of FROM, whose sub-select is completed after the walk. */
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
  /** Prefix of generated aliases, which makes them differ from the caller's names. */
  readonly prefix: string
  aliases: number
  ctes: number
  /** The caller's name of each generated alias. */
  readonly names: Map<string, string>
  readonly bases: BaseItem[]
  weight: Weight
  /** For each sub-select used as an expression, the name of its first output, which names the output column. */
  readonly sublinkNames: Map<Struct<'SubLink'>, string>
  /** Counters for the cost bound: SELECTs, set-returning functions, evaluated nodes. */
  selects: number
  rowFunctions: number
  operations: number
  sorts: boolean
  /** True if the query has GROUP BY. */
  isGrouped: boolean
  /** The aggregates whose states may grow: see mayGrow(). */
  readonly growing: Set<Struct<'FuncCall'>>
  /** True if the query collects values from rows: see collected-values.ts. */
  readonly collects: boolean
  /** Sub-queries that PostgreSQL can join, because they are conditions of WHERE or of an inner join by themselves. */
  readonly joined: Set<Struct<'SubLink'>>
  /** The work done so far: see spend(). */
  spent: number
  readonly spentMax: number
  /** The number of nodes of the expressions confined so far, as they will be printed: see countPrinted(). */
  printed: number
  readonly printedMax: number
  /** True on the main thread: a query that needs too much work is judged again in a worker thread. */
  readonly isHere: boolean
  /** The nesting depth of the query that is being walked. */
  depth: number
  /** Maps confined nodes to their source positions. Null unless an error must be located. */
  readonly places: Places | null
}

/** Thrown if one text needs more work than the main thread may do. */
export class TooMuchHere extends Error {
  override readonly name = 'TooMuchHere'
}

/**
 * Counts work, for example 1 for an expression or a column of a star. A short text can cause much work: nested stars
 * double the columns at every level. Over the limit, throws TooMuchHere on the main thread and Refusal in a worker.
 */
export function spend(walk: Walk, count: number): void {
  walk.spent += count
  if (walk.spent <= walk.spentMax) return
  if (walk.isHere) throw new TooMuchHere()
  throw refusedLimit('length', `the query expands to more than ${walk.spentMax} columns and expressions`)
}

/** The maximum number of sorts and hash tables of a query. Each keeps its work_mem (4 MB by default) until the end. */
const SORTS_MAX = 150

/** Counts a sort, a hash table or stored rows. Throws Refusal if one body alone exceeds the limit. */
export function addSort({ weight }: Walk, times = 1): void {
  weight.sorts += times
  checkSorts(weight.sorts)
}

/** Throws Refusal for too many sorts, hash tables and stored rows. */
export function checkSorts(sorts: number): void {
  if (sorts <= SORTS_MAX) return
  const what = 'joins, sorts, groups, windows and functions in FROM, counting each WITH where it is used'
  throw refusedLimit('sorts', `the query has ${Math.ceil(sorts)} ${what}; the limit is ${SORTS_MAX}`)
}

/** PostgreSQL's limit for one select list, row or list of values (MaxTupleAttributeNumber). */
const COLUMNS_MAX = 1_664

/** Throws Refusal for more columns than PostgreSQL allows. */
export function checkColumns(count: number): void {
  if (count > COLUMNS_MAX) throw refusedLimit('columns', `more than ${COLUMNS_MAX} columns in one list`)
}

/** Creates an alias and stores the caller's name for it. */
export function newAlias(walk: Walk, letter: 't' | 'c', called: string): string {
  walk.aliases += 1
  const alias = `${walk.prefix}${letter}${walk.aliases}`
  walk.names.set(alias, called)
  return alias
}

export function columnRef(...names: string[]): Node {
  return { ColumnRef: { fields: names.map(word) } }
}

/** Makes the names of a list of column aliases unique: the second `a` becomes `a_1`. */
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
