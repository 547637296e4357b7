// The syntax tree has nodes for everything that can name a table. Between the nodes are runs: lists of tokens that are
// printed unchanged, except for the names of pseudo columns. A run contains the reserved words SELECT, FROM, JOIN,
// UNNEST and WITH only where the grammar allows them.
import type { Token } from './tokens.ts'

/** A sub-query in parentheses. */
export interface Nested {
  readonly kind: 'nested'
  readonly query: Query
}

/** A token that is printed unchanged, or a sub-query in an expression. */
export type Piece = Token | Nested

export type Run = readonly Piece[]

/** Returns the keyword or sign of a token, or ''. */
export function keyOf(piece: Piece | undefined): string {
  return piece === undefined || piece.kind === 'nested' ? '' : piece.key
}

export interface Cte {
  readonly name: Token
  readonly query: Query
}

export interface With {
  readonly recursive: boolean
  readonly ctes: readonly Cte[]
}

export interface Query {
  readonly with: With | null
  readonly first: Operand
  /** Set operators such as UNION ALL, each with its right operand. */
  readonly rest: readonly { readonly operator: readonly Token[]; readonly operand: Operand }[]
  /** ORDER BY … LIMIT …. Empty if absent. */
  readonly tail: Run
  readonly pipes: readonly Pipe[]
}

export type Operand = Select | Nested | FromQuery

/** `FROM …` without SELECT, at the beginning of pipe syntax. `(query) AS t |> …` is parsed to such a node too. */
interface FromQuery {
  readonly kind: 'from'
  readonly from: From
}

export interface Select {
  readonly kind: 'select'
  /** The words between SELECT and the list, such as DISTINCT or AS STRUCT. */
  readonly head: readonly Token[]
  readonly items: readonly SelectItem[]
  readonly from: From | null
  /** WHERE, GROUP BY, HAVING, QUALIFY and WINDOW, printed unchanged. */
  readonly clauses: Run
}

export type SelectItem = Star | { readonly kind: 'expression'; readonly run: Run }

/** `*`, `t.*` or `f(x).*`, with EXCEPT and REPLACE. */
export interface Star {
  readonly kind: 'star'
  /** The tokens before the dot: `t` or `f(x)`. Empty for a bare star. */
  readonly of: Run
  readonly except: readonly Token[]
  /** The word REPLACE with its parentheses. Empty if absent. */
  readonly replace: Run
}

/** The items of one FROM clause. A join in parentheses has its own From. */
export interface From {
  readonly parts: readonly FromPart[]
}

export interface FromPart {
  /** A comma, or the words of a join. Empty for the first item. */
  readonly joiner: readonly Token[]
  readonly item: FromItem
  /** All ON … and USING (…) after the item, with these words. */
  readonly conditions: readonly Run[]
}

export type FromItem = Path | Unnest | Derived | Parenthesised

/** PIVOT (…) or UNPIVOT (…), with the word. */
export interface Pivot {
  readonly run: Run
  readonly alias: Token | null
}

/** A path in FROM may be a table, a WITH query, or an array of an earlier item. resolve-from.ts decides which. */
export interface Path {
  readonly kind: 'path'
  /** The parts as written. A quoted part such as `a.b` is not yet split. */
  readonly parts: readonly string[]
  /** The path is printed from these tokens only if it is an array or a WITH query. */
  readonly tokens: readonly Token[]
  readonly alias: Token | null
  /** WITH OFFSET [AS alias]. Empty if absent. */
  readonly offset: readonly Token[]
  /** TABLESAMPLE …. Empty if absent. */
  readonly sample: readonly Token[]
  readonly pivots: readonly Pivot[]
  readonly at: number
  readonly end: number
}

export interface Unnest {
  readonly kind: 'unnest'
  /** The content of the parentheses. */
  readonly run: Run
  readonly alias: Token | null
  readonly offset: readonly Token[]
}

export interface Derived {
  readonly kind: 'derived'
  readonly query: Query
  readonly alias: Token | null
  readonly sample: readonly Token[]
  readonly pivots: readonly Pivot[]
}

interface Parenthesised {
  readonly kind: 'parenthesised'
  readonly from: From
}

export type Pipe =
  /** A pipe operator such as |> WHERE … or |> AGGREGATE …. It is printed unchanged. */
  | { readonly kind: 'run'; readonly run: Run }
  | { readonly kind: 'join'; readonly part: FromPart }
  | { readonly kind: 'set'; readonly operator: readonly Token[]; readonly operands: readonly Query[] }
  | { readonly kind: 'with'; readonly with: With }
