// JSON_TABLE in FROM (PostgreSQL 17): its columns are written out, each with a type of the list; a column of regclass
// would tell what exists.
import { namedItem, type From } from './from.ts'
import { formatOf, jsonBehavior, jsonPassing, jsonValue, since } from './json.ts'
import type { Node, Struct } from './nodes.ts'
import { refusedStatement } from './refusal.ts'
import type { Field, Level, Walk } from './scope.ts'
import { Shown } from './shown.ts'
import { typeName } from './type-names.ts'

/** A JsonTable, confined. Throws Refusal. */
export function jsonTable(walk: Walk, level: Level, node: Struct<'JsonTable'>): From {
  since(walk, 17, 'json_table', node.location)
  walk.rowFunctions += 1
  const { lateral, on_error, alias } = node
  const { nodes, fields } = columnsOf(walk, level, node.columns ?? [])
  const made = namedItem(walk, { name: alias?.aliasname ?? 'json_table', alias, fields })
  const confined = {
    context_item: jsonValue(walk, level, node.context_item),
    pathspec: path(node.pathspec),
    ...jsonPassing(walk, level, node.passing),
    columns: nodes,
    ...(on_error && { on_error: jsonBehavior(walk, level, on_error) }),
    alias: made.alias,
    ...(lateral && { lateral }),
  }
  return { node: { JsonTable: confined }, shown: Shown.of(made.item) }
}

interface Columns {
  readonly nodes: readonly Node[]
  /** As the server orders them: those of a level before those nested in it. */
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

/** A path is a plain text, and may have a name. */
function path(spec: Struct<'JsonTablePathSpec'> | undefined): Struct<'JsonTablePathSpec'> {
  const text = spec?.string?.A_Const?.sval
  if (!text) throw refusedStatement('JSON_TABLE without a path')
  const string: Node = { A_Const: { sval: { sval: text.sval ?? '' } } }
  return { string, ...(spec?.name !== undefined && { name: spec.name }) }
}
