// Who is who in a query: what each name in it means, as PostgreSQL would resolve it, over exposed columns alone. A name
// that is not found here is never printed, so the server is never asked what it might mean.
import type { Exposed, ExposedTable } from './exposed.ts'
import type { Places } from './source-position.ts'
import { word, type Node, type Struct } from './allowed-nodes.ts'
import type { Params } from './params.ts'
import { refusedLimit } from './refusal.ts'
import type { Shown } from './visible-names.ts'

/** What is known of an expression's type; null where nothing is (most of the time nothing needs to be). */
export type SqlType =
  | { readonly kind: 'named'; readonly schema: string; readonly name: string }
  | { readonly kind: 'array'; readonly of: SqlType }
  /** A row whose columns are known by name: of a sub-select, a CTE, a function; of a table with their type's oids. */
  | { readonly kind: 'row'; readonly columns: readonly Field[]; readonly oids?: readonly number[] }

export interface Field {
  readonly name: string
  readonly type: SqlType | null
}

/** An expression, confined, with what is known of its type. */
export interface Typed {
  readonly node: Node
  readonly type: SqlType | null
}

/** A column that a name can mean. `read` gives how it is printed, and notes that it is. */
export interface Column extends Field {
  read(): Node
  /** The base table's column behind it, where it is one: GROUP BY of its key covers the others. */
  readonly origin: Origin | null
  /** Of a CTE's SEARCH or CYCLE: `*` leaves it out inside the CTE itself. */
  readonly notInStar?: boolean
}

interface Origin {
  readonly base: Base
  readonly column: string
}

/** One use of an exposed table. */
export interface Base {
  readonly table: ExposedTable
  /** Columns printed. */
  readonly used: Set<string>
}

/** Something in FROM with a name of its own. */
export interface Item {
  /** As the caller calls it; null without an alias. */
  readonly name: string | null
  /** The schema of a table without alias: `schema.table.column` means it too. */
  readonly schema: string | null
  readonly columns: readonly Column[]
  /** The row as a whole. */
  whole(): Typed
  /** The exposed table it is one use of. */
  readonly base: Base | null
}

type Phase = 'from' | 'where' | 'group' | 'output'

/** One SELECT's names; `parent` is the query around it, where it can see it. */
export interface Level {
  readonly parent: Level | null
  readonly ctes: CteScope | null
  /** What FROM shows so far; inside a join, the side on its left too. */
  shown: readonly Shown[]
  phase: Phase
  /** Inside the arguments of an aggregate, a reference needs no grouping. */
  aggregates: number
  /** What GROUP BY must still name of the tables it covers, by how it is printed. */
  readonly ungrouped: Map<string, Node>
  /** Tables whose key GROUP BY covers, and the columns grouped by. */
  readonly covered: Map<Base, ReadonlySet<string>>
}

/** `added` by SEARCH or CYCLE: an alias list does not reach it, and `*` only beside its WITH. */
export interface CteColumn extends Field {
  readonly added?: boolean
}

export interface Cte {
  readonly name: string
  readonly alias: string
  columns(): readonly CteColumn[]
  readonly weight: Weight
  /** Of the query that WITH stands in. */
  readonly depth: number
  /** References to it, while it is not known whether the server will inline it. */
  references: number
  isRecursive(): boolean
  readonly materialized: string | undefined
}

/** FROM items of one CTE's body or of the main query. */
export interface Weight {
  items: number
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
    ungrouped: new Map(),
    covered: new Map(),
  }
}

/** One confinement at work: what it knows, and what it has noted so far. */
export interface Walk {
  readonly exposed: Exposed
  readonly params: Params
  /** Caller's names that our aliases must differ from. */
  readonly prefix: string
  aliases: number
  ctes: number
  /** Our alias → what the caller called it. */
  readonly names: Map<string, string>
  readonly bases: { readonly base: Base; readonly finish: () => void }[]
  weight: Weight
  /** First output name of each sub-select used as an expression, for the name of the column it makes. */
  readonly sublinkNames: Map<Struct<'SubLink'>, string>
  /** What a bound on the cost needs: SELECTs, rows made by functions, nodes evaluated. */
  selects: number
  rowFunctions: number
  operations: number
  sorts: boolean
  /** Expressions walked and columns that stars stood for: see spend(). */
  spent: number
  readonly spentMax: number
  /** On the main thread: what is too much there is judged again in a thread. */
  readonly isHere: boolean
  /** Queries around the one that is walked. */
  depth: number
  /** Where the confined nodes come from; null but where an error is to be located. */
  readonly places: Places | null
}

/** More work than the main thread does for one text. */
export class TooMuchHere extends Error {
  override readonly name = 'TooMuchHere'
}

/**
 * Counts work: an expression, a column that a star stands for, two columns of a table in FROM. A short text can ask for
 * much of it: stars of stars double with every query around them. Throws Refusal where it is too much.
 */
export function spend(walk: Walk, count: number): void {
  walk.spent += count
  if (walk.spent <= walk.spentMax) return
  if (walk.isHere) throw new TooMuchHere()
  throw refusedLimit('length', `the query stands for more than ${walk.spentMax} columns and expressions`)
}

/** What a server makes of one select list, row or list of values at most (MaxTupleAttributeNumber). */
const COLUMNS_MAX = 1_664

/** Throws Refusal for more columns than any server answers. */
export function checkColumns(count: number): void {
  if (count > COLUMNS_MAX) throw refusedLimit('columns', `more than ${COLUMNS_MAX} columns in one list`)
}

/** A new alias, remembered with the caller's word for it. */
export function newAlias(walk: Walk, letter: 't' | 'c', called: string): string {
  walk.aliases += 1
  const alias = `${walk.prefix}${letter}${walk.aliases}`
  walk.names.set(alias, called)
  return alias
}

export function columnRef(...names: string[]): Node {
  return { ColumnRef: { fields: names.map(word) } }
}

/** Names unlike each other, for a list of column aliases: the second `a` becomes `a_1`. */
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
