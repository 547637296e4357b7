// Shuts the service down: after a grace period for running requests, cancels their queries and closes the sockets.
import { once } from 'node:events'
import type { FastifyInstance } from 'fastify'
import { deadlineOf } from './deadline.ts'
import type { Connections } from './http/connections.ts'
import type { RunningQueries } from './query/running-queries.ts'

/** How often idle connections are closed while the service is draining. */
const IDLE_LOOK_MS = 50
/** How long incomplete requests may take to arrive while the service is draining. */
const ARRIVAL_MS = 1_000
/** How long the last refusals may take before the sockets are closed. */
const LAST_ANSWERS_MS = 2_000

/** Waits up to `graceMs` for running requests, and then cancels their queries. `hurry` ends the wait. */
export async function drainServer(
  { server, close }: Pick<FastifyInstance, 'server' | 'close'>,
  connections: Connections,
  running: RunningQueries,
  graceMs: number,
  hurry: AbortSignal,
): Promise<void> {
  const closed = close()
  // A connection that was busy when the server closed becomes idle after its answer, so look for idle connections
  // repeatedly.
  const lateFrom = performance.now() + ARRIVAL_MS
  const idle = setInterval(() => {
    server.closeIdleConnections()
    connections.cutIdle()
    if (performance.now() >= lateFrom) connections.cutOthers()
  }, IDLE_LOOK_MS)
  using grace = deadlineOf(hurry, graceMs)
  await Promise.race([closed, aborted(grace.signal)])
  running.endAll()
  using last = deadlineOf(NEVER, LAST_ANSWERS_MS)
  await Promise.race([closed, aborted(last.signal)])
  server.closeAllConnections()
  connections.cutAll()
  await closed
  clearInterval(idle)
}

export async function delay(ms: number, hurry: AbortSignal): Promise<void> {
  if (ms === 0) return
  using wait = deadlineOf(hurry, ms)
  await aborted(wait.signal)
}

const NEVER = new AbortController().signal

async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort')
}
