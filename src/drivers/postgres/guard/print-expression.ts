// Confined expressions as text. Operators of pg_catalog are printed with it, casts as CAST(x AS type), SQL's own forms
// of calls (EXTRACT, TRIM …) as plain calls.
import { VALUE_FUNCTIONS } from './allowed.ts'
import { printJson } from './print-json.ts'
import { must, printSelect } from './print.ts'
import { words, type Node, type Struct } from './nodes.ts'
import { identifier, literal, qualified } from '../quote.ts'

/** An expression that can stand anywhere. Throws TypeError for a node that no walker makes. */
export function printExpression(node: Node): string {
  if (node.ColumnRef) return qualified(words(node.ColumnRef.fields))
  if (node.A_Const) return printConstant(node.A_Const)
  if (node.ParamRef) return `$${must(node.ParamRef.number)}`
  if (node.FuncCall) return printCall(node.FuncCall)
  if (node.A_Expr) return printOperator(node.A_Expr)
  if (node.BoolExpr) return printBoolean(node.BoolExpr)
  if (node.TypeCast) return `CAST(${print(node.TypeCast.arg)} AS ${printTypeName(must(node.TypeCast.typeName))})`
  if (node.SubLink) return printSubLink(node.SubLink)
  if (node.NullTest) return `(${print(node.NullTest.arg)} ${must(NULL_TESTS[node.NullTest.nulltesttype ?? ''])})`
  if (node.CaseExpr) return printCase(node.CaseExpr)
  if (node.CoalesceExpr) return `COALESCE(${printList(node.CoalesceExpr.args)})`
  return printRarer(node)
}

function print(node: Node | undefined): string {
  return printExpression(must(node))
}

/** Expressions with commas between. */
export function printList(nodes: readonly Node[] | undefined): string {
  return (nodes ?? []).map(printExpression).join(', ')
}

const NULL_TESTS: Readonly<Record<string, string>> = { IS_NULL: 'IS NULL', IS_NOT_NULL: 'IS NOT NULL' }

const BOOLEAN_TESTS: Readonly<Record<string, string>> = {
  IS_TRUE: 'IS TRUE',
  IS_NOT_TRUE: 'IS NOT TRUE',
  IS_FALSE: 'IS FALSE',
  IS_NOT_FALSE: 'IS NOT FALSE',
  IS_UNKNOWN: 'IS UNKNOWN',
  IS_NOT_UNKNOWN: 'IS NOT UNKNOWN',
}

const GROUPING_SETS: Readonly<Record<string, string>> = {
  GROUPING_SET_ROLLUP: 'ROLLUP',
  GROUPING_SET_CUBE: 'CUBE',
  GROUPING_SET_SETS: 'GROUPING SETS',
}

function printRarer(node: Node): string {
  if (node.A_Indirection) {
    const { arg, indirection } = node.A_Indirection
    return `(${print(arg)})${(indirection ?? []).map(printStep).join('')}`
  }
  if (node.A_ArrayExpr) return `ARRAY[${printList(node.A_ArrayExpr.elements)}]`
  if (node.RowExpr) {
    return `${node.RowExpr.row_format === 'COERCE_EXPLICIT_CALL' ? 'ROW' : ''}(${printList(node.RowExpr.args)})`
  }
  if (node.MinMaxExpr) {
    return `${node.MinMaxExpr.op === 'IS_LEAST' ? 'LEAST' : 'GREATEST'}(${printList(node.MinMaxExpr.args)})`
  }
  if (node.SQLValueFunction) {
    const { op = '', typmod = 0 } = node.SQLValueFunction
    return `${must(VALUE_FUNCTIONS.get(op))}${typmod >= 0 ? `(${typmod})` : ''}`
  }
  if (node.BooleanTest)
    return `(${print(node.BooleanTest.arg)} ${must(BOOLEAN_TESTS[node.BooleanTest.booltesttype ?? ''])})`
  if (node.CollateClause)
    return `(${print(node.CollateClause.arg)} COLLATE ${qualified(words(node.CollateClause.collname))})`
  if (node.GroupingFunc) return `GROUPING(${printList(node.GroupingFunc.args)})`
  if (node.GroupingSet) {
    const { kind = '', content } = node.GroupingSet
    return kind === 'GROUPING_SET_EMPTY' ? '()' : `${must(GROUPING_SETS[kind])} (${printList(content)})`
  }
  if (node.NamedArgExpr) return `${identifier(must(node.NamedArgExpr.name))} => ${print(node.NamedArgExpr.arg)}`
  return printJson(node)
}

function printConstant(value: Struct<'A_Const'>): string {
  if (value.isnull) return 'NULL'
  if (value.ival) return signed(String(value.ival.ival ?? 0))
  if (value.fval) return signed(must(value.fval.fval))
  if (value.boolval) return value.boolval.boolval ? 'TRUE' : 'FALSE'
  if (value.sval) return literal(value.sval.sval ?? '')
  const bits = must(value.bsval?.bsval)
  return `${bits.slice(0, 1).toUpperCase()}'${bits.slice(1)}'`
}

function signed(digits: string): string {
  return digits.startsWith('-') ? `(${digits})` : digits
}

function printStep(step: Node): string {
  if (step.String) return `.${identifier(step.String.sval ?? '')}`
  const { is_slice, lidx, uidx } = must(step.A_Indices)
  const [from, to] = [lidx && printExpression(lidx), uidx && printExpression(uidx)]
  return is_slice ? `[${from ?? ''}:${to ?? ''}]` : `[${must(to)}]`
}

function printCall(call: Struct<'FuncCall'>): string {
  const { args = [], agg_order: order } = call
  const last = args.length - 1
  const list = args.map(
    (arg, index) => `${call.func_variadic && index === last ? 'VARIADIC ' : ''}${printExpression(arg)}`,
  )
  const sort = order && `ORDER BY ${order.map(printSort).join(', ')}`
  const inside = [
    call.agg_distinct && 'DISTINCT',
    call.agg_star ? '*' : list.join(', '),
    call.agg_within_group ? undefined : sort,
  ]
  const parts = [
    `${qualified(words(call.funcname))}(${inside.filter(Boolean).join(' ')})`,
    call.agg_within_group && `WITHIN GROUP (${must(sort)})`,
    call.agg_filter && `FILTER (WHERE ${printExpression(call.agg_filter)})`,
    call.over && printOver(call.over),
  ]
  return parts.filter(Boolean).join(' ')
}

/** OVER name, or OVER (…). */
export function printOver(window: Struct<'WindowDef'>): string {
  return `OVER ${window.name === undefined ? printWindow(window) : identifier(window.name)}`
}

/** FRAMEOPTION_… of parsenodes.h. */
const FRAME = {
  nonDefault: 0x1,
  range: 0x2,
  rows: 0x4,
  groups: 0x8,
  between: 0x10,
  startUnboundedPreceding: 0x20,
  endUnboundedFollowing: 0x100,
  startCurrentRow: 0x200,
  endCurrentRow: 0x400,
  startOffsetPreceding: 0x800,
  endOffsetPreceding: 0x1000,
  startOffsetFollowing: 0x2000,
  endOffsetFollowing: 0x4000,
  excludeCurrentRow: 0x8000,
  excludeGroup: 0x10000,
  excludeTies: 0x20000,
} as const

/** (… PARTITION BY … ORDER BY … frame), without its name. */
export function printWindow(window: Struct<'WindowDef'>): string {
  const { refname, partitionClause, orderClause } = window
  const parts = [
    refname !== undefined && identifier(refname),
    partitionClause && `PARTITION BY ${printList(partitionClause)}`,
    orderClause && `ORDER BY ${orderClause.map(printSort).join(', ')}`,
    printFrame(window),
  ]
  return `(${parts.filter(Boolean).join(' ')})`
}

function printFrame({ frameOptions = 0, startOffset, endOffset }: Struct<'WindowDef'>): string {
  const is = (bit: keyof typeof FRAME): boolean => (frameOptions & FRAME[bit]) !== 0
  if (!is('nonDefault')) return ''
  const unit = is('rows') ? 'ROWS' : is('groups') ? 'GROUPS' : 'RANGE'
  const start = is('startUnboundedPreceding')
    ? 'UNBOUNDED PRECEDING'
    : is('startCurrentRow')
      ? 'CURRENT ROW'
      : `${print(startOffset)} ${is('startOffsetPreceding') ? 'PRECEDING' : 'FOLLOWING'}`
  const end = is('endUnboundedFollowing')
    ? 'UNBOUNDED FOLLOWING'
    : is('endCurrentRow')
      ? 'CURRENT ROW'
      : `${is('between') ? print(endOffset) : ''} ${is('endOffsetPreceding') ? 'PRECEDING' : 'FOLLOWING'}`
  const without = is('excludeCurrentRow')
    ? ' EXCLUDE CURRENT ROW'
    : is('excludeGroup')
      ? ' EXCLUDE GROUP'
      : is('excludeTies')
        ? ' EXCLUDE TIES'
        : ''
  return is('between') ? `${unit} BETWEEN ${start} AND ${end}${without}` : `${unit} ${start}${without}`
}

const DIRECTIONS: Readonly<Record<string, string>> = { SORTBY_DEFAULT: '', SORTBY_ASC: ' ASC', SORTBY_DESC: ' DESC' }
const NULLS: Readonly<Record<string, string>> = {
  SORTBY_NULLS_DEFAULT: '',
  SORTBY_NULLS_FIRST: ' NULLS FIRST',
  SORTBY_NULLS_LAST: ' NULLS LAST',
}

/** One key of ORDER BY. */
export function printSort(node: Node): string {
  const { node: key, sortby_dir = '', sortby_nulls = '', useOp } = must(node.SortBy)
  const direction = useOp ? ` USING ${printOperatorName(useOp)}` : must(DIRECTIONS[sortby_dir])
  return `${print(key)}${direction}${must(NULLS[sortby_nulls])}`
}

function printOperatorName(name: readonly Node[] | undefined): string {
  const parts = words(name)
  const symbol = must(parts.at(-1))
  return parts.length > 1 ? `OPERATOR(${identifier(must(parts[0]))}.${symbol})` : symbol
}

const BETWEEN: Readonly<Record<string, string>> = {
  AEXPR_BETWEEN: 'BETWEEN',
  AEXPR_NOT_BETWEEN: 'NOT BETWEEN',
  AEXPR_BETWEEN_SYM: 'BETWEEN SYMMETRIC',
  AEXPR_NOT_BETWEEN_SYM: 'NOT BETWEEN SYMMETRIC',
}

function printOperator({ kind = '', name, lexpr, rexpr }: Struct<'A_Expr'>): string {
  switch (kind) {
    case 'AEXPR_OP':
      return `(${lexpr ? `${print(lexpr)} ` : ''}${printOperatorName(name)} ${print(rexpr)})`
    case 'AEXPR_OP_ANY':
      return `(${print(lexpr)} ${printOperatorName(name)} ANY (${print(rexpr)}))`
    case 'AEXPR_OP_ALL':
      return `(${print(lexpr)} ${printOperatorName(name)} ALL (${print(rexpr)}))`
    case 'AEXPR_DISTINCT':
      return `(${print(lexpr)} IS DISTINCT FROM ${print(rexpr)})`
    case 'AEXPR_NOT_DISTINCT':
      return `(${print(lexpr)} IS NOT DISTINCT FROM ${print(rexpr)})`
    case 'AEXPR_NULLIF':
      return `NULLIF(${print(lexpr)}, ${print(rexpr)})`
    case 'AEXPR_IN':
      return `(${print(lexpr)} ${words(name)[0] === '<>' ? 'NOT IN' : 'IN'} (${printList(must(rexpr?.List).items)}))`
    default: {
      const [low, high] = must(rexpr?.List).items ?? []
      return `(${print(lexpr)} ${must(BETWEEN[kind])} ${print(low)} AND ${print(high)})`
    }
  }
}

function printBoolean({ boolop, args = [] }: Struct<'BoolExpr'>): string {
  if (boolop === 'NOT_EXPR') return `(NOT ${print(args[0])})`
  return `(${args.map(printExpression).join(boolop === 'AND_EXPR' ? ' AND ' : ' OR ')})`
}

function printSubLink({ subLinkType, testexpr, operName, subselect }: Struct<'SubLink'>): string {
  const query = `(${printSelect(must(must(subselect).SelectStmt))})`
  switch (subLinkType) {
    case 'EXISTS_SUBLINK':
      return `EXISTS ${query}`
    case 'ARRAY_SUBLINK':
      return `ARRAY${query}`
    case 'EXPR_SUBLINK':
      return query
    case 'ANY_SUBLINK':
      return `(${print(testexpr)} ${printOperatorName(operName)} ANY ${query})`
    default:
      return `(${print(testexpr)} ${printOperatorName(operName)} ALL ${query})`
  }
}

function printCase({ arg, args = [], defresult }: Struct<'CaseExpr'>): string {
  const whens = args.map((node) => {
    const { expr, result } = must(node.CaseWhen)
    return ` WHEN ${print(expr)} THEN ${print(result)}`
  })
  return `CASE${arg ? ` ${print(arg)}` : ''}${whens.join('')}${defresult ? ` ELSE ${print(defresult)}` : ''} END`
}

/** "schema"."type"(typmods)[]. */
export function printTypeName({ names, typmods, arrayBounds }: Struct<'TypeName'>): string {
  const modifiers = typmods ? `(${printList(typmods)})` : ''
  const bounds = (arrayBounds ?? []).map((bound) => {
    const size = must(bound.Integer).ival ?? 0
    return size < 0 ? '[]' : `[${size}]`
  })
  return `${qualified(words(names))}${modifiers}${bounds.join('')}`
}
