// SQL/JSON as text.
import { must, printSelect } from './print.ts'
import { printExpression, printOver, printSort, printTypeName } from './print-expression.ts'
import type { Node, Struct } from './nodes.ts'
import { identifier, literal } from '../quote.ts'

/** A node of SQL/JSON. Throws TypeError for any other. */
export function printJson(node: Node): string {
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

/** JSON_TABLE(…), without its alias. */
export function printJsonTable(node: Struct<'JsonTable'>): string {
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
    must(WRAPPERS[column.wrapper ?? '']),
    must(QUOTES[column.quotes ?? '']),
    printBehavior(column.on_empty, 'EMPTY'),
    printBehavior(column.on_error, 'ERROR'),
  ]
  return parts.join('')
}
