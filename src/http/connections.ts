// Limits the number of connections, and the memory of answers that clients do not read. When there are too many
// connections, a new connection replaces an idle one, one with a half-sent request, or one with an unread answer, so
// that such clients cannot block other clients. At shutdown, only connections that wait for an answer stay open.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { networkOf } from '../auth/client-network.ts'
import { endHttpParsing } from '../end-http-parsing.ts'
import { heldBytesOf } from './held-bytes.ts'
import { REQUEST_ID } from './request-id.ts'

/** The state of a connection whose requests query-connection.ts reads without node:http. */
export interface Exchange {
  readonly state: 'idle' | 'arriving' | 'answering'
}

export interface ConnectionLimits {
  readonly max: number
  /**
   * The maximum for one IPv4 address or one IPv6 network (/64). Null if a proxy opens the connections of all callers.
   * Then an address has no limit of unread bytes either.
   */
  readonly maxPerAddress: number | null
}

export interface Connections {
  /** Closes the connections that wait for no answer: idle ones, and those with an incomplete request. */
  cutOthers(): void
  /** Closes the idle connections that node:http does not know. */
  cutIdle(): void
  cutAll(): void
  readonly open: number
  /**
   * How many connections were closed to make room for a newer one, or because they sent far too many requests at once.
   */
  readonly evicted: number
  /** How many connections were closed because their clients did not read the answers. */
  readonly unread: number
  readonly unreadBytes: number
  readonly refused: number
}

interface Held {
  readonly network: string
  /** The latest request. Null before the first request. */
  exchange: { readonly request: IncomingMessage; readonly response: ServerResponse } | Exchange | null
  /** How many requests have no complete answer. */
  waiting: number
  /** How many requests were accepted while an earlier request had no complete answer. */
  queued: number
  readonly answered: () => void
  /** When the connection was first seen idle after its latest request. Null if it is not idle. */
  idleFrom: number | null
  /** Since when the client has read nothing of its answer. Null if no answer is unread. */
  untakenFrom: number | null
  /** How many bytes the operating system had accepted at the last count. */
  taken: number
}

interface Untaken {
  readonly socket: Socket
  readonly held: Held
  readonly bytes: number
  readonly from: number
}

/** The interval of the search for idle connections and unread answers. */
const LOOK_MS = 500
export const PATIENCE = {
  /** The maximum time in which a client reads nothing of its answer. */
  untakenMs: 60_000,
  /** Replaces `untakenMs` when there are too many connections. */
  slowMs: 10_000,
  /** The maximum of all unread bytes. Above it, the address with the most unread bytes loses connections. */
  unreadBytes: 256 << 20,
  /** The maximum of unread bytes of one address. One answer has at most 64 MiB. */
  unreadBytesPerAddress: 128 << 20,
  /** The maximum number of requests that wait behind other requests, on all connections. Each takes about 16 kB. */
  queuedRequests: 4_096,
  /**
   * An idle connection is closed this much later than its Keep-Alive header says. Node itself would never close a
   * connection on which empty lines arrive.
   */
  idleExtraMs: 3_000,
}

/**
 * Node reads all requests that a client sends at once. At most this many requests of a connection may wait for their
 * answers. The next request is refused, and then the connection is closed (RFC 9112, 9.3.2).
 */
const PIPELINED_MAX = 32
/** If even more requests wait, the connection is closed at once. Refusing 64 kB of small requests would take 0.2 s. */
const REFUSED_MAX = 2 * PIPELINED_MAX
/** Emitted when a request, or its beginning, arrived without node:http. Arguments: the socket and its `Exchange`. */
export const QUERY_EVENT = 'vitrineQuery'
const LINGER_MS = 1_000
/** Node's own limit is this much higher, because Node still counts sockets that are closing. */
const CLOSING = 256

/** `nextId` creates the request ids of refusals. */
export function holdConnections(
  server: Server,
  limits: ConnectionLimits,
  nextId: () => string,
  patience = PATIENCE,
): Connections {
  return new HeldConnections(server, limits, nextId, patience)
}

class HeldConnections implements Connections {
  readonly #server: Server
  readonly #limits: ConnectionLimits
  readonly #nextId: () => string
  readonly #patience: typeof PATIENCE
  /** All connections, ordered by the time of their latest request. */
  readonly #held = new Map<Socket, Held>()
  readonly #perNetwork = new Map<string, number>()
  /** The connections with unread answers at the last look, ordered by how long their clients have read nothing. */
  #untaken: readonly Untaken[] = []
  #queued = 0
  evicted = 0
  refused = 0
  unread = 0
  unreadBytes = 0

  constructor(server: Server, limits: ConnectionLimits, nextId: () => string, patience: typeof PATIENCE) {
    this.#patience = patience
    this.#server = server
    this.#limits = limits
    this.#nextId = nextId
    server.maxConnections = limits.max + CLOSING
    server.on('connection', (socket) => this.#opened(socket))
    // This listener runs first. The listener that answers requests ignores a response that has ended.
    server.prependListener('request', (request, response) => {
      const held = this.#held.get(request.socket)
      if (held === undefined) return
      if (++held.waiting > REFUSED_MAX) {
        endHttpParsing(request.socket)
        return void this.#close(request.socket)
      }
      const isQueued = held.waiting > 1
      if (held.waiting > PIPELINED_MAX || (isQueued && this.#queued >= patience.queuedRequests)) {
        this.refused++
        return void response.writeHead(503, { ...refusalHeaders(this.#nextId()), connection: 'close' }).end(BODY)
      }
      if (isQueued) {
        held.queued++
        this.#queued++
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
    const looks = setInterval(() => this.#look(performance.now()), LOOK_MS).unref()
    server.once('close', () => clearInterval(looks))
  }

  #noted(socket: Socket, held: Held): void {
    held.idleFrom = null
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
    const network = networkOf(socket.remoteAddress ?? '')
    const { max, maxPerAddress } = this.#limits
    if (maxPerAddress !== null && (this.#perNetwork.get(network) ?? 0) >= maxPerAddress) {
      if (!this.#evict((held) => held.network === network)) return this.#refuse(socket)
    } else if (this.#held.size >= max && !this.#evict(() => true)) {
      return this.#refuse(socket)
    }
    const answered = (): void => {
      held.waiting--
      if (held.queued === 0) return
      held.queued--
      this.#queued--
    }
    const none = { exchange: null, waiting: 0, queued: 0, idleFrom: null, untakenFrom: null, taken: 0 }
    const held: Held = { network, answered, ...none }
    this.#held.set(socket, held)
    this.#perNetwork.set(network, (this.#perNetwork.get(network) ?? 0) + 1)
    socket.once('close', () => this.#drop(socket))
  }

  #look(now: number): void {
    const { untakenMs, idleExtraMs } = this.#patience
    const idleMs = this.#server.keepAliveTimeout + idleExtraMs
    const untaken: Untaken[] = []
    for (const [socket, held] of this.#held) {
      const bytes = unreadBytesOf(socket)
      if (bytes > 0) {
        const taken = takenBytesOf(socket)
        if (held.untakenFrom === null || held.taken !== taken) held.untakenFrom = now
        held.taken = taken
        if (now - held.untakenFrom < untakenMs) untaken.push({ socket, held, bytes, from: held.untakenFrom })
        else this.#closeUnread(socket)
        continue
      }
      held.untakenFrom = null
      if (stateOf(held) !== 'idle') held.idleFrom = null
      else if (now - (held.idleFrom ??= now) > idleMs) socket.destroy()
    }
    untaken.sort((a, b) => a.from - b.from)
    this.#untaken = this.#fit(untaken)
  }

  /** Returns the connections that stay open. */
  #fit(untaken: readonly Untaken[]): readonly Untaken[] {
    const perNetwork = new Map<string, number>()
    for (const { held, bytes } of untaken) perNetwork.set(held.network, (perNetwork.get(held.network) ?? 0) + bytes)
    const { unreadBytes: totalMax, unreadBytesPerAddress } = this.#patience
    const perNetworkMax = this.#limits.maxPerAddress === null ? totalMax : unreadBytesPerAddress
    let total = untaken.reduce((sum, { bytes }) => sum + bytes, 0)
    let rest = untaken
    for (;;) {
      const [network, most] = [...perNetwork].reduce((a, b) => (b[1] > a[1] ? b : a), ['', 0])
      const excess = Math.max(total - totalMax, most - perNetworkMax)
      this.unreadBytes = total
      if (excess <= 0) return rest
      let freed = 0
      const closed = new Set<Untaken>()
      for (const each of rest) {
        if (freed >= excess || each.held.network !== network) continue
        freed += each.bytes
        closed.add(each)
        this.#closeUnread(each.socket)
      }
      perNetwork.set(network, most - freed)
      total -= freed
      rest = rest.filter((each) => !closed.has(each))
    }
  }

  /**
   * Closes one connection, in this order of preference: its client has not read its answer for a while; it has been
   * idle for the longest time; its request is incomplete; its answer is unread.
   */
  #evict(isCandidate: (held: Held) => boolean): boolean {
    const untaken = this.#untaken.find(
      ({ socket, held }) => this.#held.has(socket) && unreadBytesOf(socket) > 0 && isCandidate(held),
    )
    if (untaken !== undefined && performance.now() - untaken.from >= this.#patience.slowMs)
      return this.#close(untaken.socket)
    let arriving: Socket | null = null
    for (const [socket, held] of this.#held) {
      if (!isCandidate(held)) continue
      const state = stateOf(held)
      if (state === 'idle') return this.#close(socket)
      if (state === 'arriving') arriving ??= socket
    }
    const chosen = arriving ?? untaken?.socket
    return chosen !== undefined && this.#close(chosen)
  }

  #closeUnread(socket: Socket): void {
    this.unread++
    this.#drop(socket)
    socket.destroy()
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
    this.#queued -= held.queued
    held.queued = 0
    const left = (this.#perNetwork.get(held.network) ?? 1) - 1
    if (left === 0) this.#perNetwork.delete(held.network)
    else this.#perNetwork.set(held.network, left)
  }
}

/** Returns how many bytes are in memory because the operating system has not accepted them. */
function unreadBytesOf(socket: Socket): number {
  // The bytes in the socket are slices of those that are held.
  const held = heldBytesOf(socket)
  // writableLength counts the characters of a text. The other number counts the bytes of the current write.
  return socket.writableLength === 0 ? held : Math.max(held, socket.writableLength, queuedBytesOf(socket))
}

/** Also grows during a long write. */
function takenBytesOf(socket: Socket): number {
  return handleNumber(socket, 'bytesWritten') - queuedBytesOf(socket)
}

function queuedBytesOf(socket: Socket): number {
  return handleNumber(socket, 'writeQueueSize')
}

/** These numbers are not public. Node reads them in the same way for the timeouts of its sockets. */
function handleNumber(socket: Socket, name: 'bytesWritten' | 'writeQueueSize'): number {
  const handle: unknown = Reflect.get(socket, '_handle')
  const value: unknown = typeof handle === 'object' && handle !== null ? Reflect.get(handle, name) : 0
  return typeof value === 'number' ? value : 0
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
