// The select list: what stars stand for, and what each output is called.
import { expression } from './expression.ts'
import { indirection, starFields } from './indirection.ts'
import { outputName } from './names.ts'
import { notePlace } from './locate.ts'
import type { Node, Struct } from './nodes.ts'
import { refusedStatement } from './refusal.ts'
import { reference, rowMeant, starColumns, type ColumnOf } from './resolve.ts'
import { checkColumns, type Level, type SqlType, type Walk } from './scope.ts'

/** An output before it is walked: GROUP BY is walked first, and may mean it by place or name. */
export type Target =
  /** One of a star's columns; `from` is the star. */
  | { readonly kind: 'column'; readonly name: string; readonly of: ColumnOf; readonly from: Node }
  | { readonly kind: 'field'; readonly name: string; readonly of: Struct<'A_Indirection'> }
  | { readonly kind: 'expression'; readonly name: string; readonly given: string | undefined; readonly node: Node }

export interface Output {
  readonly name: string
  readonly node: Node
  readonly type: SqlType | null
}

/** The outputs that a select list stands for, in order. Throws Refusal. */
export function planTargets(walk: Walk, level: Level, list: readonly Node[]): Target[] {
  const targets = list.flatMap((node): Target[] => {
    const target = node.ResTarget
    if (!target?.val) throw refusedStatement('a select list')
    const { val, name } = target
    if (val.ColumnRef?.fields?.some((field) => field.A_Star))
      return columnTargets(starColumns(walk, level, val.ColumnRef), val)
    const of = val.A_Indirection
    if (of?.indirection?.at(-1)?.A_Star) return starTargets(walk, level, of)
    return [{ kind: 'expression', name: name ?? nameFor(walk, val), given: name, node: val }]
  })
  checkColumns(targets.length)
  return targets
}

function columnTargets(columns: readonly ColumnOf[], from: Node): Target[] {
  return columns.map((of) => ({ kind: 'column', name: of.column.name, of, from }))
}

/** (t).* is t.*; (x).* of a composite is its fields, each taken from x. */
function starTargets(walk: Walk, level: Level, of: Struct<'A_Indirection'>): Target[] {
  const { arg, indirection: steps = [] } = of
  const row = steps.length === 1 ? arg?.ColumnRef : undefined
  if (row && isRow(walk, level, row)) {
    const fields = [...(row.fields ?? []).filter((field) => !field.A_Star), { A_Star: {} }]
    return columnTargets(starColumns(walk, level, { ...row, fields }), { A_Indirection: of })
  }
  return starFields(walk, level, of).map(({ name }) => ({
    kind: 'field',
    name,
    of: { ...(arg && { arg }), indirection: [...steps.slice(0, -1), { String: { sval: name } }] },
  }))
}

function isRow(walk: Walk, level: Level, row: Struct<'ColumnRef'>): boolean {
  return rowMeant(walk, level, row) !== undefined
}

/** The output, confined, under its final name. Throws Refusal. */
export function confinedTarget(walk: Walk, level: Level, target: Target): Output {
  if (target.kind === 'column') {
    const { node, type } = reference(target.of.column, target.of.level)
    notePlace(walk.places, node, target.from)
    return { name: target.name, node, type }
  }
  if (target.kind === 'field') return { name: target.name, ...indirection(walk, level, target.of) }
  const { node, type } = expression(walk, level, target.node)
  return { name: target.given ?? nameFor(walk, target.node), node, type }
}

function nameFor(walk: Walk, node: Node): string {
  return outputName(node, { major: walk.exposed.major, subLink: (link) => walk.sublinkNames.get(link) })
}
