// Tests over HTTP how many proposed texts are accepted in one request and published, and the history of publications.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { openDocumentedShop, type DocumentedShop } from '../support/documented.ts'

describe('accepting documentation', () => {
  let shop: DocumentedShop

  before(async () => {
    shop = await openDocumentedShop()
    assert.equal((await shop.run('documentation/generate')).state, 'DONE')
  })
  after(() => shop[Symbol.asyncDispose]())

  const accept = (body?: object) => shop.owner.ask('POST', `${shop.at}/documentation/accept`, body)
  const publish = () => shop.owner.must('POST', `${shop.at}/documentation/publish`)
  const publications = (query = '') => shop.owner.must('GET', `${shop.at}/documentation/publications${query}`)
  const orders = { schema: 'public', table: 'orders' }

  test('the texts of the requested kinds and tables are accepted as one version', async () => {
    const { version } = await shop.owner.must('GET', `${shop.at}/documentation`)
    const { json } = await accept({ tables: [orders], kinds: ['summary'], version })
    assert.deepEqual(json, {
      accepted: { summary: 1, examples: 0, statements: 0, columns: 0 },
      stale: 0,
      version: version + 1,
    })
    const draft = await shop.draft('orders')
    assert.deepEqual([draft.summary.status, draft.examples.status], ['ACCEPTED', 'PROPOSED'])
    assert.equal((await accept({ version })).json.code, 'CONFLICT', 'an old version')
    const unknown = await accept({ tables: [orders, { schema: 'public', table: 'no_such_table' }] })
    assert.deepEqual(unknown.json.issues, [{ path: ['tables', 1], message: 'there is no documentation of this table' }])
    assert.equal((await accept({ kinds: ['titles'] })).status, 400)
  })

  test('the accepted texts are published, and without new texts no version is created', async () => {
    const first = await publish()
    assert.equal(first.nothing, undefined)
    const again = await publish()
    assert.deepEqual(again, { ...first, nothing: true })
    assert.equal((await shop.described('orders')).documentation.publishedAt, first.publishedAt)
    const { items, nextCursor } = await publications()
    assert.equal(nextCursor, null)
    const author = { accountId: shop.owner.id, name: 'Olga' }
    const counts = { tables: 1, texts: 1, added: 1, changed: 0, removed: 0 }
    assert.deepEqual(items, [{ version: 1, publishedAt: first.publishedAt, author, ...counts }])
  })

  test('rejected texts and texts about changed columns are not accepted', async () => {
    const draft = await shop.draft('orders')
    await shop.put('orders', { examples: { ...draft.examples, status: 'REJECTED' } })
    await shop.sql('ALTER TABLE orders ALTER COLUMN total_cents TYPE bigint')
    await shop.owner.must('POST', `${shop.at}/introspect`)
    const { json } = await accept()
    assert.ok(json.stale > 0 && json.accepted.columns + json.accepted.statements > 0, JSON.stringify(json))
    const after = await shop.draft('orders')
    assert.equal(after.examples.status, 'REJECTED')
    assert.deepEqual([after.columns.total_cents.stale, after.columns.total_cents.status], [true, 'PROPOSED'])
    const rest = await accept()
    assert.deepEqual(rest.json, {
      accepted: { summary: 0, examples: 0, statements: 0, columns: 0 },
      stale: json.stale,
      version: json.version,
    })
    const { items } = await shop.owner.must('GET', `/teams/${shop.at.split('/')[2]}/audit?action=acceptDocumentation`)
    const changed = items.flatMap(
      (item: { changes?: { texts?: { changed?: string[] } } }) => item.changes?.texts?.changed ?? [],
    )
    assert.ok(changed.includes('public.orders summary'), changed.join('\n'))
  })

  test('each publication of the documentation is listed with its changes', async () => {
    const draft = await shop.draft('orders')
    await shop.put('orders', { summary: { ...draft.summary, text: 'Another summary.' } })
    await publish()
    const page = await publications('?limit=1')
    const [newest] = page.items
    assert.deepEqual([newest.version, newest.changed, newest.removed, page.nextCursor], [2, 1, 0, '2'])
    assert.ok(newest.added > 0 && newest.texts === newest.added + 1)
    const next = await publications('?limit=1&cursor=2')
    assert.deepEqual([next.items[0].version, next.nextCursor], [1, null])
    assert.equal((await shop.owner.ask('GET', `${shop.at}/documentation/publications?cursor=x`)).status, 400)
  })
})
