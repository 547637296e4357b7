// Reads and writes the socket of a PostgreSQL session after the login. Each request is one write. Rows are passed on as
// bytes: this file does not interpret values.
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import { AT_ONCE } from '../../json-bytes.ts'
import type { DatabaseError } from './protocol-messages.ts'
import { readError, readFields, TERMINATE, type Field } from './protocol-messages.ts'

/** Receives the rows of a request. */
export interface Sink {
  /** Returns the greatest row length that the sink accepts. Called for each row that continues in the next chunk. */
  rowBytesMax(): number
  describe(fields: readonly Field[]): void
  /** Receives the body of a row in from[start…end). If it returns false, reading stops, and the session is lost. */
  row(from: Buffer, start: number, end: number): boolean
  /**
   * Receives a row of more than AT_ONCE bytes in a buffer of its own, in slices. Yields after each slice, and finally
   * returns the same as row(). If a sink has no longRow(), row() is called.
   */
  longRow?(body: Buffer): Generator<undefined, boolean>
  /** Called after each chunk. May return work to be done before the next chunk is read. It yields after each slice. */
  beforeNext?(): Generator<undefined, true> | null
  /** Called for a row longer than rowBytesMax(). Returns the same as row(). */
  tooLong(): boolean
  /** True for work in the background, which pauses after each slice, so that requests do not wait. */
  readonly isUnhurried?: true
}

/** Checks the server's descriptions of prepared statements. */
export interface Expectation {
  /** Checks the description in from[start…end). If it returns false, the session is abandoned. Throws RangeError. */
  next(from: Buffer, start: number, end: number): boolean
}

/** Takes no rows. */
export const NO_ROWS: Sink = {
  rowBytesMax: () => 0,
  describe: () => undefined,
  row: () => true,
  tooLong: () => true,
}

export interface Outcome {
  /** The first error of the server, which ended the transaction. */
  readonly error: DatabaseError | null
  /** True after an unexpected description. The session is unusable, and the server may still run the statement. */
  readonly unexpected: boolean
  /** True if the sink refused a row. The session is unusable, and the server may still send rows. */
  readonly cut: boolean
  /** The number of statements that the server parsed before the first error. */
  readonly parsed: number
  /** True if at least one row arrived for the sink. */
  readonly answered: boolean
  /** The last description of rows. */
  readonly fields: readonly Field[] | null
  /** From the last ReadyForQuery: I for no transaction, T for a transaction, E for a failed one. */
  readonly status: string
}

/** The socket was closed, or the bytes are not PostgreSQL's protocol. */
export class LostConnection extends Error {
  override readonly name = 'LostConnection'
}

const HEAD = 5
/** Background work reads rows for this time, then pauses for half of it. */
const SLICE_MS = 2
/**
 * A request reads rows for this time, then yields to the event loop. Otherwise, Node would read 32 chunks before it
 * yields, which took 300 ms for arrays of composites.
 */
const TURN_MS = 8
/** After a request is given up, its remaining bytes are read, with a turn of the event loop after this many. */
const LEFT_OVER_BYTES = 1024 * 1024
// Messages that are no rows are stored up to this length, because an error may quote a long value.
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
  /** True if the next description is of a prepared statement, false if it is of the rows that follow. */
  isStatement: boolean
  parsed: number
  answered: boolean
  fields: readonly Field[] | null
  /** Without a description of the sink's rows: how many statements must still complete before them. Otherwise 0. */
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
  /** While a sink works in slices: the chunks that arrived meanwhile. Otherwise null. */
  #late: Buffer[] | null = null
  /** The number of ReadyForQuery messages that the server still owes, also for requests that were given up. */
  #owed = 0
  readonly #quiet = Promise.withResolvers<undefined>()

  /** Takes over the socket. The caller passes each received chunk to take(). */
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
   * Writes a request with `syncs` Sync messages, and reads the answer up to the last ReadyForQuery. Only one request
   * may run at a time. If the sink's statement has no Describe, `undescribedAfter` is the number of statements before
   * it. Throws LostConnection, or the reason that was passed to fail().
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

  /** Makes the session unusable, and rejects the current request. Its answer is still read, to learn when it ends. */
  fail(reason: unknown): void {
    this.#usable = false
    const exchange = this.#exchange
    this.#exchange = null
    exchange?.reject(reason)
  }

  /**
   * Resolves after fail() when the server has finished the last request, or has closed the socket. Until then, it may
   * still run a statement. Waiting does not keep the process alive.
   */
  untilQuiet(): Promise<undefined> {
    if (this.isQuiet) return Promise.resolve(undefined)
    if (this.#socket instanceof Socket) this.#socket.unref()
    return this.#quiet.promise
  }

  /** Closes the socket. If no request runs, sends Terminate first. */
  close(): void {
    if (this.isQuiet && this.#exchange === null && this.#socket.writable) this.#socket.end(TERMINATE)
    else this.#socket.destroy()
    this.#usable = false
  }

  /** Reads a received chunk. A message may begin or end anywhere in it. The chunk can be reused afterwards. */
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

  /** Pauses the socket if the request has used up its time, so that the server waits. */
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

  /** Allocates a buffer for a message that does not end in this chunk. */
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

  /** Does the first slice of a sink's work. If there are more, the socket is not read until they are done. */
  #start(exchange: Exchange, work: Generator<undefined, boolean>): void {
    const step = work.next()
    if (step.done !== true) {
      this.#late = []
      void this.#workInTurns(exchange, work)
    } else if (!step.value) this.#cut()
  }

  /** Does the other slices, one in each turn of the event loop. Then reads on. */
  async #workInTurns(exchange: Exchange, work: Generator<undefined, boolean>): Promise<void> {
    this.#socket.pause()
    try {
      // If the request was given up, another answer may already use the sink's buffer.
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
      // The server sends ParameterDescription only for a prepared statement, before the description of its columns.
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
    // Ignored: BindComplete, NoData, ParameterStatus, NoticeResponse, NotificationResponse.
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
