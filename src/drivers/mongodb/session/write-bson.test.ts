import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as library from 'mongodb'
import { parseEjson } from '../guard/body/parse-ejson.ts'
import { printedValue } from '../guard/print.ts'
import { isDocument, Scalar, type Bson, type BsonDocument } from '../confined-query.ts'
import { toBson } from './to-bson.ts'
import { BsonBytes } from './write-bson.ts'

const out = new BsonBytes(library)

function written(document: BsonDocument): Buffer {
  out.begin(7)
  const at = out.open()
  for (const [name, value] of Object.entries(document)) out.field(name, value)
  out.close(at)
  return out.bytes().subarray(7)
}

function same(document: BsonDocument): void {
  const expected = Buffer.from(library.BSON.serialize(toBson(library, document)))
  assert.deepEqual(written(document), expected, printedValue(document).slice(0, 300))
}

const LONG = 'é€😀'.repeat(500)

test('every BSON value is written as the client library writes it', () => {
  const json: readonly unknown[] = [
    ...[
      null,
      true,
      false,
      '',
      'x',
      'x'.repeat(63),
      'x'.repeat(64),
      'x'.repeat(65),
      'x'.repeat(5_000),
      'é',
      'aé',
      '😀',
      LONG,
    ],
    ...[0, -0, 1, -1, 2.5, 2 ** 31 - 1, 2 ** 31, -(2 ** 31), -(2 ** 31) - 1, 2 ** 53 - 1, 1e300, Number.MIN_VALUE],
    ...['aaaaaaaaaaaaaaaaaaaaaaa1', 'ABCDEF0123456789abcdef01'].map(($oid) => ({ $oid })),
    ...['2024-02-03', '1969-12-31T23:59:59.999Z', { $numberLong: '-8640000000000000' }].map(($date) => ({ $date })),
    ...['0', '-1', '2147483647', '-2147483648'].map(($numberInt) => ({ $numberInt })),
    ...['0', '-1', '9223372036854775807', '-9223372036854775808'].map(($numberLong) => ({ $numberLong })),
    ...['0', '-0', '1.5', 'NaN', 'Infinity', '-Infinity', '1e-300'].map(($numberDouble) => ({ $numberDouble })),
    ...['0', '-0', '1.50', 'NaN', '-Infinity', '1E+6111', '12345678901234567890123456789012.34'].map(
      ($numberDecimal) => ({
        $numberDecimal,
      }),
    ),
    ...['00', '02', '04', '05', '80', 'ff'].map((subType) => ({
      $binary: { base64: 'AAECAwQFBgcICQoLDA0ODw==', subType },
    })),
    { $binary: { base64: '', subType: '00' } },
    { $binary: { base64: '', subType: '02' } },
    { $uuid: 'ABCDEF01-2345-4678-9abc-def012345678' },
    { $regularExpression: { pattern: '^a.*é$', options: 'si' } },
    { $regularExpression: { pattern: '^a b', options: 'xi' } },
    { $timestamp: { t: 4_294_967_295, i: 1 } },
    { $timestamp: { t: 0, i: 4_294_967_295 } },
    { $minKey: 1 },
    { $maxKey: 1 },
    ...[{}, [], [[], {}], { a: { b: [{ c: null }] } }, { 'é.ü': { $gt: 1 } }, Array.from({ length: 120 }, (_, n) => n)],
  ]
  for (const each of json) same({ v: parseEjson(each), w: [parseEjson(each)], x: { v: parseEjson(each) } })
  same(Object.fromEntries(json.map((each, n) => [`f${n}`, parseEjson(each)])))
})

test('random BSON documents are written one after the other as the client library writes them', () => {
  let state = 7
  const next = (most: number): number => (state = (state * 48_271) % 2_147_483_647) % most
  const value = (depth: number): Bson => {
    const kind = next(depth > 4 ? 8 : 10)
    if (kind === 8) return Array.from({ length: next(6) }, () => value(depth + 1))
    if (kind === 9) return document(depth + 1)
    if (kind === 7) return new Scalar({ kind: '$numberLong', value: BigInt(next(1e9)) * BigInt(next(1e9)) })
    return (
      [next(1e9), next(1e9) / 7, -next(5), 'a'.repeat(next(200)), 'ß'.repeat(next(80)), null, next(2) === 0][kind] ??
      null
    )
  }
  const document = (depth: number): BsonDocument =>
    Object.fromEntries(Array.from({ length: next(8) }, () => [`k${next(1e6)}${'ä'.repeat(next(2))}`, value(depth)]))
  for (let n = 0; n < 500; n++) {
    const made = document(0)
    assert.ok(isDocument(made))
    same(made)
  }
})
