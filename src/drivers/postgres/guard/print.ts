// Confined queries as text: SELECT and FROM. It prints only what the walkers can have made, quotes every name and puts
// parentheses around everything; verify.ts then proves that the text says the same.
import { printExpression, printList, printSort, printTypeName, printWindow } from './print-expression.ts'
import { printJsonTable } from './print-json.ts'
import { words, type Node, type SelectStmt, type Struct } from './nodes.ts'
import { identifier, qualified } from '../quote.ts'

/** A SELECT, without parentheses around it. Throws TypeError for a tree that no walker makes. */
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

/** What cannot be missing in a tree that a walker made. */
export function must<T>(value: T | undefined): T {
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
  // A chain leans to the left, and needs no parentheses there; they would nest as deep as it is long.
  while (isBareChain(left, op)) {
    parts.push(printArm(must(left.rarg)), `${must(OPERATIONS[left.op ?? ''])}${left.all ? ' ALL' : ''}`)
    left = must(left.larg)
  }
  parts.push(printArm(left))
  return parts.reverse().join(' ')
}

/** Whether the left arm binds to itself first without parentheses: INTERSECT before the others. */
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
