// Exchanges one command at a time with a MongoDB server: sends one message, and returns the BSON document of the answer
// as bytes. Only OP_MSG with one body is supported, without checksum, compression and streams of answers. Any other
// data closes the connection.
import type { Duplex } from 'node:stream'

/** The socket was closed, or its bytes are no answer to our command. */
export class LostConnection extends Error {
  override readonly name = 'LostConnection'
}

const OP_MSG = 2013
/** The bytes before the document: the header, the flags, and the kind of the only section. */
export const FRAME = 21
const LENGTH = 4
/** The server's maxMessageSizeBytes. */
const MESSAGE_MAX = 48_000_000

interface Exchange {
  readonly resolve: (body: Buffer) => void
  readonly reject: (reason: unknown) => void
}

export class Wire {
  readonly #socket: Duplex
  #exchange: Exchange | null = null
  #requestId = 0
  #usable = true
  /** An answer that arrives in several chunks, and how much of it has arrived. */
  #message: Buffer | null = null
  readonly #length = Buffer.alloc(LENGTH)
  #filled = 0
  /** True if the server still has to answer an abandoned command. */
  #isOwed = false
  readonly #quiet = Promise.withResolvers<undefined>()

  /** The socket must be logged in. Until release(), nobody else may read from it. */
  constructor(socket: Duplex) {
    this.#socket = socket
    socket.on('data', this.#take)
    socket.on('close', this.#closed)
    socket.resume()
  }

  get usable(): boolean {
    return this.#usable
  }

  get isWorking(): boolean {
    return this.#exchange !== null
  }

  /**
   * The command in `message` begins at FRAME. Fills in the frame, sends the message, and returns the document of the
   * answer. Throws LostConnection, or the reason passed to abandon().
   */
  exchange(message: Buffer): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      if (!this.#usable || this.#exchange !== null) {
        reject(new LostConnection('the connection is not usable'))
        return
      }
      this.#requestId = (this.#requestId + 1) & 0x7fff_ffff
      message.writeInt32LE(message.length, 0)
      message.writeInt32LE(this.#requestId, 4)
      message.writeInt32LE(0, 8)
      message.writeInt32LE(OP_MSG, 12)
      message.writeInt32LE(0, 16)
      message[20] = 0
      this.#exchange = { resolve, reject }
      this.#socket.write(message)
    })
  }

  /**
   * Ends the exchange with this reason. The socket stays open, because a server notices a closed socket later than a
   * kill command.
   */
  abandon(reason: unknown): void {
    this.#usable = false
    const exchange = this.#exchange
    this.#exchange = null
    if (exchange === null) return
    this.#isOwed = true
    exchange.reject(reason)
  }

  /** Resolves when the server begins to answer the abandoned command, or has closed the socket. */
  untilQuiet(): Promise<undefined> {
    return this.#isOwed ? this.#quiet.promise : Promise.resolve(undefined)
  }

  /** Stops reading. Returns false if the socket cannot be used again. */
  release(): boolean {
    const isIdle = this.#usable && this.#exchange === null
    this.abandon(new LostConnection('the connection was given back'))
    this.#socket.off('data', this.#take)
    this.#socket.off('close', this.#closed)
    return isIdle
  }

  readonly #closed = (): void => {
    this.abandon(new LostConnection('the connection was closed'))
    this.#settle()
  }

  #settle(): void {
    this.#isOwed = false
    this.#quiet.resolve(undefined)
  }

  #fail(why: string): void {
    this.abandon(new LostConnection(why))
    this.#socket.destroy()
  }

  readonly #take = (chunk: Buffer): void => {
    if (!this.#usable) return this.#settle()
    if (this.#exchange === null) return this.#fail('an answer without a command')
    const isWhole = this.#filled === 0 && chunk.length >= FRAME && chunk.readInt32LE(0) === chunk.length
    if (isWhole) this.#answer(chunk)
    else this.#gather(chunk)
  }

  #gather(chunk: Buffer): void {
    let at = 0
    if (this.#message === null) {
      at = this.#fill(this.#length, chunk, 0)
      if (this.#filled < LENGTH) return
      const length = this.#length.readInt32LE(0)
      if (length < FRAME || length > MESSAGE_MAX) return this.#fail('an answer of an impossible length')
      this.#message = Buffer.allocUnsafe(length)
      this.#length.copy(this.#message)
    }
    const message = this.#message
    at += this.#fill(message, chunk, at)
    if (at < chunk.length) return this.#fail('two answers to one command')
    if (this.#filled < message.length) return
    this.#message = null
    this.#filled = 0
    this.#answer(message)
  }

  /** Copies as much of the chunk as `into` still needs. Returns the number of copied bytes. */
  #fill(into: Buffer, chunk: Buffer, from: number): number {
    const size = Math.min(into.length - this.#filled, chunk.length - from)
    chunk.copy(into, this.#filled, from, from + size)
    this.#filled += size
    return size
  }

  #answer(message: Buffer): void {
    const isOurs = message.readInt32LE(8) === this.#requestId && message.readInt32LE(12) === OP_MSG
    const isPlain = message.readInt32LE(16) === 0 && message[20] === 0
    const body = message.subarray(FRAME)
    if (!isOurs || !isPlain || body.length < LENGTH || body.readInt32LE(0) !== body.length) {
      return this.#fail('an answer of another form')
    }
    const exchange = this.#exchange
    this.#exchange = null
    exchange?.resolve(body)
  }
}
