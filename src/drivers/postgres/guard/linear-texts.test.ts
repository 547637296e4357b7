// If a text of the caller doubles in length, the main thread may need 2.5 times as long for it at most. Regular
// expressions that backtrack need four times as long: 60,000 digits took 9 seconds. The time is that of this thread.
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { loadModule } from 'libpg-query'
import { shop, extension } from '../../../../test/support/postgres-catalog.ts'
import { AppError } from '../../../errors.ts'
import { checkSpatialText } from './allowed/srids.ts'
import { hasLongRun } from './bounds/mark-runs.ts'
import { largePatterns } from './bounds/pattern-size.ts'
import { exposedOf } from './exposed.ts'
import { IN_THREAD, judge } from './judge.ts'
import { bindParams } from './param-values.ts'
import { parseText } from './syntax/parse-text.ts'

const LENGTH = 30_000
/** Shorter times say nothing: garbage collection takes as long. */
const NEGLIGIBLE_MS = 25

const SHOP = shop()
const EXPOSED = exposedOf(SHOP)
const WITH_POSTGIS = { ...EXPOSED, extension: (name: string) => extension(name, '1.2') }

const filled = (unit: string, length: number): string => unit.repeat(Math.ceil(length / unit.length))

function bind(type: string, value: string): void {
  try {
    bindParams({ values: [type === '' ? value : { type, value }], json: '' }, () => EXPOSED)
  } catch (error) {
    if (!(error instanceof AppError)) throw error
  }
}

const confine = (text: string): unknown =>
  judge(parseText, { text, catalog: SHOP, rowCap: 1_000, params: [] }, IN_THREAD)

const NUMBERS = ['numeric', 'float8', 'numeric[]', 'nummultirange', 'jsonb', 'jsonb[]']

type Read = readonly [string, (text: string) => unknown]

const READS: readonly Read[] = [
  ...[...NUMBERS, 'uuid', 'date', 'timestamptz', 'int8', 'bool', 'tsquery', 'text', ''].flatMap((type): Read[] => [
    [type, (text) => bind(type, text)],
    [`${type} in a list`, (text) => bind(type, `{1, ${text}}`)],
    [`${type} and a letter`, (text) => bind(type, `${text}x`)],
    [`${type} behind a backslash`, (text) => bind(type, `\\${text}`)],
  ]),
  ['combining marks', hasLongRun],
  ['a shape', (text) => checkSpatialText(() => WITH_POSTGIS, `\\${text}`, undefined)],
  ['the name of a type', (text) => bind(text, '1')],
  ['the name of an array type', (text) => bind(`int4${text}[]`, '{1}')],
  ...[{}, { flags: null }, { flags: 'x' }, { flags: 'b' }, { similar: '#' }, { similar: null }].map((syntax): Read => [
    `a pattern with ${JSON.stringify(syntax)}`,
    (text) => largePatterns([{ at: 0, syntax }], [text.slice(0, text.length / 3.1)]),
  ]),
  ...[
    (text: string): string => `SELECT '${text}'`,
    (text: string): string => `SELECT '${text}'::numeric`,
    (text: string): string => `SELECT regexp_replace(name, '${text}', 'xx', 'g') FROM customers`,
    (text: string): string => `SELECT generate_series(date '2024-01-01', date '2024-02-01', '${text}!') FROM customers`,
    (text: string): string => `SELECT to_tsvector('${text}!', name) FROM customers`,
    (text: string): string => `SELECT format('${text}', name), to_char(now(), '${text}') FROM customers`,
    (text: string): string => `SELECT name COLLATE "C" ~ '${text}' FROM customers`,
    (text: string): string => `SELECT array_fill(1, '${text}') FROM customers`,
    (text: string): string => `SELECT to_jsonb(name) @? '${text}' FROM customers`,
  ].map((sql): Read => [`SQL: ${sql('…')}`, (text) => confine(sql(text))]),
]

const UNITS: readonly string[] = [
  ...['7', ' ', '.', '-', '[', '{', '\\', ':', '"', '(', '=', 'e', ',', '_', 'ä', '\u0301', '|', '#'],
  ...['1e', '1.', '[:', '[.', '[=', '["', '{0', '[]', '\\u0301', '\\u', 'srid=', '"crs', '00', "''", '()', '#a\n'],
  ...['0101000020e6100000', ' '.repeat(1_000) + 'a', 'a.|', '(a|b)*', '[a-z]', 'a{1,2}'],
]

function timeOf(read: (text: string) => unknown, text: string): number {
  const began = process.threadCpuUsage()
  read(text)
  const { user, system } = process.threadCpuUsage(began)
  return (user + system) / 1_000
}

before(() => loadModule())

for (const [name, read] of READS) {
  test(`a text of twice the length takes at most 2.5 times as long: ${name}`, () => {
    for (const unit of UNITS) {
      const [one, two] = [LENGTH, 2 * LENGTH].map((length) => timeOf(read, filled(unit, length)))
      assert.ok(
        one !== undefined && two !== undefined && two <= 2.5 * one + NEGLIGIBLE_MS,
        `${JSON.stringify(unit)}: ${one} ms for ${LENGTH}, ${two} ms for twice as many`,
      )
    }
  })
}
