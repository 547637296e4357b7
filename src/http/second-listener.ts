// A second listener, for health probes and metrics collectors, which answers even if the API has too many connections.
// A new connection replaces an idle one, so silent clients cannot block it.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { bareHost } from '../host-names.ts'
import { holdConnections } from './connections.ts'
import { openTurns } from './one-at-a-time.ts'
import { JSON_TYPE } from './send-answer.ts'
import { limitBodies } from './request-bodies.ts'
import { REQUEST_ID } from './request-id.ts'
import { unreadableRequests } from './unreadable-requests.ts'

interface SideAnswer {
  readonly status: number
  readonly contentType: string
  readonly body: string
}

export type SideRoutes = Readonly<Record<string, (requestId: string) => SideAnswer | Promise<SideAnswer>>>

const CONNECTIONS_MAX = 64
const REQUEST_MS = 5_000
/** By default, a late request could stay for another 30 s. */
const LATE_CHECK_MS = 1_000
/** Node would answer requests without a Host header before the limits of connections.ts apply, so accept them. */
const OPTIONS = { connectionsCheckingInterval: LATE_CHECK_MS, requireHostHeader: false }

export interface SideServer extends AsyncDisposable {
  /** host:port. For port 0, this is the port that the operating system chose. */
  readonly address: string
}

/** Throws if the address cannot be used. */
export async function openSideServer(address: string, routes: SideRoutes, nextId: () => string): Promise<SideServer> {
  const { hostname, port } = new URL(`http://${address}`)
  const answer = (request: IncomingMessage, response: ServerResponse) => void reply(routes, nextId(), request, response)
  const turns = openTurns()
  const server = createServer(OPTIONS, turns.listener(answer))
  limitBodies(server)
  server.on('clientError', unreadableRequests(turns, nextId, REQUEST_MS))
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
  holdConnections(server, { max: CONNECTIONS_MAX, maxPerAddress: null }, nextId)
  server.requestTimeout = REQUEST_MS
  server.headersTimeout = REQUEST_MS
  server.listen(Number(port === '' ? '80' : port), bareHost(hostname))
  await once(server, 'listening')
  const at = server.address()
  return {
    address: typeof at === 'object' && at !== null ? `${hostname}:${at.port}` : address,
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

async function reply(
  routes: SideRoutes,
  requestId: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  response.setHeader(REQUEST_ID, requestId)
  const route = request.method === 'GET' ? routes[(request.url ?? '').split('?', 1)[0] ?? ''] : undefined
  if (route === undefined) return void response.writeHead(404).end()
  const { status, contentType, body } = await route(requestId)
  // Each probe opens its own connection, so close it after the answer.
  response
    .writeHead(status, { 'content-type': contentType, 'cache-control': 'no-store', connection: 'close' })
    .end(body)
}

export function healthRoutes(
  ready: () => Promise<void>,
  problem: (error: unknown, requestId: string) => string,
): SideRoutes {
  return {
    '/health/live': () => ({ status: 200, contentType: JSON_TYPE, body: OK }),
    '/health/ready': async (requestId) => {
      try {
        await ready()
        return { status: 200, contentType: JSON_TYPE, body: OK }
      } catch (error) {
        return { status: 503, contentType: JSON_TYPE, body: problem(error, requestId) }
      }
    },
  }
}

const OK = JSON.stringify({ status: 'ok' })
