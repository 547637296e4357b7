import { RESERVED_IN_GOOGLESQL } from '../../../reserved-words.ts'

/** `word` is an unquoted identifier or keyword. `quoted` is a name in backquotes. `parameter` is `@name` or `?`. */
type TokenKind = 'word' | 'quoted' | 'string' | 'number' | 'parameter' | 'symbol'

export interface Token {
  readonly kind: TokenKind
  readonly text: string
  /**
   * The field that the grammar reads: a word in capitals, a sign, or PART. Empty for all other tokens, and for a word
   * after a dot.
   */
  readonly key: string
  /** The name of an identifier or a PART, without backquotes. Empty for all other tokens. */
  readonly name: string
  /** The start and end of the token in the caller's SQL, in UTF-16 units. */
  readonly at: number
  readonly end: number
}

/** The key of a number in the name of a project with dashes (`my-project-1`). No expression may contain it. */
export const PART = '#'

/** True if the token can be the name of a column, an alias or a table. */
export function isName(token: Token): boolean {
  return token.kind === 'quoted' || (token.kind === 'word' && !RESERVED_IN_GOOGLESQL.has(token.key))
}
