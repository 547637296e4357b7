// Converts values between a fixture's JSON, the evaluator's messages and the cells of BigQuery's REST responses.
import type { WireValue } from '../../support/bigquery-evaluator.ts'
import type { Type } from './types.ts'
import type { Message } from './zetasql.ts'

const DAY = 86_400_000

/** Reads a fixture's value, which has the form of BigQuery's JSON loads. */
export function toValue(type: Type, value: unknown): Message {
  if (value === null || value === undefined) return {}
  if (type.kind === 'array')
    return { array_value: { element: (value as unknown[]).map((each) => toValue(type.of, each)) } }
  if (type.kind === 'struct') {
    const held = value as Readonly<Record<string, unknown>>
    return { struct_value: { field: type.fields.map((field) => toValue(field.type, held[field.name])) } }
  }
  if (type.kind === 'range') throw new Error('no fixture holds a range')
  const text = String(value)
  switch (type.name) {
    case 'INT64':
      return { int64_value: text }
    case 'FLOAT64':
      return { double_value: Number(value) }
    case 'STRING':
      return { string_value: text }
    case 'BOOL':
      return { bool_value: value === true }
    case 'JSON':
      return { json_value: text }
    case 'BYTES':
      return { bytes_value: Buffer.from(text, 'base64') }
    case 'NUMERIC':
      return { numeric_value: littleEndian(scaled(text, 9)) }
    case 'BIGNUMERIC':
      return { bignumeric_value: littleEndian(scaled(text, 38)) }
    case 'DATE':
      return { date_value: Date.parse(text) / DAY }
    case 'TIMESTAMP': {
      const milliseconds = Date.parse(text)
      const seconds = Math.floor(milliseconds / 1000)
      return { timestamp_value: { seconds: String(seconds), nanos: (milliseconds - seconds * 1000) * 1e6 } }
    }
    case 'DATETIME': {
      const at = new Date(`${text.replace(' ', 'T').replace(/Z$/, '')}Z`)
      const date = [at.getUTCFullYear(), at.getUTCMonth() + 1, at.getUTCDate()]
      const bits = pack([...date, at.getUTCHours(), at.getUTCMinutes(), at.getUTCSeconds()], [0, 4, 5, 5, 6, 6])
      return { datetime_value: { bit_field_datetime_seconds: String(bits), nanos: at.getUTCMilliseconds() * 1e6 } }
    }
    case 'TIME': {
      const [hour = 0, minute = 0, second = 0] = text.split(':').map(Number)
      const whole = Math.floor(second)
      return { time_value: String(pack([hour, minute, whole, Math.round((second - whole) * 1e9)], [0, 6, 6, 30])) }
    }
    default:
      throw new Error(`no fixture holds a ${type.name}`)
  }
}

/** Writes a TIMESTAMP in microseconds, as with formatOptions.useInt64Timestamp. */
export function toWire(type: Type, value: Message): WireValue {
  const set: string | undefined = value?.value
  if (set === undefined) return type.kind === 'array' ? [] : null
  const held: Message = value[set]
  switch (type.kind) {
    case 'array':
      return (held.element ?? []).map((each: Message) => ({ v: toWire(type.of, each) }))
    case 'struct':
      return { f: type.fields.map((field, n) => ({ v: toWire(field.type, held.field?.[n]) })) }
    case 'range': {
      const end = (side: Message): string => String(toWire(type.of, side) ?? 'UNBOUNDED')
      return `[${end(held.start)}, ${end(held.end)})`
    }
    case 'simple':
      return simple(type.name, held)
  }
}

function simple(name: string, held: Message): string {
  switch (name) {
    case 'BYTES':
      return Buffer.from(held).toString('base64')
    case 'NUMERIC':
      return decimal(fromLittleEndian(held), 9)
    case 'BIGNUMERIC':
      return decimal(fromLittleEndian(held), 38)
    case 'DATE':
      return new Date(Number(held) * DAY).toISOString().slice(0, 10)
    case 'TIMESTAMP':
      return String(BigInt(held.seconds ?? 0) * 1_000_000n + BigInt(Math.floor(Number(held.nanos ?? 0) / 1000)))
    case 'DATETIME': {
      const [year = 0, ...rest] = unpack(BigInt(held.bit_field_datetime_seconds ?? 0), [0, 4, 5, 5, 6, 6])
      const [month, day, hour, minute, second] = rest.map(two)
      const date = `${String(year).padStart(4, '0')}-${month}-${day}`
      return `${date}T${hour}:${minute}:${second}${fraction(Number(held.nanos ?? 0))}`
    }
    case 'TIME': {
      const [hour = 0, minute = 0, second = 0, nanos = 0] = unpack(BigInt(held), [0, 6, 6, 30])
      return `${two(hour)}:${two(minute)}:${two(second)}${fraction(nanos)}`
    }
    case 'INTERVAL':
      return interval(Buffer.from(held))
    default:
      return String(held)
  }
}

/**
 * An interval has 64 bits of microseconds, 32 bits of days, then sign, months (18 bits) and nanoseconds, which BigQuery
 * does not have.
 */
function interval(bytes: Buffer): string {
  const packed = bytes.readUInt32LE(12)
  const months = (packed >>> 13) & 0x3ffff
  const micros = bytes.readBigInt64LE(0)
  const size = micros < 0n ? -micros : micros
  const seconds = `${(size / 1_000_000n) % 60n}${fraction(Number(size % 1_000_000n) * 1000)}`
  const date = `${packed >>> 31 === 1 ? '-' : ''}${Math.trunc(months / 12)}-${months % 12}`
  const time = `${micros < 0n ? '-' : ''}${size / 3_600_000_000n}:${(size / 60_000_000n) % 60n}:${seconds}`
  return `${date} ${bytes.readInt32LE(8)} ${time}`
}

/** Packs numbers into bits. The first number keeps all its bits. The next numbers get the bits in `widths`. */
function pack(numbers: readonly number[], widths: readonly number[]): bigint {
  return numbers.reduce((all, each, n) => (all << BigInt(widths[n] ?? 0)) | BigInt(each), 0n)
}

function unpack(bits: bigint, widths: readonly number[]): number[] {
  const found: number[] = []
  let rest = bits
  for (const width of widths.slice(1).reverse()) {
    found.unshift(Number(rest & ((1n << BigInt(width)) - 1n)))
    rest >>= BigInt(width)
  }
  return [Number(rest), ...found]
}

function two(value: number): string {
  return String(value).padStart(2, '0')
}

function fraction(nanos: number): string {
  return nanos === 0 ? '' : `.${String(nanos).padStart(9, '0').replace(/0+$/, '')}`
}

function scaled(text: string, scale: number): bigint {
  const plain = /e/i.test(text) ? Number(text).toFixed(scale) : text
  const [whole = '0', rest = ''] = plain.replace('-', '').split('.')
  const size = BigInt(whole + rest.padEnd(scale, '0').slice(0, scale))
  return plain.startsWith('-') ? -size : size
}

function decimal(value: bigint, scale: number): string {
  const digits = String(value < 0n ? -value : value).padStart(scale + 1, '0')
  const rest = digits.slice(-scale).replace(/0+$/, '')
  return `${value < 0n ? '-' : ''}${digits.slice(0, -scale)}${rest === '' ? '' : `.${rest}`}`
}

/** Writes an integer in two's complement, in the fewest bytes that include the sign. */
function littleEndian(value: bigint): Buffer {
  const bytes: number[] = []
  let rest = value
  for (;;) {
    const byte = Number(rest & 0xffn)
    bytes.push(byte)
    rest >>= 8n
    if ((rest === 0n && byte < 128) || (rest === -1n && byte >= 128)) return Buffer.from(bytes)
  }
}

function fromLittleEndian(bytes: Uint8Array): bigint {
  const unsigned = [...bytes].reverse().reduce((all, byte) => (all << 8n) | BigInt(byte), 0n)
  const negative = (bytes.at(-1) ?? 0) >= 128
  return negative ? unsigned - (1n << BigInt(8 * bytes.length)) : unsigned
}
