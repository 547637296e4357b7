// The BigQuery double does not parse GoogleSQL. A Brain tells it what BigQuery would report for a query, and its rows.

/** A field of a schema in the REST API, which has legacy type names and a separate mode. */
export interface WireField {
  readonly name: string
  /** For example STRING, INTEGER, FLOAT, BOOLEAN, RECORD or TIMESTAMP. */
  readonly type: string
  readonly mode?: 'NULLABLE' | 'REQUIRED' | 'REPEATED'
  readonly fields?: readonly WireField[]
  readonly rangeElementType?: { readonly type: string }
  readonly [more: string]: unknown
}

export interface WireTable {
  readonly projectId: string
  readonly datasetId: string
  readonly tableId: string
}

/** `status` is the status of the HTTP response, unless the error comes `late`. */
export interface WireError {
  readonly status: number
  readonly reason: string
  readonly message: string
}

/** `statistics.query` of a dry run. Other fields are copied too. */
export interface WireStatistics {
  readonly statementType?: string
  readonly totalBytesProcessed?: string
  readonly totalBytesProcessedAccuracy?: string
  readonly referencedTables?: readonly WireTable[]
  readonly schema?: { readonly fields: readonly WireField[] }
  readonly [more: string]: unknown
}

/** A cell (`rows[].f[].v`). A TIMESTAMP is in microseconds, as with formatOptions.useInt64Timestamp. */
export type WireValue =
  null | string | readonly { readonly v: WireValue }[] | { readonly f: readonly { v: WireValue }[] }

export type Analysis = { readonly statistics: WireStatistics } | { readonly error: WireError }

export type Evaluation =
  | { readonly schema: { readonly fields: readonly WireField[] }; readonly rows: readonly (readonly WireValue[])[] }
  /** A job that runs until it is cancelled. */
  | { readonly endless: true }
  /** A job that is incomplete in the first `waits` responses. */
  | { readonly waits: number; readonly then: Evaluation }
  /**
   * Without `late`, the HTTP response is the error. With `late`, the job ends, and then reports the error in a response
   * with status 200.
   */
  | { readonly error: WireError; readonly late?: boolean }

export interface WireParams {
  readonly parameterMode?: 'NAMED' | 'POSITIONAL'
  readonly queryParameters?: readonly WireParam[]
}

export interface WireParam {
  readonly name?: string
  readonly parameterType: { readonly type: string; readonly arrayType?: { readonly type: string } }
  readonly parameterValue: {
    readonly value?: string | null
    readonly arrayValues?: readonly { readonly value: string }[]
  }
}

export interface Brain {
  /** Returns the result of a dry run. For a view, it has the tables that the view reads, as in BigQuery. */
  analyze(sql: string, params?: WireParams): Promise<Analysis>
  /** Returns the result of a run. If there was no dry run of this SQL before, the double lists a violation. */
  evaluate(sql: string, params?: WireParams): Promise<Evaluation>
}
