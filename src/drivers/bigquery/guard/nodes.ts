// What the parser makes of a text: the structure that says where tables can be named, and between it runs of tokens that
// are printed as they came. A reserved SELECT, FROM, JOIN, UNNEST or WITH is in no run unless the grammar put it there.
import type { Token } from './tokens.ts'

/** A sub-query in parentheses, inside an expression or as an operand. */
export interface Nested {
  readonly kind: 'nested'
  readonly query: Query
}

/** Part of an expression: printed as it is, or a sub-query. */
export type Piece = Token | Nested

export type Run = readonly Piece[]

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
  /** UNION ALL …: its words, and what it takes in. */
  readonly rest: readonly { readonly operator: readonly Token[]; readonly operand: Operand }[]
  /** ORDER BY … LIMIT …, empty without. */
  readonly tail: Run
  readonly pipes: readonly Pipe[]
}

export type Operand = Select | Nested | FromQuery

/** `FROM …` without SELECT: what pipes begin with; `(query) AS t |> …` is one of these too. */
interface FromQuery {
  readonly kind: 'from'
  readonly from: From
}

export interface Select {
  readonly kind: 'select'
  /** What stands between SELECT and the list: DISTINCT, AS STRUCT … */
  readonly head: readonly Token[]
  readonly items: readonly SelectItem[]
  readonly from: From | null
  /** WHERE … GROUP BY … HAVING … QUALIFY … WINDOW …, as it came. */
  readonly clauses: Run
}

export type SelectItem = Star | { readonly kind: 'expression'; readonly run: Run }

/** `*`, `t.*`, `f(x).*`, with what is taken out of it or put in its place. */
export interface Star {
  readonly kind: 'star'
  /** What stands before the dot; empty for a bare star. */
  readonly of: Run
  /** Names in EXCEPT (…). */
  readonly except: readonly Token[]
  /** REPLACE (…), with its word and parentheses; empty without. */
  readonly replace: Run
}

/** Items of one FROM clause in order; parenthesised joins keep their own. */
export interface From {
  readonly parts: readonly FromPart[]
}

export interface FromPart {
  /** A comma, or the words of a join; empty before the first. */
  readonly joiner: readonly Token[]
  readonly item: FromItem
  /** ON … and USING (…): as many as follow, words included. */
  readonly conditions: readonly Run[]
}

export type FromItem = Path | Unnest | Derived | Parenthesised

/** PIVOT (…) or UNPIVOT (…), words included. */
export interface Pivot {
  readonly run: Run
  readonly alias: Token | null
}

/** A table, a CTE, or an array of something named before: resolve.ts says which. */
export interface Path {
  readonly kind: 'path'
  /** As written, quoted parts not yet split at their dots. */
  readonly parts: readonly string[]
  /** Its tokens: printed only where it is an array or a CTE. */
  readonly tokens: readonly Token[]
  readonly alias: Token | null
  /** WITH OFFSET [AS alias], words included; empty without. */
  readonly offset: readonly Token[]
  /** TABLESAMPLE …, words included; empty without. */
  readonly sample: readonly Token[]
  readonly pivots: readonly Pivot[]
  readonly at: number
  readonly end: number
}

export interface Unnest {
  readonly kind: 'unnest'
  /** What stands between the parentheses. */
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
  /** |> WHERE …, SELECT …, AGGREGATE …: its words and expressions as they came. */
  | { readonly kind: 'run'; readonly run: Run }
  | { readonly kind: 'join'; readonly part: FromPart }
  | { readonly kind: 'set'; readonly operator: readonly Token[]; readonly operands: readonly Query[] }
  | { readonly kind: 'with'; readonly with: With }
