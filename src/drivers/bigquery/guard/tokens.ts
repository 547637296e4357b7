// Defines the tokens of GoogleSQL. This file contains no grammar.
import { RESERVED_IN_GOOGLESQL } from '../../../reserved-words.ts'

/**
 * The kinds of tokens. `word` is an unquoted identifier or keyword. `quoted` is a name in backquotes. `parameter` is
 * `@name` or `?`.
 */
type TokenKind = 'word' | 'quoted' | 'string' | 'number' | 'parameter' | 'symbol'

export interface Token {
  readonly kind: TokenKind
  /** The text that is printed. */
  readonly text: string
  /**
   * A word in capitals, a symbol, or PART. Empty for all other tokens, and for a word after a dot. The grammar reads
   * this field.
   */
  readonly key: string
  /** The name of an identifier or a PART, without backquotes. Empty for all other tokens. */
  readonly name: string
  /** The start and the end of the token in the caller's text, in UTF-16 units. */
  readonly at: number
  readonly end: number
}

/**
 * The key of a number that is part of a project's name with dashes. No expression may contain a token with this key.
 */
export const PART = '#'

/** Returns whether this token can name something: a column, an alias, a table. */
export function isName(token: Token): boolean {
  return token.kind === 'quoted' || (token.kind === 'word' && !RESERVED_IN_GOOGLESQL.has(token.key))
}
