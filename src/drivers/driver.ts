// Defines the interface that each kind of database implements. A Driver confines queries, and a Connection runs them. A
// query that no driver confined cannot reach a database. This file does not depend on accounts, teams or HTTP.
import type { DatasourceType } from './datasource-type.ts'
import type { Confined } from './confined.ts'
import type { Question } from './example-question.ts'
import type { Stop } from './stop.ts'

/** The terms that the database itself uses for these concepts. */
interface Vocabulary {
  readonly schema: string
  readonly table: string
  readonly queryLanguage: string
}

/** The result of introspection, or its exposed part. Tables and columns keep the database's order. */
export interface Catalog {
  /** The time of the introspection, in ISO 8601 and UTC. */
  readonly capturedAt: string
  readonly tables: readonly CatalogTable[]
  /**
   * The data that the driver needs to confine a query (types, extensions, server version …). Other code does not read
   * it.
   */
  readonly capture: unknown
}

export interface CatalogTable {
  readonly schema: string
  readonly table: string
  /**
   * The database's word for the kind: table, view, materialized view, partitioned table, foreign table, collection …
   */
  readonly kind: string
  readonly description: string | null
  /** An estimate of the number of rows. Null if it is unknown, for example for a table that was never analysed. */
  readonly estimatedRows: number | null
  readonly columns: readonly CatalogColumn[]
  /** Warnings for the person who exposes this table, as whole sentences: for example, a view that calls functions. */
  readonly warnings: readonly string[]
  /** True if the exposure hides some of the columns. Absent in a full catalog. */
  readonly columnsRestricted?: boolean
  /** MongoDB only. An exposure shows the indexes whose keys are all exposed. */
  readonly indexes?: readonly CatalogIndex[]
  /**
   * The sample of rows in which introspection found the columns: its number of rows, and whether it contained all rows.
   * Absent if the database itself lists the columns.
   */
  readonly looked?: { readonly rows: number; readonly all: boolean }
  /** The data that the driver needs about the table (pages, tuples, keys …). Other code does not read it. */
  readonly detail: unknown
}

export interface CatalogIndex {
  readonly keys: readonly { readonly path: string; readonly direction: number | string }[]
  readonly unique: boolean
}

export interface CatalogColumn {
  readonly name: string
  /** The database's own name for the type, as a caller sees it. */
  readonly type: string
  readonly nullable: boolean
  readonly primaryKey: boolean
  readonly references: { readonly schema: string; readonly table: string; readonly column: string } | null
  readonly description: string | null
  /** A sentence that says why this column may not be exposed. Null if it may be exposed. */
  readonly unexposable: string | null
  /**
   * The column that contains this column (a path of a document). Exposing the containing column also exposes this
   * column.
   */
  readonly partOf?: string
  /** Facts that introspection found about the column, in words. A caller sees the signals of exposed columns only. */
  readonly signals?: readonly string[]
  /**
   * The values that the type, a CHECK or a validator allows, in the order of the definition. At most LABELS_MAX
   * values. A caller sees the labels of exposed columns only.
   */
  readonly labels?: readonly Scalar[]
  /** Only for a column that was found in sampled rows. Columns that the sample did not contain may exist too. */
  readonly seen?: Seen
  /** The data that the driver needs about the column (type oid …). Other code does not read it. */
  readonly detail: unknown
}

/** The maximum number of allowed values that are listed for a column, and their maximum length in characters. */
export const LABELS_MAX = 100
export const LABEL_CHARS_MAX = 64

/** How often the column occurred in sampled rows. */
export interface Seen {
  /** The number of rows that had the column, among `of` rows of the latest sample that contained it. */
  readonly rows: number
  readonly of: number
  /** The number of rows in later samples, all without the column. */
  readonly missed: number
  /** The types of the column's values. */
  readonly types: readonly string[]
}

/** The limits of one query. The team's settings override the defaults. */
export interface Limits {
  readonly rowCap: number
  readonly maxResponseBytes: number
  readonly timeoutMs: number
  /** The maximum cost: planner cost units for PostgreSQL, documents for MongoDB, bytes for BigQuery. */
  readonly maxCost: number
  /** The team. If confine() needs a thread, owners take turns. Limits without an owner share their turns. */
  readonly owner?: string
}

export type BlockedKind =
  'table' | 'column' | 'function' | 'type' | 'operator' | 'statement' | 'stage' | 'cost' | 'limit'

export interface Blocked {
  readonly kind: BlockedKind
  readonly name: string
}

/**
 * A refusal. It is returned as data so that it can be tested, audited and shown. `why` says what was blocked and why.
 * `hint` says what to write instead.
 */
export interface Denied {
  readonly kind: 'denied'
  readonly blocked: Blocked
  readonly why: string
  readonly hint: string
  /** The offset of the blocked name in the caller's text, from 0, in UTF-16 units. */
  readonly position?: number
  /** If the body is a document, the keys that lead to the position. For repairs. */
  readonly path?: readonly (string | number)[]
  /** The allowed names that the caller may mean, the nearest first, if the guard knows them. For repairs. */
  readonly near?: readonly string[]
}

export interface Malformed {
  readonly kind: 'malformed'
  readonly why: string
  /** What to write instead. */
  readonly hint?: string
  readonly position?: number
}

export type Verdict = { readonly kind: 'confined'; readonly query: Confined } | Denied | Malformed

/** The value of one parameter, in JSON. Whole numbers beyond 2^53 are strings. */
type ParamScalar = null | boolean | number | string

/** A parameter as the caller sent it: a value, or a value with a type name. */
export type Param = ParamScalar | { readonly type: string; readonly value: ParamScalar }

/** The validated parameters of a query. */
export interface Params {
  /** The values by position (`$1`, `?`), or by name (`@name`). */
  readonly values: readonly Param[] | ReadonlyMap<string, Param>
  /** The parameters as the caller sent them. The audit records this string. */
  readonly json: string
}

/** A validated query body, which confine() takes. Code outside the driver reads only these fields. */
export interface QueryBody {
  /** The caller's query, as the audit records it. */
  readonly text: string
  readonly limit: number | null
  /** The driver binds the parameters, and never prints them into the query text. Absent if the body has none. */
  readonly params?: Params
}

/** A table that a confined query reads, as the exposure names it. */
interface TableRead {
  readonly schema: string
  readonly table: string
}

/** The address and the login of one database, validated by the driver's settings(). `secrets` is never logged. */
export interface ConnectionSettings {
  readonly connectionMode: string
  readonly host: string | null
  readonly port: number | null
  readonly database: string
  readonly username: string | null
  readonly sslMode: string | null
  /** The settings that only this kind of database has. They are not secret and may be shown. */
  readonly config: Readonly<Record<string, unknown>>
  readonly secrets: Readonly<Record<string, string>>
}

export interface TestStep {
  readonly name: string
  readonly status: 'PASS' | 'WARN' | 'FAIL'
  readonly message: string
  readonly remedy: string | null
  /** The connection field to look at. If absent, the name of the step determines the field. */
  readonly field?: TestField | null
}

/** The fields of a connection that a test step may be about. */
export type TestField =
  | 'host'
  | 'port'
  | 'database'
  | 'username'
  | 'password'
  | 'sslMode'
  | 'tlsCa'
  | 'connectionMode'
  | 'serviceAccountKey'
  | 'config.ssh.host'
  | 'config.ssh.hostKey'
  | 'sshPrivateKey'

export interface TestReport {
  readonly ok: boolean
  readonly latencyMs: number
  readonly serverVersion: string | null
  readonly steps: readonly TestStep[]
  readonly grade: 'PASS' | 'WARN' | 'FAIL'
  /** A sentence that the service wrote. Present only if `ok` is false. */
  readonly error?: string
}

export interface ResultColumn {
  readonly name: string
  readonly dataType: string
}

/**
 * A query result as JSON. `rows` is an array of arrays, written from the database's own bytes. A large result stays
 * UTF-8 bytes, because a JavaScript string would need three times the memory until it is sent.
 */
export interface Rows {
  readonly columns: readonly ResultColumn[]
  readonly rows: string | Buffer
  /** If present, call this after `rows` was used: its memory is then reused, and `rows` must not be read again. */
  readonly release?: () => void
  readonly rowCount: number
  readonly truncated: boolean
}

/** The estimated cost, from EXPLAIN or a dry run, in the units of Limits.maxCost. */
export interface Estimate {
  readonly cost: number
}

/** How much a profile may read of one table, and for how long. */
export interface ProfileBounds {
  /** The maximum number of rows to sample. */
  readonly rows: number
  /** The timeout of one statement. */
  readonly timeoutMs: number
  /**
   * The maximum number of bytes to read, for kinds of database that bill by bytes. Null means that only metadata may be
   * read.
   */
  readonly bytes: number | null
}

export type Scalar = string | number | boolean

/**
 * The kind of values in a column. `label` means an enumerated type. `other` means mixed values, or none of these kinds.
 */
export type ValueKind = 'boolean' | 'number' | 'time' | 'text' | 'label' | 'other'

/** Facts about a column's sampled values. They contain no value. */
interface SampleFacts {
  /** The number of sampled values that are not null. */
  readonly count: number
  readonly distinct: number
  /** The length of the longest text, in characters. */
  readonly longest: number | null
  readonly meanLength: number | null
  /**
   * For each kind of text, such as an e-mail address: the share of the texts, from 0 to 1, that look like this kind.
   */
  readonly looks: Readonly<Record<string, number>>
}

/** A top-level key of JSON objects. */
export interface SeenKey {
  readonly key: string
  /** The number of sampled objects that have the key. */
  readonly rows: number
  /** The share of sampled objects that have the key, from 0 to 1. */
  readonly share: number
  /** The JSON types of the key's values: array, boolean, null, number, object, string. */
  readonly types: readonly string[]
}

/**
 * The profile of one column, from the database's own statistics, a bounded sample, or both. The driver filters nothing:
 * its caller decides what may be stored.
 */
export interface ColumnProfile {
  readonly name: string
  readonly kind: ValueKind
  /** The share of nulls, from 0 to 1. */
  readonly nullFrac: number | null
  /** An estimate of the number of distinct values in the whole table. */
  readonly distinctCount: number | null
  /**
   * The most common values first. `rows` is the number of sampled rows with the value. It may be too low, but never too
   * high.
   */
  readonly values: readonly { readonly value: Scalar; readonly share: number; readonly rows: number }[] | null
  /** The smallest and the largest date or number, in the JSON form of query results. */
  readonly range: { readonly min: Scalar; readonly max: Scalar } | null
  readonly sample: SampleFacts | null
  /** For JSON columns, the top-level keys of the sampled objects. */
  readonly keys?: readonly SeenKey[] | null
  /** Other facts about the column, as whole sentences or short phrases. */
  readonly signals: readonly string[]
}

export interface TableProfile {
  /** The number of rows that were read. */
  readonly rowsSampled: number
  /** True if the sample contains every row. */
  readonly complete: boolean
  readonly estimatedRows: number | null
  readonly columns: readonly ColumnProfile[]
}

export interface Connection extends AsyncDisposable {
  /**
   * False once the session is unusable (the socket closed, or a cancel is in progress). The owner must then dispose the
   * connection.
   */
  readonly usable: boolean
  /**
   * Returns null if the database runs nothing for this session. If work was given up and may still run in the database,
   * returns a promise that resolves when the database has been seen to end the work, or when `signal` aborts. The
   * promise never rejects. The owner calls ended() before it disposes the connection, and counts the session as open
   * until the promise resolves.
   */
  ended(signal: AbortSignal): Promise<void> | null
  /**
   * Grades the login, after connect() has signed in. Commands in the report that create a better login are made for
   * `exposed`, which is null if there is no exposure yet.
   */
  test(exposed: Catalog | null, signal: AbortSignal): Promise<TestReport>
  /** Introspects the database. Calls `progress` with the number of finished parts and the number of all parts. */
  introspect(signal: AbortSignal, progress?: (done: number, total: number) => void): Promise<Catalog>
  /**
   * Profiles the values of a table's columns. `table` is from an exposed catalog, so the profile has exposed columns
   * only. The driver only reads, and stays within the bounds. Throws SCHEMA_STALE if the table or a column no longer
   * exists, and the errors of run().
   */
  profile(table: CatalogTable, exposed: Catalog, bounds: ProfileBounds, signal: AbortSignal): Promise<TableProfile>
  /** Estimates the cost of a confined query by EXPLAIN or a dry run, for `check`. Throws the errors of run(). */
  estimate(query: Confined, limits: Limits, stop: Stop): Promise<Estimate>
  /**
   * Runs one confined query, read-only, after checking its cost. Throws AppError: for example QUERY_DENIED (cost, with
   * estimate and limit), QUERY_FAILED, QUERY_TIMEOUT, SCHEMA_STALE or DATASOURCE_UNAVAILABLE. An abort ends the work in
   * the database.
   */
  run(query: Confined, limits: Limits, stop: Stop): Promise<Rows>
}

/** The operator's settings that apply to every connection. */
export interface ConnectOptions {
  /** Allows loopback and private addresses. Cloud metadata addresses are never allowed. */
  readonly allowPrivateHosts: boolean
  /** The team. If connect() needs a thread, owners take turns. Options without an owner share their turns. */
  readonly owner?: string
}

export interface Driver extends AsyncDisposable {
  readonly type: DatasourceType
  readonly vocabulary: Vocabulary
  /**
   * Validates the connection part of a datasource by an allow-list of fields for each mode. If there is a URI,
   * fields such as `host` and `database` are parsed from it. `secrets` contains the secrets that were sent or stored.
   * Throws AppError INVALID_REQUEST with details.
   */
  settings(input: SettingsInput): ConnectionSettings
  /** Validates the body of a query of this kind. Throws AppError INVALID_REQUEST. */
  read(body: unknown): QueryBody
  /**
   * Compiles code in advance, so that the first queries need not wait for it. Called after the service has begun to
   * listen. Requests are answered in between.
   */
  readonly warm?: (signal: AbortSignal) => Promise<void>
  /** Returns a dotted path of names as a query must write it, with quotes only around names that need them. */
  typed(names: readonly string[]): string
  /**
   * Returns commands that make the database itself refuse what an exposure hides. Vitrine never runs these commands.
   */
  agreement(of: AgreementInput): Agreement
  /**
   * Returns the text of a query that answers the question, in a form that reread() accepts. Returns null if this kind
   * of database cannot express the question.
   */
  phrase(question: Question): string | null
  /**
   * Rebuilds the body from the `text` and `params` that the audit recorded. Throws AppError INVALID_REQUEST if they are
   * not valid.
   */
  reread(text: string, params?: unknown): QueryBody
  /**
   * Returns changed bodies that may be allowed, the likeliest first. Each has one small change, whose new names are
   * exposed or allowed. Nothing is checked here: confine() must check each body.
   */
  repairs(body: object, denied: Denied, exposed: Catalog): readonly object[]
  /**
   * Confines a query. Uses no database and no clock, so the verdict depends on the arguments only. Returns a promise if
   * the parser may run in a worker thread. Throws OVERLOADED if too many queries of the owner wait for a thread.
   */
  confine(body: QueryBody, exposed: Catalog, limits: Limits, stop: Stop): Verdict | Promise<Verdict>
  /**
   * True if confine() does not check column names, so a confined query may still name a column that is not exposed. The
   * database then refuses the name, because a printed query contains only the exposed columns of each table.
   */
  readonly leavesColumns?: true
  /** Returns the text that the database would receive, for the audit and `check`. */
  printed(query: Confined): string
  /**
   * Returns the tables that a confined query reads, each once, for the audit. Queries of the same shape may share the
   * array.
   */
  reads(query: Confined): readonly TableRead[]
  /**
   * Removes literals from the text of a query, as sent or as printed, for an audit that may not store literals. Called
   * only for texts that confine() could parse. Returns null if complete removal is not certain. Without this method,
   * the audit stores no text.
   */
  redacted?(text: string): string | null
  /**
   * Describes the contents of the result as a string. The what-if compares the strings of two exposures: the string
   * changes if the result would contain one more exposed column. Absent if the printed text already changes then.
   */
  outline?(query: Confined): string
  /**
   * Connects. Throws AppError DATASOURCE_UNAVAILABLE with a sentence that the service wrote, and with the original
   * error as the cause.
   */
  connect(settings: ConnectionSettings, options: ConnectOptions, signal: AbortSignal): Promise<Connection>
}

/** The input of an agreement. */
export interface AgreementInput {
  readonly full: Catalog
  readonly exposed: Catalog
  readonly database: string
  readonly username: string | null
  readonly config: Readonly<Record<string, unknown>>
}

/** Commands for a person who administers the database, and whole sentences about what the commands cannot do. */
export interface Agreement {
  readonly kind: 'SQL' | 'MONGO' | 'GCLOUD'
  readonly text: string
  readonly notes: readonly string[]
}

/** The connection part of a create or update request, not yet validated. */
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
