// What one path in FROM may read: an exposed table, or the exposed tables of a wildcard.
import type { PseudoColumn } from '../captured-facts.ts'
import type { AllowedShards } from '../confined-query.ts'

export interface Source {
  readonly dataset: string
  readonly table: string
  /** The columns that may be printed. There is at least one. */
  readonly columns: readonly string[]
  /** The columns in lower case. */
  readonly names: ReadonlySet<string>
  readonly pseudoColumns: readonly ('_TABLE_SUFFIX' | PseudoColumn)[]
  /** The suffixes that a wildcard may read. They are always printed as a filter. Null for a table. */
  readonly suffixes: Suffixes | null
  /** The tables that the dry run may report, as `project.dataset.table`. */
  readonly closure: readonly string[]
  readonly shards: readonly AllowedShards[]
}

/** A wildcard may read the suffixes that match a pattern, and the suffixes in the list. */
export interface Suffixes {
  readonly patterns: readonly string[]
  readonly list: readonly string[]
}
