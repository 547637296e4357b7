// Google's analyzer and evaluator, on the tables of the tests. They show which tables and columns a query really reads,
// and which rows it returns.
import { byName, parameterOptions, parameterValues } from './parameters.ts'
import { fromMessage, readType, toMessage, type Type } from './types.ts'
import { toValue, toWire } from './values.ts'
import { parse, replaced, type NamedTable, type Parsed } from './parsed.ts'
import { withoutPipes } from './without-pipes.ts'
import type { WireParams, WireValue } from '../../support/bigquery-evaluator.ts'
import type { Message, Zetasql } from './zetasql.ts'

export interface EngineColumn {
  readonly name: string
  /** In GoogleSQL, for example ARRAY<STRUCT<sku STRING>>. */
  readonly type: string
  /** True if a star leaves out this column, like _TABLE_SUFFIX or _PARTITIONTIME. */
  readonly pseudo?: boolean
}

export interface EngineTable {
  readonly columns: readonly EngineColumn[]
  readonly rows: readonly Readonly<Record<string, unknown>>[]
}

/** The keys are full names, `project.dataset.table`. */
export type EngineTables = Readonly<Record<string, EngineTable>>

export interface Analyzed {
  readonly columns: readonly { readonly name: string; readonly type: Type }[]
  /** Full names. A wildcard table keeps its `*`. */
  readonly tables: readonly string[]
  /** The columns on which the result depends, as `project.dataset.table.column`. */
  readonly reads: readonly string[]
}

interface Registered {
  readonly id: string
  readonly names: ReadonlyMap<string, string>
}

/** Features that the engine has, but BigQuery does not. */
const LEFT_OUT = ['FEATURE_V_1_3_ALLOW_SLASH_PATHS', 'FEATURE_TIMESTAMP_NANOS', 'FEATURE_EXPERIMENTAL_MODULES']
/** Features that BigQuery has, but `maximum_features` leaves out. */
const BESIDE = ['FEATURE_INTERVAL_TYPE', 'FEATURE_V_1_4_GROUPING_SETS']

/** Returns options that are as near to BigQuery's GoogleSQL as possible. */
export async function languageOptions(zetasql: Zetasql): Promise<Message> {
  const options = await zetasql.call('GetLanguageOptions', { maximum_features: true })
  const features: string[] = options.enabled_language_features
  return {
    ...options,
    product_mode: 'PRODUCT_EXTERNAL',
    supported_statement_kinds: ['RESOLVED_QUERY_STMT'],
    enabled_language_features: [...features.filter((name) => !LEFT_OUT.includes(name)), ...BESIDE],
    reserved_keywords: ['QUALIFY'],
  }
}

export class Engine {
  readonly #zetasql: Zetasql
  readonly #language: Message
  readonly #project: string
  readonly #tables: EngineTables
  readonly #wildcards = new Set<string>()
  /** The tables and wildcards that the running server knows. A pending call may still use an earlier catalog. */
  #registered: { readonly generation: number; readonly catalog: Promise<Registered> } | null = null
  readonly #earlier: { readonly generation: number; readonly catalog: Promise<Registered> }[] = []

  constructor(zetasql: Zetasql, language: Message, project: string, tables: EngineTables) {
    this.#zetasql = zetasql
    this.#language = language
    this.#project = project
    this.#tables = tables
  }

  /** Parses the query, after its pipes were replaced by sub-queries. Throws ZetasqlError. */
  parse(sql: string): Promise<Parsed> {
    return parse(this.#zetasql, withoutPipes(sql), this.#language)
  }

  /** Throws ZetasqlError. */
  async analyze(asked: string, given: WireParams = {}): Promise<Analyzed> {
    const { sql, params } = byName(asked, given)
    const { text, catalog } = await this.#prepare(sql, [])
    const answer = await this.#zetasql.call('Analyze', {
      sql_statement: text,
      registered_catalog_id: catalog.id,
      options: { ...this.#options(), ...parameterOptions(params) },
    })
    const columns: Message[] = answer.resolved_statement.resolved_query_stmt_node.output_column_list
    return { columns: named(columns), ...readsOf(answer, catalog.names) }
  }

  /**
   * Rows are in order only if the query has an ORDER BY. TABLESAMPLE reads the whole table, and FOR SYSTEM_TIME reads
   * the present rows. Throws ZetasqlError.
   */
  async evaluate(asked: string, given: WireParams = {}): Promise<readonly (readonly WireValue[])[]> {
    const { sql, params } = byName(asked, given)
    const { cuts } = await this.parse(sql)
    const { text, catalog } = await this.#prepare(sql, cuts)
    const answer = await this.#zetasql.call('EvaluateQuery', {
      sql: text,
      registered_catalog_id: catalog.id,
      options: { ...this.#options(), ...parameterOptions(params) },
      params: parameterValues(params),
    })
    const columns: Message[] = answer.prepared.columns
    const types = columns.map((column) => fromMessage(column.type))
    const rows: Message[] = answer.content?.table_data?.row ?? []
    return rows.map((row) => types.map((type, n) => toWire(type, row.cell[n])))
  }

  /** Lets the server forget the registered tables. */
  async close(): Promise<void> {
    this.#renew()
    for (const { generation, catalog } of this.#earlier.splice(0)) {
      const registered = await catalog.catch(() => null)
      if (registered === null || generation !== this.#zetasql.generation) continue
      await this.#zetasql.call('UnregisterCatalog', { registered_id: registered.id })
    }
  }

  #options(): Message {
    return {
      language_options: this.#language,
      default_timezone: 'UTC',
      prune_unused_columns: true,
      error_message_mode: 'ERROR_MESSAGE_ONE_LINE',
    }
  }

  /** Replaces every table by one quoted name, with the alias that BigQuery would give it. */
  async #prepare(sql: string, cuts: Parsed['cuts']): Promise<{ text: string; catalog: Registered }> {
    const { tables, aliases } = await this.parse(sql)
    const edits = tables.flatMap((table) => {
      const [first = ''] = table.names
      const name = this.#resolve(table.names)
      if (name === null || (table.names.length > 1 && aliases.has(first.toLowerCase()))) return []
      return [{ start: table.start, end: table.end, by: quoted(name, table) }]
    })
    const text = replaced(withoutPipes(sql), [...edits, ...cuts.map((cut) => ({ ...cut, by: '' }))])
    return { text, catalog: await this.#catalog() }
  }

  #resolve(names: readonly string[]): string | null {
    const parts = names.join('.').split('.')
    if (parts.length < 2 || parts.length > 3) return null
    const full = (parts.length === 2 ? [this.#project, ...parts] : parts).join('.')
    if (full in this.#tables || this.#wildcards.has(full)) return full
    if (!full.endsWith('*') || this.#shards(full).length === 0) return null
    this.#wildcards.add(full)
    this.#renew()
    return full
  }

  #shards(wildcard: string): string[] {
    const dots = wildcard.split('.').length
    const shards = Object.keys(this.#tables).filter((name) => name.startsWith(wildcard.slice(0, -1)))
    return shards.filter((name) => name.split('.').length === dots).sort()
  }

  #catalog(): Promise<Registered> {
    const { generation } = this.#zetasql
    if (this.#registered?.generation !== generation) this.#renew()
    this.#registered ??= { generation, catalog: this.#register() }
    return this.#registered.catalog
  }

  #renew(): void {
    if (this.#registered !== null) this.#earlier.push(this.#registered)
    this.#registered = null
  }

  async #register(): Promise<Registered> {
    const names = new Map<string, string>()
    const content: Record<string, Message> = {}
    const add = (name: string, table: EngineTable): Message => {
      const types = table.columns.map((column) => readType(column.type))
      const cell = (row: Readonly<Record<string, unknown>>) =>
        table.columns.map((column, n) => toValue(types[n] ?? readType('INT64'), row[column.name]))
      content[name] = { table_data: { row: table.rows.map((row) => ({ cell: cell(row) })) } }
      names.set(name, name)
      const column = table.columns.map((each, n) => ({
        name: each.name,
        type: toMessage(types[n] ?? readType('INT64')),
        is_pseudo_column: each.pseudo ?? false,
      }))
      return { name, serialization_id: names.size, column }
    }
    const table = Object.entries(this.#tables).map(([name, each]) => add(name, each))
    for (const wildcard of this.#wildcards) table.push(add(wildcard, this.#union(wildcard)))
    const builtin = { language_options: this.#language }
    const answer = await this.#zetasql.call('RegisterCatalog', {
      simple_catalog: { name: 'root', builtin_function_options: builtin, table },
      table_content: content,
    })
    return { id: answer.registered_id, names }
  }

  /** Makes a table with the columns of the newest shard and the rows of all shards. */
  #union(wildcard: string): EngineTable {
    const shards = this.#shards(wildcard)
    const newest = this.#tables[shards.at(-1) ?? '']
    const rows = shards.flatMap((name) => {
      const suffix = name.slice(wildcard.length - 1)
      const { columns = [], rows: own = [] } = this.#tables[name] ?? {}
      // Leaves out a column whose type differs from its type in the newest shard.
      const same = columns.filter(({ name: each, type }) =>
        newest?.columns.some((c) => c.name === each && c.type === type),
      )
      const kept = (row: EngineTable['rows'][number]) => same.map((column) => [column.name, row[column.name]])
      return own.map((row) => ({ ...Object.fromEntries(kept(row)), _TABLE_SUFFIX: suffix }))
    })
    return { columns: [...(newest?.columns ?? []), { name: '_TABLE_SUFFIX', type: 'STRING', pseudo: true }], rows }
  }
}

function quoted(name: string, table: NamedTable): string {
  const alias = table.aliased || table.pivoted ? '' : ` AS \`${name.split('.').at(-1) ?? ''}\``
  return `\`${name}\`${alias}`
}

/** Names columns like BigQuery: an anonymous column is f0_, f1_ …, and a repeated name gets a suffix such as _1. */
function named(columns: readonly Message[]): Analyzed['columns'] {
  const seen = new Map<string, number>()
  let anonymous = 0
  return columns.map(({ name, column }) => {
    const plain = name === '' || String(name).startsWith('$') ? `f${anonymous++}_` : String(name)
    const before = seen.get(plain.toLowerCase()) ?? 0
    seen.set(plain.toLowerCase(), before + 1)
    return { name: before === 0 ? plain : `${plain}_${before}`, type: fromMessage(column.type) }
  })
}

/** The scans of the resolved tree contain only columns that the query uses. */
function readsOf(answer: Message, names: ReadonlyMap<string, string>): Pick<Analyzed, 'tables' | 'reads'> {
  const tables = new Set<string>()
  const reads = new Set<string>()
  const visit = (node: Message): void => {
    if (typeof node !== 'object' || node === null) return
    if (Array.isArray(node)) return node.forEach(visit)
    const table: unknown = node.table?.name
    if (typeof table === 'string' && names.has(table) && Array.isArray(node.column_index_list)) {
      tables.add(table)
      for (const column of node.parent?.column_list ?? []) reads.add(`${table}.${column.name}`)
    }
    Object.values(node).forEach(visit)
  }
  visit(answer)
  return { tables: [...tables], reads: [...reads] }
}
