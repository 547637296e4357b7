// Holds the state of the walk over a query: the names that it can resolve, and the results so far.
import type { PrintedColumns } from './printed-columns.ts'
import type { Exposed } from './exposed.ts'
import type { Path, Run, Star } from './nodes.ts'
import type { Entry, Known, Scope } from './scope.ts'
import type { Source } from './source.ts'
import type { Token } from './tokens.ts'

export type Resolved =
  | { readonly kind: 'cte' }
  /** An array is printed as UNNEST, so that BigQuery can never read it as a table. */
  | { readonly kind: 'array'; readonly implicit: string | null }
  | { readonly kind: 'table'; readonly source: Source; readonly entry: Entry; readonly implicit: string | null }

export interface Walk extends Known {
  readonly exposed: Exposed
  /** Every expression with its scope, for hints. */
  readonly runs: { readonly run: Run; readonly scope: Scope | null }[]
  /** All names in the text, in lower case. */
  readonly words: ReadonlySet<string>
  /** The prefix of the generated aliases. */
  readonly prefix: string
  readonly printed: PrintedColumns
  readonly paths: Map<Path, Resolved>
  /** The generated names that each star must exclude. */
  readonly stars: Map<Star, ReadonlySet<string>>
  /** The table of each path, by dataset and table. */
  readonly sources: Map<string, Source>
  /** The table of each path, by the caller's spelling. */
  readonly spellings: Map<string, Source>
  /** The generated names of the pseudo columns in use, by the caller's name in capitals. */
  readonly renamed: Map<string, string>
  /** Tokens that look like pseudo columns, but are fields of values and stay unchanged. */
  readonly unrenamed: Set<Token>
}
