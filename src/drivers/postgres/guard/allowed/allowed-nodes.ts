// Lists the allowed parse nodes and their keys, and derives TypeScript types from the list. The guard refuses all
// others. The walkers build a new tree key by key, and never copy a parsed node.

/**
 * The kind of a key's value. `node` is a tagged node ({A_Const: …}), `nodes` a list of them. `words` are identifiers
 * (String nodes), `fields` identifiers and stars. `struct:X` is an X without its tag. `place` is a position in the
 * text, which is never compared.
 */
type Kind = 'flag' | 'int' | 'text' | 'node' | 'nodes' | 'words' | 'fields' | 'place' | `struct:${string}`

/** All nodes with their keys, as libpg_query 18 spells them. */
export const NODES = {
  A_ArrayExpr: { elements: 'nodes', list_start: 'place', list_end: 'place', location: 'place' },
  A_Const: {
    ival: 'struct:Integer',
    fval: 'struct:Float',
    boolval: 'struct:Boolean',
    sval: 'struct:String',
    bsval: 'struct:BitString',
    isnull: 'flag',
    location: 'place',
  },
  A_Expr: {
    kind: 'text',
    name: 'words',
    lexpr: 'node',
    rexpr: 'node',
    rexpr_list_start: 'place',
    rexpr_list_end: 'place',
    location: 'place',
  },
  A_Indices: { is_slice: 'flag', lidx: 'node', uidx: 'node' },
  A_Indirection: { arg: 'node', indirection: 'nodes' },
  A_Star: {},
  Alias: { aliasname: 'text', colnames: 'words' },
  BitString: { bsval: 'text' },
  BoolExpr: { boolop: 'text', args: 'nodes', location: 'place' },
  Boolean: { boolval: 'flag' },
  BooleanTest: { arg: 'node', booltesttype: 'text', location: 'place' },
  CTECycleClause: {
    cycle_col_list: 'words',
    cycle_mark_column: 'text',
    cycle_mark_value: 'node',
    cycle_mark_default: 'node',
    cycle_path_column: 'text',
    location: 'place',
  },
  CTESearchClause: {
    search_col_list: 'words',
    search_breadth_first: 'flag',
    search_seq_column: 'text',
    location: 'place',
  },
  CaseExpr: { arg: 'node', args: 'nodes', defresult: 'node', location: 'place' },
  CaseWhen: { expr: 'node', result: 'node', location: 'place' },
  CoalesceExpr: { args: 'nodes', location: 'place' },
  CollateClause: { arg: 'node', collname: 'words', location: 'place' },
  ColumnDef: { colname: 'text', typeName: 'struct:TypeName', is_local: 'flag', location: 'place' },
  ColumnRef: { fields: 'fields', location: 'place' },
  CommonTableExpr: {
    ctename: 'text',
    aliascolnames: 'words',
    ctematerialized: 'text',
    ctequery: 'node',
    search_clause: 'struct:CTESearchClause',
    cycle_clause: 'struct:CTECycleClause',
    location: 'place',
  },
  Float: { fval: 'text' },
  FuncCall: {
    funcname: 'words',
    args: 'nodes',
    agg_order: 'nodes',
    agg_filter: 'node',
    over: 'struct:WindowDef',
    agg_within_group: 'flag',
    agg_star: 'flag',
    agg_distinct: 'flag',
    func_variadic: 'flag',
    funcformat: 'text',
    location: 'place',
  },
  GroupingFunc: { args: 'nodes', location: 'place' },
  GroupingSet: { kind: 'text', content: 'nodes', location: 'place' },
  Integer: { ival: 'int' },
  JoinExpr: {
    jointype: 'text',
    isNatural: 'flag',
    larg: 'node',
    rarg: 'node',
    usingClause: 'words',
    join_using_alias: 'struct:Alias',
    quals: 'node',
    alias: 'struct:Alias',
  },
  JsonAggConstructor: {
    output: 'struct:JsonOutput',
    agg_filter: 'node',
    agg_order: 'nodes',
    over: 'struct:WindowDef',
    location: 'place',
  },
  JsonArgument: { val: 'struct:JsonValueExpr', name: 'text' },
  JsonArrayAgg: { constructor: 'struct:JsonAggConstructor', arg: 'struct:JsonValueExpr', absent_on_null: 'flag' },
  JsonArrayConstructor: { exprs: 'nodes', output: 'struct:JsonOutput', absent_on_null: 'flag', location: 'place' },
  JsonArrayQueryConstructor: {
    query: 'node',
    output: 'struct:JsonOutput',
    format: 'struct:JsonFormat',
    absent_on_null: 'flag',
    location: 'place',
  },
  JsonBehavior: { btype: 'text', expr: 'node', location: 'place' },
  JsonFormat: { format_type: 'text', encoding: 'text', location: 'place' },
  JsonFuncExpr: {
    op: 'text',
    context_item: 'struct:JsonValueExpr',
    pathspec: 'node',
    passing: 'nodes',
    output: 'struct:JsonOutput',
    on_empty: 'struct:JsonBehavior',
    on_error: 'struct:JsonBehavior',
    wrapper: 'text',
    quotes: 'text',
    location: 'place',
  },
  JsonIsPredicate: {
    expr: 'node',
    format: 'struct:JsonFormat',
    item_type: 'text',
    unique_keys: 'flag',
    location: 'place',
  },
  JsonKeyValue: { key: 'node', value: 'struct:JsonValueExpr' },
  JsonObjectAgg: {
    constructor: 'struct:JsonAggConstructor',
    arg: 'struct:JsonKeyValue',
    absent_on_null: 'flag',
    unique: 'flag',
  },
  JsonObjectConstructor: {
    exprs: 'nodes',
    output: 'struct:JsonOutput',
    absent_on_null: 'flag',
    unique: 'flag',
    location: 'place',
  },
  JsonOutput: { typeName: 'struct:TypeName', returning: 'struct:JsonReturning' },
  JsonParseExpr: {
    expr: 'struct:JsonValueExpr',
    output: 'struct:JsonOutput',
    unique_keys: 'flag',
    location: 'place',
  },
  JsonReturning: { format: 'struct:JsonFormat' },
  JsonScalarExpr: { expr: 'node', output: 'struct:JsonOutput', location: 'place' },
  JsonSerializeExpr: { expr: 'struct:JsonValueExpr', output: 'struct:JsonOutput', location: 'place' },
  JsonTable: {
    context_item: 'struct:JsonValueExpr',
    pathspec: 'struct:JsonTablePathSpec',
    passing: 'nodes',
    columns: 'nodes',
    on_error: 'struct:JsonBehavior',
    alias: 'struct:Alias',
    lateral: 'flag',
    location: 'place',
  },
  JsonTableColumn: {
    coltype: 'text',
    name: 'text',
    typeName: 'struct:TypeName',
    pathspec: 'struct:JsonTablePathSpec',
    format: 'struct:JsonFormat',
    wrapper: 'text',
    quotes: 'text',
    columns: 'nodes',
    on_empty: 'struct:JsonBehavior',
    on_error: 'struct:JsonBehavior',
    location: 'place',
  },
  JsonTablePathSpec: { string: 'node', name: 'text', name_location: 'place', location: 'place' },
  JsonValueExpr: { raw_expr: 'node', format: 'struct:JsonFormat' },
  List: { items: 'nodes' },
  MinMaxExpr: { op: 'text', args: 'nodes', location: 'place' },
  NamedArgExpr: { arg: 'node', name: 'text', argnumber: 'int', location: 'place' },
  NullTest: { arg: 'node', nulltesttype: 'text', location: 'place' },
  ParamRef: { number: 'int', location: 'place' },
  RangeFunction: {
    lateral: 'flag',
    ordinality: 'flag',
    is_rowsfrom: 'flag',
    functions: 'nodes',
    alias: 'struct:Alias',
    coldeflist: 'nodes',
  },
  RangeSubselect: { lateral: 'flag', subquery: 'node', alias: 'struct:Alias' },
  RangeTableSample: { relation: 'node', method: 'words', args: 'nodes', repeatable: 'node', location: 'place' },
  RangeVar: {
    catalogname: 'text',
    schemaname: 'text',
    relname: 'text',
    inh: 'flag',
    relpersistence: 'text',
    alias: 'struct:Alias',
    location: 'place',
  },
  ResTarget: { name: 'text', val: 'node', location: 'place' },
  RowExpr: { args: 'nodes', row_format: 'text', location: 'place' },
  SQLValueFunction: { op: 'text', typmod: 'int', location: 'place' },
  SelectStmt: {
    distinctClause: 'nodes',
    targetList: 'nodes',
    fromClause: 'nodes',
    whereClause: 'node',
    groupClause: 'nodes',
    groupDistinct: 'flag',
    havingClause: 'node',
    windowClause: 'nodes',
    valuesLists: 'nodes',
    sortClause: 'nodes',
    limitOffset: 'node',
    limitCount: 'node',
    limitOption: 'text',
    withClause: 'struct:WithClause',
    op: 'text',
    all: 'flag',
    larg: 'struct:SelectStmt',
    rarg: 'struct:SelectStmt',
  },
  SortBy: { node: 'node', sortby_dir: 'text', sortby_nulls: 'text', useOp: 'words', location: 'place' },
  String: { sval: 'text' },
  SubLink: { subLinkType: 'text', testexpr: 'node', operName: 'words', subselect: 'node', location: 'place' },
  TypeCast: { arg: 'node', typeName: 'struct:TypeName', location: 'place' },
  TypeName: { names: 'words', typmods: 'nodes', typemod: 'int', arrayBounds: 'nodes', location: 'place' },
  WindowDef: {
    name: 'text',
    refname: 'text',
    partitionClause: 'nodes',
    orderClause: 'nodes',
    frameOptions: 'int',
    startOffset: 'node',
    endOffset: 'node',
    location: 'place',
  },
  WithClause: { ctes: 'nodes', recursive: 'flag', location: 'place' },
} as const satisfies Record<string, Record<string, Kind>>

type Nodes = typeof NODES
export type NodeName = keyof Nodes

type Value<K> = K extends 'flag'
  ? true
  : K extends 'int' | 'place'
    ? number
    : K extends 'text'
      ? string
      : K extends 'node'
        ? Node
        : K extends 'nodes' | 'words' | 'fields'
          ? readonly Node[]
          : K extends `struct:${infer N extends NodeName}`
            ? Struct<N>
            : never

/** A node without its tag. Every key is optional, because the parser omits zeros. */
export type Struct<N extends NodeName> = { readonly [P in keyof Nodes[N]]?: Value<Nodes[N][P]> }

/** A tagged node. readStatement() has checked that it has one key. An empty entry of a list is `{}`. */
export type Node = { readonly [N in NodeName]?: Struct<N> }
export type SelectStmt = Struct<'SelectStmt'>

/** Returns whether the value is an object. It may be a list or a part of a node, which have none of the tags. */
export function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null
}

/** Returns an identifier as a node. */
export function word(sval: string): Node {
  return { String: { sval } }
}

/** Returns the identifiers in a list, and skips other nodes. */
export function words(nodes: readonly Node[] | undefined): string[] {
  const out: string[] = []
  for (const { String: name } of nodes ?? []) if (name) out.push(name.sval ?? '')
  return out
}
