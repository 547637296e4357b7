import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BSON } from 'mongodb'
import { AppError } from '../../../errors.ts'
import { AT_ONCE, JsonBytes } from '../../json-bytes.ts'
import { runInSlices } from './write-large-value.ts'
import { Result } from './result.ts'
import { sizeOf, writeValue } from './write-value.ts'

const { Binary, BSONRegExp, Code, DBRef, Decimal128, Double, Long, MaxKey, MinKey, ObjectId, Timestamp, UUID } = BSON
const caps = { rowCap: 1_000, bytesMax: 1 << 20 }

function batchOf(documents: readonly (object | Uint8Array)[]): Buffer {
  const elements = documents.map((each, n) => {
    const bytes = each instanceof Uint8Array ? each : BSON.serialize(each)
    return Buffer.concat([Buffer.from(`\u0003${n}\0`), bytes])
  })
  const all = Buffer.concat([Buffer.alloc(4), ...elements, Buffer.alloc(1)])
  all.writeInt32LE(all.length)
  return all
}

function answer(documents: readonly (object | Uint8Array)[], fixed: readonly string[] = [], limits = caps) {
  const result = new Result(limits, fixed)
  ran(result.addAll(batchOf(documents)))
  return ran(result.finish()).value
}

/** Returns the result of the work, and the number of its pauses. */
function ran<T>(work: Generator<undefined, T>): { readonly value: T; readonly pauses: number } {
  for (let pauses = 0; ; pauses++) {
    const step = work.next()
    if (step.done === true) return { value: step.value, pauses }
  }
}

function written(value: unknown): [string, string] {
  const { rows, columns } = answer([{ v: value }])
  return [String(rows).slice(2, -2), columns[0]?.dataType ?? '']
}

const VALUES: readonly (readonly [string, unknown, string, string])[] = [
  ['an int', 42, '42', 'int'],
  ['a double', 1.5, '1.5', 'double'],
  ['a whole double', new Double(5), '5', 'double'],
  ['NaN', Number.NaN, '"NaN"', 'double'],
  ['-Infinity', -Infinity, '"-Infinity"', 'double'],
  ['a text', 'a "q" \\ \n \u0001 ü 😀', '"a \\"q\\" \\\\ \\n \\u0001 ü 😀"', 'string'],
  ['true', true, 'true', 'bool'],
  ['null', null, 'null', 'null'],
  ['a safe long', Long.fromString('9007199254740991'), '9007199254740991', 'long'],
  ['an unsafe long', Long.fromString('9007199254740993'), '"9007199254740993"', 'long'],
  ['the smallest long', Long.MIN_VALUE, '"-9223372036854775808"', 'long'],
  ['a negative long', Long.fromString('-5'), '-5', 'long'],
  ['a decimal', Decimal128.fromString('12.50'), '12.50', 'decimal'],
  ['a decimal of 16 digits', Decimal128.fromString('1.234567890123456'), '"1.234567890123456"', 'decimal'],
  ['a huge decimal', Decimal128.fromString('1E+3000'), '"1E+3000"', 'decimal'],
  ['a small decimal', Decimal128.fromString('-0.00000001'), '-1E-8', 'decimal'],
  ['a zero decimal', Decimal128.fromString('0E-10'), '0E-10', 'decimal'],
  ['a decimal that is not a number', Decimal128.fromString('NaN'), '"NaN"', 'decimal'],
  ['a date', new Date(0), '"1970-01-01T00:00:00.000Z"', 'date'],
  ['a date before 1970', new Date(-1), '"1969-12-31T23:59:59.999Z"', 'date'],
  ['an ObjectId', new ObjectId('0123456789abcdef01234567'), '"0123456789abcdef01234567"', 'objectId'],
  ['bytes', new Binary(Buffer.from([1, 2, 255])), '"AQL/"', 'binData'],
  ['bytes of old', new Binary(Buffer.from([1, 2, 255]), 2), '"AQL/"', 'binData'],
  ['a UUID', new UUID('01234567-89ab-cdef-0123-456789abcdef'), '"01234567-89ab-cdef-0123-456789abcdef"', 'binData'],
  ['a timestamp', new Timestamp({ t: 4_294_967_295, i: 2 }), '{"t":4294967295,"i":2}', 'timestamp'],
  ['a pattern', new BSONRegExp('a(', 'i'), '"/a(/i"', 'regex'],
  ['code', new Code('x => x'), '"x => x"', 'javascript'],
  ['code with a scope', new Code('f', { a: 1 }), '"f"', 'javascript'],
  ['the least key', new MinKey(), '"MinKey"', 'minKey'],
  ['the greatest key', new MaxKey(), '"MaxKey"', 'maxKey'],
  [
    'a reference',
    new DBRef('c', new ObjectId('0123456789abcdef01234567')),
    '{"$ref":"c","$id":"0123456789abcdef01234567"}',
    'object',
  ],
  ['a document', { a: [1, { b: null }], '': 2 }, '{"a":[1,{"b":null}],"":2}', 'object'],
]

for (const [name, value, json, type] of VALUES) {
  test(`a stored value is written exactly: ${name}`, () => {
    assert.deepEqual(written(value), [json, type])
    JSON.parse(json)
  })
}

test('a bad stored value does not fail the query: a date out of range, invalid UTF-8', () => {
  const date = Buffer.from(BSON.serialize({ v: Long.fromString('9000000000000000000') }))
  date[4] = 0x09
  assert.equal(answer([date]).rows, '[[{"$date":{"$numberLong":"9000000000000000000"}}]]')
  const text = Buffer.from(BSON.serialize({ v: 'ab' }))
  text[text.indexOf('ab')] = 0xff
  assert.equal(answer([text]).rows, '[["\uFFFDb"]]')
})

test('the columns are _id, the names of the query, then other names in order of appearance, and missing values are null', () => {
  const { columns, rows } = answer([{ x: 1, b: 2 }, { _id: 7, b: 'x', y: [','] }, { a: true }], ['a', 'b'])
  assert.deepEqual(
    columns.map(({ name, dataType }) => [name, dataType]),
    [
      ['_id', 'int'],
      ['a', 'bool'],
      ['b', 'mixed'],
      ['x', 'int'],
      ['y', 'array'],
    ],
  )
  assert.deepEqual(JSON.parse(String(rows)), [
    [null, null, 2, 1, null],
    [7, null, 'x', null, [',']],
    [null, true, null, null, null],
  ])
})

test('an answer without rows has the names of the query as its columns', () => {
  assert.deepEqual(answer([], ['n', '_id']), {
    columns: [
      { name: '_id', dataType: 'null' },
      { name: 'n', dataType: 'null' },
    ],
    rows: '[]',
    rowCount: 0,
    truncated: false,
  })
})

test('documents without fields are rows too', () => {
  assert.deepEqual(answer([{}, { a: 1 }, {}]).rows, '[[null],[1],[null]]')
  assert.deepEqual(answer([{}, {}]).rows, '[[],[]]')
})

test('rows over the limits are cut, and the nulls for late columns count', () => {
  const many = Array.from({ length: 50 }, (_, i) => ({ [`f${i}`]: i }))
  for (const bytesMax of [10, 100, 1_000, 5_000]) {
    const { rows, rowCount, truncated } = answer(many, [], { rowCap: 1_000, bytesMax })
    assert.ok(rows.length <= bytesMax && truncated, `${rows.length} of ${bytesMax}`)
    assert.equal(JSON.parse(String(rows)).length, rowCount)
  }
  assert.deepEqual(
    [answer(many, [], { ...caps, rowCap: 3 }).rowCount, answer(many, [], { ...caps, rowCap: 3 }).truncated],
    [3, true],
  )
})

test('an answer with more than 1,000 different fields is refused with a clear message', () => {
  const wide = Object.fromEntries(Array.from({ length: 1_001 }, (_, i) => [`f${i}`, i]))
  assert.throws(() => answer([wide]), { code: 'QUERY_FAILED' })
})

test('whatever lengths the server writes, reading ends, and never goes past the end of the answer', () => {
  const VALUE_AT = 7
  for (const value of ['text', { a: 'text' }, [1], new Binary(Buffer.from([1])), new Code('f', { a: 1 })]) {
    for (const length of [-2_147_483_648, -1, 0, 1_000, 2_147_483_647]) {
      const bytes = Buffer.from(BSON.serialize({ v: value, w: 1 }))
      bytes.writeInt32LE(length, VALUE_AT)
      try {
        assert.equal(JSON.parse(String(answer([bytes]).rows)).length, 1)
      } catch (error) {
        assert.equal(error instanceof AppError && error.code, 'QUERY_FAILED', String(error))
      }
    }
  }
  const inner = Buffer.from(BSON.serialize({ v: { t: 'text' }, w: 1 }))
  inner.writeInt32LE(-8, inner.indexOf('text') - 4)
  assert.equal(answer([inner]).rows, '[[null,1]]')
})

const int32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32LE(value)
  return bytes
}

/**
 * A small value of each type that contains its length. The last number says how many bytes of the value the length does
 * not include.
 */
const LENGTHS: readonly (readonly [string, number, Buffer, number])[] = [
  ['a string', 0x02, Buffer.concat([int32(2), Buffer.from('a\0')]), 4],
  ['a document', 0x03, Buffer.from(BSON.serialize({})), 0],
  ['an array', 0x04, Buffer.from(BSON.serialize({})), 0],
  ['bytes', 0x05, Buffer.concat([int32(2), Buffer.from([0, 1, 2])]), 5],
  ['a UUID', 0x05, Buffer.concat([int32(16), Buffer.from([4]), Buffer.alloc(16, 7)]), 5],
  ['bytes of old', 0x05, Buffer.concat([int32(6), Buffer.from([2]), int32(2), Buffer.from([1, 2])]), 5],
  ['a pointer', 0x0c, Buffer.concat([int32(2), Buffer.from('a\0'), Buffer.alloc(12, 7)]), 16],
  ['code', 0x0d, Buffer.concat([int32(2), Buffer.from('a\0')]), 4],
  ['a symbol', 0x0e, Buffer.concat([int32(2), Buffer.from('a\0')]), 4],
  [
    'code with a scope',
    0x0f,
    Buffer.concat([int32(15), int32(2), Buffer.from('a\0'), Buffer.from(BSON.serialize({}))]),
    0,
  ],
]

for (const [name, type, value, uncounted] of LENGTHS) {
  test(`a length that exceeds the buffer is rejected: ${name}`, () => {
    assert.equal(sizeOf(type, value, 0), value.length)
    for (let more = 1; more <= uncounted + 20; more++) {
      const longer = Buffer.from(value)
      longer.writeInt32LE(value.readInt32LE(0) + more)
      assert.throws(() => sizeOf(type, longer, 0), RangeError, `${more} more`)
      // The value is accepted if the buffer has `more` additional bytes.
      assert.equal(sizeOf(type, Buffer.concat([longer, Buffer.alloc(more)]), 0), value.length + more)
    }
  })
}

test('a BSON value of any type that is cut off is rejected', () => {
  const sizes = new Map([
    ...LENGTHS.map(([, type, value]) => [type, value] as const),
    ...[0x01, 0x09, 0x11, 0x12].map((type) => [type, Buffer.alloc(8)] as const),
    [0x07, Buffer.alloc(12)],
    [0x08, Buffer.alloc(1)],
    [0x0b, Buffer.from('a\0i\0')],
    [0x10, Buffer.alloc(4)],
    [0x13, Buffer.alloc(16)],
  ])
  for (const [type, value] of sizes) {
    for (let left = 0; left < value.length; left++) {
      assert.throws(() => sizeOf(type, value.subarray(0, left), 0), RangeError, `${left} bytes of type ${type}`)
    }
  }
})

test('the text of code with a scope is read only within its value', () => {
  for (const text of ['a\0', `${'a'.repeat(2 * AT_ONCE)}\0`]) {
    const value = Buffer.concat([int32(0), int32(0), Buffer.from(text), Buffer.from(BSON.serialize({}))])
    value.writeInt32LE(value.length)
    const document = Buffer.concat([
      int32(0),
      Buffer.from('\u000fv\0'),
      value,
      Buffer.from('\u0010w\0'),
      int32(9),
      Buffer.from([0]),
    ])
    document.writeInt32LE(document.length)
    for (const more of [0, 1, 5, 6, 20, 1_000]) {
      document.writeInt32LE(text.length + more, 11)
      const { rows } = answer([document])
      if (more === 0) assert.deepEqual(JSON.parse(String(rows)), [[text.slice(0, -1), 9]])
      else assert.equal(rows, '[[null,9]]')
    }
  }
})

/** Documents of a few megabytes that are large for different reasons. */
const n = 1 << 15
const LARGE: readonly (readonly [string, () => object])[] = [
  ['a text', () => ({ v: 'é"\u0001x'.repeat(n * 4) })],
  ['bytes', () => ({ v: new Binary(Buffer.alloc(n * 32 + 1, 'abc')), w: new Binary(Buffer.alloc(n * 4, 'x'), 2) })],
  ['code', () => ({ v: new Code('x'.repeat(n * 8)), w: new Code('y'.repeat(n * 8), { a: 1 }) })],
  ['a pattern', () => ({ v: new BSONRegExp('a"'.repeat(n * 4), 'i') })],
  ['an array', () => ({ v: Array.from({ length: n }, (_, k) => (k % 2 === 0 ? k : { a: [new Date(k)] })) })],
  ['arrays in objects', () => ({ v: { a: { b: Array.from({ length: n }, () => new UUID()) }, c: 'x'.repeat(n * 4) } })],
  [
    'many fields',
    () => ({ v: Object.fromEntries(Array.from({ length: n }, (_, k) => [`f${k}`, Long.fromNumber(k)])) }),
  ],
  ['a name', () => ({ v: { ['a"'.repeat(n * 4)]: 1 } })],
  ['many columns', () => Object.fromEntries(Array.from({ length: 500 }, (_, k) => [`f${k}`, 'x'.repeat(n / 16)]))],
]

for (const [name, make] of LARGE) {
  test(`a large document is written in slices, with the same output as without slices: ${name}`, () => {
    const document = make()
    const whole = batchOf([document])
    const result = new Result({ rowCap: 1_000, bytesMax: 64 << 20 }, [])
    const { pauses } = ran(result.addAll(whole))
    const { rows, columns } = ran(result.finish()).value
    const out = new JsonBytes(16)
    for (const [at, { name: column }] of columns.entries()) {
      const bytes = Buffer.from(BSON.serialize({ v: Reflect.get(document, column) }))
      const type = bytes[4] ?? 0
      if (at > 0) out.byte(0x2c)
      writeValue(type, bytes, 7, sizeOf(type, bytes, 7), out)
    }
    assert.ok(String(rows) === `[[${out.json()}]]`)
    assert.ok(pauses >= Math.floor(whole.length / (4 * AT_ONCE)), `${pauses} pauses for ${whole.length} bytes`)
  })
}

test('many small documents are written in slices, and are rewritten in slices if a column appears late', () => {
  const documents = Array.from({ length: 20_000 }, (_, k) => ({ a: `text ${k}`, ...(k > 15_000 ? { _id: k } : {}) }))
  const whole = batchOf(documents)
  const result = new Result({ rowCap: 50_000, bytesMax: 64 << 20 }, [])
  const turns = Math.floor(whole.length / (2 * AT_ONCE))
  assert.ok(ran(result.addAll(whole)).pauses >= turns)
  const { value, pauses } = ran(result.finish())
  assert.ok(pauses >= turns / 2, `${pauses} pauses`)
  assert.deepEqual(
    JSON.parse(String(value.rows)),
    documents.map(({ a, _id }: { a: string; _id?: number }) => [_id ?? null, a]),
  )
})

test('a large DBPointer is written in slices', () => {
  const text = Buffer.from(`${'é"'.repeat(n * 4)}\0`)
  const value = Buffer.concat([int32(text.length), text, Buffer.alloc(12, 7)])
  const document = Buffer.concat([int32(0), Buffer.from('\u000cv\0'), value, Buffer.from([0])])
  document.writeInt32LE(document.length)
  const result = new Result({ rowCap: 10, bytesMax: 64 << 20 }, [])
  const { pauses } = ran(result.addAll(batchOf([document])))
  const { rows } = ran(result.finish()).value
  assert.deepEqual(JSON.parse(String(rows)), [[{ $ref: 'é"'.repeat(n * 4), $id: '07'.repeat(12) }]])
  assert.ok(pauses >= Math.floor(text.length / (2 * AT_ONCE)), `${pauses} pauses`)
})

test('short documents that become long rows of nulls are written in slices', () => {
  const wide = Object.fromEntries(Array.from({ length: 999 }, (_, k) => [`f${k}`, k]))
  const result = new Result({ rowCap: 10_000, bytesMax: 64 << 20 }, [])
  const { pauses } = ran(result.addAll(batchOf([wide, ...Array.from({ length: 2_000 }, () => ({}))])))
  const { rows, rowCount } = ran(result.finish()).value
  assert.equal(rowCount, 2_001)
  assert.ok(pauses >= Math.floor(rows.length / (8 * AT_ONCE)), `${pauses} pauses for ${rows.length} bytes`)
})

test('a document whose fields repeat a name too often is refused with a clear message', () => {
  const repeated = (times: number): Buffer => {
    const bytes = Buffer.concat([int32(0), Buffer.from('\u000aa\0'.repeat(times)), Buffer.from([0])])
    bytes.writeInt32LE(bytes.length)
    return bytes
  }
  assert.equal(answer([repeated(10_000)]).rows, '[[null]]')
  assert.throws(() => answer([repeated(10_001)]), { code: 'QUERY_FAILED', message: /more than 10000 fields/ })
})

test('column names that are too long together are refused with a clear message', () => {
  const named = (count: number, by: string) =>
    Object.fromEntries(Array.from({ length: count }, (_, k) => [`${k}`.padEnd(4_000, by), k]))
  const refusal = { code: 'QUERY_FAILED', message: /names of more than 524288 bytes/ }
  assert.equal(answer([named(130, 'x')]).columns.length, 130)
  assert.throws(() => answer([named(132, 'x')]), refusal)
  assert.equal(answer([named(20, '\u0001')]).columns.length, 20)
  assert.throws(() => answer([named(22, '\u0001')]), refusal)
})

test('writing a large value stops at the limit on bytes', () => {
  const out = new JsonBytes(16)
  const result = new Result({ rowCap: 10, bytesMax: 100_000 }, [], out)
  ran(result.addAll(batchOf([{ v: 1 }, { v: Array.from({ length: 100_000 }, () => '\u0001'.repeat(40)) }])))
  assert.ok(out.bytes.length < 4 << 20, `${out.bytes.length}`)
  assert.deepEqual(ran(result.finish()).value, {
    columns: [{ name: 'v', dataType: 'mixed' }],
    rows: '[[1]]',
    rowCount: 1,
    truncated: true,
  })
})

test('a column name that is too long is refused with a clear message', () => {
  assert.throws(() => answer([{ ['x'.repeat(5_000)]: 1 }]), { code: 'QUERY_FAILED' })
})

test('if the signal aborts, writing stops between two slices', async () => {
  const result = new Result({ rowCap: 10, bytesMax: 64 << 20 }, [])
  const ended = AbortSignal.abort(new Error('ended'))
  await assert.rejects(
    async () => runInSlices(result.addAll(batchOf([{ v: 'x'.repeat(n * 32) }])), { signal: ended }),
    /ended/,
  )
})
