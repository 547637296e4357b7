// A SELECT, VALUES or UNION: its names are resolved here, its outputs get explicit names, and everything that it reads
// is one of the FROM items that from.ts has made.
import { walkWith } from './ctes.ts'
import { elements, optional } from './expression.ts'
import { fromItems } from './from.ts'
import { groupBy } from './group.ts'
import { type Node, type SelectStmt, type Struct } from './nodes.ts'
import { distinctOn, sortBy } from './order.ts'
import { refusedStatement } from './refusal.ts'
import { newLevel, type CteScope, type Field, type Level, type Walk } from './scope.ts'
import { confinedTarget, planTargets } from './targets.ts'
import { window } from './windows.ts'

export interface Selected {
  readonly node: SelectStmt
  readonly outputs: readonly Field[]
}

/** Told what the left arm of a UNION answers, before the right one is walked: a recursive CTE needs it. */
type OnLeft = (outputs: readonly Field[]) => void

/** Confines a query as seen from `parent`, the query around it where it can see it. Throws Refusal. */
export function select(
  walk: Walk,
  raw: SelectStmt,
  parent: Level | null,
  outer: CteScope | null,
  onLeft?: OnLeft,
): Selected {
  walk.selects += 1
  walk.depth += 1
  const selected = selectAt(walk, raw, parent, outer, onLeft)
  walk.depth -= 1
  return selected
}

function selectAt(
  walk: Walk,
  raw: SelectStmt,
  parent: Level | null,
  outer: CteScope | null,
  onLeft?: OnLeft,
): Selected {
  const clause = raw.withClause && walkWith(walk, raw.withClause, parent, outer)
  const ctes = clause?.scope ?? outer
  const withClause = clause && { withClause: clause.node }
  if (raw.op !== 'SETOP_NONE') return setOperation(walk, raw, parent, ctes, withClause, onLeft)
  if (raw.valuesLists) return values(walk, raw, parent, ctes, withClause)
  return plain(walk, raw, newLevel(parent, ctes), withClause)
}

type With = { readonly withClause: Struct<'WithClause'> } | undefined

function plain(walk: Walk, raw: SelectStmt, level: Level, withClause: With): Selected {
  const fromClause = fromItems(walk, level, raw.fromClause ?? [])
  const targets = planTargets(walk, level, raw.targetList ?? [])
  level.phase = 'where'
  const where = optional(walk, level, 'whereClause', raw.whereClause)
  const groups = groupBy(walk, level, raw.groupClause, targets)
  level.phase = 'output'
  const outputs = targets.map((target) => confinedTarget(walk, level, target))
  const having = optional(walk, level, 'havingClause', raw.havingClause)
  const windows = raw.windowClause?.map((node): Node => {
    if (!node.WindowDef) throw refusedStatement('WINDOW')
    return { WindowDef: window(walk, level, node.WindowDef) }
  })
  const distinct = raw.distinctClause && distinctOn(walk, level, raw.distinctClause, outputs)
  const sort = raw.sortClause && sortBy(walk, level, raw.sortClause, outputs)
  const grouped = groups && [...groups, ...level.ungrouped.values()]
  if (grouped || raw.distinctClause || raw.havingClause) walk.sorts = true
  const node = {
    ...(distinct && { distinctClause: distinct }),
    targetList: outputs.map((output): Node => ({ ResTarget: { name: output.name, val: output.node } })),
    fromClause,
    ...where,
    ...(grouped && { groupClause: grouped }),
    ...(raw.groupDistinct && { groupDistinct: true as const }),
    ...having,
    ...(windows && { windowClause: windows }),
    ...(sort && { sortClause: sort }),
    ...limits(walk, raw, level),
    ...withClause,
    op: 'SETOP_NONE',
  }
  return { node, outputs: outputs.map(({ name, type }) => ({ name, type })) }
}

/** LIMIT and OFFSET, which see only the queries around. */
function limits(walk: Walk, raw: SelectStmt, { parent, ctes }: Level): Partial<SelectStmt> {
  const level = newLevel(parent, ctes)
  const { limitOption = 'LIMIT_OPTION_DEFAULT' } = raw
  if (!/^LIMIT_OPTION_(DEFAULT|COUNT|WITH_TIES)$/.test(limitOption)) throw refusedStatement(limitOption)
  return {
    ...optional(walk, level, 'limitOffset', raw.limitOffset),
    ...optional(walk, level, 'limitCount', raw.limitCount),
    limitOption,
  }
}

function values(walk: Walk, raw: SelectStmt, parent: Level | null, ctes: CteScope | null, withClause: With): Selected {
  const level = newLevel(parent, ctes)
  const rows = (raw.valuesLists ?? []).map((list) => elements(walk, level, list.List?.items))
  const outputs = (rows[0] ?? []).map((_, index) => {
    const typed = rows.find((row) => (row[index]?.type ?? null) !== null)
    return { name: `column${index + 1}`, type: typed?.[index]?.type ?? null }
  })
  const valuesLists = rows.map((row): Node => ({ List: { items: row.map((item) => item.node) } }))
  const sort = raw.sortClause && sortBy(walk, level, raw.sortClause, outputs)
  const node = {
    valuesLists,
    ...(sort && { sortClause: sort }),
    ...limits(walk, raw, level),
    ...withClause,
    op: 'SETOP_NONE',
  }
  return { node, outputs }
}

const OPERATIONS: ReadonlySet<string> = new Set(['SETOP_UNION', 'SETOP_INTERSECT', 'SETOP_EXCEPT'])

function setOperation(
  walk: Walk,
  raw: SelectStmt,
  parent: Level | null,
  ctes: CteScope | null,
  withClause: With,
  onLeft?: OnLeft,
): Selected {
  const { op, larg, rarg } = raw
  if (!larg || !rarg || op === undefined || !OPERATIONS.has(op)) throw refusedStatement(op ?? 'UNION')
  const left = select(walk, larg, parent, ctes)
  onLeft?.(left.outputs)
  const right = select(walk, rarg, parent, ctes)
  const outputs = left.outputs.map(({ name, type }, index) => ({
    name,
    type: type ?? right.outputs[index]?.type ?? null,
  }))
  const level = newLevel(parent, ctes)
  const sort = raw.sortClause && sortBy(walk, level, raw.sortClause, outputs)
  if (sort || raw.all !== true) walk.sorts = true
  const node = {
    ...(sort && { sortClause: sort }),
    ...limits(walk, raw, level),
    ...withClause,
    op,
    ...(raw.all && { all: true as const }),
    larg: left.node,
    rarg: right.node,
  }
  return { node, outputs }
}
