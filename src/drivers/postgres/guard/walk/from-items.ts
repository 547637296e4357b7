// Describes the items of FROM, their columns, and confined expressions with their types.
import type { Node } from '../allowed/allowed-nodes.ts'
import type { ExposedTable } from '../exposed.ts'

/** The type of an expression. The guard uses null for a type that it does not know, which is usually sufficient. */
export type SqlType =
  | { readonly kind: 'named'; readonly schema: string; readonly name: string }
  | { readonly kind: 'array'; readonly of: SqlType }
  /**
   * A row of a FROM item or of ROW(…), whose columns are known. Only the row of a table has `oids`, the type oid of
   * each column. `known` is 'always' for the result of a function that names its columns, and 'never' if PostgreSQL does
   * not know the columns. Otherwise PostgreSQL knows them where it reads a FROM item or ROW(…).
   */
  | {
      readonly kind: 'row'
      readonly columns: readonly Field[]
      readonly oids?: readonly number[]
      readonly known?: 'always' | 'never'
    }

export interface Field {
  readonly name: string
  readonly type: SqlType | null
  /** The expressions that PostgreSQL may put into each place that reads the column: see readsMade(). */
  readonly made?: readonly Node[]
  /** How many runs of combining marks may meet in the column, if that matters: see mark-runs.ts. */
  readonly runs?: number
  /** How long a collected value in the column may be: see collected-values.ts. Undefined if that is unknown. */
  readonly collected?: number
}

/** A confined expression, and its type if the guard knows it. */
export interface Typed {
  readonly node: Node
  readonly type: SqlType | null
  /** True for a column of a table. */
  readonly isStored?: boolean
}

/** Returns an output of a query as values: one for each arm of UNION. If an expression is not known, the node is empty. */
export function outputValues({ made, type }: Field): readonly Typed[] {
  return (made ?? [{}]).map((node) => ({ node, type }))
}

/** A visible column. `read` returns the reference to print, and records that the column is read. */
export interface Column extends Field {
  read(): Node
  /** The column of a base table, or null. GROUP BY of the table's key covers the table's other columns. */
  readonly origin: Origin | null
  /**
   * True if `*` omits the column. SEARCH or CYCLE has added such a column to a CTE, and only `*` at the level of the
   * CTE's WITH includes it.
   */
  readonly notInStar?: boolean
}

interface Origin {
  readonly base: Base
  readonly column: string
}

/** One use of an exposed table. */
export interface Base {
  readonly table: ExposedTable
  /** Columns that the query reads. */
  readonly used: Set<string>
}

/** A FROM item. */
export interface Item {
  /**
   * The name by which a query refers to the item: its alias, or the name of its table, CTE or function. Null for a
   * sub-select without an alias.
   */
  readonly name: string | null
  /** The schema of a table without an alias, for `schema.table.column`. */
  readonly schema: string | null
  readonly columns: readonly Column[]
  /** Returns the item as a whole row. */
  whole(): Typed
  /** The exposed table, if the item is a table. */
  readonly base: Base | null
}
