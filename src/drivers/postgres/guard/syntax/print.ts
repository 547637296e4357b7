// Prints a confined query. Quotes every name, and puts parentheses around every operator. Accepts only trees that the
// walkers can build. Afterwards, judge.ts checks that the parser reads the text as the confined tree.
import { identifier, literal, qualified } from '../../quote.ts'
import { words, type Node, type SelectStmt, type Struct } from '../allowed/allowed-nodes.ts'
import { VALUE_FUNCTIONS } from '../allowed/types-and-extensions.ts'

/** Prints a SELECT. Throws TypeError for a tree that no walker builds. */
export function printSelect(query: SelectStmt): string {
  const parts = [
    query.withClause && printWith(query.withClause),
    query.op === 'SETOP_NONE' ? printPlain(query) : printSetOperation(query),
    clause('ORDER BY', query.sortClause, printSort),
    query.limitOption !== 'LIMIT_OPTION_WITH_TIES' && printLimit(query.limitCount),
    query.limitOffset && `OFFSET ${printExpression(query.limitOffset)}`,
    query.limitOption === 'LIMIT_OPTION_WITH_TIES' &&
      `FETCH FIRST (${printExpression(must(query.limitCount))}) ROWS WITH TIES`,
  ]
  return parts.filter((part) => part !== undefined && part !== false && part !== '').join(' ')
}

/** Returns a part that each tree of the walkers has. Throws TypeError if it is missing. */
function must<T>(value: T | undefined): T {
  if (value === undefined) throw new TypeError('a confined tree that is not whole')
  return value
}

function clause(word: string, list: readonly Node[] | undefined, print: (node: Node) => string): string | undefined {
  return list && list.length > 0 ? `${word} ${list.map(print).join(', ')}` : undefined
}

function printLimit(count: Node | undefined): string | undefined {
  if (!count) return undefined
  return count.A_Const?.isnull ? 'LIMIT ALL' : `LIMIT ${printExpression(count)}`
}

function printPlain(query: SelectStmt): string {
  if (query.valuesLists)
    return `VALUES ${query.valuesLists.map((row) => `(${printList(must(row.List).items)})`).join(', ')}`
  const { distinctClause: distinct, targetList = [] } = query
  const isOn = distinct !== undefined && Object.keys(distinct[0] ?? {}).length > 0
  const parts = [
    'SELECT',
    distinct && (isOn ? `DISTINCT ON (${printList(distinct)})` : 'DISTINCT'),
    targetList.map(printTarget).join(', '),
    clause('FROM', query.fromClause, printFrom),
    query.whereClause && `WHERE ${printExpression(query.whereClause)}`,
    clause(query.groupDistinct ? 'GROUP BY DISTINCT' : 'GROUP BY', query.groupClause, printExpression),
    query.havingClause && `HAVING ${printExpression(query.havingClause)}`,
    clause('WINDOW', query.windowClause, (node) => {
      const window = must(node.WindowDef)
      return `${identifier(must(window.name))} AS ${printWindow(window)}`
    }),
  ]
  return parts.filter((part) => part !== undefined && part !== '').join(' ')
}

function printTarget(node: Node): string {
  const { val, name } = must(node.ResTarget)
  return name === undefined ? printExpression(must(val)) : `${printExpression(must(val))} AS ${identifier(name)}`
}

const OPERATIONS: Readonly<Record<string, string>> = {
  SETOP_UNION: 'UNION',
  SETOP_INTERSECT: 'INTERSECT',
  SETOP_EXCEPT: 'EXCEPT',
}

function printSetOperation(query: SelectStmt): string {
  const { op = '', all } = query
  const parts: string[] = []
  let left = must(query.larg)
  parts.push(printArm(must(query.rarg)), `${must(OPERATIONS[op])}${all ? ' ALL' : ''}`)
  // The chain is left-associative. Parentheses would nest as deep as the chain is long.
  while (isBareChain(left, op)) {
    parts.push(printArm(must(left.rarg)), `${must(OPERATIONS[left.op ?? ''])}${left.all ? ' ALL' : ''}`)
    left = must(left.larg)
  }
  parts.push(printArm(left))
  return parts.reverse().join(' ')
}

/** Returns whether the left arm needs no parentheses. */
function isBareChain(left: SelectStmt, op: string): boolean {
  if (left.op === 'SETOP_NONE' || left.sortClause || left.limitCount || left.limitOffset || left.withClause)
    return false
  return (left.op === 'SETOP_INTERSECT') === (op === 'SETOP_INTERSECT')
}

function printArm(arm: SelectStmt): string {
  return `(${printSelect(arm)})`
}

function printWith({ ctes = [], recursive }: Struct<'WithClause'>): string {
  return `WITH ${recursive ? 'RECURSIVE ' : ''}${ctes.map((node) => printCte(must(node.CommonTableExpr))).join(', ')}`
}

const MATERIALIZED: Readonly<Record<string, string>> = {
  CTEMaterializeDefault: 'AS',
  CTEMaterializeAlways: 'AS MATERIALIZED',
  CTEMaterializeNever: 'AS NOT MATERIALIZED',
}

function printCte(cte: Struct<'CommonTableExpr'>): string {
  const { search_clause: search, cycle_clause: cycle } = cte
  const parts = [
    `${identifier(must(cte.ctename))}${printNames(cte.aliascolnames)}`,
    must(MATERIALIZED[cte.ctematerialized ?? '']),
    `(${printSelect(must(must(cte.ctequery).SelectStmt))})`,
    search &&
      `SEARCH ${search.search_breadth_first ? 'BREADTH' : 'DEPTH'} FIRST BY ${names(search.search_col_list)} SET ${identifier(must(search.search_seq_column))}`,
    cycle &&
      `CYCLE ${names(cycle.cycle_col_list)} SET ${identifier(must(cycle.cycle_mark_column))} TO ${printExpression(must(cycle.cycle_mark_value))} DEFAULT ${printExpression(must(cycle.cycle_mark_default))} USING ${identifier(must(cycle.cycle_path_column))}`,
  ]
  return parts.filter((part) => part !== undefined).join(' ')
}

function names(nodes: readonly Node[] | undefined): string {
  return words(nodes).map(identifier).join(', ')
}

function printNames(nodes: readonly Node[] | undefined): string {
  return nodes && nodes.length > 0 ? ` (${names(nodes)})` : ''
}

function printFrom(node: Node): string {
  if (node.RangeVar) return printTable(node.RangeVar)
  if (node.RangeSubselect) {
    const { lateral, subquery, alias } = node.RangeSubselect
    return `${lateral ? 'LATERAL ' : ''}(${printSelect(must(must(subquery).SelectStmt))})${printAlias(alias)}`
  }
  if (node.JoinExpr) return printJoin(node.JoinExpr)
  if (node.RangeFunction) return printFunctions(node.RangeFunction)
  if (node.RangeTableSample) {
    const { relation, method, args, repeatable } = node.RangeTableSample
    const again = repeatable ? ` REPEATABLE (${printExpression(repeatable)})` : ''
    return `${printFrom(must(relation))} TABLESAMPLE ${qualified(words(method))} (${printList(args)})${again}`
  }
  return `${printJsonTable(must(node.JsonTable))}${printAlias(must(node.JsonTable).alias)}`
}

function printTable({ schemaname, relname, inh, alias }: Struct<'RangeVar'>): string {
  const name = qualified([...(schemaname === undefined ? [] : [schemaname]), must(relname)])
  return `${inh ? '' : 'ONLY '}${name}${printAlias(alias)}`
}

function printAlias(alias: Struct<'Alias'> | undefined): string {
  return alias ? ` AS ${identifier(must(alias.aliasname))}${printNames(alias.colnames)}` : ''
}

const JOINS: Readonly<Record<string, string>> = {
  JOIN_INNER: 'JOIN',
  JOIN_LEFT: 'LEFT JOIN',
  JOIN_RIGHT: 'RIGHT JOIN',
  JOIN_FULL: 'FULL JOIN',
}

function printJoin({ jointype, larg, rarg, usingClause, join_using_alias, quals, alias }: Struct<'JoinExpr'>): string {
  const isCross = jointype === 'JOIN_INNER' && !usingClause && !quals
  const how = isCross ? 'CROSS JOIN' : must(JOINS[jointype ?? ''])
  const on = quals ? ` ON ${printExpression(quals)}` : usingClause ? ` USING (${names(usingClause)})` : ''
  const inner = `(${printFrom(must(larg))} ${how} ${printFrom(must(rarg))}${on}${printAlias(join_using_alias)})`
  return `${inner}${printAlias(alias)}`
}

function printFunctions(node: Struct<'RangeFunction'>): string {
  const { lateral, ordinality, is_rowsfrom, functions = [], alias, coldeflist } = node
  const calls = functions.map((item) => {
    const [call, definitions] = must(item.List).items ?? []
    const list = definitions?.List?.items
    return `${printExpression(must(call))}${list ? ` AS (${list.map(printDefinition).join(', ')})` : ''}`
  })
  const source = is_rowsfrom ? `ROWS FROM (${calls.join(', ')})` : must(calls[0])
  const named = coldeflist
    ? ` AS ${identifier(must(alias?.aliasname))} (${coldeflist.map(printDefinition).join(', ')})`
    : printAlias(alias)
  return `${lateral ? 'LATERAL ' : ''}${source}${ordinality ? ' WITH ORDINALITY' : ''}${named}`
}

function printDefinition(node: Node): string {
  const { colname, typeName } = must(node.ColumnDef)
  return `${identifier(must(colname))} ${printTypeName(must(typeName))}`
}

// Expressions. Operators are printed with their schema, casts as CAST(x AS type), and special syntax such as EXTRACT
// and TRIM as plain calls.

/** Prints an expression that needs no more parentheses. Throws TypeError for a node that no walker builds. */
function printExpression(node: Node): string {
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

function printList(nodes: readonly Node[] | undefined): string {
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

function printOver(window: Struct<'WindowDef'>): string {
  return `OVER ${window.name === undefined ? printWindow(window) : identifier(window.name)}`
}

/** The FRAMEOPTION_… constants of PostgreSQL's parsenodes.h. */
export const FRAME = {
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

/** Prints (… PARTITION BY … ORDER BY … frame). */
function printWindow(window: Struct<'WindowDef'>): string {
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

function printSort(node: Node): string {
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

/** Prints "schema"."type"(arguments)[]. */
function printTypeName({ names, typmods, arrayBounds }: Struct<'TypeName'>): string {
  const modifiers = typmods ? `(${printList(typmods)})` : ''
  const bounds = (arrayBounds ?? []).map((bound) => {
    const size = must(bound.Integer).ival ?? 0
    return size < 0 ? '[]' : `[${size}]`
  })
  return `${qualified(words(names))}${modifiers}${bounds.join('')}`
}

// The syntax of SQL/JSON.

/** Throws TypeError for a node that is not of SQL/JSON. */
function printJson(node: Node): string {
  if (node.JsonObjectConstructor) {
    const { exprs, absent_on_null, unique, output } = node.JsonObjectConstructor
    if (!exprs) return `JSON_OBJECT(${printOutput(output).trimStart()})`
    const pairs = exprs.map((item) => printPair(item.JsonKeyValue)).join(', ')
    return `JSON_OBJECT(${pairs}${printNulls(absent_on_null)}${printUnique(unique)}${printOutput(output)})`
  }
  if (node.JsonArrayConstructor) {
    const { exprs, absent_on_null, output } = node.JsonArrayConstructor
    if (!exprs) return `JSON_ARRAY(${printOutput(output).trimStart()})`
    const items = exprs.map((item) => printValue(item.JsonValueExpr)).join(', ')
    return `JSON_ARRAY(${items}${printNulls(absent_on_null)}${printOutput(output)})`
  }
  if (node.JsonArrayQueryConstructor) {
    const { query, format, output } = node.JsonArrayQueryConstructor
    return `JSON_ARRAY(${printSelect(must(must(query).SelectStmt))}${printFormat(format)}${printOutput(output)})`
  }
  if (node.JsonObjectAgg) {
    const { constructor, arg, absent_on_null, unique } = node.JsonObjectAgg
    const inside = `${printPair(arg)}${printNulls(absent_on_null)}${printUnique(unique)}${printOutput(constructor?.output)}`
    return `JSON_OBJECTAGG(${inside})${printTail(constructor)}`
  }
  if (node.JsonArrayAgg) {
    const { constructor, arg, absent_on_null } = node.JsonArrayAgg
    const order = constructor?.agg_order ? ` ORDER BY ${constructor.agg_order.map(printSort).join(', ')}` : ''
    const inside = `${printValue(arg)}${order}${printNulls(absent_on_null)}${printOutput(constructor?.output)}`
    return `JSON_ARRAYAGG(${inside})${printTail(constructor)}`
  }
  return printAsked(node)
}

const ITEM_TYPES: Readonly<Record<string, string>> = {
  JS_TYPE_ANY: '',
  JS_TYPE_OBJECT: ' OBJECT',
  JS_TYPE_ARRAY: ' ARRAY',
  JS_TYPE_SCALAR: ' SCALAR',
}

function printAsked(node: Node): string {
  if (node.JsonIsPredicate) {
    const { expr, format, item_type = '', unique_keys } = node.JsonIsPredicate
    const keys = unique_keys ? ' WITH UNIQUE KEYS' : ''
    return `(${printExpression(must(expr))}${printFormat(format)} IS JSON${must(ITEM_TYPES[item_type])}${keys})`
  }
  if (node.JsonParseExpr) {
    const { expr, unique_keys, output } = node.JsonParseExpr
    return `JSON(${printValue(expr)}${printUnique(unique_keys)}${printOutput(output)})`
  }
  if (node.JsonScalarExpr) {
    return `JSON_SCALAR(${printExpression(must(node.JsonScalarExpr.expr))}${printOutput(node.JsonScalarExpr.output)})`
  }
  if (node.JsonSerializeExpr) {
    return `JSON_SERIALIZE(${printValue(node.JsonSerializeExpr.expr)}${printOutput(node.JsonSerializeExpr.output)})`
  }
  return printFunction(must(node.JsonFuncExpr))
}

const FUNCTIONS: Readonly<Record<string, string>> = {
  JSON_EXISTS_OP: 'JSON_EXISTS',
  JSON_QUERY_OP: 'JSON_QUERY',
  JSON_VALUE_OP: 'JSON_VALUE',
}

function printFunction(node: Struct<'JsonFuncExpr'>): string {
  const parts = [
    `${printValue(node.context_item)}, ${printExpression(must(node.pathspec))}`,
    printPassing(node.passing),
    printOutput(node.output),
    must(WRAPPERS[node.wrapper ?? '']),
    must(QUOTES[node.quotes ?? '']),
    printBehavior(node.on_empty, 'EMPTY'),
    printBehavior(node.on_error, 'ERROR'),
  ]
  return `${must(FUNCTIONS[node.op ?? ''])}(${parts.join('')})`
}

const WRAPPERS: Readonly<Record<string, string>> = {
  JSW_UNSPEC: '',
  JSW_NONE: ' WITHOUT WRAPPER',
  JSW_CONDITIONAL: ' WITH CONDITIONAL WRAPPER',
  JSW_UNCONDITIONAL: ' WITH UNCONDITIONAL WRAPPER',
}

const QUOTES: Readonly<Record<string, string>> = {
  JS_QUOTES_UNSPEC: '',
  JS_QUOTES_KEEP: ' KEEP QUOTES',
  JS_QUOTES_OMIT: ' OMIT QUOTES',
}

const BEHAVIORS: Readonly<Record<string, string>> = {
  JSON_BEHAVIOR_NULL: 'NULL',
  JSON_BEHAVIOR_ERROR: 'ERROR',
  JSON_BEHAVIOR_EMPTY: 'EMPTY',
  JSON_BEHAVIOR_TRUE: 'TRUE',
  JSON_BEHAVIOR_FALSE: 'FALSE',
  JSON_BEHAVIOR_UNKNOWN: 'UNKNOWN',
  JSON_BEHAVIOR_EMPTY_ARRAY: 'EMPTY ARRAY',
  JSON_BEHAVIOR_EMPTY_OBJECT: 'EMPTY OBJECT',
}

function printBehavior(behavior: Struct<'JsonBehavior'> | undefined, when: 'EMPTY' | 'ERROR'): string {
  if (!behavior) return ''
  const { btype = '', expr } = behavior
  const what = btype === 'JSON_BEHAVIOR_DEFAULT' ? `DEFAULT ${printExpression(must(expr))}` : must(BEHAVIORS[btype])
  return ` ${what} ON ${when}`
}

function printPassing(list: readonly Node[] | undefined): string {
  if (!list) return ''
  const items = list.map(({ JsonArgument: each }) => `${printValue(each?.val)} AS ${identifier(must(each?.name))}`)
  return ` PASSING ${items.join(', ')}`
}

function printPair(pair: Struct<'JsonKeyValue'> | undefined): string {
  return `${printExpression(must(pair?.key))} : ${printValue(pair?.value)}`
}

function printValue(value: Struct<'JsonValueExpr'> | undefined): string {
  return `${printExpression(must(value?.raw_expr))}${printFormat(value?.format)}`
}

const ENCODINGS: Readonly<Record<string, string>> = {
  JS_ENC_DEFAULT: '',
  JS_ENC_UTF8: ' ENCODING UTF8',
  JS_ENC_UTF16: ' ENCODING UTF16',
  JS_ENC_UTF32: ' ENCODING UTF32',
}

function printFormat(format: Struct<'JsonFormat'> | undefined): string {
  const { format_type = 'JS_FORMAT_DEFAULT', encoding = 'JS_ENC_DEFAULT' } = format ?? {}
  if (format_type === 'JS_FORMAT_DEFAULT') return ''
  if (format_type !== 'JS_FORMAT_JSON') throw new TypeError(`no such format: ${format_type}`)
  return ` FORMAT JSON${must(ENCODINGS[encoding])}`
}

function printNulls(absentOnNull: true | undefined): string {
  return absentOnNull ? ' ABSENT ON NULL' : ' NULL ON NULL'
}

function printUnique(unique: true | undefined): string {
  return unique ? ' WITH UNIQUE KEYS' : ''
}

function printOutput(output: Struct<'JsonOutput'> | undefined): string {
  return output ? ` RETURNING ${printTypeName(must(output.typeName))}${printFormat(output.returning?.format)}` : ''
}

function printTail(constructor: Struct<'JsonAggConstructor'> | undefined): string {
  const filter = constructor?.agg_filter ? ` FILTER (WHERE ${printExpression(constructor.agg_filter)})` : ''
  return `${filter}${constructor?.over ? ` ${printOver(constructor.over)}` : ''}`
}

/** Prints JSON_TABLE(…) without its alias. */
function printJsonTable(node: Struct<'JsonTable'>): string {
  const { context_item, pathspec, passing, columns = [], on_error, lateral } = node
  const inside = `${printValue(context_item)}, ${printPath(pathspec)}${printPassing(passing)}`
  const list = columns.map((column) => printColumn(must(column.JsonTableColumn))).join(', ')
  return `${lateral ? 'LATERAL ' : ''}JSON_TABLE(${inside} COLUMNS (${list})${printBehavior(on_error, 'ERROR')})`
}

function printPath(spec: Struct<'JsonTablePathSpec'> | undefined): string {
  const text = literal(spec?.string?.A_Const?.sval?.sval ?? '')
  return spec?.name === undefined ? text : `${text} AS ${identifier(spec.name)}`
}

function printColumn(column: Struct<'JsonTableColumn'>): string {
  const { coltype, name, typeName, pathspec, columns = [] } = column
  if (coltype === 'JTC_NESTED') {
    const list = columns.map((each) => printColumn(must(each.JsonTableColumn))).join(', ')
    return `NESTED PATH ${printPath(pathspec)} COLUMNS (${list})`
  }
  const called = identifier(must(name))
  if (coltype === 'JTC_FOR_ORDINALITY') return `${called} FOR ORDINALITY`
  const parts = [
    `${called} ${printTypeName(must(typeName))}`,
    coltype === 'JTC_EXISTS' ? ' EXISTS' : '',
    printFormat(column.format),
    pathspec ? ` PATH ${printPath(pathspec)}` : '',
    // EXISTS has no wrapper.
    coltype === 'JTC_EXISTS' ? '' : must(WRAPPERS[column.wrapper ?? '']),
    coltype === 'JTC_EXISTS' ? '' : must(QUOTES[column.quotes ?? '']),
    printBehavior(column.on_empty, 'EMPTY'),
    printBehavior(column.on_error, 'ERROR'),
  ]
  return parts.join('')
}
