// Checks SQL that the guard has printed, without the guard's code: every table is exposed, every function, operator and
// type is in an allowed schema, and the SQL is one SELECT. Walks over the parsed tree and ignores scopes.
import type { Catalog } from '../../src/drivers/driver.ts'

interface Found {
  readonly tag: string
  readonly node: Record<string, unknown>
}

/** Returns one line for each problem of the tree. */
export function audit(
  tree: unknown,
  exposed: Catalog,
  schemas: readonly string[] = ['pg_catalog', 'public'],
): string[] {
  const stmts = at(tree, 'stmts')
  if (!Array.isArray(stmts) || stmts.length !== 1) return ['not one statement']
  const found = [...walk(at(stmts[0], 'stmt'))]
  const tables = new Set(exposed.tables.map((table) => `${table.schema}.${table.table}`))
  return found.flatMap(({ tag, node }) => {
    if (tag.endsWith('Stmt') && tag !== 'SelectStmt') return [`a ${tag}`]
    if (node['intoClause'] !== undefined || node['lockingClause'] !== undefined) return ['INTO or FOR UPDATE']
    if (tag === 'RangeVar') return table(node, tables)
    if (tag === 'FuncCall') return functionCall(node, schemas)
    if (tag === 'A_Expr') return operator(node, schemas)
    if (tag === 'TypeCast' || tag === 'ColumnDef') return typeReference(at(node, 'typeName'), schemas)
    return []
  })
}

function table(node: Record<string, unknown>, tables: ReadonlySet<string>): string[] {
  const [schema, name] = [node['schemaname'], String(node['relname'])]
  if (schema === undefined) return /^_*c\d+$/.test(name) ? [] : [`the table ${name} without a schema`]
  const isKnown = tables.has(`${String(schema)}.${name}`) && node['catalogname'] === undefined
  return isKnown ? [] : [`the table ${String(schema)}.${name}`]
}

function functionCall(node: Record<string, unknown>, schemas: readonly string[]): string[] {
  const parts = names(node['funcname'])
  if (parts.length === 1 && parts[0] === 'unnest') return []
  return parts.length === 2 && schemas.includes(parts[0] ?? '') ? [] : [`the function ${parts.join('.')}`]
}

function operator(node: Record<string, unknown>, schemas: readonly string[]): string[] {
  const parts = names(node['name'])
  const isWorded = !['AEXPR_OP', 'AEXPR_OP_ANY', 'AEXPR_OP_ALL'].includes(String(node['kind']))
  return isWorded || (parts.length === 2 && schemas.includes(parts[0] ?? '')) ? [] : [`the operator ${parts.join('.')}`]
}

function typeReference(type: unknown, schemas: readonly string[]): string[] {
  const parts = names(at(type, 'names'))
  return parts.length === 2 && schemas.includes(parts[0] ?? '') && !/^_?reg/.test(parts[1] ?? '')
    ? []
    : [`the type ${parts.join('.')}`]
}

function names(list: unknown): string[] {
  return Array.isArray(list) ? list.map((item) => String(at(at(item, 'String'), 'sval') ?? '')) : []
}

function* walk(value: unknown): Generator<Found> {
  if (Array.isArray(value)) {
    for (const item of value) yield* walk(item)
  } else if (isObject(value)) {
    for (const [tag, child] of Object.entries(value)) {
      if (isObject(child) && /^[A-Z]/.test(tag)) yield { tag, node: child }
      yield* walk(child)
    }
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function at(value: unknown, key: string): unknown {
  return isObject(value) ? value[key] : undefined
}
