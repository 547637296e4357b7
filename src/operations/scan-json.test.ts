import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { VALUES } from '../contract/route-type.ts'
import { DEPTH_MAX, scan, refusalOf, textOf } from './scan-json.ts'

const MANY = 1e9
const detail = (text: string) => {
  JSON.parse(text)
  const refusal = refusalOf(text, MANY)
  assert.ok(!(refusal instanceof Promise))
  return refusal?.extra['details'] ?? null
}

function object(fields: number): string {
  return `{${Array.from({ length: fields }, (_, i) => `"${i}":1`).join()}}`
}

describe('the scan of a JSON body', () => {
  test('a body with invalid UTF-8 is refused, not repaired', () => {
    for (const bytes of [[0xff], [0xc3], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf5, 0x80, 0x80, 0x80]]) {
      assert.throws(() => textOf(Buffer.from([0x22, ...bytes, 0x22])), { code: 'INVALID_REQUEST' }, String(bytes))
    }
    assert.equal(textOf(Buffer.from('"é 😀"')), '"é 😀"')
  })

  for (const [title, text] of [
    ['a high surrogate alone', String.raw`{"a":"x\ud800"}`],
    ['a low surrogate alone', String.raw`["\uDC00"]`],
    ['two high surrogates', String.raw`["\uD83D\uD83D"]`],
    ['a pair in the wrong order', String.raw`["\ude00\ud83d"]`],
    ['a high surrogate before an unescaped character', '["\\ud83d😀"]'],
    ['in a key', String.raw`{"\ud800":1}`],
    ['after an escaped backslash and an escape', String.raw`["\\\ud800"]`],
  ] as const) {
    test(`a body with a lone surrogate is refused: ${title}`, () =>
      assert.match(String(detail(text)), /lone surrogate/))
  }

  for (const [title, text] of [
    ['a surrogate pair', String.raw`["\ud83d\ude00"]`],
    ['a surrogate pair in mixed case', String.raw`["\uD83d\uDe00"]`],
    ['the letters ud800 after an escaped backslash', String.raw`["\\ud800"]`],
    ['other escapes', String.raw`["\u00e9\n\"\\ \ud83d\ude00"]`],
    ['one key in two objects', '[{"a":1},{"a":{"a":1},"b":["a","a"]}]'],
    ['a value equal to a key', '{"a":"a","b":"a"}'],
    ['a colon inside a string', String.raw`{"a":"\"a\":1","b":["a:",":"]}`],
    ['a string that ends in backslashes', String.raw`{"a":"\\","b":"\\\\"}`],
    ['a text that is not an object', '"x"'],
  ] as const) {
    test(`a body is accepted: ${title}`, () => assert.equal(detail(text), null))
  }

  for (const [title, text] of [
    ['plain', '{"sql":1,"sql":2}'],
    ['spelled with an escape', String.raw`{"sql":1,"\u0073ql":2}`],
    ['deep inside', '{"a":[{"b":{"c":1,"d":[],"c":{}}}]}'],
    ['with spaces before the colon', '{"a" :1,"a"\n\t:2}'],
    ['with an object between the two', '{"a":{"b":1},"a":2}'],
    ['__proto__', '{"__proto__":1,"__proto__":2}'],
  ] as const) {
    test(`a body with a duplicate key is refused: ${title}`, () => assert.match(String(detail(text)), /occurs twice/))
  }

  test('the error about a body names the duplicate key and its position', () => {
    assert.deepEqual(detail('{"limit":1,"limit":2}'), ['body: "limit" occurs twice in one object, at character 11'])
  })

  test('a body nested deeper than 1,000 levels is refused', () => {
    const nested = (depth: number) => '[{"a":'.repeat(depth / 2) + '1' + '}]'.repeat(depth / 2)
    assert.equal(detail(nested(DEPTH_MAX)), null)
    assert.match(String(detail(nested(DEPTH_MAX + 2))), /nested deeper than 1000 levels/)
    assert.equal(detail(`[${'[],'.repeat(5_000)}"${'['.repeat(5_000)}"]`), null)
  })

  test('a body with more values than its route accepts is refused', () => {
    for (const text of [
      '[1,2,3]',
      '{"a":1,"b":2,"c":3}',
      '[[],[],[]]',
      '[[[1]]]',
      '[ [ ], { }, 1 ]',
      '["a,b",",","{"]',
    ]) {
      assert.equal(refusalOf(text, 4), null, text)
    }
    for (const text of ['[1,2,3,4]', '{"a":1,"b":2,"c":3,"d":4}', '[[[[1]]]]', '[{}, [], [ ], {}]', '[{"a":[1,{}]}]']) {
      const refusal = refusalOf(text, 4)
      assert.ok(refusal !== null && !(refusal instanceof Promise))
      assert.deepEqual(refusal.extra['details'], ['body: contains more than 4 values: send fewer at once'])
    }
  })

  test('scanning invalid JSON does not throw', () => {
    const texts = [
      '',
      '"',
      '"\\',
      '"\\u',
      String.raw`"\uZZZZ"`,
      ':',
      '"a":1',
      ']]]',
      '{"a',
      '{"\\q":1}',
      '\\',
      '{"a":1}}:',
    ]
    for (const text of texts) assert.equal(refusalOf(text, MANY), null, text)
  })

  test('a long body is scanned in steps, without stack overflow', async () => {
    const n = 1 << 21
    for (const text of [
      '[]'.repeat(n),
      `[${'{},'.repeat(n)}{}]`,
      `[${`"${'\\\\'.repeat(n / 8)}",`.repeat(8)}1]`,
      `[${`"${'\\"'.repeat(n / 8)}",`.repeat(8)}1]`,
      `[${`"${String.raw`\ud83d\ude00`.repeat(n / 32)}",`.repeat(8)}1]`,
      `["${'x'.repeat(n / 4)}"${' '.repeat(n)}]`,
      `[${`${object(n / 512)},`.repeat(64)}1]`,
    ]) {
      assert.equal(await refusalOf(text, MANY), null)
      let turns = 1
      for (const look = scan(text, MANY); look.next().done !== true;) turns++
      assert.ok(turns >= text.length / (1 << 17), `${turns} turns`)
    }
    assert.match(String((await refusalOf(`[${'1,'.repeat(n)}1]`, 9))?.message), /more than 9 values/)
  })

  test('a body is refused if an object has too many fields to validate in one step', async () => {
    assert.equal(await refusalOf(`[${object(10_000)},${object(10_000)}]`, MANY), null)
    assert.match(String(await refusalOf(object(10_001), MANY)), /an object with more than 10000 fields/)
  })

  test('a body is refused if a string is too long to parse in one step', async () => {
    for (const long of ['x'.repeat((1 << 20) + 1), '\\n'.repeat(1 << 19) + 'x']) {
      assert.match(String(await refusalOf(`["a","${long}"]`, MANY)), /string of more than 1048576 characters/)
      assert.equal(await refusalOf(`["a","${long.slice(2)}"]`, MANY), null)
    }
  })

  test('an exposure of 2,000 tables with 40,000 columns is accepted', async () => {
    const columns = Array.from({ length: 20 }, (_, c) => `column_${c}`)
    const tables = Array.from({ length: 2_000 }, (_, n) => ({ schema: 'public', table: `table_${n}`, columns }))
    assert.equal(await refusalOf(JSON.stringify({ tables, version: 1 }), VALUES.exposure), null)
    const more = [...tables, ...tables]
    assert.match(String(await refusalOf(JSON.stringify({ tables: more }), VALUES.exposure)), /60000 values/)
  })
})
