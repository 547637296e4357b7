// Encodes messages to the server in PostgreSQL's extended protocol (v3), and decodes messages of the server. Never
// sends Simple Query, which runs several statements in one text.

const OPEN_LENGTH = 5
/** The length that stands for NULL. */
const NULL = -1

function message(code: string, body: number, fill: (into: Buffer, at: number) => void): Buffer {
  const buffer = Buffer.allocUnsafe(OPEN_LENGTH + body)
  buffer.writeUInt8(code.charCodeAt(0), 0)
  buffer.writeInt32BE(4 + body, 1)
  fill(buffer, OPEN_LENGTH)
  return buffer
}

/** Returns a Parse message, which prepares `text` under `name` ('' for none). The server infers types that are 0. */
export function parseMessage(name: string, text: string, types: readonly number[] = []): Buffer {
  const nameLength = Buffer.byteLength(name)
  const textLength = Buffer.byteLength(text)
  return message('P', nameLength + textLength + 4 + 4 * types.length, (into, start) => {
    let at = start + into.write(name, start)
    into[at++] = 0
    at += into.write(text, at)
    into[at++] = 0
    at = into.writeInt16BE(types.length, at)
    for (const oid of types) at = into.writeInt32BE(oid, at)
  })
}

/** Returns a Close message for a prepared statement, which need not exist. */
export function closeStatement(name: string): Buffer {
  const length = Buffer.byteLength(name)
  return message('C', length + 2, (into, at) => {
    into.write('S', at)
    into.write(name, at + 1)
    into[at + 1 + length] = 0
  })
}

/** Returns a Bind message: the statement with these parameters becomes the unnamed portal, in text format. */
export function bindMessage(name: string, parameters: readonly (string | null)[] = []): Buffer {
  const sizes = parameters.map((text) => (text === null ? NULL : Buffer.byteLength(text)))
  const values = sizes.reduce((sum, size) => sum + 4 + Math.max(size, 0), 0)
  const body = 1 + Buffer.byteLength(name) + 1 + 2 + 2 + values + 2
  return message('B', body, (into, start) => {
    into[start] = 0
    let at = start + 1
    at += into.write(name, at)
    into[at++] = 0
    at = into.writeInt16BE(0, at)
    at = into.writeInt16BE(parameters.length, at)
    parameters.forEach((text, i) => {
      at = into.writeInt32BE(sizes[i] ?? 0, at)
      if (text !== null) at += into.write(text, at)
    })
    into.writeInt16BE(0, at)
  })
}

/** Requests a description of the columns of the unnamed portal. */
export const DESCRIBE = message('D', 2, (into, at) => into.write('P\0', at))
/** Executes the unnamed portal. A limit of rows would prevent parallel plans. */
export const EXECUTE = message('E', 5, (into, at) => into.fill(0, at))
export const SYNC = message('S', 0, () => undefined)
export const TERMINATE = message('X', 0, () => undefined)

/** Returns the messages that run one statement without describing its rows. */
export function statement(text: string): Buffer {
  return Buffer.concat([parseMessage('', text), bindMessage(''), EXECUTE])
}

/** Returns the messages that run one statement and describe its rows. */
export function question(text: string, parameters: readonly (string | null)[] = []): Buffer {
  return Buffer.concat([parseMessage('', text), bindMessage('', parameters), DESCRIBE, EXECUTE])
}

/** Returns a Describe message for the columns of a prepared statement. The server neither plans nor runs it. */
export function describeStatement(name: string): Buffer {
  const length = Buffer.byteLength(name)
  return message('D', length + 2, (into, at) => {
    into.write('S', at)
    into.write(name, at + 1)
    into[at + 1 + length] = 0
  })
}

/** A column of an answer, from RowDescription. */
export interface Field {
  readonly name: string
  /** The table and column (pg_attribute.attnum) of the values. Both are 0 for a computed column. */
  readonly tableOid: number
  readonly number: number
  readonly typeOid: number
}

/** Reads the RowDescription in from[start…end). Throws RangeError if a field is longer than the body. */
export function readFields(from: Buffer, start: number, end: number): Field[] {
  const fields: Field[] = []
  let at = start + 2
  for (let left = from.readUInt16BE(start); left > 0; left--) {
    const stop = from.indexOf(0, at)
    if (stop < 0 || stop + 19 > end) throw new RangeError('a row description that ends early')
    fields.push({
      name: from.toString('utf8', at, stop),
      tableOid: from.readUInt32BE(stop + 1),
      number: from.readInt16BE(stop + 5),
      typeOid: from.readUInt32BE(stop + 7),
    })
    at = stop + 19
  }
  return fields
}

/** An ErrorResponse. failure.ts decides which parts a caller may see. */
export class DatabaseError extends Error {
  override readonly name = 'DatabaseError'
  /** SQLSTATE. */
  readonly code: string
  /** FATAL and PANIC end the session. */
  readonly severity: string
  /** True for an error inside a function, on a foreign server, or in another query than the sent one. */
  readonly inner: boolean
  /** The position in the sent text, in characters from 0, or null if the server did not report it. */
  readonly position: number | null

  constructor(fields: ReadonlyMap<string, string>) {
    super(fields.get('M') ?? '')
    this.code = fields.get('C') ?? 'XX000'
    this.severity = fields.get('V') ?? fields.get('S') ?? 'ERROR'
    this.inner = fields.has('W') || fields.has('q') || fields.has('p')
    const place = Number(fields.get('P') ?? Number.NaN)
    this.position = Number.isSafeInteger(place) && place > 0 ? place - 1 : null
  }
}

/** Reads the body of an ErrorResponse, which may be incomplete. */
export function readError(from: Buffer, start: number, end: number): DatabaseError {
  const fields = new Map<string, string>()
  let at = start
  while (at < end && from[at] !== 0) {
    const stop = from.indexOf(0, at + 1)
    const last = stop < 0 || stop > end ? end : stop
    fields.set(String.fromCharCode(from[at] ?? 0), from.toString('utf8', at + 1, last))
    at = last + 1
  }
  return new DatabaseError(fields)
}
