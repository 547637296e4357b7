import { agreement } from './catalog/least-privilege-login.ts'
import { unseal } from '../confined.ts'
import type { ConnectionSettings, ConnectOptions, Driver, QueryBody } from '../driver.ts'
import { BufferPool } from '../json-bytes.ts'
import { sqlBodyReader } from '../sql-body.ts'
import { questionInSql } from '../write-sql-example.ts'
import { sqlRepairs } from '../sql-repairs.ts'
import { confine } from './guard/confine.ts'
import { redactedSql } from './guard/redact.ts'
import { checkParams } from './params.ts'
import { identifier, typedPath } from './quote.ts'
import type { BigQueryQuery } from './confined-query.ts'
import { connect } from './session/connect.ts'
import type { Disagreement } from './session/dry-run.ts'
import { Pools, type Connector } from './session/socket-pools.ts'
import { readSettings, targetOf } from './session/settings.ts'
import { Tokens } from './session/access-tokens.ts'

const readSqlBody = sqlBodyReader({ bytesMax: 100_000, params: 'byPlaceOrName' })

function readBody(body: unknown): QueryBody {
  const read = readSqlBody(body)
  checkParams(read.text, read.params)
  return read
}

export interface BigQueryOptions {
  /** Datasources may use the identity of the machine on which Vitrine runs. */
  readonly allowApplicationDefault?: boolean
  /** Datasources may use another address than Google's. Such an address never gets a token. */
  readonly allowEndpoint?: boolean
  /**
   * Called if BigQuery interprets a query differently than the guard: one of them has a defect, or a table or view has
   * changed since introspection.
   */
  readonly alarm?: (disagreement: Disagreement) => void
  /** Tests use it to open sockets without a network. */
  readonly connector?: Connector
}

/** The HTTP client is loaded for the first connection. */
export async function createBigQueryDriver(options: BigQueryOptions = {}): Promise<Driver> {
  const allowed = {
    applicationDefault: options.allowApplicationDefault ?? false,
    endpoint: options.allowEndpoint ?? false,
  }
  const pools = new Pools(options.connector ?? null)
  const shared = {
    pools,
    tokens: new Tokens(pools),
    buffers: new BufferPool(),
    alarm: options.alarm ?? (() => undefined),
  }
  return {
    type: 'BIGQUERY',
    vocabulary: { schema: 'dataset', table: 'table', queryLanguage: 'GoogleSQL' },
    agreement,
    settings: (input) => readSettings(allowed, input),
    read: readBody,
    typed: typedPath,
    repairs: sqlRepairs(typedPath),
    phrase: (question) => questionInSql(question, identifier),
    reread: (text, params) => readBody({ sql: text, ...(params !== undefined && { params }) }),
    leavesColumns: true,
    confine: async (body: QueryBody, exposed, limits) => confine(body, exposed, limits),
    printed: (query) => unseal<BigQueryQuery>(query, 'BIGQUERY').text,
    reads: (query) =>
      unseal<BigQueryQuery>(query, 'BIGQUERY').reads.map(({ dataset, table }) => ({ schema: dataset, table })),
    redacted: redactedSql,
    connect: (settings: ConnectionSettings, { allowPrivateHosts }: ConnectOptions, signal: AbortSignal) =>
      connect(shared, targetOf(allowed, settings), allowPrivateHosts, signal),
    [Symbol.asyncDispose]: () => pools[Symbol.asyncDispose](),
  }
}
