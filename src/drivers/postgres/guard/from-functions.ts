// Calls in FROM: which columns they show, known from the list, from a composite type or from the caller's definition.
import { valueFunction } from './expression.ts'
import { callOf, type Called } from './calls.ts'
import { namedItem, type From } from './from.ts'
import { FROM_DEFINITION } from './functions.ts'
import { notePlace } from './locate.ts'
import { outputName } from './names.ts'
import { word, type Node, type Struct } from './nodes.ts'
import { refusedFunction, refusedStatement } from './refusal.ts'
import type { Field, Level, Walk } from './scope.ts'
import { Shown } from './shown.ts'
import { fieldsOf, typeName } from './type-names.ts'

interface Part {
  readonly node: Node
  readonly fields: readonly Field[]
  /** It returns one plain value a row, so that its alias as a row is that value. */
  readonly isScalar: boolean
  /** Column definitions that stand behind the alias, not in ROWS FROM. */
  readonly definitions?: readonly Node[]
}

/** A RangeFunction, confined. Throws Refusal. */
export function functionItem(walk: Walk, level: Level, node: Struct<'RangeFunction'>): From {
  walk.rowFunctions += 1
  const { alias, ordinality, is_rowsfrom, coldeflist, lateral } = node
  const functions = node.functions ?? []
  const name = alias?.aliasname ?? functionName(walk, functions[0])
  const parts = functions.map((item) => part(walk, level, item, functions.length === 1 ? name : undefined, coldeflist))
  const fields = [...parts.flatMap((each) => each.fields), ...(ordinality ? [{ name: 'ordinality', type: null }] : [])]
  const made = namedItem(walk, { name, alias: coldeflist ? undefined : alias, fields })
  const [first] = parts
  const [column] = made.item.columns
  const isValue = parts.length === 1 && first?.isScalar === true && !ordinality
  const item = isValue && column ? { ...made.item, whole: () => valueOf(made.alias, column.type) } : made.item
  const shown = first?.definitions
  const confined = {
    ...(lateral && { lateral }),
    ...(ordinality && { ordinality }),
    ...(is_rowsfrom && { is_rowsfrom }),
    functions: parts.map((each) => each.node),
    // A definition list names the columns itself; the grammar takes no alias list beside it.
    alias: shown ? { aliasname: made.alias.aliasname ?? '' } : made.alias,
    ...(shown && { coldeflist: shown }),
  }
  return { node: { RangeFunction: confined }, shown: Shown.of(item) }
}

function valueOf(alias: Struct<'Alias'>, type: Field['type']): { node: Node; type: Field['type'] } {
  return { node: { ColumnRef: { fields: [word(alias.aliasname ?? '')] } }, type }
}

function functionName(walk: Walk, item: Node | undefined): string {
  const call = item?.List?.items?.[0]
  return call ? outputName(call, { major: walk.exposed.major, subLink: () => undefined }) : 'function'
}

/** One function of FROM: [call, its own column definitions or a hole]. */
function part(
  walk: Walk,
  level: Level,
  item: Node,
  only: string | undefined,
  outside: readonly Node[] | undefined,
): Part {
  const [source, inside, ...others] = item.List?.items ?? []
  if (others.length > 0 || (inside && !inside.List && Object.keys(inside).length > 0)) throw refusedStatement('FROM')
  if (source?.SQLValueFunction) {
    const { node } = valueFunction(source.SQLValueFunction)
    const name = only ?? outputName(source, { major: walk.exposed.major, subLink: () => undefined })
    return { node: { List: { items: [node, {}] } }, fields: [{ name, type: null }], isScalar: true }
  }
  if (!source?.FuncCall) throw refusedStatement('what is no function in FROM')
  const call = source.FuncCall
  const isMany =
    call.funcname?.length === 1 && call.funcname[0]?.String?.sval === 'unnest' && (call.args?.length ?? 0) > 1
  if (isMany) return unnestMany(walk, level, call)
  const called = callOf(walk, level, call)
  notePlace(walk.places, called.node, source)
  if (called.name === 'pg_typeof') throw refusedFunction('pg_typeof', call.location, 'Call it in the select list.')
  const written = outside ?? inside?.List?.items
  if (written) return defined(walk, called, written, outside !== undefined, call.location)
  if (FROM_DEFINITION.has(called.name)) {
    throw refusedFunction(
      called.name,
      call.location,
      `Say which columns it has: ${called.name}(…) AS t(a int, b text).`,
    )
  }
  return { node: { List: { items: [called.node, {}] } }, ...columnsOf(walk, called, only) }
}

function columnsOf(walk: Walk, called: Called, only: string | undefined): Pick<Part, 'fields' | 'isScalar'> {
  const fields = fieldsOf(walk.exposed, called.type)
  if (fields) return { fields, isScalar: false }
  return { fields: [{ name: called.out[0] ?? only ?? called.name, type: called.type }], isScalar: true }
}

/** unnest(a, b): the grammar knows it by its bare name alone, so it is printed so. */
function unnestMany(walk: Walk, level: Level, call: Struct<'FuncCall'>): Part {
  const fields: Field[] = []
  const args = (call.args ?? []).map((arg) => {
    const { node, type } = callOf(walk, level, { ...call, args: [arg] })
    fields.push(...(fieldsOf(walk.exposed, type) ?? [{ name: 'unnest', type }]))
    return node.FuncCall?.args?.[0] ?? node
  })
  const node: Node = { FuncCall: { funcname: [word('unnest')], args, funcformat: 'COERCE_EXPLICIT_CALL' } }
  return { node: { List: { items: [node, {}] } }, fields, isScalar: false }
}

/** A record's columns, as the caller defines them. */
function defined(
  walk: Walk,
  called: Called,
  written: readonly Node[],
  isOutside: boolean,
  at: number | undefined,
): Part {
  if (!FROM_DEFINITION.has(called.name)) {
    throw refusedFunction(called.name, at, `${called.name}() takes no list of column definitions.`)
  }
  const fields: Field[] = []
  const nodes = written.map((node): Node => {
    const def = node.ColumnDef
    if (!def?.typeName || def.colname === undefined) throw refusedStatement('a column definition', at)
    const type = typeName(walk, def.typeName)
    fields.push({ name: def.colname, type: type.type })
    return { ColumnDef: { colname: def.colname, typeName: type.node, is_local: true } }
  })
  const items: Node[] = [called.node, isOutside ? {} : { List: { items: nodes } }]
  return { node: { List: { items } }, fields, isScalar: false, ...(isOutside && { definitions: nodes }) }
}
