import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ambiguityIn, textOf } from './json-body.ts'

const detail = (text: string) => {
  JSON.parse(text)
  return ambiguityIn(text)?.extra['details'] ?? null
}

describe('the bytes of a JSON body', () => {
  test('bytes that are no UTF-8 are refused, not replaced', () => {
    for (const bytes of [[0xff], [0xc3], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf5, 0x80, 0x80, 0x80]]) {
      assert.throws(() => textOf(Buffer.from([0x22, ...bytes, 0x22])), { code: 'INVALID_REQUEST' }, String(bytes))
    }
    assert.equal(textOf(Buffer.from('"é 😀"')), '"é 😀"')
  })

  for (const [title, text] of [
    ['a high one alone', String.raw`{"a":"x\ud800"}`],
    ['a low one alone', String.raw`["\uDC00"]`],
    ['two high ones', String.raw`["\uD83D\uD83D"]`],
    ['in the wrong order', String.raw`["\ude00\ud83d"]`],
    ['before a pair that is no escape', '["\\ud83d😀"]'],
    ['in a name', String.raw`{"\ud800":1}`],
    ['behind an escaped backslash and an escape', String.raw`["\\\ud800"]`],
  ] as const) {
    test(`a lone surrogate is refused: ${title}`, () => assert.match(String(detail(text)), /lone surrogate/))
  }

  for (const [title, text] of [
    ['a pair', String.raw`["\ud83d\ude00"]`],
    ['a pair in mixed case', String.raw`["\uD83d\uDe00"]`],
    ['the letters behind an escaped backslash', String.raw`["\\ud800"]`],
    ['other escapes', String.raw`["\u00e9\n\"\\ \ud83d\ude00"]`],
    ['one name in two objects', '[{"a":1},{"a":{"a":1},"b":["a","a"]}]'],
    ['a value equal to a name', '{"a":"a","b":"a"}'],
    ['a colon inside a string', String.raw`{"a":"\"a\":1","b":["a:",":"]}`],
    ['a string that ends in backslashes', String.raw`{"a":"\\","b":"\\\\"}`],
    ['no object', '"x"'],
  ] as const) {
    test(`is let pass: ${title}`, () => assert.equal(detail(text), null))
  }

  for (const [title, text] of [
    ['plain', '{"sql":1,"sql":2}'],
    ['spelled with an escape', String.raw`{"sql":1,"\u0073ql":2}`],
    ['deep inside', '{"a":[{"b":{"c":1,"d":[],"c":{}}}]}'],
    ['with spaces before the colon', '{"a" :1,"a"\n\t:2}'],
    ['after an object between', '{"a":{"b":1},"a":2}'],
    ['__proto__', '{"__proto__":1,"__proto__":2}'],
  ] as const) {
    test(`a name that stands twice is refused: ${title}`, () => assert.match(String(detail(text)), /stands twice/))
  }

  test('names the repeated name and its place', () => {
    assert.deepEqual(detail('{"limit":1,"limit":2}'), ['body: "limit" stands twice in one object, at character 11'])
  })

  test('the longest body of any shape is read without overflow', () => {
    const n = 1 << 21
    for (const text of [
      '['.repeat(n) + ']'.repeat(n),
      `[${'{},'.repeat(n)}{}]`,
      `["${'\\\\'.repeat(n)}"]`,
      `["${'\\"'.repeat(n)}"]`,
      `["${String.raw`\ud83d\ude00`.repeat(n / 4)}"]`,
      `{${Array.from({ length: n / 8 }, (_, i) => `"${i}":1`).join()}}`,
    ]) {
      assert.equal(ambiguityIn(text), null)
    }
  })
})
