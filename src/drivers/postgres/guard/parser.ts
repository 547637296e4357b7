// What the guard asks of a parser, and what comes of judging a text. The parser is handed in, so that the guard itself does
// no I/O; parser-pool.ts is the one that is used.
import type { Catalog, Denied, Malformed } from '../../driver.ts'
import type { PostgresQuery } from '../query.ts'
import type { ParamForm } from './params.ts'

export type Parsed =
  | { readonly kind: 'tree'; readonly tree: unknown }
  /** `position` in UTF-16 units of the text. */
  | { readonly kind: 'malformed'; readonly why: string; readonly position: number }
  /** The parser gave up in good order: too deep. */
  | { readonly kind: 'deep' }
  /** The parser broke down or took too long over this text; it was ended. */
  | { readonly kind: 'lost' }

/** One text through the parser of this thread. Never throws. */
export type Parse = (text: string) => Parsed

export type Judged =
  | { readonly kind: 'made'; readonly query: PostgresQuery }
  /** `defect`: one of ours, for the log. */
  | (Denied & { readonly defect?: string })
  | Malformed
  /** More than may be done where it was tried. */
  | { readonly kind: 'heavy' }
  | { readonly kind: 'lost' }

/** A text to judge in a thread. */
export interface Case {
  readonly text: string
  readonly catalog: Catalog
  readonly rowCap: number
  readonly params: readonly ParamForm[]
}

/** A place in the printed text, in characters. */
export interface Sought {
  readonly printed: string
  readonly place: number
}

/** What a thread is asked of a catalog that it holds. */
export type Asked = Omit<Case, 'catalog'> & { readonly sought?: Sought }

/** What was judged; or, of a place that was sought, where it is. */
export type Answer = Judged | { readonly kind: 'place'; readonly at: number | null }

export interface Parser {
  /** The parser of the main thread: for texts within the bounds HERE of judge.ts alone. */
  readonly parse: Parse
  /** Judges in a thread with a deadline. Never rejects but for an aborted signal (with its reason). */
  judge(each: Case, signal: AbortSignal): Promise<Judged>
  /** Where in a confined text something of its printed text is, by a thread; null where that cannot be told. */
  locate(each: Case, sought: Sought, signal: AbortSignal): Promise<number | null>
  /** Lets other requests have their turn. */
  turn(): Promise<void>
  /** A defect of ours met on the way, for the log; of the text only a hash is kept. */
  report(problem: string, text: string): void
}
