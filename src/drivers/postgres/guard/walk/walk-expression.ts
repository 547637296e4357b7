// Walks expressions: operators, calls, casts, sub-queries, windows, fields. One function handles one kind of parse
// node, and names each key that it copies. An unknown node is refused. The four walk-*.ts files call each other,
// because expressions contain queries, and queries contain expressions. All functions throw Refusal.
import { AGGREGATES, FUNCTIONS, RETURNS_ROWS } from '../allowed/allowed-functions.ts'
import { word, words, type Node, type SelectStmt, type Struct } from '../allowed/allowed-nodes.ts'
import { SORTED_MAX } from '../bounds/value-growth.ts'
import {
  boundedArguments,
  boundedPattern,
  boundedPatterns,
  boundedText,
  REPEATED_SORTED_MAX,
} from '../bounds/argument-bounds.ts'
import { collationName } from '../allowed/collations.ts'
import { mayGrow } from '../bounds/unhashed.ts'
import { readByCast, readByFunction } from '../bounds/long-numbers.ts'
import { collects, collectsForExtension, countedCall, countedRows, isClosed } from '../bounds/collected-rows.ts'
import {
  checkedOnce,
  collectedIn,
  madeByOperator,
  takenBy,
  takenByCast,
  takenByOperator,
  takenBySubscript,
  takenFromRows,
  withCollected,
} from '../bounds/collected-values.ts'
import { findFunction, mayBeCalled, resultType, unknownFunction, type Found } from '../allowed/function-lookup.ts'
import {
  boundedPathArguments,
  boundedPathOperand,
  checkLinear,
  isPathOperator,
  plainPath,
  plainPaths,
  takesPath,
} from '../bounds/json-path-bounds.ts'
import { boundedLooseSearch } from '../bounds/nondeterministic.ts'
import { joins, runsOfCall, unsearched, withoutLongRuns, withRuns } from '../bounds/mark-runs.ts'
import { constant } from '../syntax/literals.ts'
import { checkComparison, compared, isLikeOperator, operatorName } from '../allowed/operator-lookup.ts'
import { asText, parameter, typedArguments } from './params.ts'
import { Refusal, refusedColumn, refusedFunction, refusedStatement } from '../refusal.ts'
import { columnHere, columnOfRow, reference, resolve, rowMeant, starColumns } from './resolve-columns.ts'
import { addSort, checkColumns, newAlias, spend, type Level, type Walk } from './scope.ts'
import { outputValues, type Field, type SqlType, type Typed } from './from-items.ts'
import { countPrinted, remembered } from '../bounds/printed-size.ts'
import { locationOf, notePlace } from '../syntax/source-position.ts'
import { withConfiguration, withDictionary } from '../allowed/text-search.ts'
import { castType, fieldsOf, isPathType, isSearched, isSpatial, mayBeText } from '../allowed/type-names.ts'
import { TYPES, VALUE_FUNCTIONS } from '../allowed/types-and-extensions.ts'
import { jsonExpression } from './walk-json.ts'
import { checkSpatialText } from '../allowed/srids.ts'
import { boundedRegex, boundedRegexArguments, boundedRegexRows, inPlaces, MATCHES } from '../bounds/pattern-size.ts'
import {
  checkSpatialCast,
  checkUnified,
  checkUnifiedArguments,
  spatialArguments,
  spatialResult,
  unifiedType,
} from '../bounds/spatial.ts'
import {
  boundedOperands,
  boundedSearch,
  boundedWork,
  checkAny,
  SEEKS,
  withTypes,
  readAsQuery,
} from '../bounds/work-bounds.ts'
import { select, textOf } from './walk-select.ts'

/** Confines one expression in the scope of `level`. */
export function expression(walk: Walk, level: Level, node: Node): Typed {
  const before = walk.printed
  const at = locationOf(node)
  const typed = withoutLongRuns(walk, checkedOnce(walk, level, confined(walk, level, node), at), at)
  countPrinted(walk, before, typed.node, at)
  notePlace(walk.places, typed.node, node)
  return isRowUnknown(typed) ? { ...typed, type: { ...typed.type, known: 'never' } } : typed
}

function confined(walk: Walk, level: Level, node: Node): Typed {
  walk.operations += 1
  spend(walk, 1)
  if (node.ColumnRef) return resolve(walk, level, node.ColumnRef)
  if (node.A_Const) {
    if (node.A_Const.sval?.sval) checkSpatialText(() => walk.exposed, node.A_Const.sval.sval, node.A_Const.location)
    return { node: constant(node.A_Const), type: null }
  }
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

function expressions(walk: Walk, level: Level, nodes: readonly Node[] | undefined): Typed[] {
  return (nodes ?? []).map((node) => expression(walk, level, node))
}

/** Confines an optional expression. Returns { [key]: expression } or {}, to spread. */
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

/** Confines the elements of ROW() and VALUES. `t.*` expands to all columns. */
export function elements(walk: Walk, level: Level, nodes: readonly Node[] | undefined): Typed[] {
  const items = (nodes ?? []).flatMap((node) => {
    const ref = node.ColumnRef
    if (!ref?.fields?.some((field) => field.A_Star)) return [expression(walk, level, node)]
    return starColumns(walk, level, ref).map((found) => reference(walk, found.column, found.level))
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
  const target = castType(walk, to)
  const from = expression(walk, level, arg)
  if (isPathType(target.type)) checkLinear(from.node, location)
  checkSpatialCast(walk.exposed, target.type, from, location)
  const checked = readByCast(walk, level, from, target.node, location)
  const read = readAsQuery(walk, level, checked, target.type, location)
  const taken = takenByCast(walk, level, read, target.node, location)
  const node: Node = { TypeCast: { arg: taken.arg.node, typeName: target.node } }
  return { node: withCollected(node, taken.result), type: target.type }
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
      return { node: { SubLink: { subLinkType, subselect: unhashed(walk, link, inner.node) } }, type: null }
    case 'EXPR_SUBLINK':
      if (first) walk.sublinkNames.set(link, first.name)
      return {
        node: withCollected(
          withRuns({ SubLink: { subLinkType, subselect } }, first?.runs),
          first?.collected ?? Infinity,
        ),
        type,
      }
    case 'ARRAY_SUBLINK': {
      const rows: Node = { SelectStmt: countedRows(walk, inner.node, inner.outputs, 'array') }
      const node = withRuns({ SubLink: { subLinkType, subselect: rows } }, first?.runs)
      return { node, type: type && { kind: 'array', of: type } }
    }
    case 'ANY_SUBLINK':
    case 'ALL_SUBLINK': {
      if (!link.testexpr) throw refusedStatement('ANY', link.location)
      const test = expression(walk, level, link.testexpr)
      const types = inner.outputs.map((output) => output.type)
      checkUnified(walk.exposed, [test, ...inner.outputs.flatMap(outputValues)], link.location)
      const operName = operatorName(
        walk,
        words(link.operName ?? [word('=')]),
        [...compared(test), ...types],
        link.location,
      )
      const [symbol = '', schema] = words(operName).toReversed()
      checkAny(symbol, [test.type, types[0] ?? null], link.location)
      const { node: testexpr } = takenByOperator(walk, level, [schema, symbol], test, link.location)
      const rows = takenFromRows(walk, level, [schema, symbol], inner, link.location)
      // Each pattern that the sub-query returns is searched for in the string of each row.
      const isLike = isLikeOperator(words(operName)) && inner.outputs.length === 1 && mayBeText(walk.exposed, test.type)
      const isRegex = MATCHES.test(words(operName).at(-1) ?? '') && mayBeText(walk.exposed, test.type)
      const sought: Node = isRegex
        ? { SelectStmt: boundedRegexRows(walk, level, rows, inner.outputs, link.location) }
        : isLike
          ? { SelectStmt: boundedPatterns(rows, newAlias(walk, 't', 'the patterns')) }
          : {
              SelectStmt: isHashed(walk, level, link, inner.node) ? countedRows(walk, rows, inner.outputs, 'in') : rows,
            }
      return { node: { SubLink: { subLinkType, testexpr, operName, subselect: sought } }, type: null }
    }
    default:
      throw refusedStatement(subLinkType ?? 'SubLink', link.location)
  }
}

/**
 * Returns whether PostgreSQL may keep all rows of the sub-query in a hash table without a limit. It does so for x IN
 * (SELECT …), unless the sub-query reads columns of an outer query, or becomes a join (noteJoined()). In a join, x must
 * be a column.
 */
function isHashed(walk: Walk, level: Level, link: Struct<'SubLink'>, query: SelectStmt): boolean {
  const ref = link.testexpr?.ColumnRef
  const isJoined = walk.joined.has(link) && ref !== undefined && columnHere(walk, level, ref) !== undefined
  return link.subLinkType === 'ANY_SUBLINK' && !isJoined && isClosed(walk, query)
}

/**
 * Returns the sub-query of EXISTS. If functions make its rows and PostgreSQL cannot turn it into a join, adds OFFSET 0:
 * PostgreSQL then keeps no hash table of its rows.
 */
function unhashed(walk: Walk, link: Struct<'SubLink'>, query: SelectStmt): Node {
  const isKept = walk.joined.has(link) || query.limitOffset !== undefined || query.larg || !makesRows(query)
  const offset = { limitOffset: { A_Const: { ival: {} } }, limitOption: 'LIMIT_OPTION_COUNT' }
  return { SelectStmt: isKept ? query : { ...query, ...offset } }
}

const makesRows = remembered((part) => ('RangeFunction' in part ? true : undefined))

/**
 * Records the sub-queries that PostgreSQL may turn into joins: those that are a whole condition of WHERE or ON, or a
 * part of AND. Of negated ones, only NOT EXISTS counts.
 */
export function noteJoined(walk: Walk, condition: Node | undefined): void {
  if (condition?.SubLink) walk.joined.add(condition.SubLink)
  const { boolop, args = [] } = condition?.BoolExpr ?? {}
  if (boolop === 'AND_EXPR') for (const arg of args) noteJoined(walk, arg)
  const [negated] = args
  if (boolop === 'NOT_EXPR' && negated?.SubLink?.subLinkType === 'EXISTS_SUBLINK') walk.joined.add(negated.SubLink)
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
  const results: Typed[] = []
  const whens = (args ?? []).map((node): Node => {
    const when = node.CaseWhen
    if (!when?.expr || !when.result) throw refusedStatement('CASE', location)
    const test = expression(walk, level, when.expr)
    if (subject) {
      checkUnified(walk.exposed, [subject, test], location)
      checkComparison(walk, '=', [...compared(subject), ...compared(test)], location)
    }
    const result = expression(walk, level, when.result)
    results.push(result)
    return { CaseWhen: { expr: test.node, result: result.node } }
  })
  const otherwise = defresult && expression(walk, level, defresult)
  if (otherwise) results.push(otherwise)
  const node = {
    CaseExpr: { ...(subject && { arg: subject.node }), args: whens, ...(otherwise && { defresult: otherwise.node }) },
  }
  return { node, type: unified(walk, results, location) }
}

/** Returns the type to which PostgreSQL converts all these values, or null if it is unknown. */
function unified({ exposed }: Walk, values: readonly Typed[], at: number | undefined): SqlType | null {
  checkUnified(exposed, values, at)
  return unifiedType(
    exposed,
    values.map(({ type }) => type),
  )
}

function coalesce(walk: Walk, level: Level, { args, location }: Struct<'CoalesceExpr'>): Typed {
  const items = expressions(walk, level, args)
  return {
    node: { CoalesceExpr: { args: items.map((item) => item.node) } },
    type: unified(walk, items, location),
  }
}

function minMax(walk: Walk, level: Level, { op, args, location }: Struct<'MinMaxExpr'>): Typed {
  if (op !== 'IS_GREATEST' && op !== 'IS_LEAST') throw refusedStatement('GREATEST', location)
  const items = expressions(walk, level, args)
  return {
    node: { MinMaxExpr: { op, args: items.map((item) => item.node) } },
    type: unified(walk, items, location),
  }
}

function array(walk: Walk, level: Level, { elements: nodes, location }: Struct<'A_ArrayExpr'>): Typed {
  const items = expressions(walk, level, nodes)
  const type = unified(walk, items, location)
  const of = type?.kind === 'array' ? type.of : type
  return { node: { A_ArrayExpr: { elements: items.map((item) => item.node) } }, type: of && { kind: 'array', of } }
}

function row(walk: Walk, level: Level, { args, row_format, location }: Struct<'RowExpr'>): Typed {
  if (row_format !== 'COERCE_EXPLICIT_CALL' && row_format !== 'COERCE_IMPLICIT_CAST')
    throw refusedStatement('ROW', location)
  const items = elements(walk, level, args)
  // A row of one column must be printed as ROW(x), because (x) is a scalar.
  const format = items.length > 1 ? row_format : 'COERCE_EXPLICIT_CALL'
  const columns = items.map((item, index) => ({ name: `f${index + 1}`, type: item.type }))
  return {
    node: { RowExpr: { args: items.map((item) => item.node), row_format: format } },
    type: { kind: 'row', columns },
  }
}

/** Confines CURRENT_DATE and similar keywords. Refuses CURRENT_USER and similar keywords, which reveal the login. */
export function valueFunction({ op, typmod, location }: Struct<'SQLValueFunction'>): Typed {
  if (op === undefined || !VALUE_FUNCTIONS.has(op)) {
    throw refusedFunction((op ?? '').replace('SVFOP_', '').toLowerCase(), location)
  }
  // The parser omits a zero: CURRENT_TIME(0) has no typmod.
  return { node: { SQLValueFunction: { op, ...(typmod !== undefined && { typmod }) } }, type: null }
}

function collate(walk: Walk, level: Level, node: Struct<'CollateClause'>): Typed {
  if (!node.arg) throw refusedStatement('COLLATE', node.location)
  const collname = collationName(node, walk.exposed.major)
  const inner = expression(walk, level, node.arg)
  return { node: { CollateClause: { arg: inner.node, collname } }, type: inner.type }
}

// Operators. LIKE, ILIKE and SIMILAR TO are printed as the operators that implement them.

/** Kinds that are printed as `a op b`. */
const PLAIN: ReadonlySet<string> = new Set(['AEXPR_OP', 'AEXPR_LIKE', 'AEXPR_ILIKE', 'AEXPR_SIMILAR'])
const OVER_ARRAY: ReadonlySet<string> = new Set(['AEXPR_OP_ANY', 'AEXPR_OP_ALL'])
/** Kinds that are written with keywords. The server looks up these operators by name for them. */
const WORDED: ReadonlyMap<string, readonly string[]> = new Map([
  ['AEXPR_DISTINCT', ['=']],
  ['AEXPR_NOT_DISTINCT', ['=']],
  ['AEXPR_NULLIF', ['=']],
  ['AEXPR_IN', ['=', '<>']],
  ['AEXPR_BETWEEN', ['>=', '<=']],
  ['AEXPR_NOT_BETWEEN', ['<', '>']],
  ['AEXPR_BETWEEN_SYM', ['>=', '<=']],
  ['AEXPR_NOT_BETWEEN_SYM', ['<', '>']],
])

function operatorExpression(walk: Walk, level: Level, node: Struct<'A_Expr'>): Typed {
  const { kind = '', lexpr, rexpr, location } = node
  if (!rexpr) throw refusedStatement('an operator without its right side', location)
  const symbol = words(node.name).at(-1) ?? ''
  const written = lexpr && asWritten(walk, level, symbol, rexpr, expression(walk, level, lexpr))
  const other = side(walk, level, isPathOperator(symbol) ? plainPath(rexpr) : rexpr)
  const types = [...compared(written), ...other.types]
  checkUnified(walk.exposed, written ? [written, ...other.all] : other.all, location)
  const { left, right } = operandsTaken(walk, level, node, { left: written, right: other })
  if (left && isPathOperator(symbol)) {
    const query = symbol === '@@' && PLAIN.has(kind) && right.one ? boundedSearch(right.one, location) : right.node
    const document = boundedPathOperand({ symbol, isOne: PLAIN.has(kind), left, right: right.node, at: location })
    return {
      node: {
        A_Expr: {
          kind,
          name: operatorName(walk, words(node.name), types, location),
          lexpr: document,
          rexpr: query,
        },
      },
      type: null,
    }
  }
  const operands = { ...(left && { lexpr: left.node }), rexpr: right.node }
  if (PLAIN.has(kind) || OVER_ARRAY.has(kind)) {
    const name = operatorName(walk, words(node.name), types, location)
    const isLike = isLikeOperator(words(node.name)) && left && mayBeText(walk.exposed, left.type)
    const bounded = isLike
      ? like(PLAIN.has(kind), left, right.node)
      : (sought(symbol, left, right, location) ?? regex(walk, level, symbol, left, right.one, location) ?? operands)
    const isOne = PLAIN.has(kind)
    const made = withTypes({ kind: isOne ? 'AEXPR_OP' : kind, name, ...bounded }, left, isOne ? right.one : undefined)
    const type = isOne && symbol === '||' ? arrayOfSpatial(walk, types) : null
    return { node: withCollected(made, isOne ? madeByOperator(symbol, left?.node, right.node) : 0), type }
  }
  const needed = WORDED.get(kind)
  const names = words(node.name)
  if (!needed || names.length !== 1 || !left) throw refusedStatement(kind || 'an operator', location)
  for (const symbol of needed) checkComparison(walk, symbol, types, location)
  const both = unifiedType(walk.exposed, types)
  const type = kind !== 'AEXPR_NULLIF' ? null : isSpatial(walk.exposed, both) ? both : left.type
  const made: Node = { A_Expr: { kind, name: names.map(word), ...operands } }
  return { node: withCollected(made, kind === 'AEXPR_NULLIF' ? collectedIn(left.node) : 0), type }
}

interface Operands {
  readonly left: Typed | undefined
  readonly right: Side
}

/** Returns the operands, with checks of those that may be too long. */
function operandsTaken(
  walk: Walk,
  level: Level,
  { kind = '', name, location }: Struct<'A_Expr'>,
  { left, right }: Operands,
): Operands {
  const written = words(name)
  if (!walk.collects || (!PLAIN.has(kind) && !OVER_ARRAY.has(kind) && !kind.includes('BETWEEN'))) return { left, right }
  const [symbol = '<', schema] = kind.includes('BETWEEN')
    ? []
    : words(operatorName(walk, written, [...compared(left), ...right.types], location)).toReversed()
  const taken = <T extends Typed>(operand: T): T => takenByOperator(walk, level, [schema, symbol], operand, location)
  const one = right.one && taken(right.one)
  const items = right.node.List?.items?.map((item) => taken({ node: item, type: null }).node)
  // Print COALESCE, because ANY ((SELECT …)) would mean the rows of the query.
  const isQuery = OVER_ARRAY.has(kind) && one?.node.SubLink && one !== right.one
  const node = isQuery ? { CoalesceExpr: { args: [one.node] } } : (one?.node ?? (items && { List: { items } }))
  return { left: left && taken(left), right: { ...right, ...(one && { one }), node: node ?? right.node } }
}

/** Returns the type of `a || b` if one operand is an array of geometries, otherwise null. */
function arrayOfSpatial({ exposed }: Walk, types: readonly (SqlType | null)[]): SqlType | null {
  const type = unifiedType(exposed, types)
  const hasArray = types.some((each) => each?.kind === 'array') && isSpatial(exposed, type)
  return !hasArray || type === null ? null : type.kind === 'array' ? type : { kind: 'array', of: type }
}

/** Operators that compare bytes. */
const BY_BYTES = /^(?:=|<>|!?~~?\*?)$/

/**
 * Returns the left operand of a condition without the search for long runs, if it is compared with a constant by its
 * bytes. An index on the expression can then be used.
 */
function asWritten({ exposed }: Walk, { phase }: Level, symbol: string, rexpr: Node, left: Typed): Typed {
  const isCondition = (phase === 'where' || phase === 'from') && BY_BYTES.test(symbol)
  const other = rexpr.TypeCast?.arg ?? rexpr
  if (!exposed.comparesByIcu || exposed.equatesByIcu || !isCondition || !(other.A_Const ?? other.ParamRef)) return left
  return { ...left, node: unsearched(left.node) }
}

/** Bounds the operands of an operator in SEEKS. */
function sought(
  symbol: string,
  left: Typed | undefined,
  right: Side,
  at: number | undefined,
): { readonly lexpr: Node; readonly rexpr: Node } | undefined {
  if (!left || !right.one || !SEEKS.has(symbol)) return undefined
  const [lexpr, rexpr] = boundedOperands(symbol, left, right.one, at)
  return { lexpr, rexpr }
}

/** Bounds the right operand if it is a regular expression. */
function regex(
  walk: Walk,
  level: Level,
  symbol: string,
  left: Typed | undefined,
  right: Typed | undefined,
  at: number | undefined,
): { readonly lexpr: Node; readonly rexpr: Node } | undefined {
  if (!left || !right || !MATCHES.test(symbol)) return undefined
  return { lexpr: left.node, rexpr: boundedRegex(walk, level, left, right, at) }
}

function like(isOne: boolean, { node, type }: Typed, pattern: Node): { readonly lexpr: Node; readonly rexpr: Node } {
  const kept = type?.kind === 'named' && !isSearched(type) ? type : undefined
  if (!isOne) return { lexpr: boundedText(node, pattern, kept), rexpr: pattern }
  const [lexpr, rexpr] = boundedPattern(node, pattern, kept)
  return { lexpr, rexpr }
}

interface Side {
  readonly node: Node
  readonly types: readonly (SqlType | null)[]
  readonly all: readonly Typed[]
  /** Undefined for a list. */
  readonly one?: Typed
}

/** Confines the right operand: an expression, or the list of IN and BETWEEN. */
function side(walk: Walk, level: Level, node: Node): Side {
  if (!node.List) {
    const one = expression(walk, level, node)
    return { node: one.node, types: compared(one), all: [one], one }
  }
  const items = (node.List.items ?? []).map((item) => expression(walk, level, item))
  return { node: { List: { items: items.map((item) => item.node) } }, types: items.flatMap(compared), all: items }
}

// Function calls. They are printed as "pg_catalog"."f" or with the schema of the function's extension.

/** A confined call, with the columns that it returns in FROM. */
export interface Called extends Typed {
  readonly name: string
  /** The names of OUT parameters. Empty if the function has none. */
  readonly out: readonly string[]
}

function call(walk: Walk, level: Level, node: Struct<'FuncCall'>): Typed {
  const asCast = castWritten(node)
  if (asCast) return expression(walk, level, { TypeCast: asCast })
  const called = callOf(walk, level, node)
  if (called.name !== 'pg_typeof') return called
  // The text of a regtype depends on search_path. A cast inside the query gives the same text for every login.
  const text = { names: [word('pg_catalog'), word('text')], typemod: -1 }
  return { node: { TypeCast: { arg: called.node, typeName: text } }, type: null }
}

/** Returns uuid('…') as a cast. PostgreSQL has no such function, and reads the call as a cast. */
function castWritten(node: Struct<'FuncCall'>): Struct<'TypeCast'> | undefined {
  const written = words(node.funcname)
  const name = written.at(-1) ?? ''
  const { args = [], location } = node
  const [arg] = args
  const isPlain = !(node.agg_order ?? node.agg_filter ?? node.over ?? node.agg_distinct ?? node.func_variadic)
  const isBuiltIn = written.length === 1 || (written.length === 2 && written[0] === 'pg_catalog')
  if (!arg || args.length > 1 || !isPlain || !isBuiltIn || FUNCTIONS.has(name) || !TYPES.has(name)) return undefined
  const to = { names: [word('pg_catalog'), word(name)], typemod: -1 }
  return arg.NamedArgExpr ? undefined : { arg, typeName: to, ...(location !== undefined && { location }) }
}

/** Confines a call in an expression or in FROM. */
export function callOf(walk: Walk, level: Level, node: Struct<'FuncCall'>): Called {
  const written = words(node.funcname)
  const name = written.at(-1) ?? ''
  // Check the name before the arguments: the refusal of DATEADD(day, 1, x) must name the function, not a column day.
  if (!mayBeCalled(walk.exposed, name)) throw unknownFunction(walk.exposed, written, node.location)
  const isAggregate = AGGREGATES.has(name) && !node.over
  if (isAggregate) level.aggregates += 1
  const given = argumentsOf(walk, name, node).map((arg) =>
    // In pg_typeof(pg_typeof(x)), the inner call stays a regtype, which the outer call must return.
    isTypeOf(name, arg) ? callOf(walk, level, arg.FuncCall) : joined(walk, level, name, arg),
  )
  const args = typedArguments(name, given)
  const types = args.map((arg) => arg.type)
  const found = findFunction(walk.exposed, written, types, node.location)
  const { extension } = found
  const isCollecting = extension === undefined ? collects(name) : collectsForExtension(name, types)
  const read = extension === undefined ? readByFunction(walk, level, name, args, node.location) : args
  const taken = takenBy(walk, level, name, read, { extension, isCollecting, at: node.location })
  const regexes = boundedRegexArguments(walk, level, name, taken.args, node.location)
  const printed = boundedCall(walk, name, node, regexes, found)
  if (RETURNS_ROWS.has(name)) {
    walk.rowFunctions += 1
    // PostgreSQL keeps its rows, up to work_mem.
    addSort(walk)
  }
  const funcname = [word(found.schema), word(name)]
  const sorted: Typed[] = []
  const rest = modifiers(walk, level, node, sorted)
  const within = node.agg_within_group ? sorted : []
  if (found.schema === 'pg_catalog') checkUnifiedArguments(walk.exposed, name, args, within, node.location)
  if (isAggregate) level.aggregates -= 1
  const made: Struct<'FuncCall'> = {
    funcname,
    ...(printed.length > 0 && { args: printed }),
    ...rest,
    ...(node.over && { over: window(walk, level, node.over) }),
    funcformat: 'COERCE_EXPLICIT_CALL',
  }
  const isSorted = node.agg_order ?? node.agg_distinct ?? node.agg_within_group
  if (isAggregate && isSorted) addSort(walk, level.sets)
  if (isAggregate && mayGrow(name, types[0] ?? null)) walk.growing.add(made)
  const confined: Node = { FuncCall: isCollecting ? countedCall(walk, level, name, made, node.location) : made }
  withCollected(confined, taken.result)
  if (walk.exposed.comparesByIcu) {
    const runs = runsOfCall(
      name,
      args.map((arg) => arg.node),
      made,
    )
    withRuns(confined, runs)
  }
  const type =
    found.extension === 'postgis'
      ? spatialResult(found.schema, name, found.out)
      : resultType(walk.exposed, name, found.out, [...types, ...within.map((each) => each.type)], node)
  return { node: confined, name, out: found.out, type }
}

/** Bounds the arguments of a call by the size of its result and by its work. */
function boundedCall(
  walk: Walk,
  name: string,
  written: Struct<'FuncCall'>,
  given: readonly Typed[],
  { schema, extension }: Found,
): readonly Node[] {
  const values = given.map((arg) => arg.node)
  const args = boundedLooseSearch(walk.exposed, name, values, written.location)
  if (extension === 'postgis') return spatialArguments(walk.exposed, name, given, written.location)
  const isVariadic = written.func_variadic === true
  const server = { major: walk.exposed.major, at: written.location, isVariadic }
  if (extension !== undefined) return boundedWork(extension, name, args, given, server)
  if (schema !== 'pg_catalog') return args
  if (takesPath(name)) return boundedPathArguments(args, written.location)
  const repeatedMax = walk.comparedMax === SORTED_MAX ? REPEATED_SORTED_MAX : undefined
  return boundedWork(schema, name, boundedArguments(name, written, args, repeatedMax), given, server)
}

/**
 * Returns the arguments. Names of text search configurations and dictionaries get their schema, so that the server
 * cannot find another object of the same name.
 */
function argumentsOf(walk: Walk, name: string, { args = [], location }: Struct<'FuncCall'>): readonly Node[] {
  const paths = plainPaths(name, args)
  const named = withDictionary(walk.exposed.extension('unaccent'), name, paths, location)
  return inPlaces(name, withConfiguration(name, named, location), location)
}

function isTypeOf(name: string, arg: Node): arg is Node & { readonly FuncCall: Struct<'FuncCall'> } {
  return name === 'pg_typeof' && words(arg.FuncCall?.funcname).at(-1) === 'pg_typeof'
}

function argument(walk: Walk, level: Level, node: Node): Typed {
  const named = node.NamedArgExpr
  if (!named) return expression(walk, level, node)
  if (!named.arg || !named.name) throw refusedStatement('=>', named.location)
  const inner = expression(walk, level, named.arg)
  return { node: { NamedArgExpr: { arg: inner.node, name: named.name, argnumber: -1 } }, type: inner.type }
}

/**
 * Confines an argument. In replace(replace(…)), only the outer result is searched for long runs. Expressions of GROUP
 * BY keep their search, because PostgreSQL compares them as they are printed.
 */
function joined(walk: Walk, level: Level, name: string, node: Node): Typed {
  const typed = argument(walk, level, node)
  if (!walk.exposed.comparesByIcu || !joins(name) || level.grouped.has(textOf(node))) return typed
  return { ...typed, node: unsearched(typed.node) }
}

function modifiers(walk: Walk, level: Level, node: Struct<'FuncCall'>, sorted: Typed[]): Partial<Struct<'FuncCall'>> {
  return {
    ...(node.agg_order && { agg_order: sortKeys(walk, level, node.agg_order, sorted) }),
    ...optional(walk, level, 'agg_filter', node.agg_filter),
    ...(node.agg_within_group && { agg_within_group: true as const }),
    ...(node.agg_star && { agg_star: true as const }),
    ...(node.agg_distinct && { agg_distinct: true as const }),
    ...(node.func_variadic && { func_variadic: true as const }),
  }
}

// Windows, and the sort keys of aggregates and windows. Their names mean columns, never outputs.

/** Confines sort keys of aggregates and windows. Adds the sorted values to `sorted`. */
export function sortKeys(walk: Walk, level: Level, keys: readonly Node[], sorted: Typed[] = []): Node[] {
  walk.sorts = true
  return keys.map((key) => {
    const sort = key.SortBy
    if (!sort?.node) throw refusedStatement('ORDER BY')
    const typed = expression(walk, level, sort.node)
    sorted.push(typed)
    return sortKey(walk, sort, typed)
  })
}

/** Builds a sort key from its confined expression. */
export function sortKey(walk: Walk, sort: Struct<'SortBy'>, { node, type }: Typed): Node {
  const { sortby_dir = '', sortby_nulls = '', useOp, location } = sort
  return {
    SortBy: {
      node,
      sortby_dir,
      sortby_nulls,
      ...(useOp && { useOp: operatorName(walk, words(useOp), [type, type], location) }),
    },
  }
}

/** Confines OVER (…), OVER name, or an entry of WINDOW. */
export function window(walk: Walk, level: Level, def: Struct<'WindowDef'>): Struct<'WindowDef'> {
  const partition = def.partitionClause?.map((node) => expression(walk, level, node).node)
  if (partition ?? def.orderClause) addSort(walk)
  walk.sorts = true
  return {
    ...(def.name !== undefined && { name: def.name }),
    ...(def.refname !== undefined && { refname: def.refname }),
    ...(partition && { partitionClause: partition }),
    ...(def.orderClause && { orderClause: sortKeys(walk, level, def.orderClause) }),
    frameOptions: def.frameOptions ?? 0,
    ...optional(walk, level, 'startOffset', def.startOffset),
    ...optional(walk, level, 'endOffset', def.endOffset),
  }
}

// (x).field, (x).* and x[1]. A field can be read only from a row whose columns the guard knows. For other rows,
// PostgreSQL may read (x).field as the call field(x), and (x).regclass as a cast.

/** Confines (x).field, (x).* or x[1]. */
export function indirection(walk: Walk, level: Level, { arg, indirection: steps }: Struct<'A_Indirection'>): Typed {
  if (!arg) throw refusedStatement('a subscript of nothing')
  const list = steps ?? []
  const field = list[0]?.String?.sval
  const row = field !== undefined && arg.ColumnRef ? rowMeant(walk, level, arg.ColumnRef) : undefined
  if (row && field !== undefined && arg.ColumnRef) {
    return applied(walk, level, columnOfRow(walk, row, field, arg.ColumnRef), list.slice(1))
  }
  return applied(walk, level, expression(walk, level, arg), list)
}

/** Expands `(x).*` to the fields of x. */
export function starFields(
  walk: Walk,
  level: Level,
  { arg, indirection: steps }: Struct<'A_Indirection'>,
): readonly Field[] {
  const { type } = indirection(walk, level, { ...(arg && { arg }), indirection: (steps ?? []).slice(0, -1) })
  const fields = fieldsOf(walk.exposed, type)
  if (!fields) throw refusedColumn('*', NOT_A_ROW, undefined)
  return fields
}

const NOT_A_ROW =
  'A field can be read from a table in FROM, from a column of a composite type, or from a function that returns named columns.'

const ROW_UNKNOWN =
  'Read the column where the table is in FROM: (SELECT t.a FROM …), array_agg(t.a), lag(t.a) OVER (…), or CASE … THEN t.a END.'

/** Returns whether PostgreSQL does not know the row's columns: it knows those of FROM items and of ROW(…). */
function isRowUnknown(typed: Typed): typed is Typed & { readonly type: SqlType & { readonly kind: 'row' } } {
  const { node, type } = typed
  if (type?.kind !== 'row' || type.known === 'always') return false
  return type.known === 'never' || (node.ColumnRef ?? node.RowExpr) === undefined
}

function applied(walk: Walk, level: Level, given: Typed, steps: readonly Node[]): Typed {
  if (steps.length === 0) return given
  const base = takenBySubscript(walk, level, given, steps, columnLocation(given.node))
  let type = base.type
  let isSlice = false
  const out = steps.map((step, index): Node => {
    if (step.A_Indices) {
      isSlice = isSlice || step.A_Indices.is_slice === true
      if (!steps[index + 1]?.A_Indices) {
        type = elementOf(type, isSlice)
        isSlice = false
      }
      return subscript(walk, level, step.A_Indices)
    }
    const name = step.String?.sval
    if (name === undefined) throw refusedColumn('*', NOT_A_ROW, undefined)
    const found = fieldsOf(walk.exposed, type)?.filter((field) => field.name === name)
    if (found?.length !== 1) throw refusedColumn(name, NOT_A_ROW, columnLocation(base.node))
    if (type?.kind === 'row' && (index > 0 || isRowUnknown({ node: base.node, type }))) {
      const why = `column ${name} cannot be read from a row that an expression returns`
      throw new Refusal('column', name, why, ROW_UNKNOWN, columnLocation(base.node))
    }
    type = found[0]?.type ?? null
    return { String: { sval: name } }
  })
  return { node: { A_Indirection: { arg: base.node, indirection: out } }, type }
}

/** Returns the type of an array's element or slice, or null if no array is subscripted (jsonb). */
function elementOf(type: SqlType | null, isSlice: boolean): SqlType | null {
  if (type?.kind !== 'array') return null
  return isSlice ? type : type.of
}

function subscript(walk: Walk, level: Level, { is_slice, lidx, uidx }: Struct<'A_Indices'>): Node {
  return {
    A_Indices: {
      ...(is_slice && { is_slice }),
      ...(lidx && { lidx: expression(walk, level, lidx).node }),
      ...(uidx && { uidx: expression(walk, level, uidx).node }),
    },
  }
}

function columnLocation(node: Node): number | undefined {
  return words(node.ColumnRef?.fields).length > 0 ? node.ColumnRef?.location : undefined
}
