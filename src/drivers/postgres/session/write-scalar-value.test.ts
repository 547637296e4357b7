import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Client } from 'pg'
import { openSession, settingsOf, type TestSession } from '../../../../test/support/postgres-session.ts'
import { startPostgres, type TestPostgres } from '../../../../test/support/postgres.ts'

const SETUP = `
CREATE TYPE mood AS ENUM ('glad', 'so so', 'sad "x"');
CREATE DOMAIN cents AS int;
CREATE DOMAIN label AS text;
CREATE TYPE place AS (street text, "No." int, tags text[], since timestamptz);
CREATE TYPE person AS (name label, home place, moods mood[], worth numeric, saved cents, raw bytea, ok bool, doc jsonb);
CREATE TYPE floatrange AS RANGE (subtype = float8);
CREATE TYPE alone AS (it text);
CREATE EXTENSION citext; CREATE EXTENSION hstore;
`
const stack = new AsyncDisposableStack()
let server: TestPostgres
let session: TestSession
before(async () => {
  server = stack.use(await startPostgres())
  session = stack.use(await openSession(settingsOf(server, await server.createDatabase('vals', SETUP))))
})
after(() => stack.disposeAsync())

// In each row: an SQL expression, its JSON text, and the name of its type.
const VALUES: readonly (readonly [string, string, string])[] = [
  ['32767::int2', '32767', 'int2'],
  ['(-2147483648)::int4', '-2147483648', 'int4'],
  ['0::int8', '0', 'int8'],
  ['999999999999999::int8', '999999999999999', 'int8'],
  ['9007199254740991::int8', '9007199254740991', 'int8'],
  ['9007199254740992::int8', '"9007199254740992"', 'int8'],
  ['(-9007199254740991)::int8', '-9007199254740991', 'int8'],
  ['(-9007199254740992)::int8', '"-9007199254740992"', 'int8'],
  ["'-9223372036854775808'::int8", '"-9223372036854775808"', 'int8'],
  ['4294967295::oid', '4294967295', 'oid'],
  ['123456789012345::numeric', '123456789012345', 'numeric'],
  ['1234567890123456::numeric', '"1234567890123456"', 'numeric'],
  ['0.123456789012345::numeric', '0.123456789012345', 'numeric'],
  ['0.1234567890123456::numeric', '"0.1234567890123456"', 'numeric'],
  ['(-1.5)::numeric', '-1.5', 'numeric'],
  ['1.10::numeric(10,2)', '1.10', 'numeric'],
  ['0::numeric(40,30)', '0.000000000000000000000000000000', 'numeric'],
  ['123456789012345.00000::numeric', '123456789012345.00000', 'numeric'],
  ["'1e299'::numeric", `1${'0'.repeat(299)}`, 'numeric'],
  ["'1e301'::numeric", `"1${'0'.repeat(301)}"`, 'numeric'],
  ["'1e-300'::numeric", `0.${'0'.repeat(299)}1`, 'numeric'],
  ["'1e-301'::numeric", `"0.${'0'.repeat(300)}1"`, 'numeric'],
  ["'NaN'::numeric", '"NaN"', 'numeric'],
  ["'-Infinity'::numeric", '"-Infinity"', 'numeric'],
  ["'NaN'::float8", '"NaN"', 'float8'],
  ["'-Infinity'::float4", '"-Infinity"', 'float4'],
  ['0.1::float8', '0.1', 'float8'],
  ["'1e-300'::float8", '1e-300', 'float8'],
  ["'-0'::float8", '-0', 'float8'],
  ["'1e20'::float8", '1e+20', 'float8'],
  ['1.5::float4', '1.5', 'float4'],
  ['true', 'true', 'bool'],
  ['NULL::bool', 'null', 'bool'],
  ['\'ünï 😀 "q" \\ /\'::text', '"ünï 😀 \\"q\\" \\\\ /"', 'text'],
  ["E'\\b\\t\\n\\f\\r\\x01\\x1f\\x7f'", '"\\b\\t\\n\\f\\r\\u0001\\u001f\x7f"', 'text'],
  ["''::text", '""', 'text'],
  ["'ab '::char(5)", '"ab   "', 'bpchar'],
  ["timestamptz '2024-01-01 10:00+02'", '"2024-01-01T08:00:00Z"', 'timestamptz'],
  ["timestamptz '1999-12-31 23:59:59.999999+00'", '"1999-12-31T23:59:59.999999Z"', 'timestamptz'],
  ["timestamptz '2024-01-01 10:00:00.5+00'", '"2024-01-01T10:00:00.5Z"', 'timestamptz'],
  ["timestamptz 'infinity'", '"infinity"', 'timestamptz'],
  ["timestamptz '0044-03-15 00:00+00 BC'", '"0044-03-15 00:00:00+00 BC"', 'timestamptz'],
  ["timestamptz '10000-01-01 00:00+00'", '"10000-01-01 00:00:00+00"', 'timestamptz'],
  ["timestamp '2024-01-01 10:00'", '"2024-01-01T10:00:00"', 'timestamp'],
  ["timestamp '2024-01-01 10:00:00.000001'", '"2024-01-01T10:00:00.000001"', 'timestamp'],
  ["timestamp '-infinity'", '"-infinity"', 'timestamp'],
  ["timestamp '0001-01-01 BC'", '"0001-01-01 00:00:00 BC"', 'timestamp'],
  ["timestamp '0001-01-01 00:00:00.5 BC'", '"0001-01-01 00:00:00.5 BC"', 'timestamp'],
  ["date '2024-02-29'", '"2024-02-29"', 'date'],
  ["date '0044-03-15 BC'", '"0044-03-15 BC"', 'date'],
  ["date 'infinity'", '"infinity"', 'date'],
  ["time '23:59:59.999'", '"23:59:59.999"', 'time'],
  ["timetz '12:00:00+02'", '"12:00:00+02"', 'timetz'],
  ["interval '1 year 2 mons 3 days 04:05:06'", '"1 year 2 mons 3 days 04:05:06"', 'interval'],
  ["'\\xdeadbeef'::bytea", '"3q2+7w=="', 'bytea'],
  ["'\\x'::bytea", '""', 'bytea'],
  ["'\\x00'::bytea", '"AA=="', 'bytea'],
  ["'\\x0001'::bytea", '"AAE="', 'bytea'],
  ["'\\x000102'::bytea", '"AAEC"', 'bytea'],
  ["'11111111-2222-3333-4444-55555555555a'::uuid", '"11111111-2222-3333-4444-55555555555a"', 'uuid'],
  ['\'{"z": 1.50, "z": 12345678901234567890}\'::json', '{"z": 1.50, "z": 12345678901234567890}', 'json'],
  ["'[1e400]'::json", '[1e400]', 'json'],
  ["'null'::jsonb", 'null', 'jsonb'],
  ['\'"str"\'::jsonb', '"str"', 'jsonb'],
  ["'{1,NULL,3}'::int4[]", '[1,null,3]', 'int4[]'],
  ["'{9007199254740993,1}'::int8[]", '["9007199254740993",1]', 'int8[]'],
  ["'{{1.1,2.2},{3.3,NaN}}'::numeric[]", '[[1.1,2.2],[3.3,"NaN"]]', 'numeric[]'],
  ['\'{"a,b","c\\"d",NULL,"NULL","","\\\\"}\'::text[]', '["a,b","c\\"d",null,"NULL","","\\\\"]', 'text[]'],
  ["'[2:3]={1,2}'::int4[]", '[1,2]', 'int4[]'],
  ["'[0:0][-1:0]={{1,2}}'::int4[]", '[[1,2]]', 'int4[]'],
  ["'{}'::text[]", '[]', 'text[]'],
  ["'{t,f,NULL}'::bool[]", '[true,false,null]', 'bool[]'],
  ['\'{"{\\"a\\": [1]}",null}\'::jsonb[]', '[{"a": [1]},null]', 'jsonb[]'],
  ["ARRAY[timestamptz '2024-01-01 10:00+02', 'infinity']", '["2024-01-01T08:00:00Z","infinity"]', 'timestamptz[]'],
  ["ARRAY['\\xff'::bytea, '\\x']", '["/w==",""]', 'bytea[]'],
  ["ARRAY[box '(1,2),(3,4)', box '(0,0),(1,1)']", '["(3,4),(1,2)","(1,1),(0,0)"]', 'box[]'],
  ["ARRAY[point '(1,2)']", '["(1,2)"]', 'point[]'],
  ["'1 2 3'::int2vector", '"1 2 3"', 'int2vector'],
  ["'1 2'::oidvector", '"1 2"', 'oidvector'],
  ["'10.0.0.1/8'::inet", '"10.0.0.1/8"', 'inet'],
  ["B'1010'", '"1010"', 'bit'],
  ["'[1,10)'::int4range", '"[1,10)"', 'int4range'],
  ["'{[1,3),[5,7)}'::int4multirange", '"{[1,3),[5,7)}"', 'int4multirange'],
  ["ARRAY['[1,3)'::int4range, 'empty']", '["[1,3)","empty"]', 'int4range[]'],
  ["'[1,2]'::floatrange", '"[1,2]"', 'floatrange'],
  ["'pg_class'::regclass", '"pg_class"', 'regclass'],
  ['ROW(1, NULL, $$a"b$$)', '"(1,,\\"a\\"\\"b\\")"', 'record'],
  ["'<a>&amp;</a>'::xml", '"<a>&amp;</a>"', 'xml'],
  ["'a fat cat'::tsvector", `"'a' 'cat' 'fat'"`, 'tsvector'],
  ["'so so'::mood", '"so so"', 'mood'],
  ["ARRAY['glad', 'sad \"x\"', NULL]::mood[]", '["glad","sad \\"x\\"",null]', 'mood[]'],
  ['5::cents', '5', 'int4'],
  ['ARRAY[5, NULL]::cents[]', '[5,null]', 'cents[]'],
  [
    "ROW('a b', 1, ARRAY['x,y', NULL], '2024-01-01 10:00+02')::place",
    '{"street":"a b","No.":1,"tags":["x,y",null],"since":"2024-01-01T08:00:00Z"}',
    'place',
  ],
  [
    "ARRAY[ROW('a\"\\', NULL, '{}', NULL)::place, NULL]",
    '[{"street":"a\\"\\\\","No.":null,"tags":[],"since":null},null]',
    'place[]',
  ],
  [
    "ROW('Ann', ROW('(x),\"y\"', 2, ARRAY['\"'], NULL)::place, ARRAY['so so']::mood[], 1.50, 3, '\\xff', true, '{\"a\": 1.0}')::person",
    '{"name":"Ann","home":{"street":"(x),\\"y\\"","No.":2,"tags":["\\""],"since":null},"moods":["so so"],"worth":1.50,"saved":3,"raw":"/w==","ok":true,"doc":{"a": 1.0}}',
    'person',
  ],
  ['ROW(NULL)::alone', '{"it":null}', 'alone'],
  ["ROW('')::alone", '{"it":""}', 'alone'],
  ["'MiXed'::citext", '"MiXed"', 'citext'],
  ["ARRAY['a'::citext]", '["a"]', 'citext[]'],
  ["'k=>v'::hstore", '"\\"k\\"=>\\"v\\""', 'hstore'],
]

for (const [expression, json, dataType] of VALUES) {
  test(`${expression} is ${json.slice(0, 80)}, ${dataType}`, async () => {
    const rows = await session.run(`SELECT ${expression} AS v`, { searchPath: ['public'] })
    assert.equal(rows.rows, `[[${json}]]`)
    assert.deepEqual(rows.columns, [{ name: 'v', dataType }])
  })
}

test('a type that was created after the login is looked up when it first occurs', async () => {
  const [database = ''] = String((await session.run('SELECT current_database()')).rows).match(/\w+/) ?? []
  await server.query(database, `CREATE TYPE fresh AS (a int, b bool[])`)
  const rows = await session.run(`SELECT ROW(1, '{t}')::public.fresh AS v, 2 AS n UNION ALL SELECT NULL, 3`)
  assert.equal(rows.rows, '[[{"a":1,"b":[true]},2],[null,3]]')
})

test('rows that wait for the lookup of a type are cut at the byte cap, and the session stays usable', async () => {
  const [database = ''] = String((await session.run('SELECT current_database()')).rows).match(/\w+/) ?? []
  await server.query(database, `CREATE TYPE heavy AS (a text)`)
  const text = `SELECT ROW(repeat('x', 30000))::public.heavy AS v FROM generate_series(1, 1000)`
  const rows = await session.run(text, {}, { maxResponseBytes: 100_000 })
  assert.equal(rows.rowCount, 3)
  assert.equal(rows.truncated, true)
  assert.equal((await session.run('SELECT 1')).rows, '[[1]]')
})

// pg reads the same values as text. Encoded by the rules of docs/contract.md#values, they must give the same JSON.
const COLUMNS: readonly (readonly [string, string])[] = [
  ['int8', `(CASE WHEN r < 0.5 THEN (random() * 2e16 - 1e16)::int8 ELSE (random() * 1000)::int8 END)`],
  ['int4', `(random() * 4e9 - 2e9)::int4`],
  ['numeric', `(random() * 10.0 ^ (random() * 30 - 10)::int)::numeric(60, 12)`],
  ['numeric', `round((random() * 1e6)::numeric, (random() * 4)::int)`],
  ['float8', `(random() - 0.5) * 10.0 ^ (random() * 600 - 300)::int`],
  ['float4', `((random() - 0.5) * 10.0 ^ (random() * 60 - 30)::int)::float4`],
  ['bool', `random() < 0.5`],
  ['timestamptz', `timestamptz '2000-01-01' + (random() - 0.5) * interval '5000 years'`],
  [
    'timestamp',
    `timestamp '2000-01-01' + round((random() * 1e6)::numeric, (random() * 6)::int)::float8 * interval '1 second'`,
  ],
  ['bytea', `decode(substr(md5(random()::text), 1, 2 * (random() * 16)::int), 'hex')`],
  [
    'text',
    `(SELECT string_agg(chr((CASE WHEN random() < 0.3 THEN 1 + random() * 126 ELSE 1 + random() * 50000 END)::int), '') FROM generate_series(1, (random() * 20 + r)::int))`,
  ],
  ['jsonb', `jsonb_build_object('a', random(), md5(random()::text), jsonb_build_array(i, NULL, '"\\'))`],
  ['text[]', `ARRAY[md5(random()::text), NULL, '{', '"' || chr((1 + random() * 126)::int) || '\\', '', 'null']`],
  ['numeric[]', `ARRAY[[random()::numeric, NULL], ['NaN', (random() * 1e20)::numeric]]`],
  ['bytea[]', `ARRAY[decode(md5(random()::text), 'hex'), '\\x']`],
]

test('5,000 rows of random values equal the values from pg, encoded one at a time', async () => {
  const list = COLUMNS.map(([, sql], i) => `CASE WHEN random() < 0.05 THEN NULL ELSE ${sql} END AS c${i}`)
  const [database = ''] = String((await session.run('SELECT current_database()')).rows).match(/\w+/) ?? []
  await server.query(
    database,
    `CREATE TABLE fuzz AS SELECT ${list.join(', ')} FROM (SELECT i, random() AS r FROM generate_series(1, 5000) i) s`,
  )
  const client = new Client({ connectionString: server.url(database), options: '-c TimeZone=UTC' })
  await client.connect()
  const expected = await client.query<(string | null)[]>({
    text: 'SELECT * FROM fuzz ORDER BY ctid',
    rowMode: 'array',
    types: { getTypeParser: () => (text: string) => text },
  })
  await client.end()
  const rows = await session.run('SELECT * FROM public.fuzz ORDER BY ctid', {}, { maxResponseBytes: 64 << 20 })
  const actual = JSON.parse(String(rows.rows)) as unknown[][]
  assert.equal(actual.length, expected.rows.length)
  expected.rows.forEach((row, r) =>
    row.forEach((text, c) => {
      const type = COLUMNS[c]?.[0] ?? ''
      assert.deepEqual(actual[r]?.[c], slow(type, text), `${type} ${text}`)
    }),
  )
})

function slow(type: string, text: string | null): unknown {
  if (text === null) return null
  if (type.endsWith('[]')) return slowArray(type.slice(0, -2), text)
  switch (type) {
    case 'int4':
      return Number(text)
    case 'int8':
      return Number.isSafeInteger(Number(text)) ? Number(text) : text
    case 'float4':
    case 'float8':
      return Number.isFinite(Number(text)) ? Number(text) : text
    case 'numeric': {
      const digits = text
        .replace(/^-/, '')
        .replace('.', '')
        .replace(/^0+|0+$/g, '')
      return /^[-\d.]+$/.test(text) && digits.length <= 15 ? Number(text) : text
    }
    case 'bool':
      return text === 't'
    case 'bytea':
      return Buffer.from(text.slice(2), 'hex').toString('base64')
    case 'jsonb':
      return JSON.parse(text)
    case 'timestamp':
      return text.replace(' ', 'T')
    case 'timestamptz':
      return /^\d{4}-.*\+00$/.test(text) ? text.replace(' ', 'T').replace(/\+00$/, 'Z') : text
    default:
      return text
  }
}

function slowArray(type: string, text: string): unknown {
  const tokens = text.match(/"(?:[^"\\]|\\[^])*"|[{},]|[^{},"]+/g) ?? []
  let at = 0
  const read = (): unknown => {
    const token = tokens[at++] ?? ''
    if (token === '{') {
      const list: unknown[] = []
      while (tokens[at] !== '}') {
        if (tokens[at] === ',') at++
        list.push(read())
      }
      at++
      return list
    }
    return token.startsWith('"')
      ? slow(type, token.slice(1, -1).replace(/\\([^])/g, '$1'))
      : slow(type, token === 'NULL' ? null : token)
  }
  return read()
}
