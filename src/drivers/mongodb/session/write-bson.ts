// Writes a confined query as BSON. The bytes are the same as those of to-bson.ts with the client library, but no
// objects are created for them.
import type * as mongodb from 'mongodb'
import { isArray, Scalar, type Bson, type BsonDocument } from '../confined-query.ts'

type Library = Pick<typeof mongodb, 'BSON'>

const INITIAL_BYTES = 4_096
const KEPT_BYTES_MAX = 1 << 20
/** The maximum UTF-8 bytes of one UTF-16 unit. */
const UTF8_MAX = 3
const [OLD_BINARY, UUID] = [0x02, 0x04]

/** Collects one document. The buffer is then used for the next document. */
export class BsonBytes {
  readonly #library: Library
  #bytes = Buffer.allocUnsafeSlow(INITIAL_BYTES)
  #length = 0

  constructor(library: Library) {
    this.#library = library
  }

  /** Starts a new document. The caller fills the first `free` bytes. */
  begin(free: number): void {
    if (this.#bytes.length > KEPT_BYTES_MAX) this.#bytes = Buffer.allocUnsafeSlow(INITIAL_BYTES)
    this.#length = free
    this.#room(0)
  }

  /** Starts a document or an array. Returns its position for close(). */
  open(): number {
    this.#room(4)
    this.#length += 4
    return this.#length - 4
  }

  close(at: number): void {
    this.#byte(0)
    this.#bytes.writeInt32LE(this.#length - at, at)
  }

  bytes(): Buffer {
    const copy = Buffer.allocUnsafe(this.#length)
    this.#bytes.copy(copy, 0, 0, this.#length)
    return copy
  }

  raw(bytes: Uint8Array): void {
    this.#room(bytes.length)
    this.#bytes.set(bytes, this.#length)
    this.#length += bytes.length
  }

  /** Starts a field that is a document or an array. The caller then writes its fields and closes it. */
  nested(name: string, kind: 'document' | 'array'): number {
    this.#head(kind === 'array' ? 0x04 : 0x03, name)
    return this.open()
  }

  field(name: string, value: Bson): void {
    if (value === null) return this.#head(0x0a, name)
    switch (typeof value) {
      case 'string':
        this.#head(0x02, name)
        return this.#text(value)
      case 'number':
        return this.#number(name, value)
      case 'boolean':
        this.#head(0x08, name)
        return this.#byte(value ? 1 : 0)
      default:
        if (value instanceof Scalar) return this.#scalar(name, value)
        if (isArray(value)) return this.#array(name, value)
        return this.#document(name, value)
    }
  }

  #document(name: string, value: BsonDocument): void {
    const at = this.nested(name, 'document')
    for (const key in value) this.field(key, value[key] ?? null)
    this.close(at)
  }

  #array(name: string, values: readonly Bson[]): void {
    const at = this.nested(name, 'array')
    for (let n = 0; n < values.length; n++) this.field(String(n), values[n] ?? null)
    this.close(at)
  }

  /** As in the library, a whole number of 32 bits becomes an int. */
  #number(name: string, value: number): void {
    if (value === (value | 0) && !Object.is(value, -0)) {
      this.#head(0x10, name)
      return this.#int32(value)
    }
    this.#head(0x01, name)
    this.#double(value)
  }

  #scalar(name: string, { of }: Scalar): void {
    switch (of.kind) {
      case '$oid':
        this.#head(0x07, name)
        return this.raw(Buffer.from(of.hex, 'hex'))
      case '$date':
        this.#head(0x09, name)
        return this.#int64(BigInt(of.milliseconds))
      case '$numberInt':
        this.#head(0x10, name)
        return this.#int32(of.value)
      case '$numberLong':
        this.#head(0x12, name)
        return this.#int64(of.value)
      case '$numberDouble':
        this.#head(0x01, name)
        return this.#double(of.value)
      case '$numberDecimal':
        this.#head(0x13, name)
        return this.raw(this.#library.BSON.Decimal128.fromString(of.text).bytes)
      case '$binary':
        this.#head(0x05, name)
        return this.#binary(Buffer.from(of.base64, 'base64'), of.subType)
      case '$uuid':
        this.#head(0x05, name)
        return this.#binary(Buffer.from(of.text.replaceAll('-', ''), 'hex'), UUID)
      case '$regularExpression':
        this.#head(0x0b, name)
        this.#cstring(of.pattern)
        return this.#cstring(of.options)
      case '$timestamp':
        this.#head(0x11, name)
        return this.#int64((BigInt(of.t) << 32n) | BigInt(of.i))
      case '$minKey':
        return this.#head(0xff, name)
      case '$maxKey':
        return this.#head(0x7f, name)
      default:
        return of satisfies never
    }
  }

  #binary(bytes: Buffer, subType: number): void {
    const isOld = subType === OLD_BINARY
    this.#int32(isOld ? bytes.length + 4 : bytes.length)
    this.#byte(subType)
    if (isOld) this.#int32(bytes.length)
    this.raw(bytes)
  }

  #head(type: number, name: string): void {
    this.#byte(type)
    this.#cstring(name)
  }

  #cstring(text: string): void {
    this.#utf8(text)
    this.#byte(0)
  }

  #text(text: string): void {
    const at = this.open()
    this.#cstring(text)
    this.#bytes.writeInt32LE(this.#length - at - 4, at)
  }

  #utf8(text: string): void {
    const into = this.#room(text.length * UTF8_MAX)
    const start = this.#length
    // Names are short and ASCII, so a loop is faster than a call into the runtime.
    for (let n = 0; n < text.length; n++) {
      const code = text.charCodeAt(n)
      if (code > 0x7f || text.length > 64) {
        this.#length = start + into.write(text, start, 'utf8')
        return
      }
      into[start + n] = code
    }
    this.#length = start + text.length
  }

  #byte(value: number): void {
    this.#room(1)[this.#length++] = value
  }

  #int32(value: number): void {
    this.#room(4).writeInt32LE(value, this.#length)
    this.#length += 4
  }

  #int64(value: bigint): void {
    this.#room(8).writeBigInt64LE(BigInt.asIntN(64, value), this.#length)
    this.#length += 8
  }

  #double(value: number): void {
    this.#room(8).writeDoubleLE(value, this.#length)
    this.#length += 8
  }

  #room(more: number): Buffer {
    const need = this.#length + more
    if (need > this.#bytes.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(need, this.#bytes.length * 2))
      this.#bytes.copy(grown, 0, 0, this.#length)
      this.#bytes = grown
    }
    return this.#bytes
  }
}
