// A short text may stand for a long number: 1e131000 has 8 bytes, but 131,001 digits. The service sends such texts to a
// real server.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { openShop, type Shop } from '../../support/shop.ts'

const SCHEMA = `
CREATE TABLE items (id int PRIMARY KEY, a text, doc jsonb, code text);
INSERT INTO items SELECT g, '[1, 2.5e3, ' || g || ']', jsonb_build_object('a', g, 'text', '1e5000'), '1e4' || (100 + g)
  FROM generate_series(1, 300) g;`

const NUMBERS = Array<string>(7_000).fill('1e131000').join(',')
const LIST = "string_agg('1e131000', ',')"
const DOCUMENT = `('[' || ${LIST} || ']')`
const JSON_LIST = "json_agg('1e131000'::json)"
const ROWS = 'FROM generate_series(1, 8000) g'
const MANY = 'FROM items'

const EXPONENT = [422, /^exponent would exceed .* the limit is 999/] as const
const COUNTED = [422, /^(?:array|array_agg) would exceed/] as const

const ATTACKS: readonly (readonly [string, string, readonly unknown[], readonly [number, RegExp]])[] = [
  ['a parameter', 'SELECT length($1::jsonb::text)', [`[${NUMBERS}]`], EXPONENT],
  ['a parameter as a list', 'SELECT length($1::numeric[]::text)', [`{${NUMBERS}}`], EXPONENT],
  ['a parameter that is split', "SELECT length(string_to_array($1, ',')::numeric[]::text)", [NUMBERS], EXPONENT],
  ['a parameter with a type', 'SELECT length($1::text)', [{ type: 'jsonb', value: `[${NUMBERS}]` }], [400, /not valid/]],
  ['a list with backslashes', 'SELECT length($1::numeric[]::text)', ['{1e13\\1000,\\1e131000}'], EXPONENT],
  ['a list with backslashes that has a type', 'SELECT $1', [{ type: 'numeric[]', value: '{1\\e+\\131000}' }], [400, /not valid/]],
  ['a list with underscores', 'SELECT $1', [{ type: 'numeric[]', value: '{1_0e1_31_000}' }], [400, /not valid/]],
  ['a quoted multirange', 'SELECT $1', [{ type: 'nummultirange', value: '{["1e131000",)}' }], [400, /not valid/]],
  ['a collected document', `SELECT length(${DOCUMENT}::jsonb::text) ${ROWS}`, [], EXPONENT],
  ['a collected document that is returned', `SELECT ${DOCUMENT}::jsonb ${ROWS}`, [], EXPONENT],
  ['a collected list', `SELECT length((('{' || ${LIST} || '}')::numeric[])::text) ${ROWS}`, [], EXPONENT],
  ['a list of quoted numbers', `SELECT ('{' || string_agg('"1e131000"', ',') || '}')::numeric[] ${ROWS}`, [], EXPONENT],
  ['multiranges', `SELECT ('{' || string_agg('[1e131000,1e131000]', ',') || '}')::nummultirange ${ROWS}`, [], EXPONENT],
  ['json that is cast', `SELECT length(${JSON_LIST}::jsonb::text) ${ROWS}`, [], EXPONENT],
  ['to_jsonb', `SELECT length(to_jsonb(${JSON_LIST})::text) ${ROWS}`, [], EXPONENT],
  ['jsonb_build_array', `SELECT length(jsonb_build_array(${JSON_LIST})::text) ${ROWS}`, [], EXPONENT],
  ['a column of a sub-select', `SELECT to_jsonb(q.x) FROM (SELECT ${JSON_LIST} AS x ${ROWS}) q`, [], EXPONENT],
  ['jsonb_agg', `SELECT jsonb_agg('1e131000'::json) ${ROWS}`, [], EXPONENT],
  ['json_to_record', `SELECT length(a::text) FROM json_to_record((SELECT json_build_object('a', ${JSON_LIST}) ${ROWS})) AS t(a numeric[])`, [], EXPONENT],
  ['a stored text that is changed', `SELECT replace(a, '2.5e3', '1' || 'e131000')::jsonb ${MANY}`, [], EXPONENT],
  ['a small exponent before a large one', "SELECT ($1 || ']')::jsonb", ['[1e5, 1e00007, -1E+0131000'], EXPONENT],
  ['array_agg of a constant', `SELECT array_agg(1e131000) ${ROWS}`, [], COUNTED],
  ['ARRAY of a constant', `SELECT ARRAY(SELECT 1e131000 ${ROWS})`, [], COUNTED],
  ['ARRAY of numbers', `SELECT ARRAY(SELECT ('1e13100' || (g % 1))::numeric ${ROWS})`, [], COUNTED],
]

const ANSWERED: readonly (readonly [string, string, readonly unknown[]])[] = [
  ['documents of numbers', `SELECT ('[' || string_agg(a, ',') || ']')::jsonb ${MANY}`, []],
  ['strings that look like numbers', `SELECT to_jsonb(array_agg(code)), jsonb_build_object('x', string_agg(code, ','), 'y', json_agg(doc)) ${MANY}`, []],
  ['documents in documents', `SELECT jsonb_agg(jsonb_build_object('a', a, 'j', json_build_object('x', code))), jsonb_agg(row_to_json(items)) ${MANY}`, []],
  ['parameters', "SELECT $1::jsonb ->> 'b', $2::numeric[]", ['{"a": 1e300, "b": "1e4567"}', '{1e10,2.5}']],
  ['a stored document', `SELECT doc::text::jsonb, (doc ->> 'a')::jsonb, replace(a, ' ', '')::jsonb -> 1 ${MANY}`, []],
  ['groups', `SELECT replace(a, 'x', 'y')::jsonb -> 1, ('{' || id || ',1e3}')::numeric[] ${MANY} GROUP BY 1, 2 ORDER BY 2 LIMIT 3`, []],
]

describe('texts that stand for long numbers', () => {
  let shop: Shop
  let at: string
  before(async () => {
    shop = await openShop()
    const database = await shop.postgres.createDatabase('numbers', SCHEMA)
    const tables = [{ schema: 'public', table: 'items', columns: null }]
    const id = await shop.app.datasource(shop.owner, shop.teamId, { ...shop.spec, name: 'numbers', database }, tables)
    at = `/teams/${shop.teamId}/datasources/${id}`
  })
  after(() => shop[Symbol.asyncDispose]())

  const ask = (sql: string, params: readonly unknown[]) =>
    shop.app.ask('POST', `${at}/query`, { token: shop.key, body: { sql, ...(params.length > 0 && { params }) } })

  for (const [name, sql, params, [expected, pattern]] of ATTACKS) {
    test(`a long number is not written out: ${name}`, async () => {
      const { status, json } = await ask(sql, params)
      assert.equal(status, expected, String(json.error))
      assert.match(String(json.error), pattern)
    })
  }
  for (const [name, sql, params] of ANSWERED) {
    test(`an ordinary query with numbers is answered: ${name}`, async () => {
      const { status, json } = await ask(sql, params)
      assert.equal(status, 200, String(json.error))
    })
  }
})
