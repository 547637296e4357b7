// Describes the items of FROM, their columns, and confined expressions with their types.
import type { Node } from '../allowed/allowed-nodes.ts'
import type { ExposedTable } from '../exposed.ts'

/** The type of an expression. The guard uses null for a type that it does not know, which is usually sufficient. */
export type SqlType =
  | { readonly kind: 'named'; readonly schema: string; readonly name: string }
  | { readonly kind: 'array'; readonly of: SqlType }
  /**
   * A row whose columns are known: of a FROM item, or of ROW(…). `oids`: the type oid of each column, only for the row
   * of a table. `known` is 'always' if PostgreSQL knows the columns wherever the row is used (for a function that names
   * its columns), and 'never' if it does not. Otherwise, PostgreSQL knows the columns only of a FROM item or of ROW(…)
   * itself.
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
  /** The expressions that PostgreSQL may copy to each place that reads the column. */
  readonly made?: readonly Node[]
  /** How many runs of combining marks may join in the column, if known (mark-runs.ts). */
  readonly runs?: number
  /** How many bytes a collected value in the column may have, if known (collected-values.ts). */
  readonly collected?: number
}

/** A confined expression, and its type if the guard knows it. */
export interface Typed {
  readonly node: Node
  readonly type: SqlType | null
  /** True for a column of a table. */
  readonly isStored?: boolean
}

/** Returns an output of a query as values: one for each arm of UNION. The node of an unknown expression is empty. */
export function outputValues({ made, type }: Field): readonly Typed[] {
  return (made ?? [{}]).map((node) => ({ node, type }))
}

/** A visible column. `read` returns the reference to print, and records that the query reads the column. */
export interface Column extends Field {
  read(): Node
  /** The column of a base table, or null. If GROUP BY contains the primary key of the table, it covers this column. */
  readonly origin: Origin | null
  /** True if `*` omits the column, because SEARCH or CYCLE added it to a CTE of an outer query. */
  readonly notInStar?: boolean
}

interface Origin {
  readonly base: Base
  readonly column: string
}

/** One FROM item that reads an exposed table. */
export interface Base {
  readonly table: ExposedTable
  /** The columns that the query reads. */
  readonly used: Set<string>
}

export interface Item {
  /** The alias, or the name of the table, CTE or function. Null for a sub-select without an alias. */
  readonly name: string | null
  /** The schema of a table without an alias: `schema.table.column` may name it. */
  readonly schema: string | null
  readonly columns: readonly Column[]
  /** Returns the whole row of the item. */
  whole(): Typed
  readonly base: Base | null
}
