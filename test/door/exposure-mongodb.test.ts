// Tests exposures of MongoDB over HTTP: changes of dotted paths, previews of filters and pipelines, and the paths that
// a refused query needs. Skipped without mongod.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as shape from '../../src/contract/exposure-schemas.ts'
import { startApp } from '../support/app.ts'
import { startMongod } from '../support/mongodb.ts'
import { skipWithout } from '../support/no-such-engine.ts'

const names = (schema: string) => (table: string, columns: readonly string[] | null) => ({ schema, table, columns })

async function openDocs() {
  const stack = new AsyncDisposableStack()
  const server = stack.use(await startMongod({ auth: true }))
  const database = server.database('docs')
  const db = server.client.db(database)
  await db.collection('products').insertMany(
    Array.from({ length: 30 }, (_, n) => ({
      name: `p${n}`,
      price: n,
      qty: n,
      supplier: { name: 's', secret: 'CANARY' },
      tags: [{ label: 'a', score: n }],
    })),
  )
  await db.collection('orders').insertMany([{ product: 'p1', qty: 2 }, { product: 'p2', qty: 3 }]) // prettier-ignore
  await db.collection('secrets').insertMany([{ token: 'CANARY', level: 1 }])
  await server.createUser(database, 'reader', 'reader-pw', [{ role: 'read', db: database }])
  const app = stack.use(await startApp())
  const owner = await app.person('Olga')
  const teamId = await app.team(owner)
  const exposureOf = names(database)
  const exposed = [exposureOf('orders', ['_id', 'product']), exposureOf('products', ['_id', 'name', 'supplier.name'])]
  const spec = { type: 'MONGODB', host: server.host, port: server.port, database, username: 'reader' }
  const login = { password: 'reader-pw', config: { authSource: database } }
  const id = await app.datasource(owner, teamId, { ...spec, ...login }, exposed)
  const at = `/teams/${teamId}/datasources/${id}`
  return {
    db,
    exposureOf,
    exposed,
    must: (method: string, rest: string, body?: unknown) => owner.must(method, at + rest, body),
    ask: (method: string, rest: string, body?: unknown) => owner.ask(method, at + rest, body),
    async last(): Promise<string> {
      return (await owner.must('GET', `/teams/${teamId}/audit?limit=1`)).items[0].id
    },
    async ended(jobId: string) {
      for (;;) {
        const job = await owner.must('GET', `${at}/jobs/${jobId}`)
        if (job.state !== 'RUNNING') return job
      }
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

const skip = await skipWithout(() => startMongod({ auth: true }))

describe('the exposure of MongoDB', { skip }, () => {
  test('drift lists new and removed paths and collections, and changed types of values', async () => {
    await using docs = await openDocs()
    const { must, db } = docs
    const drift = async () => shape.Drift.parse(await must('GET', '/drift'))
    assert.deepEqual((await drift()).added, [])
    await db
      .collection('products')
      .updateMany({}, { $set: { 'supplier.city': 'Ulm', price: 'ten' }, $unset: { name: 1 } })
    await db.collection('secrets').drop()
    await db.collection('fresh').insertOne({ a: 1 })
    await must('POST', '/introspect')
    const { added, removed, retyped } = await drift()
    const [products, fresh, secrets] = ['products', 'fresh', 'secrets'].map((table) => ({
      schema: docs.exposureOf('', null).schema,
      table,
    }))
    assert.deepEqual(added, [fresh, { ...products, column: 'supplier.city', type: 'bson' }])
    assert.deepEqual(removed, [{ ...products, column: 'name', was: 'bson' }, secrets])
    assert.deepEqual(retyped, [{ ...products, column: 'price', type: 'string', was: 'int' }])
    assert.deepEqual((await must('GET', '/exposure')).gone, [{ ...products, column: 'name' }])
    // A nightly reload may empty a collection for a moment. So the paths of an empty collection are not reported as
    // gone.
    await db.collection('products').deleteMany({})
    await must('POST', '/introspect')
    assert.deepEqual((await must('GET', '/exposure')).gone, [{ ...products, column: 'name' }])
  })

  test('an exposure preview judges MongoDB filters and pipelines', async () => {
    await using docs = await openDocs()
    const { ask, exposureOf, ended } = docs
    for (const body of [
      { collection: 'products', filter: { name: 'p1' } },
      { collection: 'products', filter: { price: 1 } },
      { collection: 'orders' },
      { collection: 'orders', filter: { $where: '1' } },
      { collection: 'products', pipeline: [{ $group: { _id: '$supplier.name' } }] },
    ]) {
      await ask('POST', '/query', body)
    }
    const { json } = await ask('POST', '/exposure/preview', {
      tables: [exposureOf('products', ['_id', 'name', 'price'])],
      days: 1,
    })
    const { result } = await ended(json.jobId)
    const { nowRefused, nowAllowed, cannotTell } = shape.Preview.parse(result)
    assert.deepEqual([nowRefused.count, nowAllowed.count, cannotTell.count], [2, 1, 0])
  })

  test('for a refused MongoDB query, from-refusal proposes the smallest addition that allows it', async () => {
    await using docs = await openDocs()
    const { ask, must, exposureOf, exposed, last } = docs
    const group = (value: string) => [{ $group: { _id: null, most: { $max: value } } }]
    for (const [body, added] of [
      [{ collection: 'products', filter: { price: { $gt: 1 } } }, [exposureOf('products', ['price'])]],
      [
        { collection: 'products', pipeline: [{ $project: { 'supplier.secret': 1 } }] },
        [exposureOf('products', ['supplier.secret'])],
      ],
      [
        { collection: 'products', pipeline: [{ $match: { 'tags.score': 1 } }, { $count: 'n' }] },
        [exposureOf('products', ['tags.score'])],
      ],
      [{ collection: 'secrets' }, [exposureOf('secrets', ['_id', 'token', 'level'])]],
      [{ collection: 'secrets', pipeline: [{ $count: 'n' }] }, [exposureOf('secrets', ['_id'])]],
      [{ collection: 'secrets', pipeline: group('$level') }, [exposureOf('secrets', ['level'])]],
      [
        {
          collection: 'orders',
          pipeline: [
            { $lookup: { from: 'secrets', localField: 'qty', foreignField: 'level', as: 's' } },
            { $project: { 's.token': 1 } },
          ],
        },
        [exposureOf('orders', ['qty']), exposureOf('secrets', ['token', 'level'])],
      ],
      [
        {
          collection: 'orders',
          filter: { qty: 1 },
          pipeline: [{ $lookup: { from: 'products', pipeline: [{ $match: { qty: 2 } }], as: 'p' } }],
        },
        [exposureOf('orders', ['qty']), exposureOf('products', ['qty'])],
      ],
      [
        {
          collection: 'orders',
          pipeline: [{ $lookup: { from: 'products', localField: 'product', foreignField: 'supplier', as: 'p' } }],
        },
        [exposureOf('products', ['supplier'])],
      ],
      [
        { collection: 'products', pipeline: [{ $unwind: '$tags' }, { $group: { _id: '$tags.label' } }] },
        [exposureOf('products', ['tags.label'])],
      ],
      [
        {
          collection: 'products',
          pipeline: [{ $project: { x: { $map: { input: '$tags', as: 't', in: '$$t.score' } } } }],
        },
        [exposureOf('products', ['tags.score'])],
      ],
      [
        { collection: 'products', pipeline: [{ $project: { n: { $size: '$tags' } } }] },
        [exposureOf('products', ['tags.label'])],
      ],
      [{ collection: 'products', pipeline: [{ $unwind: '$tags' }] }, [exposureOf('products', ['tags'])]],
    ] as const) {
      const text = JSON.stringify(body)
      assert.equal((await ask('POST', '/query', body)).json.code, 'QUERY_DENIED', text)
      const answer = await ask('POST', `/exposure/from-refusal/${await last()}`)
      assert.equal(answer.status, 200, `${text}: ${answer.text}`)
      const { tables, version, added: proposed } = shape.Widened.parse(answer.json)
      assert.deepEqual(proposed, added, text)
      const saved = await must('PUT', '/exposure', { tables, version })
      assert.equal((await ask('POST', '/query', body)).status, 200, text)
      await must('PUT', '/exposure', { tables: exposed, version: saved.version })
    }
  })

  test('from-refusal answers CONFLICT if no MongoDB path would help', async () => {
    await using docs = await openDocs()
    const { ask, last } = docs
    for (const body of [
      { collection: 'products', filter: { $where: 'true' } },
      { collection: 'products', pipeline: [{ $out: 'x' }] },
      { collection: 'nosuch' },
      { collection: 'products', filter: { nosuch: 1 } },
    ]) {
      await ask('POST', '/query', body)
      const { status, json } = await ask('POST', `/exposure/from-refusal/${await last()}`)
      assert.deepEqual([status, json.code], [409, 'CONFLICT'], JSON.stringify(body))
    }
  })

  test('from-refusal names a MongoDB path that does not exist, even below an existing path', async () => {
    await using docs = await openDocs()
    const { ask, last } = docs
    for (const [collection, path] of [
      ['products', 'supplier.ctiy'],
      ['products', 'supplier.secret.first'],
      ['products', 'tags.lable'],
      ['products', 'tags.0.lable'],
      ['products', 'price.net'],
      ['secrets', 'tokn'],
    ] as const) {
      for (const body of [
        { collection, filter: { [path]: 1 } },
        { collection, pipeline: [{ $group: { _id: `$${path}` } }] },
      ]) {
        if (path.includes('.0.') && 'pipeline' in body) continue
        assert.equal((await ask('POST', '/query', body)).json.code, 'QUERY_DENIED')
        const { status, json } = await ask('POST', `/exposure/from-refusal/${await last()}`)
        assert.deepEqual([status, json.code], [409, 'CONFLICT'], `${path}: ${JSON.stringify(json)}`)
        assert.match(json.error, new RegExp(`has .*${path.split('.').at(-1)} in the catalog`))
      }
    }
  })
})
