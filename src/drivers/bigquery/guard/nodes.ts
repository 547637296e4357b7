// Defines the syntax tree. It has nodes for everything that can name a table. Between the nodes are runs of tokens,
// which are printed unchanged, except for the names of pseudo columns. A run contains the reserved words SELECT, FROM,
// JOIN, UNNEST and WITH only if the grammar allows them there.
import type { Token } from './tokens.ts'

/** A sub-query in parentheses, inside an expression or as an operand. */
export interface Nested {
  readonly kind: 'nested'
  readonly query: Query
}

/** A part of an expression: a token that is printed unchanged, or a sub-query. */
export type Piece = Token | Nested

export type Run = readonly Piece[]

/** Returns the keyword or sign of a token. Returns an empty string for other tokens, a sub-query or undefined. */
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
  /** The set operators (UNION ALL …), each with its right operand. */
  readonly rest: readonly { readonly operator: readonly Token[]; readonly operand: Operand }[]
  /** ORDER BY … LIMIT …. Empty if absent. */
  readonly tail: Run
  readonly pipes: readonly Pipe[]
}

export type Operand = Select | Nested | FromQuery

/** `FROM …` without SELECT, at the beginning of pipe syntax. `(query) AS t |> …` also becomes a node of this kind. */
interface FromQuery {
  readonly kind: 'from'
  readonly from: From
}

export interface Select {
  readonly kind: 'select'
  /** The words between SELECT and the list: DISTINCT, AS STRUCT … */
  readonly head: readonly Token[]
  readonly items: readonly SelectItem[]
  readonly from: From | null
  /** WHERE … GROUP BY … HAVING … QUALIFY … WINDOW …, unchanged. */
  readonly clauses: Run
}

export type SelectItem = Star | { readonly kind: 'expression'; readonly run: Run }

/** `*`, `t.*` or `f(x).*`, with EXCEPT and REPLACE. */
export interface Star {
  readonly kind: 'star'
  /** The part before the dot. Empty for a bare star. */
  readonly of: Run
  /** The names in EXCEPT (…). */
  readonly except: readonly Token[]
  /** REPLACE (…), with its word and parentheses. Empty if absent. */
  readonly replace: Run
}

/** The items of one FROM clause in order. Each parenthesised join has a separate From. */
export interface From {
  readonly parts: readonly FromPart[]
}

export interface FromPart {
  /** A comma, or the words of a join. Empty for the first item. */
  readonly joiner: readonly Token[]
  readonly item: FromItem
  /** All ON … and USING (…) clauses that follow, including their words. */
  readonly conditions: readonly Run[]
}

export type FromItem = Path | Unnest | Derived | Parenthesised

/** PIVOT (…) or UNPIVOT (…), including its words. */
export interface Pivot {
  readonly run: Run
  readonly alias: Token | null
}

/** A path in FROM: a table, a WITH query, or an array of an earlier item. resolve-from.ts decides which. */
export interface Path {
  readonly kind: 'path'
  /** The parts as written. Quoted parts are not yet split at their dots. */
  readonly parts: readonly string[]
  /** The tokens of the path, printed only if it is an array or a WITH query. */
  readonly tokens: readonly Token[]
  readonly alias: Token | null
  /** WITH OFFSET [AS alias], including its words. Empty if absent. */
  readonly offset: readonly Token[]
  /** TABLESAMPLE …, including its words. Empty if absent. */
  readonly sample: readonly Token[]
  readonly pivots: readonly Pivot[]
  readonly at: number
  readonly end: number
}

export interface Unnest {
  readonly kind: 'unnest'
  /** The tokens between the parentheses. */
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
  /** |> WHERE …, SELECT …, AGGREGATE …. The words and expressions of the operator are printed unchanged. */
  | { readonly kind: 'run'; readonly run: Run }
  | { readonly kind: 'join'; readonly part: FromPart }
  | { readonly kind: 'set'; readonly operator: readonly Token[]; readonly operands: readonly Query[] }
  | { readonly kind: 'with'; readonly with: With }
