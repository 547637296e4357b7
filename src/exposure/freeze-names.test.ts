import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Catalog, CatalogColumn, CatalogTable } from '../drivers/driver.ts'
import type { ShownTable } from './cut-catalog.ts'
import { freeze, goneFrom, type RequestedTable } from './freeze-names.ts'
import { warningsOf } from './warnings.ts'
import { cut } from './cut-catalog.ts'

const column = (name: string, more: Partial<CatalogColumn> = {}): CatalogColumn => ({
  name,
  type: 'integer',
  nullable: true,
  primaryKey: false,
  references: null,
  description: null,
  unexposable: null,
  detail: null,
  ...more,
})
const table = (name: string, columns: CatalogColumn[], more: Partial<CatalogTable> = {}): CatalogTable => ({
  schema: 'public',
  table: name,
  kind: 'table',
  description: null,
  estimatedRows: 1,
  columns,
  warnings: [],
  detail: null,
  ...more,
})
const request = (name: string, columns: readonly string[] | null = null): RequestedTable => ({
  schema: 'public',
  table: name,
  columns,
})
const saved = (name: string, columns: readonly string[]): ShownTable => ({ schema: 'public', table: name, columns })

const CAST = 'A user made a cast for its type.'
const known: Catalog = {
  capturedAt: 'now',
  capture: null,
  tables: [
    table('a', [column('x'), column('y'), column('z', { unexposable: CAST })]),
    table('b', [column('x')]),
    table('c', [column('z', { unexposable: CAST })]),
  ],
}

test('null in an exposure is replaced by the columns that are known and may be exposed', () => {
  const { tables, problems } = freeze([request('b'), request('a')], known, [])
  assert.deepEqual(problems, [])
  assert.deepEqual(tables, [saved('a', ['x', 'y']), saved('b', ['x'])])
})

for (const { name, asked, problem } of [
  { name: 'an unknown table', asked: [request('nosuch')], problem: /public\.nosuch: there is no such table/ },
  { name: 'an unknown column', asked: [request('a', ['x', 'q'])], problem: /there is no column q/ },
  {
    name: 'a column that may not be exposed',
    asked: [request('a', ['z'])],
    problem: /column z may not be exposed: A user/,
  },
  { name: 'a table without exposable columns', asked: [request('c')], problem: /no column that may be exposed/ },
  { name: 'a table listed twice', asked: [request('a'), request('a', ['x'])], problem: /tables\[1\].*listed twice/ },
  { name: 'a column named twice', asked: [request('a', ['x', 'x'])], problem: /names a column twice/ },
  { name: 'a table without columns', asked: [request('a', [])], problem: /names no column/ },
]) {
  test(`an exposure with ${name} is refused, and the error names the problem`, () => {
    const { problems } = freeze(asked, known, [])
    assert.equal(problems.length, 1)
    assert.match(problems[0] ?? '', problem)
  })
}

test('the error about an exposure lists a hundred problems, counts the remaining ones, and shortens long names', () => {
  const { problems } = freeze([request('a', ['q'.repeat(2 << 20), 'r']), request('nosuch')], known, [])
  assert.equal(problems.length, 3)
  assert.ok(problems.join().length < 1_000)
  const many = freeze(
    [
      request(
        'a',
        Array.from({ length: 5_000 }, (_, n) => `n${n}`),
      ),
    ],
    known,
    [],
  )
  assert.deepEqual([many.problems.length, many.problems.at(-1)], [101, 'and 4900 more'])
})

test('before the first introspection, no table can be exposed', () => {
  assert.equal(freeze([request('a')], null, []).problems.length, 1)
  assert.deepEqual(freeze([], null, []), { tables: [], problems: [] })
})

test('names of a saved exposure that introspection no longer finds are kept and listed as gone', () => {
  const before = [saved('a', ['old', 'x']), saved('dropped', ['p', 'q'])]
  const { tables, problems } = freeze([request('dropped'), request('a', ['x', 'old'])], known, before)
  assert.deepEqual(problems, [])
  assert.deepEqual(tables, [saved('a', ['x', 'old']), saved('dropped', ['p', 'q'])])
  assert.deepEqual(goneFrom(tables, known), [
    { schema: 'public', table: 'a', column: 'old' },
    { schema: 'public', table: 'dropped' },
  ])
  assert.match(freeze([request('dropped', ['r'])], known, before).problems[0] ?? '', /no column r/)
})

const plain = (names: readonly string[]) => names.join('.')

test('the warnings about an exposure cover unexposable columns, comments that name hidden tables, and warnings of the database', () => {
  const catalog: Catalog = {
    ...known,
    tables: [
      table('a', [column('id', { description: 'Not the ssn.' }), column('ssn'), column('z', { unexposable: CAST })], {
        description: 'See Salaries, or b.',
        warnings: ['It calls a function of another user.'],
      }),
      table('b', [column('x')]),
      table('salaries', [column('x')]),
    ],
  }
  const warnings = warningsOf(catalog, cut(catalog, [saved('a', ['id']), saved('b', ['x'])]), plain)
  assert.deepEqual(warnings, [
    'public.a: It calls a function of another user.',
    'public.a: z may not be exposed: A user made a cast for its type.',
    'public.a: its comment, which is shown, names salaries, which is hidden.',
    'public.a: the comment of id, which is shown, names ssn, which is hidden.',
  ])
})

test('an exposure of 2,000 tables with 40,000 columns can be frozen, cut and checked for warnings', () => {
  const tables = Array.from({ length: 2_000 }, (_, n) =>
    table(
      `table_${n}`,
      Array.from({ length: 20 }, (_unused, c) => column(`column_${c}`, { description: 'A comment.' })),
    ),
  )
  const catalog: Catalog = { capturedAt: 'now', capture: null, tables }
  const frozen = freeze(
    tables.map((it) => request(it.table, it.columns.map((c) => c.name).reverse())),
    catalog,
    [],
  )
  warningsOf(catalog, cut(catalog, frozen.tables), plain)
  assert.equal(frozen.tables.length, 2_000)
})
