// What every kind of database must be able to do. A Driver can only judge, a Connection can only do: a text that no
// driver confined cannot reach a database. Nothing here knows accounts, teams or the wire.
import type { Confined } from './confined.ts'
import type { Question } from './question.ts'

export type DatasourceType = 'POSTGRES' | 'MONGODB' | 'BIGQUERY'

/** The words this kind uses for its own concepts. */
interface Vocabulary {
  readonly schema: string
  readonly table: string
  readonly queryLanguage: string
}

/** What introspection found, or, cut by an exposure, what of it is shown. Order: the database's. */
export interface Catalog {
  /** ISO 8601, UTC. */
  readonly capturedAt: string
  readonly tables: readonly CatalogTable[]
  /** What the driver itself needs to confine a query (types, extensions, server version …); opaque above the driver. */
  readonly capture: unknown
}

export interface CatalogTable {
  readonly schema: string
  readonly table: string
  /** table, view, materialized view, partitioned table, foreign table, collection … */
  readonly kind: string
  readonly description: string | null
  /** Null where never analysed, and for views. */
  readonly estimatedRows: number | null
  readonly columns: readonly CatalogColumn[]
  /** What whoever exposes this table should know, whole sentences: a view that calls foreign things, say. */
  readonly warnings: readonly string[]
  /** True when the exposure shows only some of the columns; absent in a full catalog. */
  readonly columnsRestricted?: boolean
  /** Only of kinds where indexes are a meaningful concept. An exposure shows those whose every key is exposed. */
  readonly indexes?: readonly CatalogIndex[]
  /** Only where rows were looked at to learn the columns: how many this time, and whether those were all. */
  readonly looked?: { readonly rows: number; readonly all: boolean }
  /** What the driver needs of the table (pages, tuples, keys …); opaque above the driver. */
  readonly detail: unknown
}

export interface CatalogIndex {
  readonly keys: readonly { readonly path: string; readonly direction: number | string }[]
  readonly unique: boolean
}

export interface CatalogColumn {
  readonly name: string
  /** The database's own name of the type, as shown to a caller. */
  readonly type: string
  readonly nullable: boolean
  readonly primaryKey: boolean
  readonly references: { readonly schema: string; readonly table: string; readonly column: string } | null
  readonly description: string | null
  /** Why this column may not be exposed, as a sentence; null when it may. */
  readonly unexposable: string | null
  /** The column whose value this one is a part of (a path of a document): exposing that one shows this one too. */
  readonly partOf?: string
  /** What introspection noticed of its values, in words; shown only of exposed columns. */
  readonly signals?: readonly string[]
  /**
   * The values that the type, a CHECK or a validator allows, in its order, LABELS_MAX at most; shown only of exposed
   * columns.
   */
  readonly labels?: readonly Scalar[]
  /** Only of a column that was met in rows; what a sample does not show may be there all the same. */
  readonly seen?: Seen
  /** What the driver needs of the column (type oid …); opaque above the driver. */
  readonly detail: unknown
}

/** So many allowed values of a column are told, of so many characters each. */
export const LABELS_MAX = 100
export const LABEL_CHARS_MAX = 64

/** How often a column was met when it was last met. */
export interface Seen {
  /** Rows that held it, of so many looked at. */
  readonly rows: number
  readonly of: number
  /** Rows looked at since, without meeting it. */
  readonly missed: number
  /** The types of its values. */
  readonly types: readonly string[]
}

/** Per query, the team's numbers over the defaults. */
export interface Limits {
  readonly rowCap: number
  readonly maxResponseBytes: number
  readonly timeoutMs: number
  /** Postgres: planner cost units. */
  readonly maxCost: number
}

export type BlockedKind =
  'table' | 'column' | 'function' | 'type' | 'operator' | 'statement' | 'stage' | 'cost' | 'limit'

export interface Blocked {
  readonly kind: BlockedKind
  readonly name: string
}

/** A refusal to be tested as data, audited, and shown: `why` names what was blocked, `hint` how to go on. */
export interface Denied {
  readonly kind: 'denied'
  readonly blocked: Blocked
  readonly why: string
  readonly hint: string
  /** From 0, in UTF-16 units of the caller's text. */
  readonly position?: number
}

export interface Malformed {
  readonly kind: 'malformed'
  readonly why: string
  /** How to go on. */
  readonly hint?: string
  readonly position?: number
}

export type Verdict = { readonly kind: 'confined'; readonly query: Confined } | Denied | Malformed

/** The value of one parameter, as JSON carries it. Whole numbers beyond 2^53 are strings. */
type ParamScalar = null | boolean | number | string

/** A parameter as the caller sent it: a value, or a value with the name of its type. */
export type Param = ParamScalar | { readonly type: string; readonly value: ParamScalar }

/** The parameters of a query, read and well-formed. */
export interface Params {
  /** By place (`$1`, `?`), or by name (`@name`). */
  readonly values: readonly Param[] | ReadonlyMap<string, Param>
  /** As the caller sent them, for the audit. */
  readonly json: string
}

/** A body read for this kind; what confine() takes. Opaque above the driver, but for the parts an audit keeps. */
export interface QueryBody {
  /** The caller's query as a text, for the audit. */
  readonly text: string
  readonly limit: number | null
  /** Bound by the driver, never printed as text. Absent where the body has none. */
  readonly params?: Params
}

/** A table that a confined query reads, as the exposure names it. */
interface TableRead {
  readonly schema: string
  readonly table: string
}

/** How to reach one database: validated by the driver's settings(). `secrets` is never logged. */
export interface ConnectionSettings {
  readonly connectionMode: string
  readonly host: string | null
  readonly port: number | null
  readonly database: string
  readonly username: string | null
  readonly sslMode: string | null
  /** Non-secret, per-kind settings, as shown. */
  readonly config: Readonly<Record<string, unknown>>
  readonly secrets: Readonly<Record<string, string>>
}

export interface TestStep {
  readonly name: string
  readonly status: 'PASS' | 'WARN' | 'FAIL'
  readonly message: string
  readonly remedy: string | null
}

export interface TestReport {
  readonly ok: boolean
  readonly latencyMs: number
  readonly serverVersion: string | null
  readonly steps: readonly TestStep[]
  readonly grade: 'PASS' | 'WARN' | 'FAIL'
  /** A sentence of ours; only where ok is false. */
  readonly error?: string
}

export interface ResultColumn {
  readonly name: string
  readonly dataType: string
}

/**
 * An answer, already JSON: `rows` is an array of arrays, written from the database's own bytes. A large one stays UTF-8
 * bytes: as a JavaScript string it would cost its size three times over before it is sent.
 */
export interface Rows {
  readonly columns: readonly ResultColumn[]
  readonly rows: string | Buffer
  readonly rowCount: number
  readonly truncated: boolean
}

/** What the database would spend: EXPLAIN or a dry run, in the units of the kind's cost limit. */
export interface Estimate {
  readonly cost: number
}

/** What a profile may read of one table, and for how long. */
export interface ProfileBounds {
  /** Sampled at most. */
  readonly rows: number
  /** A statement. */
  readonly timeoutMs: number
  /** Of kinds that are paid by bytes read: null reads metadata only. */
  readonly bytes: number | null
}

export type Scalar = string | number | boolean

/** What the values of a column are; `label`: of an enumerated type; `other`: mixed, or nothing of these. */
export type ValueKind = 'boolean' | 'number' | 'time' | 'text' | 'label' | 'other'

/** What a column's sampled values look like; none of them is in it. */
interface SampleFacts {
  /** Values looked at, nulls left out. */
  readonly count: number
  readonly distinct: number
  /** Of texts, in characters. */
  readonly longest: number | null
  readonly meanLength: number | null
  /** Shares from 0 to 1 of the values that look like such a thing. */
  readonly looks: Readonly<Record<string, number>>
}

/** A top-level key of JSON objects. */
export interface SeenKey {
  readonly key: string
  /** Sampled objects that hold it. */
  readonly rows: number
  /** Of the sampled objects, from 0 to 1. */
  readonly share: number
  /** JSON types of its values: array, boolean, null, number, object, string. */
  readonly types: readonly string[]
}

/**
 * One column, as the database's own statistics and a bounded sample show it. Raw: what of it is kept is decided above
 * the driver.
 */
export interface ColumnProfile {
  readonly name: string
  readonly kind: ValueKind
  /** From 0 to 1. */
  readonly nullFrac: number | null
  /** An estimate over the whole table. */
  readonly distinctCount: number | null
  /** Most common first; `rows`: how many of those that were looked at share it, so never more than there are. */
  readonly values: readonly { readonly value: Scalar; readonly share: number; readonly rows: number }[] | null
  /** Of dates and numbers, by the one rule of values. */
  readonly range: { readonly min: Scalar; readonly max: Scalar } | null
  readonly sample: SampleFacts | null
  /** Of JSON columns: the top-level keys of the sampled objects. */
  readonly keys?: readonly SeenKey[] | null
  /** What only this kind can tell, whole sentences or short words, as signals. */
  readonly signals: readonly string[]
}

export interface TableProfile {
  /** Rows that were read. */
  readonly rowsSampled: number
  /** They are all that there are. */
  readonly complete: boolean
  readonly estimatedRows: number | null
  readonly columns: readonly ColumnProfile[]
}

export interface Connection extends AsyncDisposable {
  /** False once the session can no longer be used (the socket is gone, a cancel is under way): it must be disposed. */
  readonly usable: boolean
  /** Connects already done: grades the login. `exposed` is what the GRANT lines should equal; null before any exposure. */
  test(exposed: Catalog | null, signal: AbortSignal): Promise<TestReport>
  /** `progress` is told how many of how many parts are done. */
  introspect(signal: AbortSignal, progress?: (done: number, total: number) => void): Promise<Catalog>
  /**
   * What the values of a table's columns are like. `table` is one of an exposed catalog: only what stands in it is named.
   * Read-only and within the bounds. Throws SCHEMA_STALE where the table or a column is gone, and as run() does.
   */
  profile(table: CatalogTable, exposed: Catalog, bounds: ProfileBounds, signal: AbortSignal): Promise<TableProfile>
  /** EXPLAIN or a dry run of a confined query; what `check` shows. Throws as run() does. */
  estimate(query: Confined, limits: Limits, signal: AbortSignal): Promise<Estimate>
  /**
   * Runs one confined query, read-only, cost first. Throws AppError QUERY_DENIED (cost, with estimate and limit),
   * QUERY_FAILED, QUERY_TIMEOUT, SCHEMA_STALE, DATASOURCE_UNAVAILABLE; on abort the work in the database is ended.
   */
  run(query: Confined, limits: Limits, signal: AbortSignal): Promise<Rows>
}

/** What an operator allows every connection. */
export interface ConnectOptions {
  /** Loopback and private addresses may be connected to; cloud metadata addresses never. */
  readonly allowPrivateHosts: boolean
}

export interface Driver extends AsyncDisposable {
  readonly type: DatasourceType
  readonly vocabulary: Vocabulary
  /**
   * Reads the connection part of a datasource: allow-list of fields per mode, what is shown of a URI taken from it.
   * `secrets` holds what came along or was kept. Throws AppError INVALID_REQUEST with details.
   */
  settings(input: SettingsInput): ConnectionSettings
  /** The body's shape for this kind; throws AppError INVALID_REQUEST. */
  read(body: unknown): QueryBody
  /** A dotted path of names as a query must write it: in quotes only where a name needs them. */
  typed(names: readonly string[]): string
  /** The text of a query that asks this, as reread() takes it; null where this kind has no way to. */
  phrase(question: Question): string | null
  /** The body whose `text` and `params` an audit kept. Throws AppError INVALID_REQUEST where it cannot be told. */
  reread(text: string, params?: unknown): QueryBody
  /** No database, no clock: same body, same exposure, same verdict. The parser may sit in a worker that can be ended. */
  confine(body: QueryBody, exposed: Catalog, limits: Limits, signal: AbortSignal): Promise<Verdict>
  /**
   * True where confine() leaves names of columns to the database, which is told of the exposed ones alone: that it lets a
   * query pass says nothing of them.
   */
  readonly leavesColumns?: true
  /** The text the database would be sent, for the audit and `check`. */
  printed(query: Confined): string
  /** The tables that a confined query reads, each once, for the audit. Queries of one shape may share the array. */
  reads(query: Confined): readonly TableRead[]
  /**
   * A text of a query, as asked or as printed, without its literals, for an audit that may not keep them. Asked only of
   * texts that confine() could read. Null where it cannot be told safely; absent: no text is kept.
   */
  redacted?(text: string): string | null
  /**
   * What the answer is made of, as a text to be compared: it differs where one exposed column more would be answered too.
   * Absent where the printed text does that.
   */
  outline?(query: Confined): string
  /** Throws AppError DATASOURCE_UNAVAILABLE with a sentence of ours; the raw error is its cause. */
  connect(settings: ConnectionSettings, options: ConnectOptions, signal: AbortSignal): Promise<Connection>
}

/** The connection part of a create or change, as it came; every field unread. */
export interface SettingsInput {
  readonly connectionMode?: unknown
  readonly host?: unknown
  readonly port?: unknown
  readonly database?: unknown
  readonly username?: unknown
  readonly sslMode?: unknown
  readonly config?: unknown
  readonly secrets: Readonly<Record<string, string>>
}
