// Defines the tokens of GoogleSQL, and its reserved words. This file contains no grammar.

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
 * Reserved keywords (GoogleSQL's lexical structure). Such a word is a name only if it is quoted or comes after a dot.
 */
export const RESERVED: ReadonlySet<string> = new Set(
  `ALL AND ANY ARRAY AS ASC ASSERT_ROWS_MODIFIED AT BETWEEN BY CASE CAST COLLATE CONTAINS CREATE CROSS CUBE CURRENT
  DEFAULT DEFINE DESC DISTINCT ELSE END ENUM ESCAPE EXCEPT EXCLUDE EXISTS EXTRACT FALSE FETCH FOLLOWING FOR FROM FULL
  GROUP GROUPING GROUPS HASH HAVING IF IGNORE IN INNER INTERSECT INTERVAL INTO IS JOIN LATERAL LEFT LIKE LIMIT LOOKUP
  MERGE NATURAL NEW NO NOT NULL NULLS OF ON OR ORDER OUTER OVER PARTITION PRECEDING PROTO QUALIFY RANGE RECURSIVE
  RESPECT RIGHT ROLLUP ROWS SELECT SET SOME STRUCT TABLESAMPLE THEN TO TREAT TRUE UNBOUNDED UNION UNNEST USING WHEN
  WHERE WINDOW WITH WITHIN`.split(/\s+/),
)

/**
 * The key of a number that is part of a project's name with dashes. No expression may contain a token with this key.
 */
export const PART = '#'

/** Returns whether this token can name something: a column, an alias, a table. */
export function isName(token: Token): boolean {
  return token.kind === 'quoted' || (token.kind === 'word' && !RESERVED.has(token.key))
}
