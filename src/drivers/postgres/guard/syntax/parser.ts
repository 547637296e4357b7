// Defines the parser interface of the guard, which parser-pool.ts implements, and the results of judging a text. The
// parser is injected, so that the guard does no I/O.
import type { Catalog, Denied, Malformed } from '../../../driver.ts'
import type { PostgresQuery } from '../../confined-query.ts'
import type { ParamForm } from '../walk/scope.ts'

export type Parsed =
  | { readonly kind: 'tree'; readonly tree: unknown }
  /** `position` counts UTF-16 units of the text. */
  | { readonly kind: 'malformed'; readonly why: string; readonly position: number }
  /** The parser stopped regularly, because the text is nested too deep. */
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

/** A text to judge, with everything else on which the verdict depends. */
export interface Case {
  readonly text: string
  readonly catalog: Catalog
  readonly rowCap: number
  readonly params: readonly ParamForm[]
  /** The owner whose turn the text takes in the threads. The verdict does not depend on the owner. */
  readonly owner?: string
}

/** A position to map to the caller's text: the printed text, and the number of code points before the position. */
export interface Sought {
  readonly printed: string
  readonly place: number
}

/** A task for a thread that already has the catalog: judge the text, or map the position `sought`. */
export type Asked = Omit<Case, 'catalog' | 'owner'> & { readonly sought?: Sought }

/** A verdict, or the position that was requested. */
export type Answer = Judged | { readonly kind: 'place'; readonly at: number | null }

export interface Parser {
  /** The parser of the main thread. It may parse only texts within the bounds HERE of judge.ts. */
  readonly parse: Parse
  /** Judges in a thread with a deadline. Throws OVERLOADED if too many texts wait, and the reason of the signal. */
  judge(each: Case, signal: AbortSignal): Promise<Judged>
  /** Maps a position in the printed text to a position in the caller's text. Throws like judge(). Returns null if that is not possible. */
  locate(each: Case, sought: Sought, signal: AbortSignal): Promise<number | null>
  /** Yields to the event loop. */
  turn(): Promise<void>
  /** Logs a bug of the service, with only a hash of the text. */
  report(problem: string, text: string): void
}
