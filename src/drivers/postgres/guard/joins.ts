// JOIN: USING and NATURAL over exposed columns alone, every USING under an alias of ours, so that a merged column has a
// name that can be qualified (PostgreSQL 14 and newer).
import { expression } from './expression.ts'
import { fromItem, renamed, rowOf, together, type From } from './from.ts'
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
  type Entry,
  type Item,
  type Level,
  type Walk,
} from './scope.ts'

const TYPES: ReadonlySet<string> = new Set(['JOIN_INNER', 'JOIN_LEFT', 'JOIN_RIGHT', 'JOIN_FULL'])

/** A JoinExpr, confined. Throws Refusal. */
export function join(walk: Walk, level: Level, node: Struct<'JoinExpr'>): From {
  const { jointype = '', larg, rarg } = node
  if (!larg || !rarg || !TYPES.has(jointype)) throw refusedStatement(jointype || 'JOIN')
  const left = fromItem(walk, level, larg)
  const before = level.entries
  // LATERAL on the right sees the left, but not where the right may stand alone.
  if (jointype === 'JOIN_INNER' || jointype === 'JOIN_LEFT') level.entries = [...before, ...left.entries]
  const right = fromItem(walk, level, rarg)
  level.entries = before
  const sides: Sides = { left: left.entries, right: right.entries, jointype }
  const both = together(left.entries, right.entries)
  const names = node.isNatural ? commonNames(sides) : words(node.usingClause)
  const merged = using(walk, sides, names, node)
  const on = condition(walk, level, both, node, merged !== undefined, jointype)
  const columns = [...(merged?.columns ?? []), ...rest(sides.left, names), ...rest(sides.right, names)]
  // Each join of a chain lists the columns of all before it: little for each, much for hundreds of wide tables.
  spend(walk, (columns.length + both.length) / 10)
  const confined = {
    jointype,
    larg: left.node,
    rarg: right.node,
    ...(merged && { usingClause: names.map(word), join_using_alias: { aliasname: merged.alias } }),
    ...(on && { quals: on }),
  }
  if (node.alias) return aliased(walk, confined, columns, node.alias)
  const item: Item = { name: null, schema: null, columns, whole: () => rowOf('', columns), base: null }
  const hidden = both.map((entry) => ({ ...entry, open: false }))
  const named = merged?.named ? [{ item: merged.named, named: true, open: false }] : []
  return { node: { JoinExpr: confined }, entries: [...hidden, ...named, { item, named: false, open: true }] }
}

interface Sides {
  readonly left: readonly Entry[]
  readonly right: readonly Entry[]
  readonly jointype: string
}

/** NATURAL joins on the *exposed* columns that both sides have: a hidden one cannot be told from none. */
function commonNames({ left, right }: Sides): string[] {
  const shown = new Set(openColumns(right).map((column) => column.name))
  const names = openColumns(left).map((column) => column.name)
  return [...new Set(names.filter((name) => shown.has(name)))]
}

function openColumns(entries: readonly Entry[]): readonly Column[] {
  return entries.filter((entry) => entry.open).flatMap((entry) => entry.item.columns)
}

function rest(entries: readonly Entry[], names: readonly string[]): readonly Column[] {
  const merged = new Set(names)
  return openColumns(entries).filter((column) => !merged.has(column.name))
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
  const [onLeft, onRight] = [openColumns(sides.left), openColumns(sides.right)].map(columnsByName)
  const columns = names.map((name): Column => {
    const left = onlyColumn(onLeft, name)
    const right = onlyColumn(onRight, name)
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

type Named = ReadonlyMap<string, readonly Column[]>

function columnsByName(columns: readonly Column[]): Named {
  return Map.groupBy(columns, (column) => column.name)
}

function onlyColumn(side: Named | undefined, name: string): Column {
  const found = side?.get(name) ?? []
  const [column] = found
  if (!column) {
    const columns = [...(side?.values() ?? [])].flat()
    throw refusedColumn(name, columnHint(name, [{ name: null, columns }]), -1)
  }
  if (found.length > 1) {
    const why = `column ${name} is ambiguous in USING: one side has more than one`
    throw new Refusal('column', name, why, 'Join ON columns written with their table.', -1)
  }
  return column
}

/** ON; where NATURAL finds nothing in common it joins every row. */
function condition(
  walk: Walk,
  level: Level,
  entries: readonly Entry[],
  node: Struct<'JoinExpr'>,
  isMerged: boolean,
  jointype: string,
): Node | undefined {
  if (node.quals) return expression(walk, { ...newLevel(level.parent, level.ctes), entries }, node.quals).node
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
  return { node, entries: [{ item, named: true, open: true }] }
}
