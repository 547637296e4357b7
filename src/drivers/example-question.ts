// Defines simple questions about tables. Each kind of database writes the query for a question in its own language.
// Names come from an exposed catalog, never from a caller.

export interface QuestionTable {
  readonly schema: string
  readonly table: string
}

export type Question =
  /** Counts the rows for each value of `column`, the most frequent value first. */
  | { readonly kind: 'countBy'; readonly of: QuestionTable; readonly column: string }
  /** Returns the ten newest rows. */
  | { readonly kind: 'newest'; readonly of: QuestionTable; readonly time: string; readonly columns: readonly string[] }
  /**
   * Joins two tables, counts the rows for each value of `label`, and returns the ten values with the largest counts.
   */
  | {
      readonly kind: 'countJoined'
      readonly of: QuestionTable
      readonly column: string
      readonly to: QuestionTable & { readonly column: string }
      readonly label: string
    }
  /** Returns any ten rows. */
  | { readonly kind: 'rows'; readonly of: QuestionTable; readonly columns: readonly string[] }
