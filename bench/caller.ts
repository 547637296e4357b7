// One caller of a benchmark, with one connection that stays open. The load generator runs on the same cores as the
// services, so it must need little CPU time. A client library took as much CPU time for a request as floor-server.ts
// took for its answer.
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

const HEAD_END = '\r\n\r\n'
const LAST_CHUNK = Buffer.from('\r\n0\r\n\r\n')

export class Caller {
  readonly #socket: Socket
  #resolve: () => void = () => undefined
  #reject: (reason: unknown) => void = () => undefined
  /**
   * The number of bytes of the answer that have not arrived yet. Null before the end of the head, Infinity if the
   * answer is chunked.
   */
  #left: number | null = null
  #head = ''
  /** The last bytes of a chunked answer that have arrived. */
  #tail = Buffer.alloc(0)

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.setNoDelay(true)
    socket.on('data', (bytes) => this.#take(bytes))
    socket.on('error', (error) => this.#reject(error))
    socket.on('close', () => this.#reject(new Error('the service closed the connection')))
  }

  static async open(url: string): Promise<Caller> {
    const { hostname, port } = new URL(url)
    const socket = connect(Number(port), hostname)
    await once(socket, 'connect')
    return new Caller(socket)
  }

  /** Reads the whole answer. Throws unless the status is 200. */
  ask(request: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
      this.#left = null
      this.#socket.write(request)
    })
  }

  close(): void {
    this.#socket.destroy()
  }

  #take(bytes: Buffer): void {
    if (this.#left === null) {
      const before = this.#head.length
      this.#head += bytes.toString('latin1')
      const end = this.#head.indexOf(HEAD_END)
      if (end === -1) return
      this.#left = this.#lengthOf(this.#head.slice(0, end))
      this.#head = ''
      bytes = bytes.subarray(end + HEAD_END.length - before)
    }
    if (this.#left === Infinity) {
      this.#tail = Buffer.concat([this.#tail, bytes.subarray(-LAST_CHUNK.length)]).subarray(-LAST_CHUNK.length)
      if (this.#tail.equals(LAST_CHUNK)) this.#resolve()
      return
    }
    this.#left -= bytes.length
    if (this.#left === 0) this.#resolve()
  }

  #lengthOf(head: string): number {
    if (!head.startsWith('HTTP/1.1 200 ')) this.#reject(new Error(head))
    this.#tail = Buffer.alloc(0)
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
    return length === undefined ? Infinity : Number(length)
  }
}

/** Leaves out content-length and the empty line. */
export function headOf(method: 'GET' | 'POST', url: string, headers: Readonly<Record<string, string>>): string {
  const { host, pathname } = new URL(url)
  const lines = Object.entries({ host, 'content-type': 'application/json', ...headers })
  return `${method} ${pathname} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}`
}

export function requestOf(head: string, body: object | null): string {
  if (body === null) return `${head}\r\n`
  const text = JSON.stringify(body)
  return `${head}content-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`
}
