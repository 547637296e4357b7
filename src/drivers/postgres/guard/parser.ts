// What the guard asks of a parser: text to tree, or why not. The parser is handed in, so that the guard itself does no
// I/O; parse.ts is the one that is used.

export type Parsed =
  | { readonly kind: 'tree'; readonly tree: unknown }
  /** `position` in UTF-16 units of the text. */
  | { readonly kind: 'malformed'; readonly why: string; readonly position: number }
  /** The parser gave up in good order: too deep. */
  | { readonly kind: 'deep' }
  /** The parser broke down or took too long over this text; it was ended. */
  | { readonly kind: 'lost' }

export interface Parser {
  /** Never rejects but for an aborted signal (with its reason). `isSmall` says that the text is short and shallow. */
  parse(text: string, isSmall: boolean, signal: AbortSignal): Promise<Parsed>
  /** A defect of ours met on the way, for the log; of the text only a hash is kept. */
  report(problem: string, text: string): void
}
