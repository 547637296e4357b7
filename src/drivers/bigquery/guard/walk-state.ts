// The state of the walk over a query: the names that it can resolve, and its results so far.
import type { PrintedColumns } from './printed-columns.ts'
import type { Exposed } from './exposed.ts'
import type { Path, Run, Star } from './nodes.ts'
import type { Entry, Known, Scope } from './scope.ts'
import type { Source } from './source.ts'
import type { Token } from './tokens.ts'

export type Resolved =
  | { readonly kind: 'cte' }
  /** Printed as UNNEST, so that BigQuery can never read the path as a table. */
  | { readonly kind: 'array'; readonly implicit: string | null }
  | { readonly kind: 'table'; readonly source: Source; readonly entry: Entry; readonly implicit: string | null }

export interface Walk extends Known {
  readonly exposed: Exposed
  /** Every expression with its scope, for hints. */
  readonly runs: { readonly run: Run; readonly scope: Scope | null }[]
  /** All names in the query, in lower case. */
  readonly words: ReadonlySet<string>
  readonly prefix: string
  readonly printed: PrintedColumns
  readonly paths: Map<Path, Resolved>
  /** The generated names that each star must leave out. */
  readonly stars: Map<Star, ReadonlySet<string>>
  readonly sources: Map<string, Source>
  readonly spellings: Map<string, Source>
  /** The generated names of pseudo columns in use. The key is the caller's name in capitals. */
  readonly renamed: Map<string, string>
  /** Tokens that have the name of a pseudo column, but are fields of values. They stay unchanged. */
  readonly unrenamed: Set<Token>
}
