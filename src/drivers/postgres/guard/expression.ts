// Expressions: one function a node, each naming every key it takes over. A node that is not here is refused, and every
// sub-expression, wherever it hangs, goes through expression() again.
import { VALUE_FUNCTIONS } from './allowed.ts'
import { boundedPatterns } from './call-arguments.ts'
import { call } from './calls.ts'
import { collationName } from './collations.ts'
import { constant } from './constants.ts'
import { indirection } from './indirection.ts'
import { jsonExpression } from './json.ts'
import { notePlace } from './locate.ts'
import { word, words, type Node, type Struct } from './nodes.ts'
import { checkComparison, compared, isLikeOperator, operatorExpression, operatorName } from './operators.ts'
import { refusedFunction, refusedStatement } from './refusal.ts'
import { asText, parameter } from './params.ts'
import { reference, resolve, starColumns } from './resolve.ts'
import { checkColumns, newAlias, spend, type Level, type SqlType, type Typed, type Walk } from './scope.ts'
import { select } from './select.ts'
import { mayBeText, typeName } from './type-names.ts'

/** Confines one expression as seen from `level`. Throws Refusal. */
export function expression(walk: Walk, level: Level, node: Node): Typed {
  const typed = confined(walk, level, node)
  notePlace(walk.places, typed.node, node)
  return typed
}

function confined(walk: Walk, level: Level, node: Node): Typed {
  walk.operations += 1
  spend(walk, 1)
  if (node.ColumnRef) return resolve(walk, level, node.ColumnRef)
  if (node.A_Const) return { node: constant(node.A_Const), type: null }
  if (node.ParamRef) return parameter(walk, level, node.ParamRef)
  if (node.FuncCall) return call(walk, level, node.FuncCall)
  if (node.A_Expr) return operatorExpression(walk, level, node.A_Expr)
  if (node.BoolExpr) return boolean(walk, level, node.BoolExpr)
  if (node.TypeCast) return cast(walk, level, node.TypeCast)
  if (node.SubLink) return subLink(walk, level, node.SubLink)
  if (node.NullTest) return nullTest(walk, level, node.NullTest)
  if (node.CaseExpr) return caseOf(walk, level, node.CaseExpr)
  if (node.CoalesceExpr) return coalesce(walk, level, node.CoalesceExpr)
  return rarer(walk, level, node)
}

function rarer(walk: Walk, level: Level, node: Node): Typed {
  if (node.A_Indirection) return indirection(walk, level, node.A_Indirection)
  if (node.A_ArrayExpr) return array(walk, level, node.A_ArrayExpr)
  if (node.RowExpr) return row(walk, level, node.RowExpr)
  if (node.MinMaxExpr) return minMax(walk, level, node.MinMaxExpr)
  if (node.SQLValueFunction) return valueFunction(node.SQLValueFunction)
  if (node.BooleanTest) return booleanTest(walk, level, node.BooleanTest)
  if (node.CollateClause) return collate(walk, level, node.CollateClause)
  if (node.GroupingFunc) {
    const args = expressions(walk, level, node.GroupingFunc.args)
    return { node: { GroupingFunc: { args: args.map((arg) => arg.node) } }, type: null }
  }
  const json = jsonExpression(walk, level, node)
  if (json) return json
  throw refusedStatement(Object.keys(node)[0] ?? 'an empty expression')
}

/** Several expressions, in order. */
function expressions(walk: Walk, level: Level, nodes: readonly Node[] | undefined): Typed[] {
  return (nodes ?? []).map((node) => expression(walk, level, node))
}

/** An expression that may be missing, as a key to spread. */
export function optional<K extends string>(
  walk: Walk,
  level: Level,
  key: K,
  node: Node | undefined,
): { [P in K]?: Node } {
  const out: { [P in K]?: Node } = {}
  if (node) out[key] = expression(walk, level, node).node
  return out
}

/** Elements of ROW() and VALUES, where `t.*` stands for all of its columns. */
export function elements(walk: Walk, level: Level, nodes: readonly Node[] | undefined): Typed[] {
  const items = (nodes ?? []).flatMap((node) => {
    const ref = node.ColumnRef
    if (!ref?.fields?.some((field) => field.A_Star)) return [expression(walk, level, node)]
    return starColumns(walk, level, ref).map((found) => reference(found.column, found.level))
  })
  checkColumns(items.length)
  return items
}

function boolean(walk: Walk, level: Level, { boolop, args }: Struct<'BoolExpr'>): Typed {
  if (boolop !== 'AND_EXPR' && boolop !== 'OR_EXPR' && boolop !== 'NOT_EXPR')
    throw refusedStatement(boolop ?? 'BoolExpr')
  return { node: { BoolExpr: { boolop, args: expressions(walk, level, args).map((arg) => arg.node) } }, type: null }
}

function cast(walk: Walk, level: Level, { arg, typeName: to, location }: Struct<'TypeCast'>): Typed {
  if (!arg || !to) throw refusedStatement('CAST', location)
  const target = typeName(walk, to)
  return { node: { TypeCast: { arg: expression(walk, level, arg).node, typeName: target.node } }, type: target.type }
}

function subLink(walk: Walk, level: Level, link: Struct<'SubLink'>): Typed {
  const query = link.subselect?.SelectStmt
  if (!query) throw refusedStatement('a sub-query that is no SELECT', link.location)
  const inner = select(walk, query, level, level.ctes)
  const first = inner.outputs[0]
  const subselect: Node = { SelectStmt: inner.node }
  const { subLinkType } = link
  const type = first?.type ?? null
  switch (subLinkType) {
    case 'EXISTS_SUBLINK':
      return { node: { SubLink: { subLinkType, subselect } }, type: null }
    case 'EXPR_SUBLINK':
      if (first) walk.sublinkNames.set(link, first.name)
      return { node: { SubLink: { subLinkType, subselect } }, type }
    case 'ARRAY_SUBLINK':
      return { node: { SubLink: { subLinkType, subselect } }, type: type && { kind: 'array', of: type } }
    case 'ANY_SUBLINK':
    case 'ALL_SUBLINK': {
      if (!link.testexpr) throw refusedStatement('ANY', link.location)
      const test = expression(walk, level, link.testexpr)
      const types = inner.outputs.map((output) => output.type)
      const operName = operatorName(
        walk,
        words(link.operName ?? [word('=')]),
        [...compared(test), ...types],
        link.location,
      )
      // A pattern of each row, looked for in the text of each row.
      const isLike = isLikeOperator(words(operName)) && inner.outputs.length === 1 && mayBeText(walk.exposed, test.type)
      const sought: Node = isLike
        ? { SelectStmt: boundedPatterns(inner.node, newAlias(walk, 't', 'the patterns')) }
        : subselect
      return { node: { SubLink: { subLinkType, testexpr: test.node, operName, subselect: sought } }, type: null }
    }
    default:
      throw refusedStatement(subLinkType ?? 'SubLink', link.location)
  }
}

function nullTest(walk: Walk, level: Level, { arg, nulltesttype, location }: Struct<'NullTest'>): Typed {
  if (!arg || (nulltesttype !== 'IS_NULL' && nulltesttype !== 'IS_NOT_NULL')) throw refusedStatement('IS', location)
  const subject = asText(expression(walk, level, arg))
  return { node: { NullTest: { arg: subject.node, nulltesttype } }, type: null }
}

function booleanTest(walk: Walk, level: Level, { arg, booltesttype, location }: Struct<'BooleanTest'>): Typed {
  if (!arg || !booltesttype) throw refusedStatement('IS', location)
  return { node: { BooleanTest: { arg: expression(walk, level, arg).node, booltesttype } }, type: null }
}

function caseOf(walk: Walk, level: Level, { arg, args, defresult, location }: Struct<'CaseExpr'>): Typed {
  const subject = arg && expression(walk, level, arg)
  const types: (SqlType | null)[] = []
  const whens = (args ?? []).map((node): Node => {
    const when = node.CaseWhen
    if (!when?.expr || !when.result) throw refusedStatement('CASE', location)
    const test = expression(walk, level, when.expr)
    if (subject) checkComparison(walk, '=', [...compared(subject), ...compared(test)], location)
    const result = expression(walk, level, when.result)
    types.push(result.type)
    return { CaseWhen: { expr: test.node, result: result.node } }
  })
  const otherwise = defresult && expression(walk, level, defresult)
  if (otherwise) types.push(otherwise.type)
  const node = {
    CaseExpr: { ...(subject && { arg: subject.node }), args: whens, ...(otherwise && { defresult: otherwise.node }) },
  }
  return { node, type: known(types) }
}

function known(types: readonly (SqlType | null)[]): SqlType | null {
  return types.find((type) => type !== null) ?? null
}

function coalesce(walk: Walk, level: Level, { args }: Struct<'CoalesceExpr'>): Typed {
  const items = expressions(walk, level, args)
  return {
    node: { CoalesceExpr: { args: items.map((item) => item.node) } },
    type: known(items.map((item) => item.type)),
  }
}

function minMax(walk: Walk, level: Level, { op, args, location }: Struct<'MinMaxExpr'>): Typed {
  if (op !== 'IS_GREATEST' && op !== 'IS_LEAST') throw refusedStatement('GREATEST', location)
  const items = expressions(walk, level, args)
  return {
    node: { MinMaxExpr: { op, args: items.map((item) => item.node) } },
    type: known(items.map((item) => item.type)),
  }
}

function array(walk: Walk, level: Level, { elements: nodes }: Struct<'A_ArrayExpr'>): Typed {
  const items = expressions(walk, level, nodes)
  const type = known(items.map((item) => item.type))
  const of = type?.kind === 'array' ? type.of : type
  return { node: { A_ArrayExpr: { elements: items.map((item) => item.node) } }, type: of && { kind: 'array', of } }
}

function row(walk: Walk, level: Level, { args, row_format, location }: Struct<'RowExpr'>): Typed {
  if (row_format !== 'COERCE_EXPLICIT_CALL' && row_format !== 'COERCE_IMPLICIT_CAST')
    throw refusedStatement('ROW', location)
  const items = elements(walk, level, args)
  // (t.*, 1) with one exposed column is still a row, which only ROW() can say.
  const format = items.length > 1 ? row_format : 'COERCE_EXPLICIT_CALL'
  const columns = items.map((item, index) => ({ name: `f${index + 1}`, type: item.type }))
  return {
    node: { RowExpr: { args: items.map((item) => item.node), row_format: format } },
    type: { kind: 'row', columns },
  }
}

/** CURRENT_DATE and its kin; CURRENT_USER and its kin are none of a caller's business. */
export function valueFunction({ op, typmod, location }: Struct<'SQLValueFunction'>): Typed {
  if (op === undefined || !VALUE_FUNCTIONS.has(op)) {
    throw refusedFunction((op ?? '').replace('SVFOP_', '').toLowerCase(), location)
  }
  // The parser leaves a zero out: CURRENT_TIME(0).
  return { node: { SQLValueFunction: { op, ...(typmod !== undefined && { typmod }) } }, type: null }
}

function collate(walk: Walk, level: Level, node: Struct<'CollateClause'>): Typed {
  if (!node.arg) throw refusedStatement('COLLATE', node.location)
  const collname = collationName(node, walk.exposed.major)
  const inner = expression(walk, level, node.arg)
  return { node: { CollateClause: { arg: inner.node, collname } }, type: inner.type }
}
