// What stands behind the BigQuery double: what BigQuery would say of a text, and what it would answer. The double itself
// knows the REST interface and nothing of GoogleSQL.

/** A field of a schema as the REST interface writes it: legacy type names, mode apart. */
export interface WireField {
  readonly name: string
  /** STRING, INTEGER, FLOAT, BOOLEAN, RECORD, TIMESTAMP …, as tables.get and queries write them. */
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

/** An error as BigQuery tells it; `status` is that of the HTTP answer. */
export interface WireError {
  readonly status: number
  readonly reason: string
  readonly message: string
}

/** `statistics.query` of a dry run; whatever else is given stands in it as it is. */
export interface WireStatistics {
  readonly statementType?: string
  readonly totalBytesProcessed?: string
  readonly totalBytesProcessedAccuracy?: string
  readonly referencedTables?: readonly WireTable[]
  readonly schema?: { readonly fields: readonly WireField[] }
  readonly [more: string]: unknown
}

/** A cell as `rows[].f[].v` holds it; TIMESTAMP in microseconds, as formatOptions.useInt64Timestamp asks for. */
export type WireValue =
  null | string | readonly { readonly v: WireValue }[] | { readonly f: readonly { v: WireValue }[] }

export type Analysis = { readonly statistics: WireStatistics } | { readonly error: WireError }

export type Evaluation =
  | { readonly schema: { readonly fields: readonly WireField[] }; readonly rows: readonly (readonly WireValue[])[] }
  /** Works until it is cancelled. */
  | { readonly endless: true }
  /** Not complete for so many answers, then what follows. */
  | { readonly waits: number; readonly then: Evaluation }
  /** `late`: told by a job that ended (HTTP 200 with errors), not by the HTTP answer. */
  | { readonly error: WireError; readonly late?: boolean }

/** `parameterMode` and `queryParameters` of a request: names in NAMED mode, none in POSITIONAL. */
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
  /** The dry run. Of a view it names the tables under it, as BigQuery does. */
  analyze(sql: string, params?: WireParams): Promise<Analysis>
  /** The run. Only asked for what was analyzed before. */
  evaluate(sql: string, params?: WireParams): Promise<Evaluation>
}
