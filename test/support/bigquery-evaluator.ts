// The interface behind the BigQuery double: what BigQuery would report for a text, and its rows. The double itself
// implements the REST interface and does not parse GoogleSQL.

/** A field of a schema in the REST interface: legacy type names, and a separate mode. */
export interface WireField {
  readonly name: string
  /** STRING, INTEGER, FLOAT, BOOLEAN, RECORD, TIMESTAMP …, as in the responses of tables.get and jobs.query. */
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

/** An error of BigQuery. `status` is the status of the HTTP response, and is not used with `late`. */
export interface WireError {
  readonly status: number
  readonly reason: string
  readonly message: string
}

/** `statistics.query` of a dry run. Fields that are not declared here are copied too. */
export interface WireStatistics {
  readonly statementType?: string
  readonly totalBytesProcessed?: string
  readonly totalBytesProcessedAccuracy?: string
  readonly referencedTables?: readonly WireTable[]
  readonly schema?: { readonly fields: readonly WireField[] }
  readonly [more: string]: unknown
}

/** A cell, as in `rows[].f[].v`. TIMESTAMP is in microseconds, as with formatOptions.useInt64Timestamp. */
export type WireValue =
  null | string | readonly { readonly v: WireValue }[] | { readonly f: readonly { v: WireValue }[] }

export type Analysis = { readonly statistics: WireStatistics } | { readonly error: WireError }

export type Evaluation =
  | { readonly schema: { readonly fields: readonly WireField[] }; readonly rows: readonly (readonly WireValue[])[] }
  /** The query runs until it is cancelled. */
  | { readonly endless: true }
  /** The job is not complete for this number of responses. After them, `then` follows. */
  | { readonly waits: number; readonly then: Evaluation }
  /**
   * With `late`, the job ends and then reports the error (HTTP 200 with errors). Otherwise the HTTP response is the
   * error.
   */
  | { readonly error: WireError; readonly late?: boolean }

/**
 * `parameterMode` and `queryParameters` of a request. The parameters have names in NAMED mode and no names in
 * POSITIONAL mode.
 */
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
  /** Returns the result of a dry run. For a view, the result names the tables under the view, as BigQuery does. */
  analyze(sql: string, params?: WireParams): Promise<Analysis>
  /** Returns the result of a run. If the text was not analyzed before, the double has listed a violation. */
  evaluate(sql: string, params?: WireParams): Promise<Evaluation>
}
