// What the walk over a query has found so far, and what it looks things up in. No rule of its own.
import type { ColumnSets } from './column-sets.ts'
import type { PrintedColumns } from './columns.ts'
import type { Exposed } from './exposed.ts'
import type { Path, Run, Star } from './nodes.ts'
import type { Entry, Scope } from './scope.ts'
import type { Source } from './source.ts'
import type { Token } from './tokens.ts'
import type { Work } from './work.ts'

export type Resolved =
  | { readonly kind: 'cte' }
  /** Printed as UNNEST, so that it can never be read as a table. */
  | { readonly kind: 'array'; readonly implicit: string | null }
  | { readonly kind: 'table'; readonly source: Source; readonly entry: Entry; readonly implicit: string | null }

export interface Walk {
  readonly exposed: Exposed
  readonly work: Work
  readonly sets: ColumnSets
  /** Every alias of any scope, in lower case. */
  readonly aliases: Set<string>
  /** Every expression, and what is in sight there: for hints. */
  readonly runs: { readonly run: Run; readonly scope: Scope | null }[]
  /** Names that the text holds anywhere, in lower case. */
  readonly words: ReadonlySet<string>
  /** What our aliases begin with. */
  readonly prefix: string
  readonly printed: PrintedColumns
  readonly paths: Map<Path, Resolved>
  /** Our names to be taken out of a star. */
  readonly stars: Map<Star, ReadonlySet<string>>
  /** By dataset and table. */
  readonly sources: Map<string, Source>
  /** By what the caller wrote. */
  readonly spellings: Map<string, Source>
  /** Our names of the pseudo columns in use, by the caller's, in capitals. */
  readonly renamed: Map<string, string>
  /** Names like theirs that are fields of values, and stay. */
  readonly kept: Set<Token>
}
