// Limits the number of connections of the API. When the limit is reached, a new connection replaces one without a
// complete request, so that idle clients cannot block others. At shutdown, only connections that await an answer stay
// open.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { REQUEST_ID } from './request-id.ts'

/** The state of a connection whose requests query-connection.ts reads without node:http. */
export interface Exchange {
  readonly state: 'idle' | 'arriving' | 'answering'
}

export interface ConnectionLimits {
  readonly max: number
  /** Null if a proxy opens the connections of all callers. */
  readonly maxPerAddress: number | null
}

export interface Connections {
  /** Destroys connections without a complete request, including idle ones. */
  cutOthers(): void
  /** Destroys the idle connections that node:http does not know. node:http closes its own idle connections. */
  cutIdle(): void
  cutAll(): void
  readonly open: number
  /** The number of connections closed for a newer one, or because very many of their requests awaited an answer. */
  readonly evicted: number
  /** The number of connections and pipelined requests that were refused. */
  readonly refused: number
}

interface Held {
  readonly address: string
  /** The latest request, or null before the first one. */
  exchange: { readonly request: IncomingMessage; readonly response: ServerResponse } | Exchange | null
  /** The number of requests without a complete answer. */
  waiting: number
  /** Called when an answer has ended. */
  readonly answered: () => void
}

/**
 * The maximum number of requests of one connection that wait for their answers. Node delivers every request that a
 * client sends. Without a limit, a client that reads no answers could fill the memory. The next request is refused, and
 * the connection closed after the refusal (RFC 9112, 9.3.2).
 */
const PIPELINED_MAX = 32
/**
 * With more waiting requests than this, the connection is destroyed at once. Node stops reading earlier, unless the
 * requests arrive in one chunk.
 */
const REFUSED_MAX = 1_024
/**
 * The server emits this event when query-connection.ts has received a request or its beginning without node:http. The
 * arguments of the event are the socket and the `Exchange` of the socket.
 */
export const QUERY_EVENT = 'vitrineQuery'
/** The time that a client has to read the refusal. */
const LINGER_MS = 1_000
/** Extra connections for Node's own limit, because Node still counts sockets that are closing. */
const CLOSING = 256

/** Starts to limit the connections of a server. `nextId` creates the request ids of refusals. */
export function holdConnections(server: Server, limits: ConnectionLimits, nextId: () => string): Connections {
  return new HeldConnections(server, limits, nextId)
}

class HeldConnections implements Connections {
  readonly #limits: ConnectionLimits
  readonly #nextId: () => string
  /** The connections, ordered by their latest request, oldest first. */
  readonly #held = new Map<Socket, Held>()
  readonly #perAddress = new Map<string, number>()
  evicted = 0
  refused = 0

  constructor(server: Server, limits: ConnectionLimits, nextId: () => string) {
    this.#limits = limits
    this.#nextId = nextId
    server.maxConnections = limits.max + CLOSING
    server.on('connection', (socket) => this.#opened(socket))
    // This listener runs before the listener that answers requests. That listener ignores a response that is already
    // written.
    server.prependListener('request', (request, response) => {
      const held = this.#held.get(request.socket)
      if (held === undefined) return
      if (++held.waiting > REFUSED_MAX) return void this.#close(request.socket)
      if (held.waiting > PIPELINED_MAX) {
        this.refused++
        return void response.writeHead(503, { ...refusalHeaders(this.#nextId()), connection: 'close' }).end(BODY)
      }
      response.on('close', held.answered)
      held.exchange = { request, response }
      this.#noted(request.socket, held)
    })
    server.on(QUERY_EVENT, (socket: Socket, exchange: Exchange) => {
      const held = this.#held.get(socket)
      if (held === undefined) return
      held.exchange = exchange
      this.#noted(socket, held)
    })
  }

  #noted(socket: Socket, held: Held): void {
    this.#held.delete(socket)
    this.#held.set(socket, held)
  }

  get open(): number {
    return this.#held.size
  }

  cutOthers(): void {
    for (const [socket, held] of this.#held) if (stateOf(held) !== 'answering') socket.destroy()
  }

  cutIdle(): void {
    for (const [socket, { exchange }] of this.#held) {
      if (exchange !== null && 'state' in exchange && exchange.state === 'idle') socket.destroy()
    }
  }

  cutAll(): void {
    for (const socket of this.#held.keys()) socket.destroy()
  }

  #opened(socket: Socket): void {
    const address = socket.remoteAddress ?? ''
    const { max, maxPerAddress } = this.#limits
    if (maxPerAddress !== null && (this.#perAddress.get(address) ?? 0) >= maxPerAddress) {
      if (!this.#evict((held) => held.address === address)) return this.#refuse(socket)
    } else if (this.#held.size >= max && !this.#evict(() => true)) {
      return this.#refuse(socket)
    }
    const held: Held = { address, exchange: null, waiting: 0, answered: () => held.waiting-- }
    this.#held.set(socket, held)
    this.#perAddress.set(address, (this.#perAddress.get(address) ?? 0) + 1)
    socket.once('close', () => this.#drop(socket))
  }

  /**
   * Closes the connection that has been idle for longest. If none is idle, closes one whose request has not fully
   * arrived.
   */
  #evict(isCandidate: (held: Held) => boolean): boolean {
    let arriving: Socket | null = null
    for (const [socket, held] of this.#held) {
      if (!isCandidate(held)) continue
      const state = stateOf(held)
      if (state === 'idle') return this.#close(socket)
      if (state === 'arriving') arriving ??= socket
    }
    return arriving !== null && this.#close(arriving)
  }

  #close(socket: Socket): true {
    this.evicted++
    this.#drop(socket)
    socket.destroy()
    return true
  }

  #refuse(socket: Socket): void {
    this.refused++
    socket.end(refusalOf(this.#nextId()))
    setTimeout(() => socket.destroy(), LINGER_MS).unref()
  }

  #drop(socket: Socket): void {
    const held = this.#held.get(socket)
    if (held === undefined) return
    this.#held.delete(socket)
    const left = (this.#perAddress.get(held.address) ?? 1) - 1
    if (left === 0) this.#perAddress.delete(held.address)
    else this.#perAddress.set(held.address, left)
  }
}

function stateOf({ exchange }: Held): Exchange['state'] {
  if (exchange !== null && 'state' in exchange) return exchange.state
  if (exchange === null || exchange.response.writableFinished) return 'idle'
  return exchange.request.complete ? 'answering' : 'arriving'
}

const BODY = JSON.stringify({
  error:
    'The service has too many connections, or this connection has too many waiting requests. Try again in a moment.',
  code: 'OVERLOADED',
  retryAfter: 1,
})

function refusalHeaders(requestId: string): Record<string, string> {
  const type = 'application/json; charset=utf-8'
  return { 'content-type': type, [REQUEST_ID]: requestId, 'content-length': String(BODY.length), 'retry-after': '1' }
}

function refusalOf(requestId: string): string {
  const lines = Object.entries(refusalHeaders(requestId)).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 503 Service Unavailable\r\n${lines.join('')}connection: close\r\n\r\n${BODY}`
}
