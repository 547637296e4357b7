// JOIN: USING and NATURAL over exposed columns alone, every USING under an alias of ours, so that a merged column has a
// name that can be qualified (PostgreSQL 14 and newer).
import { expression } from './expression.ts'
import { checkNames, fromItem, renamed, rowOf, type From } from './from.ts'
import { columnHint } from './hints.ts'
import { word, words, type Node, type Struct } from './nodes.ts'
import { checkComparison } from './operators.ts'
import { Refusal, refusedColumn, refusedStatement } from './refusal.ts'
import {
  columnRef,
  distinctNames,
  newAlias,
  newLevel,
  spend,
  type Column,
  type Item,
  type Level,
  type Walk,
} from './scope.ts'
import { Shown } from './shown.ts'

const TYPES: ReadonlySet<string> = new Set(['JOIN_INNER', 'JOIN_LEFT', 'JOIN_RIGHT', 'JOIN_FULL'])

/** A JoinExpr, confined. Throws Refusal. */
export function join(walk: Walk, level: Level, node: Struct<'JoinExpr'>): From {
  const { jointype = '', larg, rarg } = node
  if (!larg || !rarg || !TYPES.has(jointype)) throw refusedStatement(jointype || 'JOIN')
  const left = fromItem(walk, level, larg)
  const before = level.shown
  // LATERAL on the right sees the left, but not where the right may stand alone.
  if (jointype === 'JOIN_INNER' || jointype === 'JOIN_LEFT') level.shown = [...before, left.shown]
  const right = fromItem(walk, level, rarg)
  level.shown = before
  const sides: Sides = { left: left.shown, right: right.shown, jointype }
  checkNames(left.shown, right.shown)
  const names = node.isNatural ? commonNames(walk, sides) : words(node.usingClause)
  const merged = using(walk, sides, names, node)
  const on = condition(walk, level, sides, node, merged !== undefined)
  const shown = left.shown
  // The left side is taken over; what the right one shows is added to it.
  spend(walk, 1 + right.shown.count / 8)
  shown.take(right.shown, merged?.columns ?? [])
  const confined = {
    jointype,
    larg: left.node,
    rarg: right.node,
    ...(merged && { usingClause: names.map(word), join_using_alias: { aliasname: merged.alias } }),
    ...(on && { quals: on }),
  }
  if (node.alias) return aliased(walk, confined, shown.star(), node.alias)
  if (merged?.named) shown.add(merged.named)
  return { node: { JoinExpr: confined }, shown }
}

interface Sides {
  readonly left: Shown
  readonly right: Shown
  readonly jointype: string
}

/** NATURAL joins on the *exposed* columns that both sides have: a hidden one cannot be told from none. */
function commonNames(walk: Walk, { left, right }: Sides): string[] {
  const common = [...right.names()].filter((name) => left.column(name) !== undefined)
  if (common.length < 2) return common
  // In the order of the left side.
  spend(walk, left.count / 8)
  const wanted = new Set(common)
  return [...new Set(left.star().map((column) => column.name))].filter((name) => wanted.has(name))
}

interface Merged {
  readonly alias: string
  readonly columns: readonly Column[]
  /** The caller's own alias of USING. */
  readonly named: Item | undefined
}

function using(walk: Walk, sides: Sides, names: readonly string[], node: Struct<'JoinExpr'>): Merged | undefined {
  if (names.length === 0) return undefined
  const given = node.join_using_alias?.aliasname
  const alias = newAlias(walk, 't', given ?? 'a join')
  const columns = names.map((name): Column => {
    const left = onlyColumn(sides.left, name)
    const right = onlyColumn(sides.right, name)
    checkComparison(walk, '=', [left.type, right.type], undefined)
    left.read()
    right.read()
    const kept = sides.jointype === 'JOIN_RIGHT' ? right : left
    const origin = sides.jointype === 'JOIN_FULL' ? null : kept.origin
    return { name, type: kept.type ?? left.type ?? right.type, origin, read: () => columnRef(alias, name) }
  })
  const named =
    given === undefined
      ? undefined
      : { name: given, schema: null, columns, whole: () => rowOf(alias, columns), base: null }
  return { alias, columns, named }
}

function onlyColumn(side: Shown, name: string): Column {
  const column = side.column(name)
  if (column === undefined) throw refusedColumn(name, columnHint(name, [{ name: null, columns: side.star() }]), -1)
  if (column !== null) return column
  const why = `column ${name} is ambiguous in USING: one side has more than one`
  throw new Refusal('column', name, why, 'Join ON columns written with their table.', -1)
}

/** ON; where NATURAL finds nothing in common it joins every row. */
function condition(
  walk: Walk,
  level: Level,
  { left, right, jointype }: Sides,
  node: Struct<'JoinExpr'>,
  isMerged: boolean,
): Node | undefined {
  if (node.quals) {
    return expression(walk, { ...newLevel(level.parent, level.ctes), shown: [left, right] }, node.quals).node
  }
  if (isMerged || (jointype === 'JOIN_INNER' && !node.usingClause)) return undefined
  return { A_Const: { boolval: { boolval: true } } }
}

/** (a JOIN b …) AS j(x, y): from outside there is only j. */
function aliased(walk: Walk, confined: Struct<'JoinExpr'>, columns: readonly Column[], alias: Struct<'Alias'>): From {
  const name = alias.aliasname ?? ''
  const aliasname = newAlias(walk, 't', name)
  const names = renamed(name, columns, alias)
  const printed = distinctNames(names)
  const own = columns.map((column, index): Column => {
    // The list of aliases goes by place, so every column must be there.
    column.read()
    const called = printed[index] ?? column.name
    return { ...column, name: names[index] ?? column.name, read: () => columnRef(aliasname, called) }
  })
  const item: Item = { name, schema: null, columns: own, whole: () => rowOf(aliasname, own), base: null }
  const colnames = printed.map(word)
  const node: Node = { JoinExpr: { ...confined, alias: { aliasname, ...(colnames.length > 0 && { colnames }) } } }
  return { node, shown: Shown.of(item) }
}
