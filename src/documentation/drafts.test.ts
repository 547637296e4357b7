import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Catalog, CatalogColumn, CatalogTable } from '../drivers/driver.ts'
import { questionInSql } from '../drivers/write-sql-example.ts'
import { tableKey } from '../drivers/table-key.ts'
import type { KeptColumn } from '../profiles/stored-profiles.ts'
import { writerContexts } from './writer-context.ts'
import { meaningOf } from './units-by-name.ts'
import { readAnswer } from './model-answer.ts'
import { ColumnMentions } from './column-mentions.ts'
import { writeByRules } from './write-by-rules.ts'
import { Visibility } from './visible-texts.ts'
import { ValueMentions } from './value-mentions.ts'

const column = (name: string, more: Partial<CatalogColumn> = {}): CatalogColumn => ({
  name,
  type: 'text',
  nullable: false,
  primaryKey: false,
  references: null,
  description: null,
  unexposable: null,
  detail: null,
  ...more,
})
const table = (name: string, columns: readonly CatalogColumn[], schema = 'public'): CatalogTable => ({
  schema,
  table: name,
  kind: 'table',
  description: null,
  estimatedRows: null,
  columns,
  warnings: [],
  detail: null,
})
const catalog = (...tables: readonly CatalogTable[]): Catalog => ({ capturedAt: '', capture: null, tables })

const ID = column('id', { type: 'int4', primaryKey: true })
const FULL = catalog(
  table('orders', [ID, column('status'), column('secretNote'), column('of'), column('a.b')]),
  table('people', [ID, column('name'), column('ssn'), column('net_pay'), column('naïve')]),
  table('wages', [ID, column('amount')]),
  table('pay_roll', [ID]),
)
const SHOWN = catalog(table('orders', [ID, column('status')]), table('people', [ID, column('name')]))

describe('Visibility', () => {
  const sight = new Visibility(SHOWN, FULL).of({ schema: 'public', table: 'orders' })
  const cases: readonly (readonly [string, string, readonly string[], boolean])[] = [
    ['that names an exposed column', 'Its status is final.', ['status'], true],
    ['that depends on a hidden column', 'Final.', ['secretNote'], false],
    ['that depends on an unknown column', 'Final.', ['nothing'], false],
    ['that depends on an exposed column of another table', 'Final.', ['public.people.name'], true],
    ['that depends on a hidden column of another table', 'Final.', ['public.people.ssn'], false],
    ['that depends on a hidden table', 'Final.', ['public.wages.amount'], false],
    ['that names a hidden column of its table', 'See SECRETNOTE, please.', [], false],
    ['that names a hidden column quoted as in SQL', 'SELECT "secretNote"', [], false],
    ['that names a hidden column in full-width letters', 'See ｓｅｃｒｅｔＮｏｔｅ there.', [], false],
    ['that names a hidden column with invisible characters inside', 'See secret\u200bNo\u00adte there.', [], false],
    [
      'that names a hidden column of another table, if the name is not a plain word',
      'The net_pay is a number.',
      [],
      false,
    ],
    ['that names a hidden column with a Markdown escape', String.raw`The net\_pay is a number.`, [], false],
    ['that names a hidden column with a decomposed accent', 'See people.nai\u0308ve.', [], false],
    ['that names a hidden path', 'See a.b there.', [], false],
    ['that contains a hidden name inside another word', 'The secretNotes are kept.', [], true],
    ['that contains a hidden two-letter name as a word', 'One of many.', [], true],
    ['that names a hidden column after its table', 'Join people.ssn = 1', [], false],
    ['that names a hidden column after its quoted schema and table', 'Join "public"."people"."ssn"', [], false],
    ['that contains only the name of another table’s hidden column', 'The ssn is a number.', [], true],
    ['that names a hidden table, if the name is not a plain word', 'See pay_roll.', [], false],
    ['that names a hidden table with its schema', 'See public.wages.', [], false],
    ['that contains a plain word that is also the name of a hidden table', 'No wages are paid.', [], true],
    [
      'that contains a hidden table’s plain name at the end of a sentence',
      'It tells the wages. People differ.',
      [],
      true,
    ],
    ['that contains a hidden table’s plain name as a value', 'Its status is one of “wages” or “other”.', [], true],
    [
      'that contains a hidden table’s plain name after a word that SQL also has',
      'What comes from wages is taxed.',
      [],
      true,
    ],
    ['that contains a hidden table’s plain name in single quotes', "Not 'wages', but fees.", [], true],
    ['that calls a hidden table’s plain name a table', 'See the wages table.', [], false],
    ['that says “table” before a hidden table’s plain name', 'Join it to table Wages.', [], false],
    ['that quotes a hidden table’s plain name as code', 'See `wages`.', [], false],
    ['that quotes a hidden table’s plain name as in SQL', 'Join "wages" by id.', [], false],
    ['that quotes a hidden table’s plain name as in BigQuery, with its dataset', 'FROM `public.wages`', [], false],
    ['that names a column of a hidden table after its plain name', 'See wages.id.', [], false],
    ['that reads a hidden table with JOIN', 'Say JOIN wages ON true.', [], false],
    ['that reads a hidden table in a lower-case query', 'select id from wages', [], false],
    ['that reads a hidden table in full-width letters', 'select id from ｗａｇｅｓ', [], false],
    ['that reads a hidden table with $lookup', '[{"$lookup":{"from":"wages","as":"w"}}]', [], false],
    [
      'that names an exposed table as a table, in quotes, and before a column',
      'See the people table, "people" and people.name.',
      [],
      true,
    ],
  ]
  for (const [what, text, restsOn, isShown] of cases) {
    test(`a text ${what} is ${isShown ? 'shown' : 'hidden'}`, () =>
      assert.equal(sight?.maySee({ text, restsOn }), isShown))
  }

  test('a text is hidden if it depends on a name that means both a shown and a hidden column', () => {
    const [orders] = SHOWN.tables
    assert.ok(orders)
    const [one, other] = [table('b', [column('c.d')], 'a'), table('c', [column('d')], 'a.b')]
    const said = { text: 'Final.', restsOn: ['a.b.c.d'] }
    const shown = (...tables: readonly CatalogTable[]) =>
      new Visibility(catalog(orders, ...tables), catalog(orders, one, other)).of(orders)?.maySee(said)
    assert.deepEqual([shown(one), shown(other), shown(one, other)], [false, false, true])
  })

  test('no text about a hidden table is shown', () => {
    assert.equal(new Visibility(SHOWN, FULL).of({ schema: 'public', table: 'wages' }), null)
  })
})

test('a text depends on the columns that it names, in its own table and in other tables', () => {
  const [orders] = FULL.tables
  assert.ok(orders)
  const naming = new ColumnMentions(FULL)
  assert.deepEqual(naming.in('SELECT o."status", p.ssn FROM orders o JOIN people p ON p.id = o.id', orders), [
    'id',
    'status',
    'public.people.id',
    'public.people.ssn',
  ])
  assert.deepEqual(naming.in('{"$lookup":{"from":"wages"}}', orders), ['public.wages.id'])
  assert.deepEqual(naming.in('Nothing of all that.', orders), ['of'])
})

describe('the rules', () => {
  const to = (name: string) => ({ schema: 'public', table: name, column: 'id' })
  const shop = catalog(
    table('customers', [ID, column('name')]),
    table('lines', [
      column('order_id', { type: 'int4', primaryKey: true, references: to('orders') }),
      column('line', { type: 'int4', primaryKey: true }),
      column('customer_id', { type: 'int4' }),
      column('weight_grams', { type: 'int4' }),
      column('status'),
      column('deleted_at', { type: 'timestamptz', nullable: true }),
    ]),
    table('orders', [ID, column('customer_id', { type: 'int4', references: to('customers'), nullable: true })]),
    table('order_notes', [column('order_id', { type: 'int4', primaryKey: true, references: to('orders') })]),
  )
  const seen = (values: readonly string[]): KeptColumn => ({
    name: 'status',
    type: 'text',
    nullFrac: 0,
    distinctCount: values.length,
    values: values.map((value) => ({ value, share: 0.1 })),
    range: null,
    personal: false,
    unique: false,
    look: null,
    signals: [],
  })
  const write = (name: string, values: readonly string[] = [], type = 'text') => {
    const profile = {
      schema: 'public',
      table: name,
      capturedAt: '',
      rowsSampled: 1,
      complete: true,
      columns: [{ ...seen(values), type }],
    }
    const driver = {
      type: 'POSTGRES',
      vocabulary: { schema: 'schema', table: 'table', queryLanguage: 'PostgreSQL SQL' },
      typed: (names: readonly string[]) => names.join('.'),
    } as const
    const profiles = new Map([[tableKey('public', name), profile]])
    const [about] = writerContexts(driver, shop, profiles, tableKey, (each) => each.table === name)
    assert.ok(about)
    return writeByRules(about, (question) => questionInSql(question, (each) => each))
  }

  test('the rules write the grain, joins, units, enumerations and soft deletes', () => {
    const { statements, summary, columns, examples } = write('lines', ['paid', 'open'])
    assert.equal(summary?.text, 'One row per line. Each line belongs to an order.')
    assert.deepEqual(
      statements.map((said) => said.text),
      [
        'One row per combination of order_id and line.',
        'Join on order_id = public.orders.id.',
        'Join on customer_id = public.customers.id (inferred from the names; there is no foreign key).',
        'status is one of “open” or “paid”.',
        'A row with deleted_at set is deleted: exclude it unless deleted rows are asked for.',
      ],
    )
    assert.deepEqual(
      [...columns].map(([name, said]) => [name, said.text]),
      [['weight_grams', 'In grams.']],
    )
    assert.ok(examples.length > 1)
    for (const said of statements) assert.ok(said.restsOn.length > 0, said.text)
  })

  test('the rules suggest LEFT JOIN for a nullable foreign key, and write “at most one row” for a primary key that is also a foreign key', () => {
    const { statements, examples } = write('orders')
    const texts = statements.map((said) => said.text)
    assert.ok(
      texts.includes(
        'Join on customer_id = public.customers.id. customer_id may be null: use LEFT JOIN to keep every row.',
      ),
    )
    assert.ok(texts.includes('public.lines.order_id references id (many to one).'))
    assert.match(examples[0]?.text ?? '', /per name of customers.*JOIN public\.customers/s)
    assert.equal(
      write('order_notes').statements[0]?.text,
      'At most one row per row of public.orders, matched by order_id.',
    )
  })

  test('the rules list the values of a column only if they are a few codes and the column still has its type', () => {
    const says = (values: readonly string[], type?: string) =>
      write('lines', values, type).statements.some((said) => said.text.includes('is one of'))
    assert.equal(says(['new', 'old']), true)
    assert.equal(says(['Came well packed.', 'Broke.']), false)
    assert.equal(says(Array.from({ length: 9 }, (_, n) => `v${n}`)), false)
    assert.equal(says(['only']), false)
    assert.equal(says(['new', 'old'], 'int4'), false)
  })

  test('the rules write a unit only for numbers', () => {
    assert.equal(meaningOf({ name: 'durationMs', type: 'int8' }), 'In milliseconds.')
    assert.equal(meaningOf({ name: 'price_eur', type: 'numeric' }), 'In EUR.')
    assert.equal(meaningOf({ name: 'price_eur', type: 'text' }), null)
    assert.equal(meaningOf({ name: 'items', type: 'int4' }), null)
  })
})

describe('the answer of a language model', () => {
  const [orders] = SHOWN.tables
  assert.ok(orders)
  const read = (answer: unknown) =>
    readAnswer(JSON.stringify(answer), orders, new ColumnMentions(SHOWN), new ValueMentions([]))

  const dropped: readonly (readonly [string, string])[] = [
    ['a URL', 'See http://evil.example for more.'],
    ['a URL without a scheme', 'See www.evil.example for more.'],
    ['an HTML tag', 'See <b>this</b>.'],
    ['a link', 'See [this](x).'],
    ['an HTML entity', 'See &#60;this.'],
    ['more than 300 characters', 'x'.repeat(301)],
    ['nothing but Markdown marks', '` ** `'],
  ]
  for (const [what, text] of dropped) {
    test(`a statement with ${what} is dropped from a model’s answer`, () =>
      assert.deepEqual(read({ statements: [{ text }] }).statements, []))
  }

  test('a summary in a model’s answer becomes one line of plain text', () => {
    const { summary } = read({ summary: '# **Orders**\u0000\u202e and\n\n`status`.\ud800' })
    assert.equal(summary?.text, 'Orders and status.\ufffd')
  })

  test('a model’s answer is cut to 12 statements and 3 examples, and queries with a comment are dropped', () => {
    const many = Array.from({ length: 40 }, (_, n) => ({ text: `Fact ${n}.` }))
    const examples = [
      { words: 'a', query: 'SELECT 1 -- x' },
      { words: 'b', query: 'SELECT /* x */ 1' },
      { words: 'c', query: { collection: 'orders' } },
      { words: 'd', query: 'SELECT 1' },
    ]
    const proposal = read({ statements: many, examples })
    assert.equal(proposal.statements.length, 12)
    assert.deepEqual(
      proposal.examples.map((example) => example.query),
      ['{"collection":"orders"}'],
    )
  })

  test('a model’s answer of the wrong shape is refused', () => {
    for (const text of ['', 'null', '[]', '{', '{"statements":[1]}', '{"columns":[]}', '{"examples":{}}']) {
      assert.throws(() => readAnswer(text, orders, new ColumnMentions(SHOWN), new ValueMentions([])), text)
    }
  })
})
