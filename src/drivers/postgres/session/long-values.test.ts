// Long values are written in slices, so that other requests get a turn. The JSON must be the same as without slices.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AT_ONCE, JsonBytes, writeRaw, writeText, type WriteValue } from '../../json-bytes.ts'
import { arrayWriter, compositeWriter } from './write-nested-value.ts'
import { WRITERS } from './write-scalar-value.ts'

const COMMA = 0x2c
const pair = compositeWriter([
  { name: 'n', write: WRITERS.integer },
  { name: 'text', write: writeText },
])
const texts = arrayWriter(writeText, COMMA)
const long = (text: string): string => text.repeat(Math.ceil((3 * AT_ONCE) / Buffer.byteLength(text)))
/** Returns the text of a value inside the quotes of an array. */
const inArray = (text: string): string => `"${text.replaceAll(/["\\]/g, '\\$&')}"`
const inRow = (text: string): string => `"${text.replaceAll(/["\\]/g, '$&$&')}"`
const many = (n: number, make: (k: number) => string): string => Array.from({ length: n }, (_, k) => make(k)).join()

const VALUES: readonly (readonly [string, WriteValue, string])[] = [
  ['a text', writeText, long('abc')],
  ['a text of escaped characters', writeText, long('"\\\n\u0001')],
  ['a text of characters of 2, 3 and 4 bytes', writeText, `x${long('é日😀')}`],
  ['a text whose only escape is at its end', writeText, `${long('abc')}"`],
  ['a JSON value', writeRaw, `[${many(60_000, String)}]`],
  ...[0, 1, 2].map((n) => [`bytea, rest ${n}`, WRITERS.bytea, `\\x${long('c0ffee')}${'ab'.repeat(n)}`] as const),
  ['a numeric of the most digits', WRITERS.numeric, '9'.repeat(131_072)],
  ['an array of integers', arrayWriter(WRITERS.integer, COMMA), `[2:60001]={${many(60_000, String)}}`],
  ['an array of short texts', texts, `{NULL,${many(30_000, (k) => inArray(`say "${k}" \\`))},x}`],
  ['an array of a long text without quotes', texts, `{${long('abc')},NULL,b}`],
  ['an array of long texts in quotes', texts, `{${inArray(long('"\\ x'))},{${inArray(long('日,'))}},c}`],
  [
    'an array whose quotes are at the ends of slices',
    texts,
    `{"${'x'.repeat(AT_ONCE - 2)}\\"${'\\\\'.repeat(AT_ONCE)}"}`,
  ],
  ['an array without its last quote', texts, `{"${long('x\\"')}`],
  ['a composite', pair, `(7,${inRow(long('a"\\ '))})`],
  ['a composite of plain text', pair, `(,${long('abc')})`],
  ['a composite with escaped characters', pair, `(1,"${long('\\"x')}")`],
  ['a composite of another shape', pair, `(1,${long('abc')},3)`],
  ['a composite without its last quote', pair, `(1,"${long('abc')})`],
  ['a text that is no composite', pair, long('abc')],
  ['an array of composites', arrayWriter(pair, COMMA), `{${many(20_000, (k) => inArray(`(${k},${inRow('a "b"')})`))}}`],
  [
    'an array of a long composite of a long array',
    arrayWriter(compositeWriter([{ name: 'all', write: texts }]), COMMA),
    `{${inArray(`(${inRow(`{${inArray(long('"\\ x'))}}`)})`)}}`,
  ],
  [
    'a composite of many fields',
    compositeWriter(Array.from({ length: 1_600 }, (_, n) => ({ name: `f${n}`, write: writeText }))),
    `(${many(1_600, () => 'x'.repeat(200))})`,
  ],
]

for (const [name, write, text] of VALUES) {
  test(`the JSON is the same if it is written in slices: ${name}`, () => {
    const from = Buffer.from(`(${text})`)
    const whole = new JsonBytes(16)
    write(from, 1, from.length - 1, whole)
    const out = new JsonBytes(16)
    let slices = 0
    let before = 0
    let longest = 0
    const end = (): void => {
      slices++
      longest = Math.max(longest, out.length - before)
      before = out.length
    }
    if (write.inSlices === undefined) write(from, 1, from.length - 1, out)
    else for (const _ of write.inSlices(from, 1, from.length - 1, out)) end()
    end()
    assert.ok(out.bytes.subarray(0, out.length).equals(whole.bytes.subarray(0, whole.length)))
    // A numeric has at most 147,456 digits. Values of the other types without slices are short.
    if (write.inSlices === undefined) return
    assert.ok(slices >= Math.floor(text.length / AT_ONCE), `${slices} slices for ${text.length} characters`)
    assert.ok(longest <= 6 * AT_ONCE + 16, `a slice of ${longest} bytes`)
  })
}
