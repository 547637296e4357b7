// Simple questions about tables, for examples in descriptions. Each kind of database writes them in its own language.
// All names come from an exposed catalog.

export interface QuestionTable {
  readonly schema: string
  readonly table: string
}

export type Question =
  /** The number of rows for each value of `column`, the most frequent value first. */
  | { readonly kind: 'countBy'; readonly of: QuestionTable; readonly column: string }
  | { readonly kind: 'newest'; readonly of: QuestionTable; readonly time: string; readonly columns: readonly string[] }
  /** Joins two tables, and counts the rows for each value of `label`. The ten values with most rows. */
  | {
      readonly kind: 'countJoined'
      readonly of: QuestionTable
      readonly column: string
      readonly to: QuestionTable & { readonly column: string }
      readonly label: string
    }
  | { readonly kind: 'rows'; readonly of: QuestionTable; readonly columns: readonly string[] }
