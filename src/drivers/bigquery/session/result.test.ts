// The pages of BigQuery must become rows in Vitrine's format, exact for every type. Invalid pages are refused.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { JsonBytes } from '../../json-bytes.ts'
import { Unreadable } from './http-exchange.ts'
import { ErrorResponse } from './error-response.ts'
import { readPage, Result } from './result.ts'
import { TimeSlices } from './time-slices.ts'

interface Column {
  readonly type: string
  readonly mode?: string
  readonly fields?: readonly object[]
  readonly rangeElementType?: object
}

function answer(column: Column, ...values: readonly unknown[]) {
  const page = {
    jobComplete: true,
    jobReference: { projectId: 'p', jobId: 'job_1', location: 'EU' },
    schema: { fields: [{ name: 'c', ...column }] },
    totalRows: String(values.length),
    rows: values.map((v) => ({ f: [{ v }] })),
  }
  return rowsOf(JSON.stringify(page))
}

async function rowsOf(page: string, caps = { rowCap: 1000, bytesMax: 1_000_000 }, slices = new TimeSlices(null)) {
  const result = new Result(caps, new Map(), new JsonBytes(16))
  await result.add(await readPage(Buffer.from(page), slices), slices)
  const { columns, rows, ...rest } = result.finish()
  const text = String(rows)
  // Whatever the input is, the output must be valid JSON.
  JSON.parse(text)
  return { text, dataType: columns[0]?.dataType, ...rest }
}

const STRUCT = {
  type: 'RECORD',
  fields: [
    { name: 'sku', type: 'STRING' },
    { name: 'qty', type: 'INTEGER' },
  ],
}

/** A struct of four arrays, as a field of a schema. */
const ARRAYS = `"RECORD","fields":[${['a', 'b', 'c', 'd'].map((name) => `{"name":"${name}","type":"INTEGER","mode":"REPEATED"}`).join()}]`

const VALUES: readonly (readonly [string, Column, unknown, string, string])[] = [
  ['NULL', { type: 'INTEGER' }, null, 'null', 'INT64'],
  ['zero', { type: 'INT64' }, '0', '0', 'INT64'],
  ['the largest safe integer', { type: 'INTEGER' }, '9007199254740991', '9007199254740991', 'INT64'],
  ['the first unsafe integer', { type: 'INTEGER' }, '9007199254740992', '"9007199254740992"', 'INT64'],
  ['the smallest safe integer', { type: 'INTEGER' }, '-9007199254740991', '-9007199254740991', 'INT64'],
  ['the smallest integer', { type: 'INTEGER' }, '-9223372036854775808', '"-9223372036854775808"', 'INT64'],
  ['a float', { type: 'FLOAT' }, '1.0E10', '10000000000', 'FLOAT64'],
  ['a float that needs all digits', { type: 'FLOAT' }, '0.1', '0.1', 'FLOAT64'],
  ['a tiny float', { type: 'FLOAT' }, '4.9E-324', '5e-324', 'FLOAT64'],
  ['a float that is a property name of JavaScript', { type: 'FLOAT' }, 'constructor', '"constructor"', 'FLOAT64'],
  ['minus zero', { type: 'FLOAT' }, '-0.0', '-0', 'FLOAT64'],
  ['NaN', { type: 'FLOAT' }, 'NaN', '"NaN"', 'FLOAT64'],
  ['infinity', { type: 'FLOAT' }, 'Infinity', '"Infinity"', 'FLOAT64'],
  ['minus infinity', { type: 'FLOAT' }, '-inf', '"-Infinity"', 'FLOAT64'],
  ['a decimal', { type: 'NUMERIC' }, '1.10', '1.10', 'NUMERIC'],
  ['a decimal of 15 digits', { type: 'NUMERIC' }, '0.000123456789012345', '0.000123456789012345', 'NUMERIC'],
  ['a decimal of 16 digits', { type: 'NUMERIC' }, '1.234567890123456', '"1.234567890123456"', 'NUMERIC'],
  [
    'a decimal with few digits and many zeros',
    { type: 'BIGNUMERIC' },
    '100000000000000000000',
    '100000000000000000000',
    'BIGNUMERIC',
  ],
  [
    'a decimal with too many digits for a double',
    { type: 'BIGNUMERIC' },
    '-12345678901234567890.123',
    '"-12345678901234567890.123"',
    'BIGNUMERIC',
  ],
  ['true', { type: 'BOOLEAN' }, 'true', 'true', 'BOOL'],
  ['false', { type: 'BOOL' }, 'false', 'false', 'BOOL'],
  ['a text', { type: 'STRING' }, 'a "b" \\ \n é 😀', '"a \\"b\\" \\\\ \\n é 😀"', 'STRING'],
  ['a text that looks like a number', { type: 'STRING' }, '007', '"007"', 'STRING'],
  ['an empty text', { type: 'STRING' }, '', '""', 'STRING'],
  ['bytes', { type: 'BYTES' }, '/wA=', '"/wA="', 'BYTES'],
  ['a date', { type: 'DATE' }, '2024-01-01', '"2024-01-01"', 'DATE'],
  ['a time', { type: 'TIME' }, '12:34:56.789', '"12:34:56.789"', 'TIME'],
  ['a datetime', { type: 'DATETIME' }, '2024-01-01T00:00:00', '"2024-01-01T00:00:00"', 'DATETIME'],
  ['an instant', { type: 'TIMESTAMP' }, '1704103200000000', '"2024-01-01T10:00:00.000000Z"', 'TIMESTAMP'],
  [
    'an instant to the microsecond',
    { type: 'TIMESTAMP' },
    '1706933106123456',
    '"2024-02-03T04:05:06.123456Z"',
    'TIMESTAMP',
  ],
  ['an instant before 1970', { type: 'TIMESTAMP' }, '-500000', '"1969-12-31T23:59:59.500000Z"', 'TIMESTAMP'],
  ['the microsecond before 1970', { type: 'TIMESTAMP' }, '-1', '"1969-12-31T23:59:59.999999Z"', 'TIMESTAMP'],
  ['a whole second before 1970', { type: 'TIMESTAMP' }, '-1000000', '"1969-12-31T23:59:59.000000Z"', 'TIMESTAMP'],
  ['the first instant', { type: 'TIMESTAMP' }, '-62135596800000000', '"0001-01-01T00:00:00.000000Z"', 'TIMESTAMP'],
  ['the last instant', { type: 'TIMESTAMP' }, '253402300799999999', '"9999-12-31T23:59:59.999999Z"', 'TIMESTAMP'],
  ['an instant after the year 9999', { type: 'TIMESTAMP' }, '253402300800000000', '"253402300800000000"', 'TIMESTAMP'],
  ['geography', { type: 'GEOGRAPHY' }, 'POINT(1 2)', '"POINT(1 2)"', 'GEOGRAPHY'],
  ['an interval', { type: 'INTERVAL' }, '1-2 3 4:5:6', '"1-2 3 4:5:6"', 'INTERVAL'],
  [
    'a range',
    { type: 'RANGE', rangeElementType: { type: 'DATE' } },
    '[2024-01-01, UNBOUNDED)',
    '"[2024-01-01, UNBOUNDED)"',
    'RANGE<DATE>',
  ],
  [
    'JSON with a large number',
    { type: 'JSON' },
    '{"a":9007199254740993,"b":[1.10]}',
    '{"a":9007199254740993,"b":[1.10]}',
    'JSON',
  ],
  ['JSON null', { type: 'JSON' }, 'null', 'null', 'JSON'],
  ['invalid JSON in a JSON column', { type: 'JSON' }, '{"a":1}, "b"', '"{\\"a\\":1}, \\"b\\""', 'JSON'],
  ['an array', { type: 'INTEGER', mode: 'REPEATED' }, [{ v: '1' }, { v: null }], '[1,null]', 'ARRAY<INT64>'],
  ['an empty array', { type: 'STRING', mode: 'REPEATED' }, [], '[]', 'ARRAY<STRING>'],
  ['an array that is NULL', { type: 'STRING', mode: 'REPEATED' }, null, '[]', 'ARRAY<STRING>'],
  ['a struct', STRUCT, { f: [{ v: 'A' }, { v: '2' }] }, '{"sku":"A","qty":2}', 'STRUCT<sku STRING, qty INT64>'],
  ['a struct that is NULL', STRUCT, null, 'null', 'STRUCT<sku STRING, qty INT64>'],
  [
    'an array of structs',
    { ...STRUCT, mode: 'REPEATED' },
    [{ v: { f: [{ v: 'A' }, { v: null }] } }],
    '[{"sku":"A","qty":null}]',
    'ARRAY<STRUCT<sku STRING, qty INT64>>',
  ],
  [
    'a struct of arrays',
    { type: 'STRUCT', fields: [{ name: 'x', type: 'DATE', mode: 'REPEATED' }] },
    { f: [{ v: [{ v: '2024-01-01' }] }] },
    '{"x":["2024-01-01"]}',
    'STRUCT<x ARRAY<DATE>>',
  ],
  [
    'repeated names',
    { type: 'RECORD', fields: ['p', 'p', 'p', 'p_1', ''].map((name) => ({ name, type: 'INTEGER' })) },
    { f: ['1', '2', '3', '4', '5'].map((v) => ({ v })) },
    '{"p":1,"p_2":2,"p_3":3,"p_1":4,"_field_5":5}',
    'STRUCT<p INT64, p INT64, p INT64, p_1 INT64, INT64>',
  ],
  ['a number without quotes, as an emulator sends it', { type: 'INTEGER' }, 7, '7', 'INT64'],
  ['a word without quotes, as an emulator sends it', { type: 'BOOLEAN' }, true, 'true', 'BOOL'],
  ['a text instead of a number', { type: 'INTEGER' }, '1]],[[2', '"1]],[[2"', 'INT64'],
  ['an unknown type', { type: 'NOVELTY' }, 'x', '"x"', 'NOVELTY'],
]

describe('a value', () => {
  for (const [what, column, value, json, dataType] of VALUES) {
    test(`a value of BigQuery is written exactly: ${what} is ${json.slice(0, 60)}`, async () => {
      const { text, dataType: shownType } = await answer(column, value)
      assert.deepEqual([text, shownType], [`[[${json}]]`, dataType])
    })
  }
})

describe('a page', () => {
  const row = '{"f":[{"v":"1"}]}'
  const page = (rows: string, more = '') =>
    `{"rows":${rows},"jobComplete":true,"schema":{"fields":[{"name":"c","type":"INTEGER"}]}${more}}`

  test('the members of a page may have any order, with white space and further members', async () => {
    const { text } = await rowsOf(page(` [ { "x" : [1,{}], "f" : [ { "w":"}", "v" : "1" , "z":null } ] } ,\n${row} ] `))
    assert.equal(text, '[[1],[1]]')
  })

  test('a page without rows is an empty result', async () => {
    const schema = '"schema":{"fields":[{"name":"c","type":"INTEGER"}]}'
    assert.equal((await rowsOf(`{"jobComplete":true,"totalRows":"0",${schema}}`)).text, '[]')
  })

  test('a page is cut at the row limit and at the byte limit, and reported as truncated', async () => {
    const rows = `[${Array(10).fill(row).join(',')}]`
    assert.deepEqual(await rowsOf(page(rows), { rowCap: 3, bytesMax: 1000 }), {
      text: '[[1],[1],[1]]',
      dataType: 'INT64',
      rowCount: 3,
      truncated: true,
    })
    const cut = await rowsOf(page(rows), { rowCap: 10, bytesMax: 13 })
    assert.deepEqual([cut.text, cut.truncated], ['[[1],[1],[1]]', true])
    assert.equal((await rowsOf(page(`[${row}]`, ',"totalRows":"9"'), { rowCap: 1, bytesMax: 1000 })).truncated, true)
    assert.equal((await rowsOf(page(`[${row}]`, ',"totalRows":"1"'), { rowCap: 1, bytesMax: 1000 })).truncated, false)
    // A page with fewer rows than it announces also counts as truncated.
    assert.equal((await rowsOf(page(`[${row}]`, ',"totalRows":"3"'), { rowCap: 9, bytesMax: 1000 })).truncated, true)
  })

  test('the page of a failed job is an error, but a page with warnings and a result is no error', async () => {
    const errors = '"errors":[{"reason":"invalidQuery","message":"Division by zero"}]'
    await assert.rejects(readPage(Buffer.from(`{"jobComplete":true,${errors}}`), new TimeSlices(null)), (error) => {
      return error instanceof ErrorResponse && error.reason === 'invalidQuery'
    })
    assert.equal((await rowsOf(page(`[${row}]`, `,${errors}`))).text, '[[1]]')
  })

  const broken: readonly (readonly [string, string])[] = [
    ['nothing', ''],
    ['a text', '"rows"'],
    ['half a page', page('[{"f":[{"v":"1"}').slice(0, 20)],
    ['bytes after the page', `${page('[]')}{}`],
    ['a control character in a text', page('[{"f":[{"v":"\u0001"}]}]')],
    ['an invalid escape', page('[{"f":[{"v":"\\x"}]}]')],
    ['a Unicode escape of two digits', page('[{"f":[{"v":"\\u12"}]}]')],
    ['an invalid word', page('[{"f":[{"v":nul}]}]')],
    ['an invalid number', page('[{"f":[{"v":01}]}]')],
    ['a number of a thousand digits', page(`[{"f":[{"v":${'1'.repeat(1000)}}]}]`)],
    ['a missing comma', page(`[${row}${row}]`)],
    ['a row without cells', page('[{}]')],
    ['a row that is a number', page('[1]')],
    ['invalid cells', page('[{"f":{"v":"1"}}]')],
    ['too many cells', page('[{"f":[{"v":"1"},{"v":"2"}]}]')],
    ['too few cells', page('[{"f":[]}]')],
    ['a cell without a value', page('[{"f":[{}]}]')],
    ['an array that the schema does not have', page('[{"f":[{"v":[{"v":"1"}]}]}]')],
    ['JSON that is no text', page('[{"f":[{"v":["x"]}]}]').replace('INTEGER', 'JSON')],
    ['endless depth', page('['.repeat(100_000))],
    ['no columns', '{"jobComplete":true,"totalRows":"0","schema":{"fields":[]}}'],
    ['no schema and invalid errors', '{"jobComplete":true,"errors":{"reason":"invalidQuery"}}'],
    ['no jobComplete', '{"rows":[]}'],
    ['an invalid schema', '{"jobComplete":true,"schema":{"fields":{}},"rows":[]}'],
    ['fields without types', '{"jobComplete":true,"schema":{"fields":[{"name":"x"}]}}'],
    [
      'an endless schema',
      `{"jobComplete":true,"schema":${'{"fields":[{"name":"x","type":"RECORD","fields":[{"name":"x","type":"RECORD",'.repeat(1)}${'"fields":[{"name":"x","type":"RECORD",'.repeat(60)}"mode":"NULLABLE"${'}]'.repeat(60)}}]}]}}`,
    ],
  ]
  for (const [what, text] of broken) {
    test(`a page with ${what} is refused`, async () => {
      await assert.rejects(rowsOf(text), Unreadable)
    })
  }

  test('a page with invalid UTF-8 is still written as JSON', async () => {
    const bytes = Buffer.from(page('[{"f":[{"v":"\u00ff"}]}]').replace('INTEGER', 'STRING'), 'latin1')
    const result = new Result({ rowCap: 1, bytesMax: 100 }, new Map(), new JsonBytes(16))
    const slices = new TimeSlices(null)
    await result.add(await readPage(bytes, slices), slices)
    assert.deepEqual(JSON.parse(String(result.finish().rows)), [['\ufffd']])
  })

  test('reading and writing a page yields to the event loop every 128 kB', async () => {
    const bytes = page(`[${Array.from({ length: 40_000 }, (_, n) => `{"f":[{"v":"${n}"}]}`).join(',')}]`)
    const slices = new TimeSlices(null)
    const { rowCount } = await rowsOf(bytes, { rowCap: 100_000, bytesMax: 10_000_000 }, slices)
    const each = Math.floor(bytes.length / (128 * 1024 + 30))
    assert.deepEqual([rowCount, slices.count >= 2 * each, each > 5], [40_000, true, true])
    const short = new TimeSlices(null)
    await rowsOf(page('[{"f":[{"v":"1"}]}]'), undefined, short)
    assert.equal(short.count, 0)
  })

  for (const [what, type, value] of [
    ['an array', '"INTEGER","mode":"REPEATED"', `[${'{"v":"1"},'.repeat(100_000)}{"v":"2"}]`],
    ['JSON', '"JSON"', `"[${'1,'.repeat(500_000)}2]"`],
    [
      'a struct of arrays',
      ARRAYS,
      `{"f":[${Array(4)
        .fill(`{"v":[${'{"v":"1"},'.repeat(25_000)}{"v":"2"}]}`)
        .join()}]}`,
    ],
  ] as const) {
    test(`reading a page yields within one long row: ${what}`, async () => {
      const bytes = page(`[{"f":[{"v":${value}}]}]`).replace('"INTEGER"', type)
      const slices = new TimeSlices(null)
      const { rowCount } = await rowsOf(bytes, { rowCap: 1, bytesMax: 10_000_000 }, slices)
      const least = Math.floor(bytes.length / (128 * 1024 + 30))
      assert.deepEqual([rowCount, slices.count >= (type === '"JSON"' ? least : 2 * least), least > 5], [1, true, true])
    })
  }

  const LONG = 'ab"\n\u0001é日😀'.repeat(40_000)
  const PAIRS = '\\ud83d\\ude00'.repeat(60_000)
  for (const [what, type, value, expected] of [
    ['a text', '"STRING"', JSON.stringify(LONG), LONG],
    ['a text of escaped pairs', '"STRING"', `"${PAIRS}"`, '😀'.repeat(60_000)],
    [
      'a text in a struct',
      '"RECORD","fields":[{"name":"a","type":"STRING"}]',
      `{"f":[{"v":"${PAIRS}"}]}`,
      { a: '😀'.repeat(60_000) },
    ],
    ['texts in an array', '"STRING","mode":"REPEATED"', `[{"v":"x"},{"v":${JSON.stringify(LONG)}}]`, ['x', LONG]],
    ['a number of too many digits', '"NUMERIC"', `"${'7'.repeat(1_000_000)}"`, '7'.repeat(1_000_000)],
    ['a text in JSON', '"JSON"', JSON.stringify(JSON.stringify([LONG])), [LONG]],
    ['a key in JSON', '"JSON"', JSON.stringify(JSON.stringify({ [LONG]: 1 })), { [LONG]: 1 }],
    ['a text that should be JSON', '"JSON"', JSON.stringify(LONG), LONG],
    // Each of these texts has the pairs at other positions of the slices.
    ...[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11].map(
      (n) =>
        [
          `escaped pairs in JSON, ${n}`,
          '"JSON"',
          `"\\"${'x'.repeat(n)}${PAIRS}\\""`,
          'x'.repeat(n) + '😀'.repeat(60_000),
        ] as const,
    ),
    ...[0, 1, 2, 3].map(
      (n) =>
        [
          `characters of four bytes in JSON, ${n}`,
          '"JSON"',
          JSON.stringify(`"${'x'.repeat(n)}${'😀'.repeat(150_000)}"`),
          'x'.repeat(n) + '😀'.repeat(150_000),
        ] as const,
    ),
  ] as const) {
    test(`reading a page yields within one long value: ${what}`, async () => {
      const bytes = page(`[{"f":[{"v":${value}}]}]`).replace('"INTEGER"', type)
      const slices = new TimeSlices(null)
      const { text } = await rowsOf(bytes, { rowCap: 1, bytesMax: 10_000_000 }, slices)
      assert.deepEqual(JSON.parse(text), [[expected]])
      const least = Math.floor(Buffer.byteLength(bytes) / (128 * 1024 + 30))
      assert.deepEqual([slices.count >= 2 * least, least >= 3], [true, true])
    })
  }

  test('a long text in a page that is not a JSON string is refused', async () => {
    for (const end of ['\n"', '\\u12g4"', '\\x"', '']) {
      const bytes = page(`[{"f":[{"v":"${'x'.repeat(300_000)}${end}}]}]`)
      await assert.rejects(rowsOf(bytes), Unreadable)
    }
  })

  test('if the signal aborts, reading a page stops between two slices', async () => {
    const bytes = page(`[${Array.from({ length: 40_000 }, () => '{"f":[{"v":"1"}]}').join(',')}]`)
    const gone = new AbortController()
    const reading = rowsOf(bytes, { rowCap: 100_000, bytesMax: 10_000_000 }, new TimeSlices(gone.signal))
    gone.abort(new Error('gone'))
    await assert.rejects(reading, /gone/)
  })
})
