// Google's engine answers dry runs and queries for the BigQuery double. Its dry runs have the same blind spots as
// BigQuery's. Table functions, INFORMATION_SCHEMA, system variables and routines return the string REACHED, which shows
// that the query has passed the guard.
import type {
  Analysis,
  Brain,
  Evaluation,
  WireError,
  WireParams,
  WireStatistics,
  WireTable,
} from '../../support/bigquery-evaluator.ts'
import { Engine, languageOptions, type EngineTable } from './engine.ts'
import type { Parsed } from './parsed.ts'
import { wireField } from './types.ts'
import { openZetasql, ZetasqlError, type Message, type Zetasql } from './zetasql.ts'

export const REACHED = 'SECRET-REACHED'

/** The bytes that a query is billed for each table that it reads. */
const TABLE_BYTES = 10 << 20

export interface World {
  readonly project: string
  readonly location: string
  /** The keys are full names, `project.dataset.table`. */
  readonly tables: Readonly<
    Record<string, EngineTable & { /** The tables that a view reads. */ readonly reads?: readonly string[] }>
  >
}

export interface BrainRequest {
  readonly kind: 'analyze' | 'evaluate'
  readonly sql: string
  /** What the analyzer reports as read: `project.dataset.table` and `project.dataset.table.column`. */
  readonly reads: readonly string[]
  /**
   * True if the SQL is not a query, or uses table functions, INFORMATION_SCHEMA, system variables or routines. Its run
   * returns REACHED.
   */
  readonly unseen: boolean
}

const FORBIDDEN = new Set(['session_user', 'external_object_transform'])
const UNSEEN_TABLE = /^(information_schema|__tables__|__tables_summary__)$/i

interface Looked extends BrainRequest {
  readonly statistics: WireStatistics
}

export class GoogleBrain implements Brain, AsyncDisposable {
  readonly zetasql: Zetasql
  readonly #world: World
  readonly #engine: Engine
  readonly #functions: ReadonlySet<string>
  readonly requests: BrainRequest[] = []
  /** The SQL of failed dry runs. */
  readonly failed: string[] = []

  constructor(zetasql: Zetasql, language: Message, functions: ReadonlySet<string>, world: World) {
    this.zetasql = zetasql
    this.#world = world
    this.#functions = functions
    this.#engine = new Engine(zetasql, language, world.project, world.tables)
  }

  async analyze(sql: string, params?: WireParams): Promise<Analysis> {
    try {
      const { statistics, ...request } = await this.#look(sql, 'analyze', params)
      this.requests.push(request)
      return { statistics }
    } catch (error) {
      this.failed.push(sql)
      return { error: this.#failure(error) }
    }
  }

  async evaluate(sql: string, params?: WireParams): Promise<Evaluation> {
    try {
      const { statistics, ...request } = await this.#look(sql, 'evaluate', params)
      this.requests.push(request)
      const schema = statistics.schema ?? { fields: [] }
      if (request.unseen) return { schema, rows: [[REACHED]] }
      return { schema, rows: statistics.statementType === 'SELECT' ? await this.#engine.evaluate(sql, params) : [] }
    } catch (error) {
      return { error: this.#failure(error) }
    }
  }

  async #look(sql: string, kind: BrainRequest['kind'], params?: WireParams): Promise<Looked> {
    const parsed = await this.#engine.parse(sql)
    if (parsed.statement !== 'query') {
      const statistics = { statementType: parsed.statement.toUpperCase(), totalBytesProcessed: '0' }
      return { kind, sql, reads: [], unseen: true, statistics }
    }
    const routines = this.#routines(parsed)
    if (parsed.unseen || routines !== null || parsed.tables.some(({ names }) => names.some((n) => unseen(n)))) {
      const schema = { fields: [wireField('f0_', { kind: 'simple', name: 'STRING' })] }
      const referencedRoutines = routines ?? []
      const statistics = { statementType: 'SELECT', totalBytesProcessed: '0', schema, referencedRoutines }
      return { kind, sql, reads: [], unseen: true, statistics }
    }
    const { columns, tables, reads } = await this.#engine.analyze(sql, params)
    const below = [...new Set(tables.flatMap((name) => this.#world.tables[name]?.reads ?? [name]))]
    const statistics = {
      statementType: 'SELECT',
      totalBytesProcessed: String(tables.length * TABLE_BYTES),
      totalBytesProcessedAccuracy: 'PRECISE',
      ...(below.length > 0 ? { referencedTables: below.map(wireTable) } : {}),
      schema: { fields: columns.map((column) => wireField(column.name, column.type)) },
    }
    return { kind, sql, reads: [...tables, ...reads], unseen: false, statistics }
  }

  /**
   * Returns the called routines in the datasets of the world. Returns null if the query calls no routine and no
   * function of FORBIDDEN.
   */
  #routines({ functions }: Parsed): WireStatistics[] | null {
    const strange = functions.filter((names) => {
      const parts = names.map((name) => name.toLowerCase())
      const own = parts[0] === 'safe' ? parts.slice(1) : parts
      return FORBIDDEN.has(own.join('.')) || (own.length > 1 && !this.#functions.has(own.join('.')))
    })
    if (strange.length === 0) return null
    const datasets = new Set(Object.keys(this.#world.tables).map((name) => name.split('.')[1]))
    return strange.flatMap((names) => {
      const [datasetId = '', routineId = ''] = names.join('.').split('.').slice(-2)
      return datasets.has(datasetId) ? [{ projectId: this.#world.project, datasetId, routineId }] : []
    })
  }

  #failure(error: unknown): WireError {
    if (!(error instanceof ZetasqlError)) throw error
    const lost = /^Table not found: (`?)([^\s;`]+)\1/.exec(error.message)?.[2]
    if (lost !== undefined) return this.#notFound(lost)
    if (error.code === 14) return { status: 503, reason: 'backendError', message: 'Retrying may solve the problem.' }
    if (error.code === 4 || error.code === 8) {
      return { status: 400, reason: 'resourcesExceeded', message: 'Resources exceeded during query execution.' }
    }
    const message = error.message.replace(/ ?\[at (\d+:\d+)\]/g, ' at [$1]')
    return { status: 400, reason: 'invalidQuery', message }
  }

  #notFound(name: string): WireError {
    const parts = name.split('.')
    if (parts.length < 2) {
      const message = `Table "${name}" must be qualified with a dataset (e.g. dataset.table).`
      return { status: 400, reason: 'invalid', message }
    }
    const [project = '', dataset = '', ...table] = parts.length === 2 ? [this.#world.project, ...parts] : parts
    const place = `${project}:${dataset}.${table.join('.')}`
    const message = `Not found: Table ${place} was not found in location ${this.#world.location}`
    return { status: 404, reason: 'notFound', message }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#engine.close()
    await this.zetasql[Symbol.asyncDispose]()
  }
}

/** Throws NoSuchEngine. */
export async function openBrain(world: World): Promise<GoogleBrain> {
  const zetasql = await openZetasql()
  const language = await languageOptions(zetasql)
  const functions = await functionNames(zetasql, language)
  return new GoogleBrain(zetasql, language, functions, world)
}

/** Returns the names in lower case. The names of operators begin with $. */
async function functionNames(zetasql: Zetasql, language: Message): Promise<ReadonlySet<string>> {
  const { function: all } = await zetasql.call('GetBuiltinFunctions', { language_options: language })
  return new Set(all.map((each: Message) => each.name_path.join('.').toLowerCase()))
}

function unseen(name: string): boolean {
  return name.split('.').some((part) => UNSEEN_TABLE.test(part))
}

function wireTable(name: string): WireTable {
  const [projectId = '', datasetId = '', ...table] = name.split('.')
  return { projectId, datasetId, tableId: table.join('.') }
}
