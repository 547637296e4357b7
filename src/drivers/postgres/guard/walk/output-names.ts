// Finds the name that PostgreSQL gives to an output without AS (FigureColname in parse_target.c). The guard prints this
// name, because the confined expression would get another one.
import { words, type Node, type Struct } from '../allowed/allowed-nodes.ts'

export interface NameRules {
  /** The server's major version: 14, 15 … */
  readonly major: number
  /** Returns the name of the first output of a sub-select, or undefined if it is not known yet. */
  subLink(link: Struct<'SubLink'>): string | undefined
}

/** Returns PostgreSQL's name for an expression: ?column? if there is no better one. */
export function outputName(node: Node, rules: NameRules): string {
  return figure(node, rules)?.name ?? '?column?'
}

interface Figured {
  readonly name: string
  /** True for the name of a type or of CASE. The name of an outer cast replaces it. */
  readonly weak?: true
}

function figure(node: Node, rules: NameRules): Figured | undefined {
  if (node.ColumnRef) return ofWords(node.ColumnRef.fields)
  if (node.FuncCall) return ofWords(node.FuncCall.funcname)
  if (node.A_Indirection) {
    return ofWords(node.A_Indirection.indirection) ?? (node.A_Indirection.arg && figure(node.A_Indirection.arg, rules))
  }
  if (node.TypeCast) return ofCast(node.TypeCast, rules)
  if (node.CollateClause?.arg) return figure(node.CollateClause.arg, rules)
  if (node.CaseExpr) {
    const otherwise = node.CaseExpr.defresult && figure(node.CaseExpr.defresult, rules)
    return otherwise && !otherwise.weak ? otherwise : { name: 'case', weak: true }
  }
  if (node.SubLink) return ofSubLink(node.SubLink, rules)
  // Before version 15, the parser turned a boolean constant into a cast of a string to bool.
  if (node.A_Const?.boolval) return rules.major < 15 ? { name: 'bool', weak: true } : undefined
  return ofKeyword(node)
}

function ofWords(nodes: readonly Node[] | undefined): Figured | undefined {
  const name = words(nodes).at(-1)
  return name === undefined ? undefined : { name }
}

function ofCast({ arg, typeName }: Struct<'TypeCast'>, rules: NameRules): Figured | undefined {
  const inner = arg && figure(arg, rules)
  if (inner && !inner.weak) return inner
  const type = words(typeName?.names).at(-1)
  return type === undefined ? inner : { name: type, weak: true }
}

function ofSubLink(link: Struct<'SubLink'>, rules: NameRules): Figured | undefined {
  if (link.subLinkType === 'EXISTS_SUBLINK') return { name: 'exists' }
  if (link.subLinkType === 'ARRAY_SUBLINK') return { name: 'array' }
  if (link.subLinkType !== 'EXPR_SUBLINK') return undefined
  const name = rules.subLink(link) ?? firstName(link.subselect?.SelectStmt, rules)
  return name === undefined ? undefined : { name }
}

/** Returns the name of the first output of a sub-select that is not confined yet, if its text contains the name. */
function firstName(select: Struct<'SelectStmt'> | undefined, rules: NameRules): string | undefined {
  if (!select) return undefined
  if (select.larg) return firstName(select.larg, rules)
  if (select.valuesLists) return 'column1'
  const target = select.targetList?.[0]?.ResTarget
  if (!target?.val || target.val.ColumnRef?.fields?.some((field) => field.A_Star)) return target?.name
  return target.name ?? outputName(target.val, rules)
}

const VALUE_FUNCTION_NAME = /^SVFOP_(.*?)(_N)?$/

function ofKeyword(node: Node): Figured | undefined {
  if (node.A_Expr?.kind === 'AEXPR_NULLIF') return { name: 'nullif' }
  if (node.A_ArrayExpr) return { name: 'array' }
  if (node.RowExpr) return { name: 'row' }
  if (node.CoalesceExpr) return { name: 'coalesce' }
  if (node.GroupingFunc) return { name: 'grouping' }
  if (node.MinMaxExpr) return { name: node.MinMaxExpr.op === 'IS_LEAST' ? 'least' : 'greatest' }
  if (node.SQLValueFunction) {
    return { name: (VALUE_FUNCTION_NAME.exec(node.SQLValueFunction.op ?? '')?.[1] ?? '').toLowerCase() }
  }
  const json = JSON_NAMES.find(([tag]) => node[tag] !== undefined)
  if (json) return { name: json[1] }
  if (node.JsonFuncExpr) return { name: (node.JsonFuncExpr.op ?? '').replace(/_OP$/, '').toLowerCase() }
  return undefined
}

const JSON_NAMES: readonly (readonly [keyof Node, string])[] = [
  ['JsonParseExpr', 'json'],
  ['JsonScalarExpr', 'json_scalar'],
  ['JsonSerializeExpr', 'json_serialize'],
  ['JsonObjectConstructor', 'json_object'],
  ['JsonArrayConstructor', 'json_array'],
  ['JsonArrayQueryConstructor', 'json_array'],
  ['JsonObjectAgg', 'json_objectagg'],
  ['JsonArrayAgg', 'json_arrayagg'],
]
