// Long answers are compressed for clients that accept it. The decompressed bytes are the same, and the ETag still
// matches. Answers to queries and under /auth are never compressed.
import assert from 'node:assert/strict'
import { get, request, type IncomingHttpHeaders } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { after, before, describe, test } from 'node:test'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { encodingOf } from '../../src/http/compress.ts'
import { openShop, type Shop } from '../support/shop.ts'

test('Accept-Encoding is read with its weights', () => {
  for (const [accepted, encoding] of [
    [undefined, null],
    ['', null],
    ['identity', null],
    ['gzip', 'gzip'],
    ['gzip, deflate, br', 'br'],
    ['GZIP;q=0.5, br;q=0.4', 'gzip'],
    ['br;q=0, gzip;q=0.001', 'gzip'],
    ['br; q=0, gzip; q=0', null],
    ['*', 'br'],
    ['*;q=0.1, br;q=0', 'gzip'],
    ['gzip;q=nonsense', null],
    ['zstd, ,;q=1', null],
  ] as const) {
    assert.equal(encodingOf(accepted), encoding, accepted)
  }
})

describe('compressed answers', () => {
  let shop: Shop
  before(async () => {
    shop = await openShop()
    for (let n = 0; n < 20; n++) await shop.query(`SELECT id FROM customers WHERE id = ${n}`)
  })
  after(() => shop[Symbol.asyncDispose]())

  /** Asks with node:http, because fetch() would decompress the answer. */
  const ask = async (path: string, headers: Record<string, string>) => {
    const all = { authorization: `Bearer ${shop.owner.jwt}`, ...headers }
    const answered = Promise.withResolvers<{ status: number; headers: IncomingHttpHeaders; body: Buffer }>()
    get(shop.app.url + path, { headers: all }, (response) => {
      const { statusCode: status = 0, headers } = response
      buffer(response).then((body) => answered.resolve({ status, headers, body }), answered.reject)
    }).on('error', answered.reject)
    return await answered.promise
  }

  test('compressed answers contain the same bytes', async () => {
    const path = `/teams/${shop.teamId}/audit?action=runQuery&limit=20`
    const plain = await ask(path, {})
    assert.equal(plain.headers['content-encoding'], undefined)
    const [br, gz] = [
      await ask(path, { 'accept-encoding': 'gzip, br' }),
      await ask(path, { 'accept-encoding': 'gzip' }),
    ]
    assert.deepEqual([br.headers['content-encoding'], gz.headers['content-encoding']], ['br', 'gzip'])
    assert.ok(brotliDecompressSync(br.body).equals(plain.body) && gunzipSync(gz.body).equals(plain.body))
    assert.ok(br.body.length < plain.body.length / 4)
    assert.equal(Number(br.headers['content-length']), br.body.length)
    assert.match(br.headers.vary ?? '', /accept-encoding/i)
    assert.equal(br.headers['cache-control'], 'no-store')
  })

  test('compressed and uncompressed answers have ETags that match each other', async () => {
    const path = `${shop.at}/schema?full=1`
    const plain = await ask(path, {})
    const br = await ask(path, { 'accept-encoding': 'br' })
    assert.ok(brotliDecompressSync(br.body).equals(plain.body))
    // A cache must not give the answer of one caller to another, compressed or not.
    for (const { headers } of [plain, br]) assert.match(headers.vary ?? '', /authorization/i)
    const tag = br.headers.etag ?? assert.fail()
    assert.equal(tag, `W/${plain.headers.etag}`)
    for (const encoding of ['br', 'identity']) {
      const again = await ask(path, { 'accept-encoding': encoding, 'if-none-match': tag })
      assert.deepEqual([again.status, again.body.length], [304, 0])
    }
  })

  test('short answers, refusals, queries and /auth are not compressed', async () => {
    const headers = { 'accept-encoding': 'gzip, br' }
    for (const path of ['/users/me', '/teams/nothing', '/auth/options']) {
      assert.equal((await ask(path, headers)).headers['content-encoding'], undefined, path)
    }
    const answered = Promise.withResolvers<IncomingHttpHeaders>()
    const body = JSON.stringify({ sql: 'SELECT id, customer_id, total, placed_at FROM orders' })
    const all = { ...headers, authorization: `Bearer ${shop.key}`, 'content-type': 'application/json' }
    request(`${shop.app.url}${shop.at}/query`, { method: 'POST', headers: all }, (response) => {
      response.resume()
      answered.resolve(response.headers)
    })
      .on('error', answered.reject)
      .end(body)
    const sent = await answered.promise
    assert.equal(sent['content-encoding'], undefined)
    assert.ok(Number(sent['content-length']) > 2_048)
  })

  test('an export is compressed with gzip, never with br', async () => {
    const path = `/teams/${shop.teamId}/audit/export?format=jsonl&action=runQuery`
    const plain = await ask(path, { 'accept-encoding': 'br' })
    const gz = await ask(path, { 'accept-encoding': 'gzip, br' })
    assert.deepEqual([plain.headers['content-encoding'], gz.headers['content-encoding']], [undefined, 'gzip'])
    assert.ok(gunzipSync(gz.body).equals(plain.body))
  })
})
