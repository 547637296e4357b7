// Finds tables, aliases, and forms that the evaluator cannot run, in the parse tree of Google's own parser. Shares no
// code with the guard.
import { ZetasqlError, type Message, type Zetasql } from './zetasql.ts'

/** A place in the query that names a table. Positions are UTF-8 bytes. */
export interface NamedTable {
  /** The identifiers of the name. A quoted identifier may contain dots. */
  readonly names: readonly string[]
  readonly start: number
  readonly end: number
  readonly aliased: boolean
  readonly pivoted: boolean
}

export interface Parsed {
  /** The kind of statement in the parser's own word: query, insert, create_table, … Several statements are a script. */
  readonly statement: string
  readonly tables: readonly NamedTable[]
  /** The names that the query defines, in lower case. */
  readonly aliases: ReadonlySet<string>
  /** The names of called functions as they are written, split at their dots. */
  readonly functions: readonly (readonly string[])[]
  /** True if the query has table functions or system variables, which a dry run does not report. */
  readonly unseen: boolean
  /** The ranges of FOR SYSTEM_TIME and TABLESAMPLE, which the evaluator does not support. */
  readonly cuts: readonly { readonly start: number; readonly end: number }[]
}

/** `options` are the options of the language. Throws ZetasqlError if the SQL does not parse. */
export async function parse(zetasql: Zetasql, sql: string, options: Message): Promise<Parsed> {
  try {
    return read((await zetasql.call('Parse', { sql_statement: sql, options })).parsed_statement)
  } catch (error) {
    if (!(error instanceof ZetasqlError) || error.code !== 3) throw error
    const script = await zetasql.call('Parse', { sql_statement: sql, options, allow_script: true }).catch(() => null)
    if (script === null) throw error
    return { statement: 'script', tables: [], aliases: new Set(), functions: [], unseen: false, cuts: [] }
  }
}

function read(statement: Message): Parsed {
  const found = {
    statement: kindOf(statement),
    tables: [] as NamedTable[],
    aliases: new Set<string>(),
    functions: [] as (readonly string[])[],
    unseen: false,
    cuts: [] as { start: number; end: number }[],
  }
  visit(statement, (name, node) => {
    if (name === 'alias') found.aliases.add(String(node.identifier?.id_string ?? node.id_string ?? '').toLowerCase())
    if (name === 'function' && Array.isArray(node.names)) found.functions.push(namesOf(node))
    if (name === 'ast_tvf_node' || name === 'ast_system_variable_expr_node') found.unseen = true
    if (name === 'for_system_time' || name === 'sample_clause' || name === 'sample') found.cuts.push(rangeOf(node))
    if (name === 'ast_table_path_expression_node' && present(node.path_expr)) found.tables.push(tableOf(node))
  })
  return found
}

/** Returns the most specific kind. The parser nests kinds, for example ddl, create_statement, create_table. */
function kindOf(statement: Message): string {
  let kind = ''
  for (let at = statement; typeof at?.node === 'string' && /^ast_.*_node$/.test(at.node); at = at[at.node])
    kind = at.node
  return kind.replace(/^ast_|(_statement|_stmt)?_node$/g, '')
}

function tableOf(node: Message): NamedTable {
  return {
    names: namesOf(node.path_expr),
    ...rangeOf(node.path_expr),
    aliased: present(node.alias),
    pivoted: present(node.pivot_clause) || present(node.unpivot_clause),
  }
}

function namesOf(path: Message): string[] {
  return path.names.map((name: Message) => String(name.id_string))
}

function present(node: Message): boolean {
  return node !== null && node !== undefined
}

/** The range is in the node itself, or in the nearest of its `parent` messages. */
function rangeOf(node: Message): { start: number; end: number } {
  for (let at = node; present(at); at = at.parent) {
    if (present(at.parse_location_range)) return at.parse_location_range
  }
  throw new Error('a node without a position')
}

function visit(node: Message, see: (name: string, node: Message) => void): void {
  for (const [name, child] of Object.entries<Message>(node)) {
    for (const each of Array.isArray(child) ? child : [child]) {
      if (typeof each !== 'object' || each === null) continue
      see(name, each)
      visit(each, see)
    }
  }
}

/** Replaces byte ranges, which must not overlap. */
export function replaced(
  sql: string,
  edits: readonly { readonly start: number; readonly end: number; readonly by: string }[],
): string {
  const bytes = Buffer.from(sql)
  let text = ''
  let at = 0
  for (const { start, end, by } of edits.toSorted((a, b) => a.start - b.start)) {
    text += bytes.subarray(at, start).toString() + by
    at = end
  }
  return text + bytes.subarray(at).toString()
}
