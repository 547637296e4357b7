// The store must contain no observed value and no generated text of a hidden column. This is checked over HTTP and in
// the rows of both stores.
import assert from 'node:assert/strict'
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, beforeEach, describe, test } from 'node:test'
import { Client } from 'pg'
import { EXPOSED, openDocumentedShop, type DocumentedShop } from '../support/documented.ts'
import { DIALECTS, storeEnv, storeSource, type StoreSource } from '../support/stores.ts'

interface Text {
  readonly text: string
  readonly restsOn: readonly string[]
}

/** A part of the text that is generated from the values of orders.status. */
const VALUES = '“open” or “paid”'
const withoutStatus = EXPOSED.map((table) =>
  table.table === 'orders' ? { ...table, columns: ['id', 'customer_id', 'total_cents', 'placed_at'] } : table,
)

for (const dialect of DIALECTS) {
  describe(`texts about a hidden column, with the store on ${dialect}`, () => {
    let source: StoreSource
    let shop: DocumentedShop
    let rows: (sql: string) => Promise<readonly unknown[]>

    before(async () => {
      source = await storeSource(dialect)
      const config = await source.config()
      const { databaseUrl } = config
      shop = await openDocumentedShop({ env: storeEnv(config) })
      rows = async (sql) => {
        if (databaseUrl === null) {
          // The service locks its file, so read a copy. Somebody who steals the disk would see the same bytes.
          const copy = await mkdtemp(join(tmpdir(), 'vitrine-test-copy-'))
          for (const name of ['vitrine.db', 'vitrine.db-wal']) await cp(join(shop.app.dataDir, name), join(copy, name))
          using file = new DatabaseSync(join(copy, 'vitrine.db'))
          const found = file.prepare(sql).all()
          await rm(copy, { recursive: true })
          return found
        }
        const client = new Client({ connectionString: databaseUrl })
        await client.connect()
        const found = await client.query(sql)
        await client.end()
        return found.rows
      }
    })
    after(async () => {
      await shop[Symbol.asyncDispose]()
      await source[Symbol.asyncDispose]()
    })

    const stored = async () =>
      JSON.stringify([
        await rows('SELECT * FROM documentation'),
        await rows('SELECT * FROM publications'),
        await rows('SELECT * FROM profiles'),
      ])
    /** Accepts the proposed texts of a table unchanged, and adds `more` statements. */
    const accept = async (table: string, more: readonly object[] = []) => {
      const accepted = ({ text, restsOn }: Text) => ({ text, restsOn, origin: 'GENERATED' })
      const { summary, examples, statements } = await shop.draft(table)
      const answer = await shop.put(table, {
        summary: summary === null ? null : accepted(summary),
        examples: examples === null ? null : accepted(examples),
        statements: [
          ...statements.filter((entry: { readonly origin: string }) => entry.origin === 'GENERATED').map(accepted),
          ...more,
        ],
      })
      assert.equal(answer.status, 200, answer.text)
    }
    beforeEach(async () => {
      await shop.expose()
      await shop.run('profile')
      await shop.run('documentation/generate')
      await accept('customers')
      await accept('orders', [{ text: 'Only paid ones count.', restsOn: ['status'] }])
      await shop.publish()
      assert.ok((await stored()).includes(VALUES))
    })

    const ways: readonly (readonly [string, () => Promise<unknown>])[] = [
      ['a narrower PUT', () => shop.expose(withoutStatus)],
      ['hiding the whole table', () => shop.expose(EXPOSED.filter(({ table }) => table !== 'orders'))],
      [
        'restoring a version',
        async () => {
          await shop.expose(withoutStatus)
          const { items } = await shop.owner.must('GET', `${shop.at}/exposure/versions?limit=1`)
          await shop.expose()
          await shop.run('profile')
          await shop.run('documentation/generate')
          await accept('orders')
          await shop.publish()
          assert.ok((await stored()).includes(VALUES))
          await shop.expose(items[0].tables)
        },
      ],
      [
        'an introspection after which the column cannot be exposed',
        async () => {
          await shop.sql(`
            CREATE TYPE state AS (of regclass);
            ALTER TABLE orders ALTER COLUMN status TYPE state USING ROW('orders'::regclass)::state`)
          await shop.owner.must('POST', `${shop.at}/introspect`)
        },
      ],
    ]
    for (const [way, hide] of ways) {
      test(`texts about a hidden column are removed from draft, publications and profile by ${way}`, async () => {
        await hide()
        assert.ok(!/“open”|"open\\*"/.test(await stored()))
        const draft = await shop.draft('orders')
        const texts = JSON.stringify(draft.statements.map(({ text }: Text) => text))
        assert.doesNotMatch(texts, /status/)
        await shop.sql(`
          ALTER TABLE orders ALTER COLUMN status TYPE text USING (ARRAY['paid','open'])[id % 2 + 1];
          DROP TYPE IF EXISTS state`)
        await shop.owner.must('POST', `${shop.at}/introspect`)
        await shop.expose()
        const { documentation } = await shop.described('orders')
        assert.doesNotMatch(JSON.stringify(documentation), /“open”/, 'the text does not come back by itself')
      })
    }

    test('texts that a person wrote stay stored, but are hidden until their columns are exposed again', async () => {
      const before = await shop.owner.must('GET', `${shop.at}/documentation`)
      await shop.expose(withoutStatus)
      const own = (await shop.draft('orders')).statements.find(({ text }: Text) => text === 'Only paid ones count.')
      assert.deepEqual([own.origin, own.stale], ['HUMAN', false])
      assert.doesNotMatch(JSON.stringify(await shop.described('orders')), /Only paid/)
      const now = await shop.owner.must('GET', `${shop.at}/documentation`)
      assert.ok(now.version > before.version, 'a new version, so that edits of the former draft conflict')
      await shop.expose()
      assert.deepEqual(
        (await shop.described('orders')).documentation.statements.filter((text: string) => text.startsWith('Only')),
        ['Only paid ones count.'],
      )
    })

    test('texts stay unchanged if their columns remain exposed', async () => {
      const all = await rows('SELECT * FROM documentation ORDER BY "table"')
      await shop.expose()
      assert.deepEqual(await rows('SELECT * FROM documentation ORDER BY "table"'), all)
      const join = 'Join on customer_id = public.customers.id.'
      await shop.expose(withoutStatus)
      assert.ok((await shop.described('orders')).documentation.statements.includes(join))
      await shop.expose(
        withoutStatus.map((table) => (table.table === 'customers' ? { ...table, columns: ['name'] } : table)),
      )
      assert.doesNotMatch(
        JSON.stringify(await shop.draft('orders')),
        /public\.customers\.id/,
        'a hidden column of another table counts too',
      )
    })

    test('a text still counts as generated if a person accepts it unchanged', async () => {
      const { statements } = await shop.draft('orders')
      const answer = await shop.put('orders', { statements: statements.map(({ text }: Text) => ({ text })) })
      const [values] = answer.json.statements.filter(({ text }: Text) => text.includes(VALUES))
      assert.deepEqual([values.origin, values.restsOn], ['GENERATED', ['status']])
      await shop.expose(withoutStatus)
      assert.doesNotMatch(JSON.stringify(await shop.draft('orders')), /“open”/)
    })
  })
}
