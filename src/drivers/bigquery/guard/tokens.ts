// Tokens of GoogleSQL, and the words that mean something wherever they stand. Words only; no rule of grammar.

/** `word`: an unquoted identifier or keyword; `quoted`: one in backquotes; `parameter`: `@name` in lower case, or `?`. */
type TokenKind = 'word' | 'quoted' | 'string' | 'number' | 'parameter' | 'symbol'

export interface Token {
  readonly kind: TokenKind
  /** As it is printed. */
  readonly text: string
  /** A word in capitals, a symbol as it is, `` for all else and for a word behind a dot: what the grammar looks at. */
  readonly key: string
  /** What an identifier says, without backquotes; empty for strings, numbers and symbols. */
  readonly name: string
  /** Where it begins and ends in the caller's text, in UTF-16 units. */
  readonly at: number
  readonly end: number
}

/** Never a name of anything unless quoted or behind a dot (GoogleSQL's lexical structure, reserved keywords). */
export const RESERVED: ReadonlySet<string> = new Set(
  `ALL AND ANY ARRAY AS ASC ASSERT_ROWS_MODIFIED AT BETWEEN BY CASE CAST COLLATE CONTAINS CREATE CROSS CUBE CURRENT
  DEFAULT DEFINE DESC DISTINCT ELSE END ENUM ESCAPE EXCEPT EXCLUDE EXISTS EXTRACT FALSE FETCH FOLLOWING FOR FROM FULL
  GROUP GROUPING GROUPS HASH HAVING IF IGNORE IN INNER INTERSECT INTERVAL INTO IS JOIN LATERAL LEFT LIKE LIMIT LOOKUP
  MERGE NATURAL NEW NO NOT NULL NULLS OF ON OR ORDER OUTER OVER PARTITION PRECEDING PROTO QUALIFY RANGE RECURSIVE
  RESPECT RIGHT ROLLUP ROWS SELECT SET SOME STRUCT TABLESAMPLE THEN TO TREAT TRUE UNBOUNDED UNION UNNEST USING WHEN
  WHERE WINDOW WITH WITHIN`.split(/\s+/),
)

/** The key of a number that is a part of a project's dashed name, and may stand in no expression. */
export const PART = '#'

/** Whether this token can name something: a column, an alias, a table. */
export function isName(token: Token): boolean {
  return token.kind === 'quoted' || (token.kind === 'word' && !RESERVED.has(token.key))
}
