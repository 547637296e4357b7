// Opens a connection: a pool of sockets to one address, and a token if there are credentials. Checks only that the
// credentials give a token or, without credentials, that the address answers like BigQuery. What the credentials may do
// is tested by `test` and by each query.
import type { Connection } from '../../driver.ts'
import type { BufferPool } from '../../json-bytes.ts'
import { listDatasets } from '../catalog/datasets.ts'
import { BigQueryConnection } from './connection.ts'
import type { Disagreement } from './dry-run.ts'
import { accessFailure, failure, unavailable } from './failure.ts'
import type { Pools } from './socket-pools.ts'
import { ErrorResponse } from './error-response.ts'
import { Rest } from './rest.ts'
import type { Target } from './settings.ts'
import type { Tokens } from './access-tokens.ts'

const CONNECT_MS = 10_000

export interface Shared {
  readonly pools: Pools
  readonly tokens: Tokens
  readonly buffers: BufferPool
  readonly alarm: (disagreement: Disagreement) => void
}

/** Throws the AppErrors of failure(), usually DATASOURCE_UNAVAILABLE. On abort, throws the signal's reason. */
export async function connect(
  { pools, tokens, buffers, alarm }: Shared,
  target: Target,
  allowPrivateHosts: boolean,
  signal: AbortSignal,
): Promise<Connection> {
  signal.throwIfAborted()
  const held = await pools.hold(target.endpoint, allowPrivateHosts)
  const rest = new Rest(held.dispatcher, tokens.sourceOf(target.credentials, allowPrivateHosts))
  const deadline = AbortSignal.any([signal, AbortSignal.timeout(CONNECT_MS)])
  try {
    if (target.credentials.kind === 'none') await isThere(rest, target, deadline)
    else await rest.signIn(deadline)
  } catch (error) {
    await held[Symbol.asyncDispose]()
    signal.throwIfAborted()
    throw deadline.aborted ? unavailable('BigQuery did not answer in time.', error) : failure(error)
  }
  return new BigQueryConnection({ rest, target, buffers, alarm, release: async () => held[Symbol.asyncDispose]() })
}

/**
 * Checks that the address answers and does not refuse access. Used if there are no credentials, because connect() then
 * sends no other request.
 */
async function isThere(rest: Rest, target: Target, signal: AbortSignal): Promise<void> {
  try {
    await listDatasets(rest, target.project, 1, signal)
  } catch (error) {
    if (!(error instanceof ErrorResponse) || accessFailure(error) !== null) throw error
  }
}
