// Builds the parse nodes that the guard adds to a query. All functions, operators and types in them are of pg_catalog.
import { word, type Node, type SelectStmt } from './allowed/allowed-nodes.ts'

const OURS = word('pg_catalog')
export const TRUE: Node = { A_Const: { boolval: { boolval: true } } }

export function constant(sval: string): Node {
  return { A_Const: { sval: { sval } } }
}

export function whole(value: number): Node {
  return { A_Const: { ival: value === 0 ? {} : { ival: value } } }
}

export function operator(symbol: string, lexpr: Node, rexpr: Node): Node {
  return { A_Expr: { kind: 'AEXPR_OP', name: [OURS, word(symbol)], lexpr, rexpr } }
}

export function call(name: string, ...args: readonly Node[]): Node {
  return { FuncCall: { funcname: [OURS, word(name)], args, funcformat: 'COERCE_EXPLICIT_CALL' } }
}

export function cast(arg: Node, type: string): Node {
  return { TypeCast: { arg, typeName: { names: [OURS, word(type)], typemod: -1 } } }
}

/** Returns CASE WHEN expr THEN result ELSE defresult END. */
export function either(expr: Node, result: Node, defresult: Node): Node {
  return { CaseExpr: { args: [{ CaseWhen: { expr, result } }], defresult } }
}

/** Returns CASE WHEN expr THEN result END, which is NULL if the condition is not true. */
export function onlyIf(expr: Node, result: Node): Node {
  return { CaseExpr: { args: [{ CaseWhen: { expr, result } }] } }
}

/** Returns (SELECT …) as a value. */
export function subSelect(query: SelectStmt): Node {
  return { SubLink: { subLinkType: 'EXPR_SUBLINK', subselect: { SelectStmt: query } } }
}

/** Returns SELECT targetList, without FROM. */
export function selectOnly(...targetList: readonly Node[]): SelectStmt {
  return { targetList, limitOption: 'LIMIT_OPTION_DEFAULT', op: 'SETOP_NONE' }
}

/** Returns SELECT targetList FROM (query) aliasname (names …). */
export function selectFrom(
  targetList: readonly Node[],
  query: SelectStmt,
  aliasname: string,
  names: readonly string[],
): SelectStmt {
  const alias = { aliasname, colnames: names.map(word) }
  const fromClause = [{ RangeSubselect: { subquery: { SelectStmt: query }, alias } }]
  return { ...selectOnly(...targetList), fromClause }
}
