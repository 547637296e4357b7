// Walks SQL/JSON: constructors, IS JSON, JSON_QUERY and similar functions (PostgreSQL 16 and 17), JSON_TABLE in FROM.
// Each PASSING and DEFAULT is confined like any expression: DEFAULT pg_read_file(…) ON EMPTY would read a file. All
// functions throw Refusal.
import type { Node, Struct } from '../allowed/allowed-nodes.ts'
import { boundedDocument, boundedItems, boundedList, notAPath, plainPath, workOf } from '../bounds/json-path-bounds.ts'
import { ofRow, rowsWork, type Term } from '../bounds/json-path.ts'
import { countedJson, countedRows } from '../bounds/collected-rows.ts'
import { collectedIn, takenAsJson } from '../bounds/collected-values.ts'
import { readAsJson } from '../bounds/long-numbers.ts'
import { selectOnly, subSelect } from '../node-builders.ts'
import { Refusal, refusedStatement } from '../refusal.ts'
import { addSort, type Level, type Walk } from './scope.ts'
import type { Field, SqlType, Typed } from './from-items.ts'
import { typeName } from '../allowed/type-names.ts'
import { Shown } from './visible-names.ts'
import { expression, optional, sortKeys, window } from './walk-expression.ts'
import { namedItem, type From } from './walk-from.ts'
import { select } from './walk-select.ts'

/** Confines a SQL/JSON node. Returns undefined for any other node. */
export function jsonExpression(walk: Walk, level: Level, node: Node): Typed | undefined {
  const confined = constructed(walk, level, node) ?? queried(walk, level, node)
  return confined && { node: confined, type: null }
}

function constructed(walk: Walk, level: Level, node: Node): Node | undefined {
  if (node.JsonObjectConstructor) {
    since(walk, 16, 'json_object', node.JsonObjectConstructor.location)
    const { exprs, output, absent_on_null, unique } = node.JsonObjectConstructor
    const pairs = exprs?.map((item): Node => ({ JsonKeyValue: pair(walk, level, item.JsonKeyValue) }))
    return {
      JsonObjectConstructor: {
        ...(pairs && { exprs: pairs }),
        ...returning(walk, output),
        ...flags({ absent_on_null, unique }),
      },
    }
  }
  if (node.JsonArrayConstructor) {
    since(walk, 16, 'json_array', node.JsonArrayConstructor.location)
    const { exprs, output, absent_on_null } = node.JsonArrayConstructor
    const items = exprs?.map((item): Node => ({ JsonValueExpr: jsonValue(walk, level, item.JsonValueExpr) }))
    return {
      JsonArrayConstructor: {
        ...(items && { exprs: items }),
        ...returning(walk, output),
        ...flags({ absent_on_null }),
      },
    }
  }
  if (node.JsonArrayQueryConstructor) return arrayQuery(walk, level, node.JsonArrayQueryConstructor)
  if (node.JsonObjectAgg) {
    const { constructor, arg, absent_on_null, unique } = node.JsonObjectAgg
    since(walk, 16, 'json_objectagg', constructor?.location)
    const inner = aggregate(walk, level, constructor, () => ({ arg: pair(walk, level, arg) }))
    return { JsonObjectAgg: { ...inner, ...flags({ absent_on_null, unique }) } }
  }
  if (node.JsonArrayAgg) {
    const { constructor, arg, absent_on_null } = node.JsonArrayAgg
    since(walk, 16, 'json_arrayagg', constructor?.location)
    const inner = aggregate(walk, level, constructor, () => ({ arg: jsonValue(walk, level, arg) }))
    return { JsonArrayAgg: { ...inner, ...flags({ absent_on_null }) } }
  }
  return undefined
}

function queried(walk: Walk, level: Level, node: Node): Node | undefined {
  if (node.JsonIsPredicate) {
    const { expr, format, item_type, unique_keys, location } = node.JsonIsPredicate
    since(walk, 16, 'IS JSON', location)
    if (!expr || item_type === undefined) throw refusedStatement('IS JSON', location)
    const inner = takenAsJson(walk, level, expression(walk, level, expr), location).node
    return { JsonIsPredicate: { expr: inner, format: formatOf(format), item_type, ...flags({ unique_keys }) } }
  }
  if (node.JsonParseExpr) {
    const { expr, output, unique_keys, location } = node.JsonParseExpr
    since(walk, 17, 'json', location)
    return {
      JsonParseExpr: { expr: jsonDocument(walk, level, expr), ...returning(walk, output), ...flags({ unique_keys }) },
    }
  }
  if (node.JsonScalarExpr) {
    const { expr, output, location } = node.JsonScalarExpr
    since(walk, 17, 'json_scalar', location)
    const inner = expr && takenAsJson(walk, level, expression(walk, level, expr), location).node
    return { JsonScalarExpr: { ...(inner && { expr: inner }), ...returning(walk, output) } }
  }
  if (node.JsonSerializeExpr) {
    const { expr, output, location } = node.JsonSerializeExpr
    since(walk, 17, 'json_serialize', location)
    return { JsonSerializeExpr: { expr: jsonValue(walk, level, expr), ...returning(walk, output) } }
  }
  return node.JsonFuncExpr && func(walk, level, node.JsonFuncExpr)
}

function func(walk: Walk, level: Level, node: Struct<'JsonFuncExpr'>): Node {
  const { op, context_item, pathspec, passing, output, on_empty, on_error, wrapper, quotes, location } = node
  if (op === undefined || !pathspec) throw refusedStatement(op ?? 'JSON', location)
  since(walk, 17, op.replace(/_OP$/, '').toLowerCase(), location)
  const path = expression(walk, level, plainPath(pathspec)).node
  const passed = jsonPassing(walk, level, passing)
  return {
    JsonFuncExpr: {
      op,
      context_item: boundedValue(jsonDocument(walk, level, context_item), passed.passing, (doc, vars) => {
        const isList = wrapper === 'JSW_CONDITIONAL' || wrapper === 'JSW_UNCONDITIONAL'
        return isList
          ? boundedList(doc, path, vars, location)
          : boundedDocument(doc, workOf(path, location), vars, location)
      }),
      pathspec: path,
      ...passed,
      ...returning(walk, output),
      ...(on_empty && { on_empty: jsonBehavior(walk, level, on_empty) }),
      ...(on_error && { on_error: jsonBehavior(walk, level, on_error) }),
      wrapper: wrapper ?? '',
      quotes: quotes ?? '',
    },
  }
}

function boundedValue(
  value: Struct<'JsonValueExpr'>,
  passing: readonly Node[] | undefined,
  bounded: (doc: Node, vars: readonly Node[]) => Node,
): Struct<'JsonValueExpr'> {
  const vars = (passing ?? []).flatMap(({ JsonArgument: each }) => each?.val?.raw_expr ?? [])
  return value.raw_expr ? { ...value, raw_expr: bounded(value.raw_expr, vars) } : value
}

function arrayQuery(walk: Walk, level: Level, node: Struct<'JsonArrayQueryConstructor'>): Node {
  since(walk, 16, 'json_array', node.location)
  const query = node.query?.SelectStmt
  if (!query) throw refusedStatement('JSON_ARRAY', node.location)
  const { absent_on_null } = node
  const inner = select(walk, query, level, level.ctes)
  return {
    JsonArrayQueryConstructor: {
      query: { SelectStmt: countedRows(walk, inner.node, inner.outputs, 'json_array') },
      ...returning(walk, node.output),
      format: formatOf(node.format),
      ...flags({ absent_on_null }),
    },
  }
}

interface Collected {
  readonly arg: Struct<'JsonValueExpr'> & Struct<'JsonKeyValue'>
}

function aggregate<A extends Collected>(
  walk: Walk,
  level: Level,
  constructor: Struct<'JsonAggConstructor'> | undefined,
  argument: () => A,
): A & { readonly constructor: Struct<'JsonAggConstructor'> } {
  const { output, agg_filter, agg_order, over } = constructor ?? {}
  if (!over) level.aggregates += 1
  const arg = argument()
  const { agg_filter: filter } = optional(walk, level, 'agg_filter', agg_filter)
  const written = arg.arg.raw_expr ?? arg.arg.value?.raw_expr
  const at = constructor?.location
  const counted = countedJson(walk, level, {
    filter,
    key: arg.arg.key,
    value: written,
    isWindow: over !== undefined,
    at,
  })
  const inner = {
    ...returning(walk, output),
    agg_filter: counted.filter,
    ...(agg_order && { agg_order: sortKeys(walk, level, agg_order) }),
  }
  if (!over) level.aggregates -= 1
  const { value } = counted
  const made = arg.arg.value ? { value: { ...arg.arg.value, raw_expr: value } } : { raw_expr: value }
  return {
    ...arg,
    arg: value ? { ...arg.arg, ...made } : arg.arg,
    constructor: { ...inner, ...(over && { over: window(walk, level, over) }) },
  }
}

function pair(walk: Walk, level: Level, node: Struct<'JsonKeyValue'> | undefined): Struct<'JsonKeyValue'> {
  if (!node?.key) throw refusedStatement('a JSON object')
  return { key: expression(walk, level, node.key).node, value: jsonValue(walk, level, node.value) }
}

/** Confines a value with its FORMAT. */
function jsonValue(walk: Walk, level: Level, node: Struct<'JsonValueExpr'> | undefined): Struct<'JsonValueExpr'> {
  if (!node?.raw_expr) throw refusedStatement('a JSON value')
  const value = expression(walk, level, node.raw_expr)
  const read = node.format?.format_type === 'JS_FORMAT_JSON' ? readAsJson(walk, level, value, undefined) : value
  return { raw_expr: takenAsJson(walk, level, read, undefined).node, format: formatOf(node.format) }
}

/** Confines a document that PostgreSQL reads as jsonb. */
function jsonDocument(walk: Walk, level: Level, node: Struct<'JsonValueExpr'> | undefined): Struct<'JsonValueExpr'> {
  return typedDocument(walk, level, node).value
}

function typedDocument(
  walk: Walk,
  level: Level,
  node: Struct<'JsonValueExpr'> | undefined,
): { readonly value: Struct<'JsonValueExpr'>; readonly type: SqlType | null } {
  if (!node?.raw_expr) throw refusedStatement('a JSON value')
  const read = readAsJson(walk, level, expression(walk, level, node.raw_expr), undefined)
  const value = { raw_expr: takenAsJson(walk, level, read, undefined).node, format: formatOf(node.format) }
  return { value, type: read.type }
}

/** Confines PASSING. Returns an object to spread. */
function jsonPassing(walk: Walk, level: Level, list: readonly Node[] | undefined): { passing?: readonly Node[] } {
  if (!list) return {}
  const passing = list.map(({ JsonArgument: each }): Node => {
    if (each?.name === undefined) throw refusedStatement('PASSING')
    return { JsonArgument: { val: jsonValue(walk, level, each.val), name: each.name } }
  })
  return { passing }
}

function jsonBehavior(walk: Walk, level: Level, node: Struct<'JsonBehavior'>): Struct<'JsonBehavior'> {
  return { btype: node.btype ?? '', ...optional(walk, level, 'expr', node.expr) }
}

/** Copies FORMAT JSON ENCODING …. The printer checks the encoding. */
function formatOf(format: Struct<'JsonFormat'> | undefined): Struct<'JsonFormat'> {
  return { format_type: format?.format_type ?? '', encoding: format?.encoding ?? '' }
}

function returning(walk: Walk, output: Struct<'JsonOutput'> | undefined): { output?: Struct<'JsonOutput'> } {
  if (!output) return {}
  if (!output.typeName) throw refusedStatement('RETURNING')
  const { node } = typeName(walk, output.typeName)
  return { output: { typeName: node, returning: { format: formatOf(output.returning?.format) } } }
}

function flags<K extends string>(given: { readonly [P in K]: true | undefined }): { readonly [P in K]?: true } {
  const out: { [P in K]?: true } = {}
  for (const key in given) if (given[key]) out[key] = true
  return out
}

function since(walk: Walk, version: number, name: string, at: number | undefined): void {
  const { major } = walk.exposed
  if (major >= version) return
  const hint = `${name.toUpperCase()} needs PostgreSQL ${version}, this server is ${major}`
  throw new Refusal('function', name, `function ${name} does not exist or may not be called`, hint, at)
}

// JSON_TABLE in FROM (PostgreSQL 17). Each column must have a listed type: regclass would reveal which objects exist.

/** Confines a JsonTable. */
export function jsonTable(walk: Walk, level: Level, node: Struct<'JsonTable'>): From {
  since(walk, 17, 'json_table', node.location)
  walk.rowFunctions += 1
  addSort(walk)
  const { lateral, on_error, alias, columns = [] } = node
  const { nodes, fields } = columnsOf(walk, level, columns)
  const { value: item, type } = typedDocument(walk, level, node.context_item)
  const collected = item.raw_expr && walk.collects ? collectedIn(item.raw_expr) : 0
  const named = fields.map((field) => ({ ...field, collected }))
  const made = namedItem(walk, { name: alias?.aliasname ?? 'json_table', alias, fields: named })
  const passed = jsonPassing(walk, level, node.passing)
  const work = tableWork(node.pathspec, columns)
  const confined = {
    context_item: boundedValue(item, passed.passing, (doc, vars) => {
      const bounded = boundedDocument(doc, work, vars, node.location)
      const paths = rowPaths(node.pathspec, columns)
      return collatedApart(walk, boundedItems({ node: doc, type }, bounded, paths, node.location))
    }),
    pathspec: path(node.pathspec),
    ...passed,
    columns: nodes,
    ...(on_error && { on_error: jsonBehavior(walk, level, on_error) }),
    alias: made.alias,
    ...(lateral && { lateral }),
  }
  return { node: { JsonTable: confined }, shown: Shown.of(made.item) }
}

/** Returns the path of the rows, and each path of NESTED behind the path around it. */
function rowPaths(spec: Struct<'JsonTablePathSpec'> | undefined, columns: readonly Node[]): readonly string[] {
  const text = spec?.string?.A_Const?.sval?.sval ?? ''
  const nested = columns.flatMap(({ JsonTableColumn: column }) =>
    column?.columns ? rowPaths(column.pathspec, column.columns) : [],
  )
  // Only a path that begins with $ can stand behind another one, in the same mode.
  return [
    text,
    ...nested.map((path) => (/^\s*\$/.test(path) && !/strict/i.test(text) ? text + path.trim().slice(1) : `$$${path}`)),
  ]
}

/**
 * Returns the value of JSON_TABLE, in a sub-query if ICU compares texts. PostgreSQL assigns no collations to the value
 * itself, so a search for long runs of marks would fail.
 */
function collatedApart({ exposed }: Walk, value: Node): Node {
  if (!exposed.comparesByIcu || (value.A_Const ?? value.ParamRef ?? value.ColumnRef)) return value
  return subSelect(selectOnly({ ResTarget: { val: value } }))
}

interface Columns {
  readonly nodes: readonly Node[]
  /** The fields in the order of PostgreSQL: the columns of a level come before those of NESTED. */
  readonly fields: readonly Field[]
}

function columnsOf(walk: Walk, level: Level, list: readonly Node[]): Columns {
  const own: Field[] = []
  const nested: Field[] = []
  const nodes = list.map((item): Node => {
    const column = item.JsonTableColumn
    if (!column?.coltype) throw refusedStatement('JSON_TABLE')
    const { coltype, name, on_empty, on_error, wrapper = '', quotes = '' } = column
    const inner = column.columns && columnsOf(walk, level, column.columns)
    nested.push(...(inner?.fields ?? []))
    const type = column.typeName && typeName(walk, column.typeName)
    if (coltype !== 'JTC_NESTED') own.push({ name: name ?? '', type: type?.type ?? null })
    return {
      JsonTableColumn: {
        coltype,
        ...(name !== undefined && { name }),
        ...(type && { typeName: type.node }),
        ...(column.pathspec && { pathspec: path(column.pathspec) }),
        ...(column.format && { format: formatOf(column.format) }),
        wrapper,
        quotes,
        ...(inner && { columns: inner.nodes }),
        ...(on_empty && { on_empty: jsonBehavior(walk, level, on_empty) }),
        ...(on_error && { on_error: jsonBehavior(walk, level, on_error) }),
      },
    }
  })
  return { nodes, fields: [...own, ...nested] }
}

/** Returns the work of a path and of all columns, which PostgreSQL computes for each item that the path finds. */
function tableWork(spec: Struct<'JsonTablePathSpec'> | undefined, columns: readonly Node[]): readonly Term[] {
  const rest = columns.flatMap(({ JsonTableColumn: column }): readonly Term[] => {
    if (!column || (!column.pathspec && !column.columns)) return []
    return ofRow(tableWork(column.pathspec, column.columns ?? []))
  })
  const text = spec?.string?.A_Const?.sval?.sval ?? ''
  const work = rowsWork(text, rest)
  if (work === null) throw notAPath(text, spec?.location)
  return work
}

function path(spec: Struct<'JsonTablePathSpec'> | undefined): Struct<'JsonTablePathSpec'> {
  const text = spec?.string?.A_Const?.sval
  if (!text) throw refusedStatement('JSON_TABLE without a path')
  const string: Node = { A_Const: { sval: { sval: text.sval ?? '' } } }
  return { string, ...(spec?.name !== undefined && { name: spec.name }) }
}
