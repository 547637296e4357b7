// GROUP BY: outputs meant by place or name become places; where a table's key is grouped by, what is still read of that
// table is grouped by too, since a server knows keys of tables and not of the sub-selects we make of them.
import { expression } from './expression.ts'
import { notePlace } from './locate.ts'
import type { Node } from './nodes.ts'
import { ambiguousOutput, refusedStatement } from './refusal.ts'
import { columnHere, unqualifiedHere } from './resolve.ts'
import type { Base, Column, Level, Walk } from './scope.ts'
import type { Target } from './targets.ts'

const SETS: ReadonlySet<string> = new Set([
  'GROUPING_SET_EMPTY',
  'GROUPING_SET_ROLLUP',
  'GROUPING_SET_CUBE',
  'GROUPING_SET_SETS',
])

/** The GROUP BY list, confined; notes in `level` which tables it covers. Throws Refusal. */
export function groupBy(
  walk: Walk,
  level: Level,
  clause: readonly Node[] | undefined,
  targets: readonly Target[],
): Node[] | undefined {
  if (!clause) return undefined
  level.phase = 'group'
  const grouping: Grouping = { targets, places: new Map() }
  const out = clause.map((node) => groupItem(walk, level, node, grouping))
  if (!clause.some((node) => node.GroupingSet)) cover(level, flatten(clause), walk, grouping)
  return out
}

interface Grouping {
  readonly targets: readonly Target[]
  /** Places of outputs by name, as found before; -1 where the name means a column. */
  readonly places: Map<string, number>
}

function groupItem(walk: Walk, level: Level, node: Node, targets: Grouping): Node {
  const set = node.GroupingSet
  if (set) {
    if (set.kind === undefined || !SETS.has(set.kind)) throw refusedStatement('GROUPING SETS', set.location)
    const content = set.content?.map((item) => groupItem(walk, level, item, targets))
    return { GroupingSet: { kind: set.kind, ...(content && { content }) } }
  }
  const row = node.RowExpr
  if (row?.row_format === 'COERCE_IMPLICIT_CAST') {
    const args = (row.args ?? []).map((item) => groupItem(walk, level, item, targets))
    return { RowExpr: { args, row_format: row.row_format } }
  }
  const place = placeMeant(walk, level, node, targets)
  if (place !== undefined) {
    const constant: Node = { A_Const: { ival: { ival: place } } }
    notePlace(walk.places, constant, node)
    return constant
  }
  return expression(walk, level, node).node
}

/** The output that a bare name means: one of FROM's columns comes before it. A written place is left as it is. */
function placeMeant(walk: Walk, level: Level, node: Node, { targets, places }: Grouping): number | undefined {
  if (node.A_Const?.ival) return node.A_Const.ival.ival
  const ref = node.ColumnRef
  const name = ref?.fields?.length === 1 ? ref.fields[0]?.String?.sval : undefined
  if (name === undefined) return undefined
  const index = places.get(name) ?? placeOf(walk, level, name, targets, ref?.location)
  places.set(name, index)
  return index < 0 ? undefined : index + 1
}

function placeOf(walk: Walk, level: Level, name: string, targets: readonly Target[], at: number | undefined): number {
  if (unqualifiedHere(level, name, at)) return -1
  const index = targets.findIndex((target) => target.name === name)
  if (index < 0) return index
  const first = meaning(walk, level, targets[index])
  for (const other of targets.slice(index + 1)) {
    if (other.name === name && meaning(walk, level, other) !== first) throw ambiguousOutput(name, at)
  }
  return index
}

/** What an output is, comparable: its column, or its text as a tree. */
function meaning(walk: Walk, level: Level, target: Target | undefined): unknown {
  if (target?.kind === 'column') return target.of.column
  const node = target?.kind === 'expression' ? target.node : undefined
  const column = node?.ColumnRef && columnHere(walk, level, node.ColumnRef)
  return column ?? JSON.stringify(node, (key, value: unknown) => (key === 'location' ? undefined : value))
}

/** (a, b) is a and b. */
function flatten(nodes: readonly Node[]): Node[] {
  return nodes.flatMap((node) => {
    const row = node.RowExpr
    return row?.row_format === 'COERCE_IMPLICIT_CAST' ? flatten(row.args ?? []) : [node]
  })
}

/** Notes the tables whose whole key is among the columns grouped by. */
function cover(level: Level, items: readonly Node[], walk: Walk, grouping: Grouping): void {
  const grouped = new Map<Base, Set<string>>()
  for (const node of items) {
    const origin = columnGrouped(walk, level, node, grouping)?.origin
    if (!origin) continue
    const names = grouped.get(origin.base) ?? new Set()
    grouped.set(origin.base, names.add(origin.column))
  }
  for (const [base, names] of grouped) {
    const { primaryKey } = base.table
    if (primaryKey.length > 0 && primaryKey.every((name) => names.has(name))) level.covered.set(base, names)
  }
}

function columnGrouped(walk: Walk, level: Level, node: Node, grouping: Grouping): Column | undefined {
  const place = placeMeant(walk, level, node, grouping)
  const target = place === undefined ? undefined : grouping.targets[place - 1]
  if (target?.kind === 'column') return target.of.column
  const meant = target ? (target.kind === 'expression' ? target.node : undefined) : node
  return meant?.ColumnRef && columnHere(walk, level, meant.ColumnRef)
}
