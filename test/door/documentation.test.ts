// Tests documentation over HTTP, on both stores. Texts are proposed, accepted or rejected, published and described.
// When the exposure hides their columns, the texts are hidden again.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { CANARY, EXPOSED, openDocumentedShop, type DocumentedShop } from '../support/documented.ts'
import { DIALECTS, storeEnv, storeSource, type StoreSource } from '../support/stores.ts'

interface Text {
  readonly text: string
  readonly origin: string
  readonly status: string
  readonly restsOn: readonly string[]
  readonly stale: boolean
}

for (const dialect of DIALECTS) {
  describe(`documentation, with the store on ${dialect}`, () => {
    let source: StoreSource
    let shop: DocumentedShop

    before(async () => {
      source = await storeSource(dialect)
      shop = await openDocumentedShop({ env: storeEnv(await source.config()) })
    })
    after(async () => {
      await shop[Symbol.asyncDispose]()
      await source[Symbol.asyncDispose]()
    })

    test('documentation passes every stage: profiled, proposed, judged, published, described', async () => {
      assert.equal((await shop.run('profile')).state, 'DONE')
      const job = await shop.run('documentation/generate')
      assert.deepEqual([job.state, job.done, job.total, job.result.failed], ['DONE', 4, 4, []])
      const draft = await shop.draft('orders')
      const texts = (draft.statements as Text[]).map(({ text }) => text)
      assert.ok(texts.includes('Join on customer_id = public.customers.id.'), texts.join('\n'))
      assert.ok(texts.includes('status is one of “open” or “paid”.'))
      assert.match(draft.columns.total_cents.text, /cents/)
      assert.match(draft.summary.text, /^One row per order\. Each order belongs to a customer/)
      assert.match(draft.examples.text, /GROUP BY/)
      assert.ok(
        [draft.summary, ...draft.statements].every(({ status, stale }: Text) => status === 'PROPOSED' && !stale),
      )
      const empty = await shop.described('orders')
      assert.deepEqual(
        [empty.documentation, empty.description],
        [null, null],
        'drafts stay unseen until they are published',
      )

      const [first, second, ...others] = draft.statements as Text[]
      assert.ok(first && second)
      const saved = await shop.put('orders', {
        summary: { ...draft.summary, status: 'CONFIRMED' },
        examples: { ...draft.examples, status: 'ACCEPTED' },
        statements: [
          { ...first, status: 'ACCEPTED' },
          { ...second, status: 'REJECTED' },
          { text: 'Totals hold no tax.', restsOn: ['total_cents'] },
          ...others,
        ],
        columns: { total_cents: { ...draft.columns.total_cents, text: 'In cents, without tax.', status: 'ACCEPTED' } },
      })
      assert.equal(saved.status, 200, saved.text)
      assert.equal(
        saved.json.columns.total_cents.origin,
        'HUMAN',
        'a person who changes a generated text becomes its author',
      )
      assert.equal(saved.json.statements[0].origin, 'GENERATED')
      assert.equal((await shop.described('orders')).documentation, null)
      const { publishedAt } = await shop.owner.must('POST', `${shop.at}/documentation/publish`)
      const { description, documentation, columns } = await shop.described('orders')
      assert.deepEqual(documentation, {
        summary: draft.summary.text,
        statements: [first.text, 'Totals hold no tax.'],
        examples: draft.examples.text,
        publishedAt,
      })
      assert.equal(description, draft.summary.text)
      const cents = columns.find((column: { readonly name: string }) => column.name === 'total_cents')
      assert.equal(cents.description, 'In cents, without tax.')
      assert.equal((await shop.owner.must('GET', `${shop.at}/documentation`)).publishedAt, publishedAt)
      const query = documentation.examples.slice(documentation.examples.indexOf('\n') + 1)
      const answer = await shop.app.ask('POST', `${shop.at}/query`, { token: shop.key, body: { sql: query } })
      assert.equal(answer.status, 200, answer.text)
    })

    test('texts that a person accepted or rejected are kept when documentation is generated again', async () => {
      const draft = await shop.draft('orders')
      const rejected = (draft.statements as Text[]).find(({ status }) => status === 'REJECTED')
      const again = await shop.run('documentation/generate')
      assert.equal(again.result.proposed, 0)
      const after = await shop.draft('orders')
      assert.deepEqual(
        after.statements.map(({ text, status }: Text) => [text, status]).sort(),
        draft.statements.map(({ text, status }: Text) => [text, status]).sort(),
      )
      assert.equal((after.statements as Text[]).filter(({ text }) => text === rejected?.text).length, 1)
    })

    test('a publication of an outdated version is refused, and so is the second of two simultaneous publications', async () => {
      const { version } = await shop.owner.must('GET', `${shop.at}/documentation`)
      const saved = await shop.put('doomed', { summary: { text: 'Of no use.' }, version })
      assert.equal(saved.json.version, version + 1)
      const late = await shop.put('doomed', { summary: { text: 'Of some use.' }, version })
      assert.deepEqual([late.status, late.json.code], [409, 'CONFLICT'])
      assert.equal((await shop.draft('doomed')).summary.text, 'Of no use.', 'the refused request wrote nothing')
      const both = await Promise.all(
        [1, 2].map(() => shop.owner.ask('POST', `${shop.at}/documentation/publish`, { version: version + 1 })),
      )
      assert.deepEqual(both.map((answer) => answer.status).sort(), [200, 409])
      const free = await Promise.all([1, 2].map(() => shop.owner.ask('POST', `${shop.at}/documentation/publish`)))
      assert.deepEqual(
        free.map((answer) => answer.status),
        [200, 200],
        'without a version, both succeed in turn',
      )
    })

    test('a narrower exposure hides texts immediately, and the previous exposure shows all of them again', async () => {
      await shop.put('orders', {
        summary: { text: 'What was bought.', restsOn: [] },
        examples: {
          text: 'By country:\nSELECT country, count(*) FROM orders JOIN customers ON customer_id = customers.id GROUP BY 1',
        },
        statements: [
          { text: 'A status changes once.', restsOn: ['status'] },
          { text: 'Prices rise.', restsOn: [] },
          { text: 'Never sum total_cents over countries.' },
          { text: 'Every customer is known.', restsOn: ['public.customers.id'] },
        ],
        columns: { status: { text: 'Where it stands.' } },
      })
      await shop.publish()
      const orders = (columns: readonly string[]) =>
        EXPOSED.map((table) => (table.table === 'orders' ? { ...table, columns } : table))
      const all = await shop.described('orders')
      assert.equal(all.documentation.statements.length, 4)
      assert.ok(all.documentation.examples)

      const etag = async () => (await shop.app.ask('GET', `${shop.at}/schema`, { token: shop.key })).headers.get('etag')
      const before = await etag()
      await shop.expose(orders(['id', 'customer_id', 'total_cents']))
      assert.notEqual(await etag(), before)
      const noStatus = await shop.described('orders')
      assert.deepEqual(noStatus.documentation.statements.length, 3, 'the text that rests on status is hidden')
      assert.ok(!JSON.stringify(noStatus).includes('Where it stands'))
      await shop.expose(orders(['id', 'customer_id', 'status']))
      const noTotal = await shop.described('orders')
      assert.ok(!JSON.stringify(noTotal).includes('Never sum'), 'the text that names a hidden column is hidden')
      await shop.expose(EXPOSED.filter(({ table }) => table !== 'customers'))
      const noCustomers = await shop.described('orders')
      assert.deepEqual(
        [noCustomers.documentation.examples, noCustomers.documentation.statements.includes('Every customer is known.')],
        [undefined, false],
        'texts that need a hidden table are hidden',
      )
      const full = await shop.owner.must('GET', `${shop.at}/schema?full=1`)
      assert.ok(!JSON.stringify(full).includes('Every customer is known'), 'also hidden in the full description')
      await shop.expose(EXPOSED.filter(({ table }) => table !== 'orders'))
      assert.ok(
        !(await shop.app.ask('GET', `${shop.at}/schema?full=1`, { token: shop.owner.jwt })).text.includes(
          'What was bought',
        ),
      )
      await shop.expose()
      assert.deepEqual((await shop.described('orders')).documentation, all.documentation)
    })

    test('the author is warned about texts that will be hidden, and a text that names hidden data is never shown', async () => {
      const saved = await shop.put('orders', {
        statements: [
          { text: 'The canary note is for the staff.' },
          { text: 'See canary_payroll.' },
          { text: 'Join public.customers.canary_score to rank them.' },
          { text: 'Open orders can be cancelled.' },
          { text: 'Rests on what is hidden.', restsOn: ['canary_note'] },
        ],
      })
      assert.equal(saved.json.warnings.length, 3, saved.text)
      assert.ok(saved.json.warnings.every((warning: string) => !warning.includes('cancelled')))
      await shop.publish()
      assert.deepEqual((await shop.described('orders')).documentation.statements, [
        'The canary note is for the staff.',
        'Open orders can be cancelled.',
      ])
    })

    test('documentation texts that are too long, too many, unknown or malformed are refused, and nothing is written', async () => {
      const before = await shop.draft('customers')
      const wrong: readonly (readonly [string, object])[] = [
        ['summary too long', { summary: { text: 'x'.repeat(2_001) } }],
        ['statement too long', { statements: [{ text: 'x'.repeat(501) }] }],
        ['column too long', { columns: { id: { text: 'x'.repeat(501) } } }],
        ['examples too long', { examples: { text: 'x'.repeat(4_001) } }],
        ['too many statements', { statements: Array.from({ length: 51 }, (_, n) => ({ text: `fact ${n}` })) }],
        ['unknown column', { columns: { nope: { text: 'No such column.' } } }],
        ['rests on an unknown column', { summary: { text: 'Fine.', restsOn: ['nope'] } }],
        ['unknown status', { summary: { text: 'Fine.', status: 'PUBLISHED' } }],
        ['empty text', { summary: { text: '' } }],
        ['unknown field', { notes: 'x' }],
        ['NUL', { summary: { text: 'a\u0000b' } }],
      ]
      for (const [what, body] of wrong) {
        const answer = await shop.put('customers', body)
        assert.deepEqual([answer.status, answer.json.code], [400, 'INVALID_REQUEST'], what)
      }
      const named = await shop.put('customers', {
        columns: { nope: { text: 'x' } },
        summary: { text: 'x', restsOn: ['nada'] },
      })
      assert.match(JSON.stringify(named.json.details), /nope.*|.*nada/)
      assert.deepEqual(await shop.draft('customers'), before)
      assert.equal((await shop.put('nowhere', { summary: { text: 'x' } })).status, 404)
      const hidden = await shop.owner.ask('POST', `${shop.at}/documentation/generate`, {
        tables: [{ schema: 'public', table: 'canary_payroll' }],
      })
      assert.equal(hidden.status, 400, 'a table that is not exposed')
      assert.ok(!hidden.text.includes('salary'))
      assert.equal(
        (await shop.owner.ask('POST', `${shop.at}/documentation/generate`, { model: true })).status,
        400,
        'no model is set up',
      )
    })

    test('documentation accepts names with slashes, dots, spaces and non-ASCII letters', async () => {
      const odd = 'odd/name.of table Ü'
      const saved = await shop.put(odd, {
        columns: { 'c/d': { text: 'Text.' } },
        summary: { text: 'Odd.', restsOn: ['a b'] },
      })
      assert.equal(saved.status, 200, saved.text)
      await shop.publish()
      const { documentation, columns } = await shop.described(odd)
      assert.deepEqual([documentation.summary, columns[1].description], ['Odd.', 'Text.'])
      for (const path of ['public/%00', 'public/%', `public/${'x'.repeat(2_000)}`, 'public/..%2f..%2f..']) {
        const answer = await shop.owner.ask('PUT', `${shop.at}/documentation/${path}`, { summary: { text: 'x' } })
        assert.ok(answer.status === 404 || answer.status === 400, `${path}: ${answer.status}`)
      }
    })

    test('marking a column as personal removes its values from the description immediately', async () => {
      const statsOf = async () => {
        const { columns } = await shop.described('customers')
        return columns.find((column: { readonly name: string }) => column.name === 'country').stats
      }
      await shop.run('profile', { tables: [{ schema: 'public', table: 'customers' }] })
      assert.equal((await statsOf()).values.length, 2)
      await shop.run('documentation/generate')
      assert.match(JSON.stringify((await shop.draft('customers')).statements), /“DE”/)
      const { statements: proposed } = await shop.draft('customers')
      await shop.put('customers', { statements: proposed.map((entry: Text) => ({ ...entry, status: 'ACCEPTED' })) })
      await shop.publish()
      const published = async () => (await shop.described('customers')).documentation.statements
      const all = await published()
      assert.match(JSON.stringify(all), /“DE”/)
      await shop.put('customers', { columns: { country: { personal: true } } })
      assert.deepEqual(
        await published(),
        all.filter((text: string) => !text.includes('“DE”')),
      )
      assert.deepEqual([(await statsOf()).values, (await statsOf()).range], [undefined, undefined])
      assert.doesNotMatch(JSON.stringify((await shop.draft('customers')).statements), /“DE”/)
      await shop.run('profile', { tables: [{ schema: 'public', table: 'customers' }] })
      assert.equal((await statsOf()).values, undefined, 'the next profile does not store the values')
      await shop.run('documentation/generate')
      const { statements } = await shop.draft('customers')
      assert.ok(!JSON.stringify(statements).includes('“DE”'))
    })

    test('a personal mark stays until a person changes it, and after its removal values are shown only once the column is profiled again', async () => {
      const valuesOf = async (name: string) => {
        const { columns } = await shop.described('customers')
        return columns.find((column: { readonly name: string }) => column.name === name).stats.values
      }
      const tables = [{ schema: 'public', table: 'customers' }]
      await shop.put('customers', { columns: { country: { personal: false } } })
      await shop.put('customers', { columns: { name: { personal: true } } })
      assert.deepEqual((await shop.draft('customers')).columns, {
        country: { personal: false },
        name: { personal: true },
      })
      await shop.run('profile', { tables })
      assert.equal((await valuesOf('country')).length, 2)
      await shop.put('customers', { columns: { country: { personal: null }, name: { personal: null } } })
      assert.equal(await valuesOf('country'), undefined)
      await shop.run('profile', { tables })
      assert.equal((await valuesOf('country')).length, 2, 'the rules do not find the column personal')
    })

    test('a text is stale if its column was retyped or dropped, and stays after its table was dropped until a person empties it', async () => {
      await shop.put('doomed', {
        summary: { text: 'Of no use.', restsOn: ['note'] },
        statements: [{ text: 'Rests on id.', restsOn: ['id'] }],
        columns: { note: { text: 'A note.' } },
      })
      await shop.publish()
      await shop.sql('ALTER TABLE doomed ALTER COLUMN id TYPE bigint; ALTER TABLE doomed DROP COLUMN note')
      await shop.owner.must('POST', `${shop.at}/introspect`)
      const changed = await shop.draft('doomed')
      assert.deepEqual(
        [changed.summary.stale, changed.statements[0].stale, changed.columns.note.stale],
        [true, true, true],
      )
      assert.equal((await shop.described('doomed')).documentation.summary, undefined, 'a dropped column is not exposed')
      const kept = await shop.put('doomed', { statements: [{ text: 'Rests on id.', restsOn: ['id'] }] })
      assert.equal(kept.json.statements[0].stale, false, 'saving records the current types')

      await shop.sql('DROP TABLE doomed')
      await shop.owner.must('POST', `${shop.at}/introspect`)
      assert.equal((await shop.draft('doomed')).gone, true)
      const edited = await shop.put('doomed', { summary: { text: 'It was of no use.', restsOn: ['note'] } })
      assert.deepEqual([edited.status, edited.json.gone], [200, true])
      await shop.publish()
      assert.equal(await shop.described('doomed'), undefined)
      assert.equal(
        (await shop.put('doomed', { summary: null, examples: null, statements: [], columns: {} })).status,
        200,
      )
      assert.equal(await shop.draft('doomed'), undefined)
      assert.equal((await shop.put('doomed', { summary: { text: 'x' } })).status, 404)
    })

    test('neither the drafts nor the description contains hidden or personal data', async () => {
      await shop.owner.must('PUT', `${shop.at}/documentation/public/orders`, { statements: [] })
      await shop.run('profile')
      await shop.run('documentation/generate')
      const { tables } = await shop.owner.must('GET', `${shop.at}/documentation`)
      for (const { schema, table, summary, examples, statements, columns } of tables) {
        const accepted = (entry: Text | null) => (entry === null ? null : { ...entry, status: 'ACCEPTED' })
        const all = { summary: accepted(summary), examples: accepted(examples), statements: statements.map(accepted) }
        const texts = Object.entries<Text>(columns).map(
          ([name, entry]) => [name, entry.text ? accepted(entry) : entry] as const,
        )
        await shop.owner.must('PUT', `${shop.at}/documentation/${schema}/${encodeURIComponent(table)}`, {
          ...all,
          columns: Object.fromEntries(texts),
        })
      }
      await shop.publish()
      const responses = await Promise.all(
        ['/schema', '/documentation'].map(
          async (path) => (await shop.app.ask('GET', shop.at + path, { token: shop.owner.jwt })).text,
        ),
      )
      assert.ok(responses.every((text) => text.length > 1_000))
      for (const text of responses) assert.ok(!text.toLowerCase().includes(CANARY.toLowerCase()), text)
    })
  })
}
