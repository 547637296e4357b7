// A simple question about tables, of which each kind of database makes a query body in its own language. Names come from
// an exposed catalog, never from a caller.

export interface QuestionTable {
  readonly schema: string
  readonly table: string
}

export type Question =
  /** How many rows there are of each value, the most first. */
  | { readonly kind: 'countBy'; readonly of: QuestionTable; readonly column: string }
  /** The ten newest rows. */
  | { readonly kind: 'newest'; readonly of: QuestionTable; readonly time: string; readonly columns: readonly string[] }
  /** How many rows belong to each row of another table, the ten with the most first. */
  | {
      readonly kind: 'countJoined'
      readonly of: QuestionTable
      readonly column: string
      readonly to: QuestionTable & { readonly column: string }
      readonly label: string
    }
  /** Any ten rows. */
  | { readonly kind: 'rows'; readonly of: QuestionTable; readonly columns: readonly string[] }
