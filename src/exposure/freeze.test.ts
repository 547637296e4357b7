// What an editor asked for becomes names, or every reason why not.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Catalog, CatalogColumn, CatalogTable } from '../drivers/driver.ts'
import type { ShownTable } from './cut.ts'
import { freeze, goneFrom, type AskedTable } from './freeze.ts'
import { warningsOf } from './warnings.ts'
import { cut } from './cut.ts'

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
const ask = (name: string, columns: readonly string[] | null = null): AskedTable => ({
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

test('null becomes the columns known now that may be exposed', () => {
  const { tables, problems } = freeze([ask('b'), ask('a')], known, [])
  assert.deepEqual(problems, [])
  assert.deepEqual(tables, [saved('a', ['x', 'y']), saved('b', ['x'])])
})

for (const { name, asked, problem } of [
  { name: 'an unknown table', asked: [ask('nosuch')], problem: /public\.nosuch: there is no such table/ },
  { name: 'an unknown column', asked: [ask('a', ['x', 'q'])], problem: /there is no column q/ },
  {
    name: 'a column that may not be exposed',
    asked: [ask('a', ['z'])],
    problem: /column z may not be exposed: A user/,
  },
  { name: 'a table all of whose columns may not', asked: [ask('c')], problem: /no column that may be exposed/ },
  { name: 'a table listed twice', asked: [ask('a'), ask('a', ['x'])], problem: /tables\[1\].*listed twice/ },
  { name: 'a column named twice', asked: [ask('a', ['x', 'x'])], problem: /names a column twice/ },
  { name: 'a table without columns', asked: [ask('a', [])], problem: /names no column/ },
]) {
  test(`refuses ${name}, and says so`, () => {
    const { problems } = freeze(asked, known, [])
    assert.equal(problems.length, 1)
    assert.match(problems[0] ?? '', problem)
  })
}

test('names every problem, and none at length', () => {
  const { problems } = freeze([ask('a', ['q'.repeat(2 << 20), 'r']), ask('nosuch')], known, [])
  assert.equal(problems.length, 3)
  assert.ok(problems.join().length < 1_000)
  const many = freeze(
    [
      ask(
        'a',
        Array.from({ length: 5_000 }, (_, n) => `n${n}`),
      ),
    ],
    known,
    [],
  )
  assert.deepEqual([many.problems.length, many.problems.at(-1)], [101, 'and 4900 more'])
})

test('nothing is known before the first introspection', () => {
  assert.equal(freeze([ask('a')], null, []).problems.length, 1)
  assert.deepEqual(freeze([], null, []), { tables: [], problems: [] })
})

test('keeps saved names that introspection no longer knows, and lists them as gone', () => {
  const before = [saved('a', ['old', 'x']), saved('dropped', ['p', 'q'])]
  const { tables, problems } = freeze([ask('dropped'), ask('a', ['x', 'old'])], known, before)
  assert.deepEqual(problems, [])
  assert.deepEqual(tables, [saved('a', ['x', 'old']), saved('dropped', ['p', 'q'])])
  assert.deepEqual(goneFrom(tables, known), [
    { schema: 'public', table: 'a', column: 'old' },
    { schema: 'public', table: 'dropped' },
  ])
  assert.match(freeze([ask('dropped', ['r'])], known, before).problems[0] ?? '', /no column r/)
})

const plain = (names: readonly string[]) => names.join('.')

test('warns of what stays hidden, and of comments that will be shown and name it', () => {
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

test('2,000 tables of 40,000 columns are frozen, cut and warned of', () => {
  const tables = Array.from({ length: 2_000 }, (_, n) =>
    table(
      `table_${n}`,
      Array.from({ length: 20 }, (_unused, c) => column(`column_${c}`, { description: 'A comment.' })),
    ),
  )
  const catalog: Catalog = { capturedAt: 'now', capture: null, tables }
  const frozen = freeze(
    tables.map((it) => ask(it.table, it.columns.map((c) => c.name).reverse())),
    catalog,
    [],
  )
  warningsOf(catalog, cut(catalog, frozen.tables), plain)
  assert.equal(frozen.tables.length, 2_000)
})
