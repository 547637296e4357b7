// Judges a query through the cache of shapes, and again with other values. Each verdict must be that of the guard
// without the cache.
import assert from 'node:assert/strict'
import { AppError } from '../../../src/errors.ts'
import { unseal } from '../../../src/drivers/confined.ts'
import type { Catalog, Limits, Verdict } from '../../../src/drivers/driver.ts'
import { confine, confineAside } from '../../../src/drivers/mongodb/guard/confine.ts'
import { readBody, type MongoBody } from '../../../src/drivers/mongodb/guard/body/read-body.ts'
import { recall, shapeOf } from '../../../src/drivers/mongodb/guard/shape-cache.ts'
import type { MongoQuery } from '../../../src/drivers/mongodb/confined-query.ts'

const LIMITS: Limits = { rowCap: 1000, maxResponseBytes: 8 << 20, timeoutMs: 15_000, maxCost: 1e6 }
const SIGNAL = new AbortController().signal
const NO_THREADS = { judge: () => Promise.resolve(null), turn: () => Promise.resolve() }

const OTHERS: readonly unknown[] = [
  ...[0, -0, 1, 2.5, -1e300, 2 ** 31, 2 ** 53, '', '$name', '$$ROOT', '$where', 'é"\\\u2028', 'x'.repeat(600), true, null],
  ...[{ $oid: 'aaaaaaaaaaaaaaaaaaaaaaa1' }, { $oid: 'short' }, { $date: '2024-02-30' }, { $date: '2024-02-03' }, { $date: 7 }],
  ...[{ $numberLong: '-9223372036854775808' }, { $numberLong: '9223372036854775808' }, { $numberDecimal: 'NaN' }],
  ...[{ $uuid: 'ABCDEF01-2345-4678-9abc-def012345678' }, { $minKey: 1 }, { $regularExpression: { pattern: '(a+)+', options: '' } }],
  ...[{ $eq: 1 }, { $gt: null }, { $ne: '$name' }, [], [1, 2], { a: 1 }, { $where: '1' }, { $oid: 'aaaaaaaaaaaaaaaaaaaaaaa1', $gt: 1 }],
  ...[{ string: { $where: 1 } }, { number: { $gt: 1 } }, { string: null }, { number: { '1': 1, '0': 2 } }, Infinity],
]

/**
 * Judges the query, then `others` copies of it, each with one replaced value. `seed` chooses the values. Returns how
 * often the cache answered.
 */
export function checkCached(exposed: Catalog, body: unknown, seed: number, others = 4): number {
  let hits = checkOne(exposed, body, 3)
  const places = placesIn(body)
  for (let n = 0; n < others && places.length > 0; n++) {
    const place = places[(seed * 31 + n * 7) % places.length] ?? []
    hits += checkOne(exposed, replaced(body, place, OTHERS[(seed * 13 + n * 5) % OTHERS.length]))
  }
  return hits
}

/** Judges the query `times` times. Returns how often the cache answered. */
function checkOne(exposed: Catalog, body: unknown, times = 1): number {
  const read = readOrNull(body)
  if (read === null) return 0
  const shape = shapeOf(read, Math.min(read.limit ?? LIMITS.rowCap, LIMITS.rowCap))
  let own: unknown
  let hits = 0
  for (let n = 0; n < times; n++) {
    const isKnown = shape !== null && recall(exposed, shape) !== null
    const cached = confineAside(NO_THREADS, read, exposed, LIMITS, SIGNAL)
    if (cached instanceof Promise) continue
    assert.deepEqual(plain(cached), (own ??= plain(confine(read, exposed, LIMITS))), read.text)
    if (isKnown) hits++
  }
  return hits
}

function readOrNull(body: unknown): MongoBody | null {
  try {
    return readBody(body)
  } catch (error) {
    if (error instanceof AppError) return null
    throw error
  }
}

/** Replaces the functions in a verdict by their results, so that two verdicts can be compared. */
function plain(verdict: Verdict): unknown {
  if (verdict.kind !== 'confined') return verdict
  const { printed, outline, unwinds, ...rest } = unseal<MongoQuery>(verdict.query, 'MONGODB')
  return { ...rest, unwinds: [...unwinds], printed: printed(), outline: outline() }
}

type Place = readonly (string | number)[]

/** Returns the path of each value in a query, except values that are nested deeper than the guard reads. */
function placesIn(value: unknown, place: Place = []): Place[] {
  if (place[0] === 'collection' || place.length > 24) return []
  if (typeof value !== 'object' || value === null) return [place]
  const below = Array.isArray(value) ? [...value.entries()] : Object.entries(value)
  return [...(place.length > 1 ? [place] : []), ...below.flatMap(([key, each]) => placesIn(each, [...place, key]))]
}

function replaced(value: unknown, [key, ...rest]: Place, by: unknown): unknown {
  if (key === undefined) return by
  if (Array.isArray(value)) return value.map((each: unknown, n) => (n === key ? replaced(each, rest, by) : each))
  const fields = Object.entries(Object(value)).map(([name, each]) => [name, name === key ? replaced(each, rest, by) : each])
  return Object.fromEntries(fields)
}
