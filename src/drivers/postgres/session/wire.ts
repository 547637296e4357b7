// Reads and writes the socket of a PostgreSQL session after login. A request is one write. Messages are read in place,
// from the received chunk. Rows are passed on as bytes. This file buffers as little as possible and does not interpret
// values or errors.
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import { AT_ONCE } from '../../json-bytes.ts'
import type { DatabaseError } from './protocol-messages.ts'
import { readError, readFields, TERMINATE, type Field } from './protocol-messages.ts'

/** Receives the rows of an exchange as they arrive. */
export interface Sink {
  /** Returns the longest DataRow body to buffer. Called for each row that spans chunks. */
  rowBytesMax(): number
  describe(fields: readonly Field[]): void
  /** Receives a row's body from[start…end). If it returns false, the exchange ends and the session is abandoned. */
  row(from: Buffer, start: number, end: number): boolean
  /**
   * Receives the body of a row of more than AT_ONCE bytes, in a buffer that nobody else uses. Yields between two
   * slices, and finally returns the same as row(). If it is absent, row() is called.
   */
  longRow?(body: Buffer): Generator<undefined, boolean>
  /**
   * Called after each chunk. Returns work that must run before the next chunk is read, or null. The work yields between
   * two slices.
   */
  beforeNext?(): Generator<undefined, true> | null
  /** Called instead of row() for a row longer than rowBytesMax(), which is not buffered. Returns the same as row(). */
  tooLong(): boolean
  /**
   * Set for background work: rows are read in slices with a pause after each, so that other requests are not delayed.
   */
  readonly isUnhurried?: true
}

/** The expected descriptions of the prepared statements in an exchange. */
export interface Expectation {
  /**
   * Checks the next description, whose body is from[start…end). Returns false if the description is not as expected.
   * The session is then abandoned. Throws RangeError for a body that ends early.
   */
  next(from: Buffer, start: number, end: number): boolean
}

/** Discards the rows of a statement. */
export const NO_ROWS: Sink = {
  rowBytesMax: () => 0,
  describe: () => undefined,
  row: () => true,
  tooLong: () => true,
}

export interface Outcome {
  /** The first error from the server, which has ended the transaction. */
  readonly error: DatabaseError | null
  /**
   * True if a description was not as expected. The session is then unusable, and the server may still run the
   * statement.
   */
  readonly unexpected: boolean
  /** True if the sink refused a row. The session is then unusable, and the server may still be sending. */
  readonly cut: boolean
  /** The number of statements that the server parsed before the first error. */
  readonly parsed: number
  /** True if at least one row arrived for the sink. */
  readonly answered: boolean
  /** The last description of rows. */
  readonly fields: readonly Field[] | null
  /** The transaction status of the last ReadyForQuery: I idle, T in a transaction, E in a failed one. */
  readonly status: string
}

/** The socket was closed, or the bytes are not PostgreSQL's protocol. */
export class LostConnection extends Error {
  override readonly name = 'LostConnection'
}

const HEAD = 5
/** How long rows of background work are read before a pause. The pause is half as long. */
const SLICE_MS = 2
/**
 * How long rows of a request are read before other requests get a turn. Node passes on 32 chunks in one turn, which
 * took 300 ms for arrays of composites.
 */
const TURN_MS = 8
/** After so many bytes of a request that was given up, other requests get a moment. */
const LEFT_OVER_BYTES = 1024 * 1024
// The maximum number of stored bytes of a message that is not a row. An error may quote a value of any size.
const KEPT = 64 * 1024
const DESCRIPTION_MAX = 1024 * 1024
const CODE = {
  parsed: 49,
  row: 68,
  description: 84,
  parameters: 116,
  complete: 67,
  ready: 90,
  error: 69,
  copyIn: 71,
  copyOut: 72,
  copyBoth: 87,
}

interface Exchange {
  readonly sink: Sink
  readonly expected: Expectation | null
  readonly resolve: (outcome: Outcome) => void
  readonly reject: (reason: unknown) => void
  /** The number of ReadyForQuery messages that have not yet arrived. */
  syncs: number
  error: DatabaseError | null
  described: boolean
  /** True if the next description is of a prepared statement, not of rows that follow. */
  isStatement: boolean
  parsed: number
  answered: boolean
  fields: readonly Field[] | null
  /**
   * The number of statements that complete before the rows of an undescribed statement. 0 if these rows or a
   * description come next.
   */
  undescribedAfter: number
}

export class Wire {
  readonly #socket: Duplex
  readonly #head = Buffer.alloc(HEAD)
  #headFilled = 0
  #partial: Buffer | null = null
  #partialCode = 0
  #partialFilled = 0
  #partialSkip = 0
  #skip = 0
  #exchange: Exchange | null = null
  #usable = true
  #workedMs = 0
  #leftOver = 0
  /** While the sink works in turns: the chunks that have arrived since. Null otherwise. */
  #late: Buffer[] | null = null
  /** The number of ReadyForQuery messages that the server still has to send, also for an exchange that was given up. */
  #owed = 0
  readonly #quiet = Promise.withResolvers<undefined>()

  /** Takes over the socket. No other reader may remain. The caller passes received chunks to take(). */
  constructor(socket: Duplex) {
    this.#socket = socket
    socket.on('error', (error) => this.fail(new LostConnection('the connection was lost', { cause: error })))
    socket.on('close', () => {
      this.fail(new LostConnection('the connection was closed'))
      this.#settle(0)
    })
  }

  /** True if the server has answered every request, or the socket is closed. */
  get isQuiet(): boolean {
    return this.#owed === 0
  }

  get usable(): boolean {
    return this.#usable
  }

  /**
   * Writes a request with `syncs` Sync messages and reads until as many ReadyForQuery messages arrived. Only one
   * exchange may run at a time. Throws LostConnection, or the reason passed to fail(). `undescribedAfter` is null if
   * the request has the Describe of the sink's statement. Otherwise it is the number of statements that complete before
   * the rows of this statement.
   */
  exchange(
    request: Buffer,
    syncs: number,
    sink: Sink,
    expected: Expectation | null = null,
    undescribedAfter: number | null = null,
  ): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      if (!this.#usable || this.#exchange !== null) {
        reject(new LostConnection('the connection is not usable'))
        return
      }
      this.#exchange = {
        sink,
        expected,
        resolve,
        reject,
        syncs,
        error: null,
        described: undescribedAfter === 0,
        isStatement: false,
        parsed: 0,
        answered: false,
        fields: null,
        undescribedAfter: undescribedAfter ?? 0,
      }
      this.#owed += syncs
      this.#socket.write(request)
    })
  }

  /**
   * Makes the session unusable and rejects the current exchange with `reason`. Further messages are only read to see
   * when the server has answered the last request.
   */
  fail(reason: unknown): void {
    this.#usable = false
    const exchange = this.#exchange
    this.#exchange = null
    exchange?.reject(reason)
  }

  /**
   * For a session that is no longer usable: resolves when the server has answered the last request or has closed the
   * socket. Until then, the server may still run a statement. The wait does not keep the process alive.
   */
  untilQuiet(): Promise<undefined> {
    if (this.isQuiet) return Promise.resolve(undefined)
    if (this.#socket instanceof Socket) this.#socket.unref()
    return this.#quiet.promise
  }

  /** Sends Terminate if the session is idle, and closes the socket. */
  close(): void {
    if (this.isQuiet && this.#exchange === null && this.#socket.writable) this.#socket.end(TERMINATE)
    else this.#socket.destroy()
    this.#usable = false
  }

  /**
   * Processes a received chunk, which may split messages anywhere. Copies the parts of `chunk` that are needed later.
   */
  take(chunk: Buffer): void {
    if (!this.#reads) return
    if (this.#late !== null) return void this.#late.push(Buffer.from(chunk))
    const began = performance.now()
    try {
      this.#read(chunk)
      if (this.#late === null) this.#prepare()
      if (this.#late !== null) return
      if (!this.#usable) this.#breathe(chunk.length)
      else this.#rest(performance.now() - began)
    } catch (error) {
      this.#garbled(error)
    }
  }

  #garbled(cause: unknown): void {
    this.fail(new LostConnection('an answer that is not PostgreSQL', { cause }))
    this.#socket.destroy()
  }

  get #reads(): boolean {
    return this.#usable || !this.isQuiet
  }

  #read(chunk: Buffer): void {
    let at = 0
    while (at < chunk.length && this.#reads) {
      if (this.#late !== null) return void this.#late.push(Buffer.from(chunk.subarray(at)))
      if (this.#skip > 0) {
        const skipped = Math.min(this.#skip, chunk.length - at)
        this.#skip -= skipped
        at += skipped
      } else if (this.#partial !== null) at = this.#fill(this.#partial, chunk, at)
      else if (this.#headFilled > 0 || chunk.length - at < HEAD) at = this.#fillHead(chunk, at)
      else {
        const code = chunk[at] ?? 0
        const length = chunk.readUInt32BE(at + 1) - 4
        at += HEAD
        if (length <= chunk.length - at) {
          this.#message(code, chunk, at, at + length)
          at += length
        } else this.#begin(code, length)
      }
    }
  }

  /** Applies backpressure: the server waits while the socket is paused. */
  #rest(workedMs: number): void {
    const isUnhurried = this.#exchange?.sink.isUnhurried === true
    this.#workedMs += workedMs
    if (this.#workedMs < (isUnhurried ? SLICE_MS : TURN_MS)) return
    if (isUnhurried) this.#pause(this.#workedMs / 2)
    else {
      this.#socket.pause()
      setImmediate(() => this.#resume())
    }
    this.#workedMs = 0
  }

  #breathe(bytes: number): void {
    this.#leftOver += bytes
    if (this.#leftOver < LEFT_OVER_BYTES) return
    this.#leftOver = 0
    this.#pause(1)
  }

  #pause(ms: number): void {
    this.#socket.pause()
    setTimeout(() => this.#resume(), ms)
  }

  #resume(): void {
    if (this.#late === null) this.#socket.resume()
  }

  #fillHead(chunk: Buffer, at: number): number {
    const taken = chunk.copy(this.#head, this.#headFilled, at, Math.min(chunk.length, at + HEAD - this.#headFilled))
    this.#headFilled += taken
    if (this.#headFilled === HEAD) {
      this.#headFilled = 0
      const code = this.#head[0] ?? 0
      const length = this.#head.readUInt32BE(1) - 4
      if (length === 0) this.#message(code, this.#head, HEAD, HEAD)
      else this.#begin(code, length)
    }
    return at + taken
  }

  /** Allocates a buffer for a message that spans chunks. */
  #begin(code: number, length: number): void {
    const max = this.#keptMax(code)
    if (length > max && code === CODE.row && this.#exchange?.described === true) {
      this.#skip = length
      if (!this.#exchange.sink.tooLong()) this.#cut()
      return
    }
    if (length > max && code === CODE.description) throw new RangeError('a row description of that length')
    const kept = Math.min(length, max)
    this.#partial = Buffer.allocUnsafeSlow(kept)
    this.#partialCode = code
    this.#partialFilled = 0
    this.#partialSkip = length - kept
  }

  #keptMax(code: number): number {
    if (code === CODE.row) return this.#exchange?.described === true ? this.#exchange.sink.rowBytesMax() : KEPT
    return code === CODE.description ? DESCRIPTION_MAX : KEPT
  }

  #fill(partial: Buffer, chunk: Buffer, at: number): number {
    const taken = chunk.copy(partial, this.#partialFilled, at)
    this.#partialFilled += taken
    if (this.#partialFilled === partial.length) {
      this.#partial = null
      this.#skip = this.#partialSkip
      if (this.#partialCode === CODE.row && partial.length > AT_ONCE) this.#longRow(partial)
      else this.#message(this.#partialCode, partial, 0, partial.length)
    }
    return at + taken
  }

  #longRow(body: Buffer): void {
    const exchange = this.#exchange
    if (exchange?.described !== true) return
    const work = exchange.sink.longRow?.(body)
    if (work === undefined) return this.#message(CODE.row, body, 0, body.length)
    exchange.answered = true
    this.#start(exchange, work)
  }

  #prepare(): void {
    const exchange = this.#exchange
    const work = exchange?.sink.beforeNext?.() ?? null
    if (exchange !== null && work !== null) this.#start(exchange, work)
  }

  /** Does the first slice of the work. If there are more, nothing is read until they are done. */
  #start(exchange: Exchange, work: Generator<undefined, boolean>): void {
    const step = work.next()
    if (step.done !== true) {
      this.#late = []
      void this.#workInTurns(exchange, work)
    } else if (!step.value) this.#cut()
  }

  /** Does the rest of the work, one slice in each turn of the event loop. Then reads on. */
  async #workInTurns(exchange: Exchange, work: Generator<undefined, boolean>): Promise<void> {
    this.#socket.pause()
    try {
      // If the exchange was given up, another answer may already use the sink's buffer.
      for (await turn(); this.#exchange === exchange; await turn()) {
        const step = work.next()
        if (step.done !== true) continue
        if (!step.value) this.#cut()
        break
      }
    } catch (error) {
      this.#garbled(error)
    }
    const late = this.#late ?? []
    this.#late = null
    for (const chunk of late) this.take(chunk)
    this.#resume()
  }

  #message(code: number, from: Buffer, start: number, end: number): void {
    const exchange = this.#exchange
    if (code === CODE.row) {
      if (exchange?.described !== true) return
      exchange.answered = true
      if (!exchange.sink.row(from, start, end)) this.#cut()
      return
    }
    switch (code) {
      case CODE.description:
        if (exchange !== null) this.#described(exchange, from, start, end)
        return
      // ParameterDescription: sent only for a prepared statement, before its columns.
      case CODE.parameters:
        if (exchange !== null) exchange.isStatement = true
        return
      case CODE.parsed:
        if (exchange !== null) exchange.parsed++
        return
      case CODE.complete:
        if (exchange !== null) exchange.described = exchange.undescribedAfter > 0 && --exchange.undescribedAfter === 0
        return
      case CODE.error:
        this.#failed(readError(from, start, end))
        return
      case CODE.ready:
        this.#ready(from[start])
        return
      case CODE.copyIn:
      case CODE.copyOut:
      case CODE.copyBoth:
        throw new Error('a COPY that nobody asked for')
    }
    // BindComplete, NoData, ParameterStatus, NoticeResponse and NotificationResponse need no action.
  }

  #described(exchange: Exchange, from: Buffer, start: number, end: number): void {
    if (exchange.isStatement) {
      exchange.isStatement = false
      if (exchange.expected?.next(from, start, end) === false) this.#giveUp({ unexpected: true, cut: false })
      return
    }
    exchange.described = true
    exchange.fields = readFields(from, start, end)
    exchange.sink.describe(exchange.fields)
  }

  #failed(error: DatabaseError): void {
    const exchange = this.#exchange
    if (error.severity === 'FATAL' || error.severity === 'PANIC' || exchange === null) return this.fail(error)
    exchange.described = false
    exchange.error ??= error
  }

  #settle(owed: number): void {
    this.#owed = Math.max(0, owed)
    if (this.#owed === 0 && !this.#usable) this.#quiet.resolve(undefined)
  }

  #ready(status: number | undefined): void {
    this.#settle(this.#owed - 1)
    const exchange = this.#exchange
    if (exchange === null || --exchange.syncs > 0) return
    this.#exchange = null
    const { error, parsed, answered, fields } = exchange
    exchange.resolve({
      error,
      parsed,
      answered,
      fields,
      unexpected: false,
      cut: false,
      status: String.fromCharCode(status ?? 0),
    })
  }

  #cut(): void {
    this.#giveUp({ unexpected: false, cut: true })
  }

  #giveUp(why: Pick<Outcome, 'unexpected' | 'cut'>): void {
    const exchange = this.#exchange
    this.#usable = false
    this.#exchange = null
    if (exchange === null) return
    const { parsed, answered, fields } = exchange
    exchange.resolve({ error: null, parsed, answered, fields, ...why, status: '' })
  }
}
