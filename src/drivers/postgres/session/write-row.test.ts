// Rows of the server, cut into chunks anywhere, must become the JSON that JSON.stringify writes.
// write-scalar-value.test.ts tests more types with a real server.
import assert from 'node:assert/strict'
import { Duplex } from 'node:stream'
import { test } from 'node:test'
import { AT_ONCE, JsonBytes } from '../../json-bytes.ts'
import type { Rows } from '../../driver.ts'
import { Result, type Caps } from './result.ts'
import { TypeBook } from './result-types.ts'
import { LostConnection, Wire } from './wire.ts'

type Value = string | number | boolean | null
const OIDS = { int4: 23, int8: 20, text: 25, bool: 16, numeric: 1700, float8: 701, timestamptz: 1184 }
const CAPS: Caps = { rowCap: 50_000, bytesMax: 64 << 20 }

function message(code: string, body: Buffer): Buffer {
  const head = Buffer.from(`${code}....`)
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}

function description(oids: readonly number[]): Buffer {
  const fields = oids.map((oid, i) => {
    const field = Buffer.alloc(18)
    field.writeInt32BE(oid, 6)
    return Buffer.concat([Buffer.from(`c${i}\0`), field])
  })
  return message('T', Buffer.concat([count(oids.length), ...fields]))
}

function count(n: number): Buffer {
  return Buffer.from([n >> 8, n & 255])
}

function cell(text: string | Buffer | null): Buffer {
  const length = Buffer.alloc(4)
  if (text === null) return length.fill(255)
  const bytes = Buffer.from(text)
  length.writeInt32BE(bytes.length)
  return Buffer.concat([length, bytes])
}

function dataRow(values: readonly Value[]): Buffer {
  const cells = values.map((value) =>
    cell(typeof value === 'boolean' ? (value ? 't' : 'f') : value === null ? null : String(value)),
  )
  return message('D', Buffer.concat([count(values.length), ...cells]))
}

const READY = Buffer.concat([message('C', Buffer.from('SELECT\0')), message('Z', Buffer.from('I'))])

/** Returns the answer to these messages, which arrive in chunks of the given sizes. */
async function answer(
  messages: readonly Buffer[],
  sizes: () => number,
  caps = CAPS,
  out = new JsonBytes(16),
): Promise<Rows> {
  const socket = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() })
  const wire = new Wire(socket)
  const result = new Result(caps, new TypeBook(), out)
  const outcome = wire.exchange(Buffer.alloc(0), 1, result)
  outcome.catch(() => undefined)
  const all = Buffer.concat([...messages, READY])
  // All chunks are in the same buffer, as from a socket.
  const buffer = Buffer.alloc(65_536)
  for (let at = 0; at < all.length;) {
    const length = all.copy(buffer, 0, at, at + Math.min(sizes(), buffer.length))
    wire.take(buffer.subarray(0, length))
    at += length
  }
  await outcome
  return result.finish()
}

/** Returns numbers from 0 to 1, the same in each run (mulberry32). */
function numbers(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

const LETTERS = [...'abcdefgh"\\\b\t\n\f\r\x01\x1f\x7f /0éß漢\u2028\ud7ff\uffff😀𝒳']

function randomText(next: () => number): string {
  // Some lengths are near 256, because longer values are copied in another way.
  const length = Math.floor(next() < 0.1 ? 240 + next() * 40 : next() * 24)
  const kinds = next() < 0.6 ? 8 : LETTERS.length
  return Array.from({ length }, () => LETTERS[Math.floor(next() * kinds)] ?? '').join('')
}

function randomValue(oid: number, next: () => number): Value {
  if (next() < 0.1) return null
  if (oid === OIDS.bool) return next() < 0.5
  if (oid === OIDS.text) return randomText(next)
  // At most 15 digits, two of them after the point, so that a JavaScript number has exactly this value.
  const digits = { [OIDS.int4]: 9, [OIDS.int8]: 15, [OIDS.numeric]: 12 }[oid] ?? 0
  const whole = Math.trunc((next() - 0.5) * 10 ** Math.floor(next() * (digits + 1)))
  return oid === OIDS.numeric ? whole / 4 : whole
}

for (const seed of [1, 2, 3, 4, 5, 6, 7, 8]) {
  test(`random rows in random chunks are what JSON.stringify writes, seed ${seed}`, async () => {
    const next = numbers(seed)
    const kinds = [OIDS.int4, OIDS.text, OIDS.bool, OIDS.int8, OIDS.numeric, OIDS.text]
    const oids = Array.from({ length: seed }, () => kinds[Math.floor(next() * kinds.length)] ?? OIDS.text)
    const rows = Array.from({ length: 400 }, () => oids.map((oid) => randomValue(oid, next)))
    const largest = [3, 40, 5_000, 65_536][seed % 4] ?? 1
    const messages = [description(oids), ...rows.map(dataRow)]
    const read = await answer(messages, () => 1 + Math.floor(next() * largest))
    assert.equal(String(read.rows), JSON.stringify(rows))
    assert.equal(read.rowCount, rows.length)
  })
}

test('every byte at every position of a text is escaped as JSON.stringify escapes it', async () => {
  const rows: string[][] = []
  for (let byte = 1; byte < 128; byte++) {
    for (let place = 0; place < 13; place++) {
      const text = 'x'.repeat(place) + String.fromCharCode(byte)
      rows.push([text, text.padEnd(13, 'y'), text.padEnd(260, 'z')])
    }
  }
  const messages = [description([OIDS.text, OIDS.text, OIDS.text]), ...rows.map(dataRow)]
  const read = await answer(messages, () => 60_000)
  assert.equal(String(read.rows), JSON.stringify(rows))
})

test('bytes that are not UTF-8 are sent unchanged, and the JSON stays valid', async () => {
  const bytes = [...Array(128).keys()].map((n) => Buffer.from([n + 128, 0x22, 0xf0, 0x61]))
  const rows = bytes.map((value) => message('D', Buffer.concat([count(1), cell(value)])))
  const read = await answer([description([OIDS.text]), ...rows], () => 65_536)
  const values: unknown = JSON.parse(String(read.rows))
  assert.deepEqual(
    values,
    bytes.map((value) => [value.toString('utf8')]),
  )
})

test('at every byte cap, an answer is cut before the first row that does not fit', async () => {
  const rows: Value[][] = [
    [1, 'é"', true],
    [null, '', false],
    [-20, 'x'.repeat(300), null],
    [7, '\n', true],
    [8, 'z', true],
  ]
  const oids = [OIDS.int4, OIDS.text, OIDS.bool]
  const whole = Buffer.byteLength(JSON.stringify(rows))
  for (let bytesMax = 2; bytesMax <= whole + 1; bytesMax++) {
    const {
      rows: json,
      rowCount,
      truncated,
    } = await answer([description(oids), ...rows.map(dataRow)], () => 999, {
      rowCap: 10,
      bytesMax,
    })
    assert.equal(String(json), JSON.stringify(rows.slice(0, rowCount)))
    assert.equal(truncated, bytesMax < whole)
    assert.ok(Buffer.byteLength(json) <= bytesMax)
    if (truncated) assert.ok(Buffer.byteLength(JSON.stringify(rows.slice(0, rowCount + 1))) > bytesMax)
  }
})

test('an answer without columns has empty rows', async () => {
  const read = await answer([description([]), dataRow([]), dataRow([])], () => 7)
  assert.equal(read.rows, '[[],[]]')
})

test('short values of numeric types become strings if they are not JSON numbers', async () => {
  const texts = ['NaN', 'Infinity', '-Infinity']
  const rows = texts.map((text) => message('D', Buffer.concat([count(2), cell(text), cell(text)])))
  const read = await answer([description([OIDS.numeric, OIDS.float8]), ...rows], () => 65_536)
  assert.equal(read.rows, JSON.stringify(texts.map((text) => [text, text])))
})

test('a row that does not fit its description or its message closes the connection', async () => {
  const long = Buffer.from([0, 1, 0, 0, 0, 9, 0x61])
  const negative = Buffer.from([0, 1, 255, 255, 255, 254, 0x61])
  const early = Buffer.from([0, 1, 0, 0])
  for (const body of [count(0), count(2), long, negative, early]) {
    for (const size of [1, 65_536]) {
      const read = answer([description([OIDS.text]), message('D', body)], () => size)
      await assert.rejects(read, LostConnection, `${body.toString('hex')} in chunks of ${size}`)
    }
  }
})

test('a long answer gives other requests a turn between its chunks', async () => {
  const socket = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() })
  const wire = new Wire(socket)
  const outcome = wire.exchange(Buffer.alloc(0), 1, new Result(CAPS, new TypeBook(), new JsonBytes(16)))
  wire.take(description([OIDS.text]))
  const rows = Buffer.concat(Array.from({ length: 64 }, () => dataRow(['"\n'.repeat(500)])))
  let pauses = 0
  // Node passes on chunks in one turn until the socket is paused.
  for (let chunk = 0; chunk < 400; chunk++) {
    wire.take(rows)
    if (!socket.isPaused()) continue
    pauses++
    while (socket.isPaused()) await new Promise((resolve) => setImmediate(resolve))
  }
  wire.take(READY)
  await outcome
  assert.ok(pauses > 1, `${pauses} pauses`)
})

test('other requests get turns while the rows that waited for the lookup of a type are written', async () => {
  const types = new TypeBook()
  const result = new Result(CAPS, types, new JsonBytes(16))
  const field = { name: 'c0', typeOid: 99_999, tableOid: 0, number: 0 }
  result.describe([field])
  const row = dataRow(['"\n'.repeat(50_000)]).subarray(5)
  for (let n = 0; n < 200; n++) result.row(row, 0, row.length)
  types.learn(result.unknown, [])
  let turns = 0
  let isWritten = false
  const count = (): void => {
    turns++
    if (!isWritten) setImmediate(count)
  }
  setImmediate(count)
  await result.writeHeld()
  isWritten = true
  assert.ok(turns > 1, `${turns} turns`)
  assert.equal(result.finish().rowCount, 200)
})

/** Counts turns of the event loop. Call the returned function to stop and get the number. */
function countTurns(): () => number {
  let turns = 0
  let isOver = false
  const count = (): void => {
    turns++
    if (!isOver) setImmediate(count).unref()
  }
  setImmediate(count).unref()
  return () => {
    isOver = true
    return turns
  }
}

for (const seed of [1, 2, 3]) {
  test(`rows with long values in random chunks are what JSON.stringify writes, seed ${seed}`, async () => {
    const next = numbers(seed)
    const rows = Array.from({ length: 12 }, (_, n): Value[] => {
      const text = randomText(next) || 'x'
      return [
        n,
        text.repeat(next() < 0.5 ? 1 : 1 + Math.floor((next() * 8 * AT_ONCE) / text.length)),
        null,
        next() < 0.5,
      ]
    })
    const messages = [description([OIDS.int4, OIDS.text, OIDS.text, OIDS.bool]), ...rows.map(dataRow)]
    const read = await answer(messages, () => 1 + Math.floor(next() * 65_536))
    assert.equal(String(read.rows), JSON.stringify(rows))
  })
}

test('a long value gives other requests a turn after each slice, and its socket is paused until its end', async () => {
  const socket = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() })
  const wire = new Wire(socket)
  const text = '"\n😀'.repeat(500_000)
  const outcome = wire.exchange(Buffer.alloc(0), 1, new Result(CAPS, new TypeBook(), new JsonBytes(16)))
  wire.take(description([OIDS.text]))
  const row = dataRow([text])
  wire.take(row.subarray(0, 9))
  const turns = countTurns()
  wire.take(row.subarray(9))
  assert.ok(socket.isPaused())
  wire.take(READY)
  await outcome
  assert.ok(turns() >= row.length / AT_ONCE)
  assert.equal(socket.isPaused(), false)
})

test('no further slice of a long value is written after the request was given up', async () => {
  const socket = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() })
  const wire = new Wire(socket)
  const out = new JsonBytes(16)
  const outcome = wire.exchange(Buffer.alloc(0), 1, new Result(CAPS, new TypeBook(), out))
  wire.take(description([OIDS.text]))
  const row = dataRow(['x'.repeat(20 * AT_ONCE)])
  wire.take(row.subarray(0, 9))
  wire.take(row.subarray(9))
  wire.fail(new Error('given up'))
  await assert.rejects(outcome, /given up/)
  // The buffer now belongs to another answer.
  out.length = 0
  wire.take(READY)
  await wire.untilQuiet()
  assert.equal(out.length, 0)
  assert.ok(wire.isQuiet)
  assert.equal(socket.isPaused(), false)
})

test('a long row that does not fit its message closes the connection', async () => {
  const body = Buffer.alloc(4 * AT_ONCE, 'x')
  for (const [columns, length] of [
    [2, 9],
    [1, body.length],
    [1, -2],
  ] as const) {
    body.writeInt16BE(columns)
    body.writeInt32BE(length, 2)
    const read = answer([description([OIDS.text]), message('D', body)], () => 65_536)
    await assert.rejects(read, LostConnection, `${columns} columns, a value of ${length} bytes`)
  }
})

test('an answer is cut before a long value that does not fit, and the value is not written to its end', async () => {
  const rows = [['a'], ['"'.repeat(20 * AT_ONCE)], ['b']]
  const out = new JsonBytes(16)
  const caps = { rowCap: 10, bytesMax: 21 * AT_ONCE }
  const messages = [description([OIDS.text]), ...rows.map(dataRow)]
  const read = await answer(messages, () => 65_536, caps, out)
  assert.equal(String(read.rows), '[["a"]]')
  assert.ok(read.truncated)
  assert.ok(out.bytes.length < 40 * AT_ONCE, `${out.bytes.length} bytes`)
})

test('a long result is copied in slices when its buffer grows', async () => {
  const socket = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() })
  const wire = new Wire(socket)
  const out = new JsonBytes(8 << 20)
  const outcome = wire.exchange(Buffer.alloc(0), 1, new Result(CAPS, new TypeBook(), out))
  wire.take(description([OIDS.text]))
  const rows = Buffer.concat(Array.from({ length: 15 }, () => dataRow(['x'.repeat(4_000)])))
  const first = out.bytes
  while (8 * (1 << 20) - out.length > 6 * AT_ONCE + rows.length) wire.take(rows)
  assert.equal(out.bytes, first)
  const turns = countTurns()
  wire.take(rows)
  wire.take(rows)
  // The second chunk waits.
  assert.equal(out.bytes, first)
  wire.take(READY)
  await outcome
  assert.notEqual(out.bytes, first)
  assert.ok(turns() >= 7)
})
