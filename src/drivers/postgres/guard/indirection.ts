// (x).field, (x).* and x[1]: a field only of a row whose columns the guard knows. To a server (x).field may also be a
// call, field(x), and (x).regclass a cast: those never get there.
import { expression } from './expression.ts'
import { words, type Node, type Struct } from './nodes.ts'
import { refusedColumn, refusedStatement } from './refusal.ts'
import { columnOfRow, rowMeant } from './resolve.ts'
import type { Field, Level, SqlType, Typed, Walk } from './scope.ts'
import { fieldsOf } from './type-names.ts'

/** An A_Indirection, confined. Throws Refusal. */
export function indirection(walk: Walk, level: Level, { arg, indirection: steps }: Struct<'A_Indirection'>): Typed {
  if (!arg) throw refusedStatement('a subscript of nothing')
  const list = steps ?? []
  const field = list[0]?.String?.sval
  const row = field !== undefined && arg.ColumnRef ? rowMeant(walk, level, arg.ColumnRef) : undefined
  if (row && field !== undefined && arg.ColumnRef) {
    return applied(walk, level, columnOfRow(row, field, arg.ColumnRef), list.slice(1))
  }
  return applied(walk, level, expression(walk, level, arg), list)
}

/** The fields that `(x).*` stands for, each an expression of its own; undefined where x is no row that is known. */
export function starFields(
  walk: Walk,
  level: Level,
  { arg, indirection: steps }: Struct<'A_Indirection'>,
): readonly Field[] {
  const { type } = indirection(walk, level, { ...(arg && { arg }), indirection: (steps ?? []).slice(0, -1) })
  const fields = fieldsOf(walk.exposed, type)
  if (!fields) throw refusedColumn('*', NOT_A_ROW, undefined)
  return fields
}

const NOT_A_ROW =
  'A field can be taken of a table in FROM, of a column of a composite type, and of a function that returns named columns.'

function applied(walk: Walk, level: Level, base: Typed, steps: readonly Node[]): Typed {
  if (steps.length === 0) return base
  let type = base.type
  let isSlice = false
  const out = steps.map((step, index): Node => {
    if (step.A_Indices) {
      isSlice = isSlice || step.A_Indices.is_slice === true
      if (!steps[index + 1]?.A_Indices) {
        type = elementOf(type, isSlice)
        isSlice = false
      }
      return subscript(walk, level, step.A_Indices)
    }
    const name = step.String?.sval
    if (name === undefined) throw refusedColumn('*', NOT_A_ROW, undefined)
    const found = fieldsOf(walk.exposed, type)?.filter((field) => field.name === name)
    if (found?.length !== 1) throw refusedColumn(name, NOT_A_ROW, placeOf(base.node))
    type = found[0]?.type ?? null
    return { String: { sval: name } }
  })
  return { node: { A_Indirection: { arg: base.node, indirection: out } }, type }
}

/** An array's element; of anything else that takes a subscript (jsonb) nothing is known. */
function elementOf(type: SqlType | null, isSlice: boolean): SqlType | null {
  if (type?.kind !== 'array') return null
  return isSlice ? type : type.of
}

function subscript(walk: Walk, level: Level, { is_slice, lidx, uidx }: Struct<'A_Indices'>): Node {
  return {
    A_Indices: {
      ...(is_slice && { is_slice }),
      ...(lidx && { lidx: expression(walk, level, lidx).node }),
      ...(uidx && { uidx: expression(walk, level, uidx).node }),
    },
  }
}

function placeOf(node: Node): number | undefined {
  return words(node.ColumnRef?.fields).length > 0 ? node.ColumnRef?.location : undefined
}
