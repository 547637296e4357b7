// The interface that each kind of database implements. A Driver confines queries, and a Connection runs them. Only a
// confined query can reach a database. This file does not depend on accounts, teams or HTTP.
import type { DatasourceType } from './datasource-type.ts'
import type { Confined } from './confined.ts'
import type { Question } from './example-question.ts'
import type { Stop } from './stop.ts'

/** The database's own words. */
interface Vocabulary {
  readonly schema: string
  readonly table: string
  readonly queryLanguage: string
}

/**
 * The tables and columns that introspection has found, or only the exposed ones. They have the order of the database.
 */
export interface Catalog {
  /** The time of the introspection, in ISO 8601 and UTC. */
  readonly capturedAt: string
  readonly tables: readonly CatalogTable[]
  /** Facts that only the driver reads to confine queries, for example types, extensions and the server version. */
  readonly capture: unknown
}

export interface CatalogTable {
  readonly schema: string
  readonly table: string
  /**
   * The database's word for the table: table, view, materialized view, partitioned table, foreign table, collection …
   */
  readonly kind: string
  readonly description: string | null
  /** An estimate. Null if the number is unknown, for example if the table was never analysed. */
  readonly estimatedRows: number | null
  readonly columns: readonly CatalogColumn[]
  /** Sentences for the person who exposes the table, for example about functions that a view calls. */
  readonly warnings: readonly string[]
  /** True if some of the columns are hidden. Absent in a full catalog. */
  readonly columnsRestricted?: boolean
  /** MongoDB only. An exposed catalog has only indexes whose keys are all exposed. */
  readonly indexes?: readonly CatalogIndex[]
  /**
   * Present if introspection found the columns in a sample of rows: the number of rows, and whether these were all
   * rows. Absent if the database itself lists the columns.
   */
  readonly looked?: { readonly rows: number; readonly all: boolean }
  /** Facts that only the driver reads, for example pages, tuples and keys. */
  readonly detail: unknown
}

export interface CatalogIndex {
  readonly keys: readonly { readonly path: string; readonly direction: number | string }[]
  readonly unique: boolean
}

export interface CatalogColumn {
  readonly name: string
  /** The database's name for the type. */
  readonly type: string
  readonly nullable: boolean
  readonly primaryKey: boolean
  readonly references: { readonly schema: string; readonly table: string; readonly column: string } | null
  readonly description: string | null
  /** Why the column cannot be exposed, as a sentence. Null if it can. */
  readonly unexposable: string | null
  /**
   * For a path of a document, such as `address.city`: the column that contains it (`address`). Exposing the containing
   * column exposes the path too.
   */
  readonly partOf?: string
  /** Phrases about what introspection found. A caller sees them only if the column is exposed. */
  readonly signals?: readonly string[]
  /**
   * The values that the type, a CHECK or a validator allows, in the order of its definition, at most LABELS_MAX. A
   * caller sees them only if the column is exposed.
   */
  readonly labels?: readonly Scalar[]
  /** Present if the column was found in a sample of rows. The table may have more columns that no sampled row has. */
  readonly seen?: Seen
  /** Facts that only the driver reads, for example the oid of the type. */
  readonly detail: unknown
}

/** How many allowed values are listed for a column, and how many characters a value may have. */
export const LABELS_MAX = 100
export const LABEL_CHARS_MAX = 64

export interface Seen {
  /** The last sample that had the column read `of` rows, and `rows` of them had the column. */
  readonly rows: number
  readonly of: number
  /** The number of rows in the later samples, none of which had the column. */
  readonly missed: number
  readonly types: readonly string[]
}

/** Whose turn slow work takes. Accounts take turns, and so do the teams that an account owns. */
export interface Owner {
  readonly account: string
  readonly team: string
}

/** Work without an owner shares one turn. */
export const NOBODY: Owner = { account: '', team: '' }

/** The limits of one query. A team can change them in its settings. */
export interface Limits {
  readonly rowCap: number
  readonly maxResponseBytes: number
  readonly timeoutMs: number
  /** In planner units for PostgreSQL, in documents for MongoDB, and in bytes for BigQuery. */
  readonly maxCost: number
  /** If confine() needs a thread, owners take turns. */
  readonly owner?: Owner
}

export type BlockedKind =
  'table' | 'column' | 'function' | 'type' | 'operator' | 'statement' | 'stage' | 'cost' | 'limit'

export interface Blocked {
  readonly kind: BlockedKind
  readonly name: string
}

/**
 * A refusal. It is returned and not thrown, so that callers of confine() can test, audit and show it. `why` says what
 * was blocked and why, and `hint` says what to write instead.
 */
export interface Denied {
  readonly kind: 'denied'
  readonly blocked: Blocked
  readonly why: string
  readonly hint: string
  /** The position of the blocked name in the caller's text, in UTF-16 units from 0. */
  readonly position?: number
  /** For a body that is a document: the keys that lead to the blocked part. repairs() uses them. */
  readonly path?: readonly (string | number)[]
  /** Allowed names that the caller may have meant, the most similar first. repairs() uses them. */
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
  /** The parameters as the caller sent them. The audit stores this text. */
  readonly json: string
}

/** The checked body of a query. Code outside the driver reads only these fields. */
export interface QueryBody {
  /** The text of the query as the audit stores it. */
  readonly text: string
  readonly limit: number | null
  /** The driver sends the parameters separately from the text of the query, and never prints them into it. */
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
   * If present, call it when `rows` was sent. The memory of `rows` is then reused, so nobody may read `rows`
   * afterwards.
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
  readonly timeoutMs: number
  /** The number of bytes that may be read from a database that bills by bytes. With null, only metadata may be read. */
  readonly bytes: number | null
}

export type Scalar = string | number | boolean

/** The kind of a column's values. `label` means an enum. `other` means mixed values, or values of no listed kind. */
export type ValueKind = 'boolean' | 'number' | 'time' | 'text' | 'label' | 'other'

/** Numbers about the sampled values. They contain no value. */
interface SampleFacts {
  /** The number of values that are not null. */
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
  readonly rows: number
  /** The share of sampled objects that have the key, from 0 to 1. */
  readonly share: number
  /** The JSON types of the key's values: array, boolean, null, number, object, string. */
  readonly types: readonly string[]
}

/**
 * The profile of one column, from the statistics of the database, a sample of rows, or both. The driver leaves out
 * nothing: the caller of profile() decides what may be stored.
 */
export interface ColumnProfile {
  readonly name: string
  readonly kind: ValueKind
  /** The share of nulls, from 0 to 1. */
  readonly nullFrac: number | null
  /** An estimate for the whole table. */
  readonly distinctCount: number | null
  /**
   * The most common values come first. `rows` is the number of sampled rows with the value. It may be too low, but not
   * too high.
   */
  readonly values: readonly { readonly value: Scalar; readonly share: number; readonly rows: number }[] | null
  /** Dates or numbers, in the form of a query result. */
  readonly range: { readonly min: Scalar; readonly max: Scalar } | null
  readonly sample: SampleFacts | null
  /** The top-level keys of the sampled objects of a JSON column. */
  readonly keys?: readonly SeenKey[] | null
  /** Further observations, each a sentence or a short phrase. */
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
   * Abandoned work may still run in the database. If so, returns a promise that resolves when the database no longer
   * runs it, or when `signal` aborts. The promise never rejects. Returns null if the database runs nothing. The owner
   * of the connection calls this before disposing the connection, and counts the session as open until the promise
   * resolves.
   */
  ended(signal: AbortSignal): Promise<void> | null
  /**
   * Checks the login, after connect() has signed in. If the report has commands for a better login, they are for the
   * exposed catalog `exposed`, which is null if there is no exposure yet.
   */
  test(exposed: Catalog | null, signal: AbortSignal): Promise<TestReport>
  /** Calls `progress` with the number of finished parts, and the number of all parts. */
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
  /** If connect() needs a thread, owners take turns. */
  readonly owner?: Owner
}

export interface Driver extends AsyncDisposable {
  readonly type: DatasourceType
  readonly vocabulary: Vocabulary
  /**
   * Checks the settings of a datasource. Each connection mode has a list of allowed fields. With a URI, fields such as
   * `host` and `database` come from the URI. `input.secrets` has the secrets that were sent or are stored. Throws
   * AppError INVALID_REQUEST with details.
   */
  settings(input: SettingsInput): ConnectionSettings
  /** Checks the body of a query. Throws AppError INVALID_REQUEST. */
  read(body: unknown): QueryBody
  /**
   * Runs some code in advance, because its first run is slow. Called when the service has begun to listen. Requests are
   * answered in between.
   */
  readonly warm?: (signal: AbortSignal) => Promise<void>
  /** Returns a dotted name as a caller must type it, with quotes if necessary. */
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
   * Returns bodies that differ from a refused body by one small change, the likeliest first. They use only names that
   * are exposed or allowed. They may be refused too: the caller must pass each of them to confine().
   */
  repairs(body: object, denied: Denied, exposed: Catalog): readonly object[]
  /**
   * Confines a query. The verdict depends only on the arguments: no database and no clock is used. Returns a promise if
   * a worker thread may judge the query. Throws OVERLOADED if too many queries of the owner wait for a thread.
   */
  confine(body: QueryBody, exposed: Catalog, limits: Limits, stop: Stop): Verdict | Promise<Verdict>
  /**
   * True if confine() does not check the names of columns. A confined query may then name a hidden column, but the
   * database does not know that name, because each table in the printed query has only its exposed columns.
   */
  readonly leavesColumns?: true
  /** Returns the text that the database gets, for the audit and `check`. */
  printed(query: Confined): string
  /** Returns the tables that a query reads, each once, for the audit. Queries of one shape may share the array. */
  reads(query: Confined): readonly TableRead[]
  /**
   * Removes the literals from the text of a query, for teams whose audit must not store literals. The text may be the
   * caller's or the printed one, and confine() has parsed it. Returns null if a literal may remain. Without this
   * function, the audit of these teams stores no text.
   */
  redacted?(text: string): string | null
  /**
   * Describes the result of a query in a text. The what-if compares these texts for two exposures: they differ if the
   * result has one more column under the second exposure. A driver needs this function only if the printed text may
   * stay the same.
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

/** The settings in a request that creates or changes a datasource. They are not checked yet. */
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
