// The pure parts: what a text may name, what it rests on, what the rules say, and what a model's answer is read as.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Catalog, CatalogColumn, CatalogTable } from '../drivers/driver.ts'
import { questionInSql } from '../drivers/sql-question.ts'
import { tableKey } from '../drivers/table-key.ts'
import type { KeptColumn } from '../profiles/stored.ts'
import { writerContexts } from './writer-context.ts'
import { meaningOf } from './meanings.ts'
import { readAnswer } from './model-answer.ts'
import { ColumnMentions } from './column-mentions.ts'
import { writeByRules } from './rules.ts'
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

describe('a text is shown', () => {
  const sight = new Visibility(SHOWN, FULL).of({ schema: 'public', table: 'orders' })
  const cases: readonly (readonly [string, string, readonly string[], boolean])[] = [
    ['that names what is exposed', 'Its status is final.', ['status'], true],
    ['that rests on a hidden column', 'Final.', ['secretNote'], false],
    ['that rests on what nobody knows', 'Final.', ['nothing'], false],
    ['that rests on an exposed column of another table', 'Final.', ['public.people.name'], true],
    ['that rests on a hidden column of another table', 'Final.', ['public.people.ssn'], false],
    ['that rests on a hidden table', 'Final.', ['public.wages.amount'], false],
    ['that names a hidden column of its table', 'See SECRETNOTE, please.', [], false],
    ['that names one as SQL quotes it', 'SELECT "secretNote"', [], false],
    ['that names one in wide letters', 'See ｓｅｃｒｅｔＮｏｔｅ there.', [], false],
    ['that names one with unseen characters inside', 'See secret\u200bNo\u00adte there.', [], false],
    ['that names a hidden column of another table by no plain word', 'The net_pay is a number.', [], false],
    ['that names one as Markdown escapes it', String.raw`The net\_pay is a number.`, [], false],
    ['that names one with its accent apart', 'See people.nai\u0308ve.', [], false],
    ['that names a hidden path', 'See a.b there.', [], false],
    ['that holds a hidden name inside another word', 'The secretNotes are kept.', [], true],
    ['that holds a hidden name of two letters as a word', 'One of many.', [], true],
    ['that names a hidden column behind its table', 'Join people.ssn = 1', [], false],
    ['that names one so with its schema and quotes', 'Join "public"."people"."ssn"', [], false],
    ['that holds the name of another table’s hidden column alone', 'The ssn is a number.', [], true],
    ['that names a hidden table by no plain word', 'See pay_roll.', [], false],
    ['that names a hidden table with its schema', 'See public.wages.', [], false],
    ['that holds a plain word that is a hidden table', 'No wages are paid.', [], true],
    ['that holds one at the end of a sentence', 'It tells the wages. People differ.', [], true],
    ['that holds one as a value', 'Its status is one of “wages” or “other”.', [], true],
    ['that holds one behind a word that SQL has too', 'What comes from wages is taxed.', [], true],
    ['that holds one that somebody stresses', "Not 'wages', but fees.", [], true],
    ['that calls it a table', 'See the wages table.', [], false],
    ['that calls it a table first', 'Join it to table Wages.', [], false],
    ['that quotes it as code', 'See `wages`.', [], false],
    ['that quotes it as SQL', 'Join "wages" by id.', [], false],
    ['that quotes it as BigQuery does, with its dataset', 'FROM `public.wages`', [], false],
    ['that names one of its columns', 'See wages.id.', [], false],
    ['that reads it', 'Say JOIN wages ON true.', [], false],
    ['that reads it in small letters', 'select id from wages', [], false],
    ['that reads it in wide letters', 'select id from ｗａｇｅｓ', [], false],
    ['that looks it up', '[{"$lookup":{"from":"wages","as":"w"}}]', [], false],
    ['that names an exposed table so', 'See the people table, "people" and people.name.', [], true],
  ]
  for (const [what, text, restsOn, isShown] of cases) {
    test(`${what}: ${isShown ? 'yes' : 'no'}`, () => assert.equal(sight?.maySee({ text, restsOn }), isShown))
  }

  test('that rests on a name of two meanings, one of them hidden: no', () => {
    const [orders] = SHOWN.tables
    assert.ok(orders)
    const [one, other] = [table('b', [column('c.d')], 'a'), table('c', [column('d')], 'a.b')]
    const said = { text: 'Final.', restsOn: ['a.b.c.d'] }
    const shown = (...tables: readonly CatalogTable[]) =>
      new Visibility(catalog(orders, ...tables), catalog(orders, one, other)).of(orders)?.maySee(said)
    assert.deepEqual([shown(one), shown(other), shown(one, other)], [false, false, true])
  })

  test('of a hidden table: never', () => {
    assert.equal(new Visibility(SHOWN, FULL).of({ schema: 'public', table: 'wages' }), null)
  })
})

test('a text rests on the columns that it names, its own and those of tables that it names', () => {
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

  test('say grain, joins, units, closed lists and marks of deletion', () => {
    const { statements, summary, columns, examples } = write('lines', ['paid', 'open'])
    assert.equal(summary?.text, 'Each row is one of lines; it belongs to orders.')
    assert.deepEqual(
      statements.map((said) => said.text),
      [
        'One row per order_id and line.',
        'Join on order_id = public.orders.id.',
        'Join on customer_id = public.customers.id, by the names; no foreign key says so.',
        'status is one of “open” or “paid”.',
        'A row with deleted_at set counts as gone: leave it out unless it is asked for.',
      ],
    )
    assert.deepEqual(
      [...columns].map(([name, said]) => [name, said.text]),
      [['weight_grams', 'In grams.']],
    )
    assert.ok(examples.length > 1)
    for (const said of statements) assert.ok(said.restsOn.length > 0, said.text)
  })

  test('say how to keep rows whose key is null, and one to one where a key is a key', () => {
    const { statements, examples } = write('orders')
    const texts = statements.map((said) => said.text)
    assert.ok(
      texts.includes(
        'Join on customer_id = public.customers.id; customer_id may be null, so LEFT JOIN keeps every row here.',
      ),
    )
    assert.ok(texts.includes('public.lines.order_id refers to id, many to one.'))
    assert.match(examples[0]?.text ?? '', /for each name of customers.*JOIN public\.customers/s)
    assert.equal(
      write('order_notes').statements[0]?.text,
      'At most one row for each row of public.orders, by order_id.',
    )
  })

  test('call no names, sentences or long lists a closed list, nor what was seen of another type', () => {
    const says = (values: readonly string[], type?: string) =>
      write('lines', values, type).statements.some((said) => said.text.includes('is one of'))
    assert.equal(says(['new', 'old']), true)
    assert.equal(says(['Came well packed.', 'Broke.']), false)
    assert.equal(says(Array.from({ length: 9 }, (_, n) => `v${n}`)), false)
    assert.equal(says(['only']), false)
    assert.equal(says(['new', 'old'], 'int4'), false)
  })

  test('tell a unit only of numbers', () => {
    assert.equal(meaningOf({ name: 'durationMs', type: 'int8' }), 'In milliseconds.')
    assert.equal(meaningOf({ name: 'price_eur', type: 'numeric' }), 'In EUR.')
    assert.equal(meaningOf({ name: 'price_eur', type: 'text' }), null)
    assert.equal(meaningOf({ name: 'items', type: 'int4' }), null)
  })
})

describe('an answer of a model', () => {
  const [orders] = SHOWN.tables
  assert.ok(orders)
  const read = (answer: unknown) =>
    readAnswer(JSON.stringify(answer), orders, new ColumnMentions(SHOWN), new ValueMentions([]))

  const dropped: readonly (readonly [string, string])[] = [
    ['an address', 'See http://evil.example for more.'],
    ['an address without a scheme', 'See www.evil.example for more.'],
    ['a tag', 'See <b>this</b>.'],
    ['a link', 'See [this](x).'],
    ['an entity', 'See &#60;this.'],
    ['more than 300 characters', 'x'.repeat(301)],
    ['nothing but marks', '` ** `'],
  ]
  for (const [what, text] of dropped) {
    test(`is left out where it holds ${what}`, () => assert.deepEqual(read({ statements: [{ text }] }).statements, []))
  }

  test('is one line of plain text', () => {
    const { summary } = read({ summary: '# **Orders**\u0000\u202e and\n\n`status`.\ud800' })
    assert.equal(summary?.text, 'Orders and status.\ufffd')
  })

  test('has at most so many texts, and no query with a comment', () => {
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

  test('that is no object of this shape is thrown', () => {
    for (const text of ['', 'null', '[]', '{', '{"statements":[1]}', '{"columns":[]}', '{"examples":{}}']) {
      assert.throws(() => readAnswer(text, orders, new ColumnMentions(SHOWN), new ValueMentions([])), text)
    }
  })
})
