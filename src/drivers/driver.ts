// The interface that each kind of database implements. A Driver confines queries, and a Connection runs them. Only a
// confined query can reach a database. This file does not depend on accounts, teams or HTTP.
import type { DatasourceType } from './datasource-type.ts'
import type { Confined } from './confined.ts'
import type { Question } from './example-question.ts'
import type { Stop } from './stop.ts'

/** The words that the database itself uses. */
interface Vocabulary {
  readonly schema: string
  readonly table: string
  readonly queryLanguage: string
}

/** What introspection has found, or the exposed part of it. Tables and columns have the order of the database. */
export interface Catalog {
  /** The time of the introspection, in ISO 8601 and UTC. */
  readonly capturedAt: string
  readonly tables: readonly CatalogTable[]
  /** Types, extensions, the server version and the like. Only the driver reads this field, to confine queries. */
  readonly capture: unknown
}

export interface CatalogTable {
  readonly schema: string
  readonly table: string
  /**
   * What the database calls the table: table, view, materialized view, partitioned table, foreign table, collection …
   */
  readonly kind: string
  readonly description: string | null
  /** An estimate. Null if the number is unknown, for example if the table was never analysed. */
  readonly estimatedRows: number | null
  readonly columns: readonly CatalogColumn[]
  /** Sentences for the person who exposes the table, for example about functions that a view calls. */
  readonly warnings: readonly string[]
  /** True if some of the columns are not exposed. Absent in a full catalog. */
  readonly columnsRestricted?: boolean
  /** MongoDB only. An exposed catalog has only indexes whose keys are all exposed. */
  readonly indexes?: readonly CatalogIndex[]
  /**
   * Present if introspection found the columns in a sample of rows: the number of rows, and whether these were all
   * rows. Absent if the database itself lists the columns.
   */
  readonly looked?: { readonly rows: number; readonly all: boolean }
  /** Pages, tuples, keys and the like. Only the driver reads this field. */
  readonly detail: unknown
}

export interface CatalogIndex {
  readonly keys: readonly { readonly path: string; readonly direction: number | string }[]
  readonly unique: boolean
}

export interface CatalogColumn {
  readonly name: string
  /** What the database calls the type. */
  readonly type: string
  readonly nullable: boolean
  readonly primaryKey: boolean
  readonly references: { readonly schema: string; readonly table: string; readonly column: string } | null
  readonly description: string | null
  /** If the column may not be exposed, a sentence with the reason. Otherwise null. */
  readonly unexposable: string | null
  /**
   * For a path of a document: the column that contains this one. If the containing column is exposed, this one is too.
   */
  readonly partOf?: string
  /** Phrases about what introspection found. A caller sees those of exposed columns. */
  readonly signals?: readonly string[]
  /**
   * The values that the type, a CHECK or a validator allows, in the order of its definition, at most LABELS_MAX. A
   * caller sees those of exposed columns.
   */
  readonly labels?: readonly Scalar[]
  /** Present if the column was found in a sample of rows. The table may have other columns that no sampled row has. */
  readonly seen?: Seen
  /** The oid of the type and the like. Only the driver reads this field. */
  readonly detail: unknown
}

/** How many allowed values are listed for a column, and how many characters a value may have. */
export const LABELS_MAX = 100
export const LABEL_CHARS_MAX = 64

/** How often sampled rows have the column. */
export interface Seen {
  /** The last sample that had the column read `of` rows. `rows` of them had it. */
  readonly rows: number
  readonly of: number
  /** The number of rows in the samples after that one. */
  readonly missed: number
  /** The types of the column's values. */
  readonly types: readonly string[]
}

/** The limits of one query. A team can change them in its settings. */
export interface Limits {
  readonly rowCap: number
  readonly maxResponseBytes: number
  readonly timeoutMs: number
  /** In planner units for PostgreSQL, in documents for MongoDB, and in bytes for BigQuery. */
  readonly maxCost: number
  /** The team. Teams take turns if confine() needs a thread. Queries without an owner share one turn. */
  readonly owner?: string
}

export type BlockedKind =
  'table' | 'column' | 'function' | 'type' | 'operator' | 'statement' | 'stage' | 'cost' | 'limit'

export interface Blocked {
  readonly kind: BlockedKind
  readonly name: string
}

/**
 * A refusal. It is returned and not thrown, so that callers of confine() can test, audit and show it. `why` says what
 * was blocked and why, and `hint` what to write instead.
 */
export interface Denied {
  readonly kind: 'denied'
  readonly blocked: Blocked
  readonly why: string
  readonly hint: string
  /** Where the blocked name begins in the caller's text, in UTF-16 units from 0. */
  readonly position?: number
  /** For a body that is a document: the keys that lead to the blocked part. Repairs use it. */
  readonly path?: readonly (string | number)[]
  /** Allowed names that the caller may have meant, the nearest first. Repairs use them. */
  readonly near?: readonly string[]
}

export interface Malformed {
  readonly kind: 'malformed'
  readonly why: string
  readonly hint?: string
  readonly position?: number
}

export type Verdict = { readonly kind: 'confined'; readonly query: Confined } | Denied | Malformed

/** The value of a parameter. A whole number beyond 2^53 is a string. */
type ParamScalar = null | boolean | number | string

/** A parameter as the caller sent it. It may name its type. */
export type Param = ParamScalar | { readonly type: string; readonly value: ParamScalar }

export interface Params {
  /** By position (`$1`, `?`), or by name (`@name`). */
  readonly values: readonly Param[] | ReadonlyMap<string, Param>
  /** As the caller sent them. The audit stores this text. */
  readonly json: string
}

/** The checked body of a query. Code outside the driver reads only these fields. */
export interface QueryBody {
  /** As the audit stores it. */
  readonly text: string
  readonly limit: number | null
  /** The driver sends the parameters beside the text of the query, and never prints them into it. */
  readonly params?: Params
}

/** A table that a query reads. The names are those of the exposure. */
interface TableRead {
  readonly schema: string
  readonly table: string
}

/** The address and the login of a database, checked by settings() of the driver. `secrets` is never logged. */
export interface ConnectionSettings {
  readonly connectionMode: string
  readonly host: string | null
  readonly port: number | null
  readonly database: string
  readonly username: string | null
  readonly sslMode: string | null
  /** Settings that only this kind of database has. They are not secret. */
  readonly config: Readonly<Record<string, unknown>>
  readonly secrets: Readonly<Record<string, string>>
}

export interface TestStep {
  readonly name: string
  readonly status: 'PASS' | 'WARN' | 'FAIL'
  readonly message: string
  readonly remedy: string | null
  /** The field of the datasource that may be wrong. If absent, it follows from the name of the step. */
  readonly field?: TestField | null
}

/** The fields of a datasource that a step of the connection test may name. */
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
  /** A sentence of the service. Present only if `ok` is false. */
  readonly error?: string
}

export interface ResultColumn {
  readonly name: string
  readonly dataType: string
}

/**
 * The result of a query. `rows` is JSON, a list of lists, written from the bytes of the database. A large result stays
 * bytes: a JavaScript string would take three times the memory until it is sent.
 */
export interface Rows {
  readonly columns: readonly ResultColumn[]
  readonly rows: string | Buffer
  /**
   * Call it when `rows` was sent, if it is present. The memory of `rows` is then reused, so nobody may read `rows`
   * after that.
   */
  readonly release?: () => void
  readonly rowCount: number
  readonly truncated: boolean
}

/** The cost by EXPLAIN or a dry run, in the unit of Limits.maxCost. */
export interface Estimate {
  readonly cost: number
}

/** How much of a table a profile may read, and for how long. */
export interface ProfileBounds {
  readonly rows: number
  /** For each statement. */
  readonly timeoutMs: number
  /** For databases that bill by bytes: how many bytes may be read. With null, only metadata may be read. */
  readonly bytes: number | null
}

export type Scalar = string | number | boolean

/**
 * The kind of values that a column has. `label` means an enum. `other` means mixed values, or values of no listed kind.
 */
export type ValueKind = 'boolean' | 'number' | 'time' | 'text' | 'label' | 'other'

/** What is known about the sampled values. No value is in it. */
interface SampleFacts {
  /** Without nulls. */
  readonly count: number
  readonly distinct: number
  /** In characters. */
  readonly longest: number | null
  readonly meanLength: number | null
  /** For each kind of text, such as an e-mail address, the share of texts that look like it (0 to 1). */
  readonly looks: Readonly<Record<string, number>>
}

export interface SeenKey {
  readonly key: string
  /** How many sampled objects have the key. */
  readonly rows: number
  /** The same as a share, from 0 to 1. */
  readonly share: number
  /** The JSON types of its values: array, boolean, null, number, object, string. */
  readonly types: readonly string[]
}

/**
 * The profile of one column, from the statistics of the database, a sample of rows, or both. The driver leaves out
 * nothing: the caller of profile() decides what may be stored.
 */
export interface ColumnProfile {
  readonly name: string
  readonly kind: ValueKind
  /** From 0 to 1. */
  readonly nullFrac: number | null
  /** An estimate for the whole table. */
  readonly distinctCount: number | null
  /**
   * The most common values come first. `rows` is how many sampled rows have the value. It may be too low, but not too
   * high.
   */
  readonly values: readonly { readonly value: Scalar; readonly share: number; readonly rows: number }[] | null
  /** Dates or numbers, in the form of a query result. */
  readonly range: { readonly min: Scalar; readonly max: Scalar } | null
  readonly sample: SampleFacts | null
  /** For a JSON column: the top-level keys of the sampled objects. */
  readonly keys?: readonly SeenKey[] | null
  /** Other observations, each a sentence or a short phrase. */
  readonly signals: readonly string[]
}

export interface TableProfile {
  readonly rowsSampled: number
  /** True if all rows were read. */
  readonly complete: boolean
  readonly estimatedRows: number | null
  readonly columns: readonly ColumnProfile[]
}

export interface Connection extends AsyncDisposable {
  /**
   * False if the session cannot be used any more: its socket has closed, or a cancel is under way. Dispose the
   * connection then.
   */
  readonly usable: boolean
  /**
   * Work that was given up may still run in the database. If so, returns a promise that resolves when the database was
   * seen to end it, or when `signal` aborts. It never rejects. Returns null if the database runs nothing. The owner of
   * the connection calls this before it disposes it, and counts the session as open until the promise resolves.
   */
  ended(signal: AbortSignal): Promise<void> | null
  /**
   * Checks the login, after connect() has signed in. If the report has commands for a better login, they are made for
   * `exposed`, which is null if there is no exposure yet.
   */
  test(exposed: Catalog | null, signal: AbortSignal): Promise<TestReport>
  /** Calls `progress` with the number of parts that are finished, and of all parts. */
  introspect(signal: AbortSignal, progress?: (done: number, total: number) => void): Promise<Catalog>
  /**
   * Profiles the values of a table. `table` comes from an exposed catalog, so only exposed columns are profiled. The
   * driver only reads, and stays within the bounds. Throws SCHEMA_STALE if the table or a column no longer exists, and
   * the errors of run().
   */
  profile(table: CatalogTable, exposed: Catalog, bounds: ProfileBounds, signal: AbortSignal): Promise<TableProfile>
  /** Estimates the cost of a query for `check`, by EXPLAIN or a dry run. Throws the errors of run(). */
  estimate(query: Confined, limits: Limits, stop: Stop): Promise<Estimate>
  /**
   * Runs one confined query read-only, after a check of its cost. Throws AppError, for example QUERY_DENIED (cost, with
   * estimate and limit), QUERY_FAILED, QUERY_TIMEOUT, SCHEMA_STALE or DATASOURCE_UNAVAILABLE. If `stop` aborts, the
   * database ends the work.
   */
  run(query: Confined, limits: Limits, stop: Stop): Promise<Rows>
}

/** What the operator has set for all connections. */
export interface ConnectOptions {
  /** Also allows loopback addresses. Metadata addresses of clouds are never allowed. */
  readonly allowPrivateHosts: boolean
  /** The team. Teams take turns if connect() needs a thread. Connections without an owner share one turn. */
  readonly owner?: string
}

export interface Driver extends AsyncDisposable {
  readonly type: DatasourceType
  readonly vocabulary: Vocabulary
  /**
   * Checks the settings of a datasource. Each connection mode has a list of allowed fields. With a URI, `host`,
   * `database` and so on come from the URI. `input.secrets` has the secrets that were sent or are stored. Throws
   * AppError INVALID_REQUEST with details.
   */
  settings(input: SettingsInput): ConnectionSettings
  /** Checks the body of a query. Throws AppError INVALID_REQUEST. */
  read(body: unknown): QueryBody
  /**
   * Runs some code in advance, because its first run is slow. Called when the service has begun to listen; requests are
   * answered in between.
   */
  readonly warm?: (signal: AbortSignal) => Promise<void>
  /** Returns a dotted name as a caller must type it. Names that need quotes get them. */
  typed(names: readonly string[]): string
  /**
   * Returns commands for an administrator. After them, the database itself refuses what the exposure hides. Vitrine
   * never runs them.
   */
  agreement(of: AgreementInput): Agreement
  /**
   * Returns a query that answers the question, as a text for reread(). Returns null if this kind of database cannot
   * answer it.
   */
  phrase(question: Question): string | null
  /** Makes a body from the `text` and `params` in an audit row. Throws AppError INVALID_REQUEST if they are wrong. */
  reread(text: string, params?: unknown): QueryBody
  /**
   * Returns bodies that differ from a refused one by one small change, the likeliest first. They use only names that
   * are exposed or allowed. They may be refused too: the caller must pass each to confine().
   */
  repairs(body: object, denied: Denied, exposed: Catalog): readonly object[]
  /**
   * Confines a query. The verdict depends on the arguments only: no database and no clock is used. Returns a promise if
   * a worker thread may judge the query. Throws OVERLOADED if too many queries of the owner wait for a thread.
   */
  confine(body: QueryBody, exposed: Catalog, limits: Limits, stop: Stop): Verdict | Promise<Verdict>
  /**
   * True if confine() does not check the names of columns. A confined query may then name a hidden column, but the
   * database does not know that name, because each table in the printed query has its exposed columns only.
   */
  readonly leavesColumns?: true
  /** Returns the text that the database gets, for the audit and `check`. */
  printed(query: Confined): string
  /** Returns the tables that a query reads, each once, for the audit. Queries of one shape may share the array. */
  reads(query: Confined): readonly TableRead[]
  /**
   * Removes the literals from the text of a query, as the caller sent it or as it was printed. For teams whose audit
   * must not store literals. Only called for texts that confine() could parse. Returns null if a literal may remain. If
   * a driver does not have this function, the audit of such teams stores no text.
   */
  redacted?(text: string): string | null
  /**
   * Describes the result of a query in a text. The what-if compares these texts for two exposures: if the result has
   * one more column under the second, the texts differ. A driver needs this function only if the printed text does not
   * differ then.
   */
  outline?(query: Confined): string
  /** Throws AppError DATASOURCE_UNAVAILABLE with a sentence of the service. The original error is the cause. */
  connect(settings: ConnectionSettings, options: ConnectOptions, signal: AbortSignal): Promise<Connection>
}

export interface AgreementInput {
  readonly full: Catalog
  readonly exposed: Catalog
  readonly database: string
  readonly username: string | null
  readonly config: Readonly<Record<string, unknown>>
}

/** Commands for an administrator of the database, and sentences about what they cannot do. */
export interface Agreement {
  readonly kind: 'SQL' | 'MONGO' | 'GCLOUD'
  readonly text: string
  readonly notes: readonly string[]
}

/** The settings in a request that creates or changes a datasource. They were not checked yet. */
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
