// Reads usual queries (usual-head.ts) from the sockets of the API and answers them, one at a time per connection. This
// saves the objects that node:http creates for each request (docs/decisions/0049-queries-from-the-socket.md). If the
// bytes are not a usual query of a known caller, or if the client is slow, node:http takes over the connection for
// good.
import { STATUS_CODES, validateHeaderValue, type Server } from 'node:http'
import type { Socket } from 'node:net'
import { HungUp } from '../hang-up.ts'
import type { Prebuilt } from '../operations/operation-types.ts'
import { isLent } from '../operations/prebuilt-json.ts'
import { QUERY_EVENT, type Exchange } from './connections.ts'
import { begin, finish, type Begun, type QuickQuery, type Sender } from './query-short-path.ts'
import { REQUEST_ID, type RequestIds } from './request-id.ts'
import { JSON_TYPE } from './send-answer.ts'
import { pathForm, readUsualHead, type UsualHead } from './usual-head.ts'

export interface QueryConnections {
  readonly door: QuickQuery
  readonly server: Server
  readonly ordinary: (socket: Socket) => void
  /** False while the service is stopping. Then node:http answers, and asks clients to use another connection. */
  readonly isOpen: () => boolean
  readonly requestIds: RequestIds
  readonly keepAliveMs: number
  /** A connection is closed after this time without a byte in either direction. */
  readonly stalledMs: number
}

/** node:http reads longer heads. */
const HEAD_BYTES_MAX = 4_096
/** node:http reads requests that take longer than this to arrive. */
const WHOLE_MS = 1_000
/**
 * How many bytes a client may send while its request is answered. More bytes close the connection. Pausing the socket
 * would not help: a paused socket does not notice that the client hung up, so the query would go on.
 */
const HELD_BYTES_MAX = 65_536
const HEADS_MAX = 4
const EMPTY_LINE = '\r\n\r\n'
const NOTHING = Buffer.alloc(0)

export function readQueries(deps: QueryConnections): (socket: Socket) => void {
  const form = pathForm(deps.door.route.path)
  return (socket) => new QueryConnection(deps, form, socket).open()
}

interface ReadHead {
  readonly bytes: Buffer
  readonly usual: UsualHead
}

class QueryConnection implements Exchange, Sender {
  readonly #deps: QueryConnections
  readonly #form: RegExp
  readonly #socket: Socket
  /** Shared by all requests, because requests of a connection come one after the other. */
  readonly #hangUp = new AbortController()
  /** The last heads. Most clients repeat the same few heads, with different lengths of the body. */
  readonly #heads: ReadHead[] = []
  /** A buffer that begins with the unanswered bytes. The rest of the buffer is free. */
  #held: Buffer = NOTHING
  #heldBytes = 0
  /** When the first unanswered byte arrived, by performance.now(). */
  #heldAt = 0
  #wanted = 0
  /** How many bytes the incomplete request will have. */
  #isAnswering = false
  #isGone = false
  /** 0 means none. */
  #timeoutMs = 0

  constructor(deps: QueryConnections, form: RegExp, socket: Socket) {
    this.#deps = deps
    this.#form = form
    this.#socket = socket
  }

  open(): void {
    const socket = this.#socket
    socket.on('data', this.#onData)
    socket.on('end', this.#onEnd)
    socket.on('close', this.#onClose)
    socket.on('timeout', this.#onTimeout)
    socket.on('error', ignore)
    this.#timeOutAfter(WHOLE_MS)
  }

  get state(): 'idle' | 'arriving' | 'answering' {
    if (this.#isAnswering) return 'answering'
    return this.#isGone || this.#heldBytes > 0 ? 'arriving' : 'idle'
  }

  send(requestId: string, status: number, headers: Readonly<Record<string, string>>, json: Prebuilt['json']): void {
    const socket = this.#socket
    if (!socket.writable) return
    const length = isLent(json) ? json.byteLength : Buffer.byteLength(json)
    // If another request has arrived, node:http answers it and closes the connection.
    const isLast = this.#heldBytes === 0 && !this.#deps.isOpen()
    const head = headOf(requestId, status, headers, length) + lastLines(this.#deps.keepAliveMs, isLast)
    this.#write(head, json)
    if (isLast) socket.end()
  }

  #write(head: string, json: Prebuilt['json']): void {
    const socket = this.#socket
    if (!isLent(json)) {
      if (typeof json === 'string') return void socket.write(head + json, this.#onSent)
      socket.write(head, 'latin1')
      return void socket.write(json, this.#onSent)
    }
    socket.cork()
    socket.write(head, 'latin1')
    const { parts } = json
    for (const part of parts.slice(0, -1)) socket.write(part)
    // When the last part is sent, the memory can be used again. After an error, it is not used again.
    socket.write(parts.at(-1) ?? '', (error) => {
      if (!error) json.release()
      this.#onSent()
    })
    socket.uncork()
  }

  readonly #onData = (chunk: Buffer): void => {
    if (this.#heldBytes === 0 && !this.#isAnswering) return this.#take(chunk)
    this.#hold(chunk)
    if (this.#isAnswering) {
      if (this.#heldBytes > HELD_BYTES_MAX) this.#socket.destroy()
    } else if (this.#heldBytes >= this.#wanted) this.#take(this.#release())
    else if (performance.now() - this.#heldAt > WHOLE_MS) this.#handOver(this.#release())
  }

  /** A full buffer is doubled. Otherwise a client that sends single bytes would cause a copy for each byte. */
  #hold(bytes: Buffer): void {
    const length = this.#heldBytes + bytes.length
    if (this.#heldBytes === 0) this.#held = bytes
    else {
      if (length > this.#held.length) {
        const room = Buffer.allocUnsafe(2 * length)
        this.#held.copy(room, 0, 0, this.#heldBytes)
        this.#held = room
      }
      bytes.copy(this.#held, this.#heldBytes)
    }
    this.#heldBytes = length
  }

  #release(): Buffer {
    const bytes = this.#held.subarray(0, this.#heldBytes)
    this.#held = NOTHING
    this.#heldBytes = 0
    return bytes
  }

  /** Answers a complete usual query, or waits for the rest of it. Hands all other bytes over to node:http. */
  #take(bytes: Buffer): void {
    // The connection was refused, or the client has closed its side, so nobody would get an answer.
    if (!this.#socket.writable) return
    const { door, server, isOpen, requestIds } = this.#deps
    const head = isOpen() ? this.#readHead(bytes) : null
    // Only a known caller may send an incomplete request.
    const begun = head === null ? null : begin(door, head.usual)
    if (head === null || begun === null) return this.#handOver(bytes)
    const start = head.bytes.length
    const end = start + head.usual.length
    if (bytes.length > end) return this.#handOver(bytes)
    if (bytes.length < end) return this.#await(bytes, end)
    server.emit(QUERY_EVENT, this.#socket, this)
    this.#answer(begun, bytes.subarray(start), requestIds.from(head.usual.requestId))
  }

  #readHead(bytes: Buffer): ReadHead | null {
    for (const head of this.#heads) {
      const { length } = head.bytes
      if (bytes.length > length && head.bytes.compare(bytes, 0, length) === 0) return head
    }
    const end = bytes.indexOf(EMPTY_LINE)
    if (end < 0 || end > HEAD_BYTES_MAX) return null
    // Copy the head, because a slice would keep the whole chunk in memory.
    const head = Buffer.from(bytes.subarray(0, end + EMPTY_LINE.length))
    const usual = readUsualHead(head.toString('latin1'), this.#form)
    if (usual === null) return null
    if (this.#heads.length === HEADS_MAX) this.#heads.shift()
    const read = { bytes: head, usual }
    this.#heads.push(read)
    return read
  }

  #await(bytes: Buffer, wanted: number): void {
    this.#hold(bytes)
    this.#heldAt = performance.now()
    this.#wanted = wanted
    this.#timeOutAfter(WHOLE_MS)
    this.#deps.server.emit(QUERY_EVENT, this.#socket, this)
  }

  #answer(begun: Begun, body: Buffer, requestId: string): void {
    this.#isAnswering = true
    this.#timeOutAfter(this.#deps.stalledMs)
    void finish(this.#deps.door, begun, body, requestId, this.#hangUp.signal, this)
  }

  readonly #onSent = (): void => {
    this.#isAnswering = false
    if (this.#heldBytes > 0) this.#take(this.#release())
  }

  #handOver(bytes: Buffer): void {
    const socket = this.#socket
    this.#isGone = true
    socket.off('data', this.#onData)
    socket.off('end', this.#onEnd)
    socket.off('close', this.#onClose)
    socket.off('timeout', this.#onTimeout)
    this.#timeOutAfter(0)
    this.#deps.ordinary(socket)
    socket.off('error', ignore)
    if (bytes.length > 0) socket.unshift(bytes)
  }

  /** When the client closes its side, close ours, like node:http. */
  readonly #onEnd = (): void => void this.#socket.end()

  readonly #onClose = (): void => {
    if (this.#isAnswering) this.#hangUp.abort(new HungUp('the caller hung up'))
  }

  readonly #onTimeout = (): void => {
    const isLate = this.#timeoutMs === WHOLE_MS && !this.#isAnswering
    if (isLate && this.#socket.writable) this.#handOver(this.#release())
    else this.#socket.destroy()
  }

  #timeOutAfter(ms: number): void {
    if (this.#timeoutMs !== ms) this.#socket.setTimeout(ms)
    this.#timeoutMs = ms
  }
}

function ignore(): void {
  // The socket closes after its error.
}

function headOf(requestId: string, status: number, headers: Readonly<Record<string, string>>, length: number): string {
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\nx-content-type-options: nosniff\r\n${REQUEST_ID}: ${requestId}\r\n`
  for (const name in headers) {
    const value = headers[name] ?? ''
    if (!PLAIN.test(value)) validateHeaderValue(name, value)
    head += `${name}: ${value}\r\n`
  }
  if (headers['content-type'] === undefined) head += JSON_LINE
  if (headers['cache-control'] === undefined) head += NOT_STORED_LINE
  return `${head}content-length: ${length}\r\n`
}

const JSON_LINE = `content-type: ${JSON_TYPE}\r\n`
const NOT_STORED_LINE = 'cache-control: no-store\r\n'

const PLAIN = /^[\x20-\x7e]*$/

let dated = { second: Number.NaN, lines: '', closing: '' }

/** The lines that node:http would add to an answer. */
function lastLines(keepAliveMs: number, isLast: boolean): string {
  const now = Date.now()
  const second = Math.floor(now / 1000)
  if (dated.second !== second) {
    const date = new Date(now).toUTCString()
    const lines = `Date: ${date}\r\nConnection: keep-alive\r\nKeep-Alive: timeout=${Math.floor(keepAliveMs / 1000)}\r\n\r\n`
    dated = { second, lines, closing: `Date: ${date}\r\nConnection: close\r\n\r\n` }
  }
  return isLast ? dated.closing : dated.lines
}
