import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { parse, parseInSlices, type Reading } from './parse-json-in-slices.ts'

function parsed(text: string, reading?: Reading): unknown {
  const parsing = parse(text, reading)
  for (;;) {
    const step = parsing.next()
    if (step.done === true) return step.value
  }
}

const many = <T>(n: number, make: (k: number) => T): T[] => Array.from({ length: n }, (_, k) => make(k))

describe('parseInSlices', () => {
  for (const text of [
    'null',
    ' true ',
    '-0',
    '1.5e-7',
    '""',
    String.raw`"a\"b\\\\\"\u00e9\ud83d\ude00\n"`,
    '"é 😀"',
    '[]',
    '{}',
    '[[],{},[{}],{"a":[]}]',
    '\r\n\t {\t"a" : [ 1 , "b" , { "c" : null } ] , "d" : false }\n',
    '{"2":1,"1":2,"a":3,"":4,"constructor":{},"toString":5,"hasOwnProperty":{"prototype":1}}',
    String.raw`{"\u0061":"\\","b\\":"\""}`,
    '[1e400,123456789012345678901234567890]',
    '['.repeat(1_000) + ']'.repeat(1_000),
    '{"a":'.repeat(1_000) + '[]' + '}'.repeat(1_000),
  ]) {
    test(`parseInSlices() returns the same value as JSON.parse: ${text.slice(0, 60)}`, () => {
      assert.deepEqual(parsed(text), JSON.parse(text))
      assert.equal(JSON.stringify(parsed(text)), JSON.stringify(JSON.parse(text)))
    })
  }

  for (const text of [
    '',
    ' ',
    '[',
    ']',
    '{',
    '}',
    '[1',
    '[1,',
    '[1,]',
    '[,1]',
    '[1 2]',
    '[1}',
    '{]',
    '{"a"}',
    '{"a":}',
    '{"a":1',
    '{"a":1,}',
    '{"a":1]',
    '{a:1}',
    '{1:1}',
    '{"a" 1}',
    '{,}',
    '[1]]',
    '1 2',
    'nul',
    'NaN',
    'undefined',
    '01',
    '+1',
    '1.',
    '.5',
    '0x1',
    '1_000',
    "'a'",
    '"a',
    String.raw`"a\"`,
    '"a\nb"',
    String.raw`"\x"`,
    String.raw`{"\x":1}`,
    '[1]\u00a0',
    '\u000b1',
    '\ufeff1',
    '/**/1',
  ]) {
    test(`parseInSlices() refuses what JSON.parse refuses: ${JSON.stringify(text)}`, () => {
      assert.throws(() => JSON.parse(text), SyntaxError)
      assert.throws(() => parsed(text), SyntaxError)
    })
  }

  test('parseInSlices() accepts and refuses damaged texts like JSON.parse', () => {
    const whole = String.raw`{"a":[1,-2.5e3,"x\"y\\",{"b":null,"\u0063":[true,[],{}]}],"d":"é"}`
    const outcome = (read: () => unknown): string => {
      try {
        return JSON.stringify(read())
      } catch (error) {
        assert.ok(error instanceof SyntaxError)
        return 'refused'
      }
    }
    let refused = 0
    for (let at = 0; at < whole.length; at++) {
      for (const put of ['', '"', ',', ':', '[', ']', '{', '}', '\\', ' ', '1', 'e', '-']) {
        for (const width of [0, 1]) {
          const text = whole.slice(0, at) + put + whole.slice(at + width)
          const expected = outcome(() => JSON.parse(text))
          if (expected === 'refused') refused++
          assert.equal(
            outcome(() => parsed(text)),
            expected,
            text,
          )
        }
      }
    }
    assert.ok(refused > 500, String(refused))
  })

  test('parseInSlices() refuses a key with a special meaning in JavaScript, unless keys may be database names', () => {
    for (const text of [
      '{"__proto__":1}',
      '[{"a":{"__proto__":{}}}]',
      String.raw`{"\u005f_proto__":1}`,
      '{"constructor":{"prototype":1}}',
    ]) {
      assert.throws(() => parsed(text), SyntaxError, text)
      const named = parsed(text, { namesAsKeys: true })
      assert.deepEqual(named, JSON.parse(text))
      assert.equal(JSON.stringify(named), JSON.stringify(JSON.parse(text)))
    }
    assert.equal(Object.getPrototypeOf(parsed('{"__proto__":{"x":1}}', { namesAsKeys: true })), Object.prototype)
  })

  test('parseInSlices() reports each number as written, with the object or array that contains it', () => {
    const visited: unknown[] = []
    const onNumber: Reading['onNumber'] = (holder, key, value, source) =>
      visited.push([Array.isArray(holder), key, value, source])
    parsed('{"a":[1.0,"2",{"b":3e2}],"c":-0}', { onNumber })
    assert.deepEqual(visited, [
      [true, '0', 1, '1.0'],
      [false, 'b', 300, '3e2'],
      [false, 'c', -0, '-0'],
    ])
  })

  test('parseInSlices() yields to the event loop at least every 500 values, for values of any kind', async () => {
    for (const value of [
      many(30_000, (k) => ({ [`k${k}`]: 1 })),
      many(30_000, () => []),
      many(30_000, (k) => k),
      Object.fromEntries(many(30_000, (k) => [`k${k}`, k])),
      { deep: many(300, (k) => ({ [`k${k}`]: many(100, (j) => `${k} ${j}`) })) },
    ]) {
      const text = JSON.stringify(value)
      let slices = 1
      for (const parsing = parse(text); parsing.next().done !== true;) slices++
      assert.ok(slices >= 30_000 / 500, `${slices} slices`)
      assert.deepEqual(await parseInSlices(text), value)
    }
  })
})
