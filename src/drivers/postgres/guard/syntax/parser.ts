// Defines the interface of the guard's parser and the results of judging a text. parser-pool.ts implements it. The
// parser is injected, so that the guard does no I/O.
import type { Catalog, Denied, Malformed, Owner } from '../../../driver.ts'
import type { PostgresQuery } from '../../confined-query.ts'
import type { ParamForm } from '../walk/scope.ts'

export type Parsed =
  | { readonly kind: 'tree'; readonly tree: unknown }
  /** `position` counts UTF-16 units of the text. */
  | { readonly kind: 'malformed'; readonly why: string; readonly position: number }
  /** The text is nested too deep for the parser, which can be used again. */
  | { readonly kind: 'deep' }
  /** The parser failed on this text or exceeded its deadline, and must not be used again. */
  | { readonly kind: 'lost' }

/** Parses one text in this thread. Never throws. */
export type Parse = (text: string) => Parsed

export type Judged =
  | { readonly kind: 'made'; readonly query: PostgresQuery }
  /** `defect` describes a bug of the service, for the log. */
  | (Denied & { readonly defect?: string })
  | Malformed
  /** The text exceeds the bounds of this thread. */
  | { readonly kind: 'heavy' }
  | { readonly kind: 'lost' }

/** A text to judge, and all that the verdict depends on. */
export interface Case {
  readonly text: string
  readonly catalog: Catalog
  readonly rowCap: number
  readonly params: readonly ParamForm[]
  /** The bytes that each parameter may have: the longest possible if this is undefined. */
  readonly paramBytes?: number
  /** The owner whose turn the text takes in the threads. The verdict does not depend on it. */
  readonly owner?: Owner
}

/** A position to map to the caller's text. `place` counts the code points before it in `printed`. */
export interface Sought {
  readonly printed: string
  readonly place: number
}

/** A task for a thread that has the catalog: to judge the text, or to map `sought`. */
export type Asked = Omit<Case, 'catalog' | 'owner'> & { readonly sought?: Sought }

/** A verdict, or the mapped position. */
export type Answer = Judged | { readonly kind: 'place'; readonly at: number | null }

export interface Parser {
  /** Parses on the main thread. Allowed only for texts within the bounds HERE of judge.ts. */
  readonly parse: Parse
  /** Judges in a thread with a deadline. Throws OVERLOADED if too many texts wait, or the reason of the signal. */
  judge(each: Case, signal: AbortSignal): Promise<Judged>
  /** Maps a position in the printed text to the caller's text, or to null. Throws like judge(). */
  locate(each: Case, sought: Sought, signal: AbortSignal): Promise<number | null>
  /** Yields to the event loop. */
  turn(): Promise<void>
  /** Logs a bug of the service, with only a hash of the text. */
  report(problem: string, text: string): void
}
