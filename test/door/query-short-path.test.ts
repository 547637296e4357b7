// Usual requests of POST …/query take one of two short paths, which must give the same answer as the ordinary path
// through Fastify. So each request is sent in three ways: read from the socket, read by node:http because of `te:
// trailers`, and as a body in chunks, which takes the ordinary path.
import assert from 'node:assert/strict'
import { subscribe, tracingChannel, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { openShop, type Shop } from '../support/shop.ts'
import { until } from '../support/until.ts'

interface Answer {
  readonly status: number
  readonly headers: readonly string[]
  readonly body: string
}

/** Counts requests that reach a handler of Fastify. */
let framed = 0
const count = (): void => void framed++
const channel = tracingChannel('fastify.request.handler')
const subscribers = { start: count, end() {}, asyncStart() {}, asyncEnd() {}, error() {} }
/** Counts requests that node:http has read. */
let parsed = 0
const PARSED = 'http.server.request.start'
const countParsed = (): void => void parsed++

describe('the short path of a query', () => {
  let shop: Shop
  let path: string
  let key: string
  before(async () => {
    channel.subscribe(subscribers)
    subscribe(PARSED, countParsed)
    shop = await openShop()
    path = `/teams/${shop.teamId}/datasources/${shop.datasourceId}/query`
    key = shop.key
    await shop.app.must('POST', path, { token: key, body: { sql: 'SELECT 1 AS one' } })
  })
  after(async () => {
    channel.unsubscribe(subscribers)
    unsubscribe(PARSED, countParsed)
    await shop[Symbol.asyncDispose]()
  })

  function dial(): Socket {
    const { hostname, port } = new URL(shop.app.url)
    return connect(Number(port), hostname)
  }

  async function raw(bytes: string | Buffer, answers = 1): Promise<readonly Answer[]> {
    const socket = dial()
    let received = Buffer.alloc(0)
    const read = (): Answer[] => split(received)
    const done = new Promise<void>((resolve, reject) => {
      socket.on('data', (data: Buffer) => {
        received = Buffer.concat([received, data])
        if (read().length >= answers) resolve()
      })
      socket.once('close', resolve)
      socket.once('error', reject)
    })
    socket.write(bytes)
    await done
    socket.destroy()
    return read()
  }

  interface Sent {
    readonly body: string | Buffer
    readonly headers?: Readonly<Record<string, string | undefined>>
    readonly path?: string
    readonly method?: string
  }

  function written({ body, headers = {}, path: to = path, method = 'POST' }: Sent, isChunked: boolean): Buffer {
    const length = Buffer.byteLength(body)
    const all: Record<string, string | undefined> = {
      host: 'vitrine.test',
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      ...(isChunked ? { 'transfer-encoding': 'chunked' } : { 'content-length': String(length) }),
      ...headers,
    }
    const lines = Object.entries(all).flatMap(([name, value]) => (value === undefined ? [] : [`${name}: ${value}`]))
    const head = [`${method} ${to} HTTP/1.1`, ...lines, '', ''].join('\r\n')
    const parts = isChunked ? [`${length.toString(16)}\r\n`, body, '\r\n0\r\n\r\n'] : [body]
    return Buffer.concat([head, ...parts].map((part) => Buffer.from(part)))
  }

  /** Sends the request in all three ways. Both short paths must give the same answer. */
  async function both(sent: Sent): Promise<{ short: Answer; ordinary: Answer }> {
    const [short] = await raw(written(sent, false))
    const [parsed] = await raw(written({ ...sent, headers: { ...sent.headers, te: 'trailers' } }, false))
    const [ordinary] = await raw(written(sent, true))
    assert.ok(short !== undefined && parsed !== undefined && ordinary !== undefined)
    assert.deepEqual(plain(parsed), plain(short))
    return { short, ordinary }
  }

  const sql = (text: string, more: object = {}): string => JSON.stringify({ sql: text, ...more })
  const bodies: Readonly<Record<string, string | Buffer>> = {
    'one row': sql('SELECT id, name FROM customers WHERE id = 1'),
    'no row': sql('SELECT id FROM customers WHERE id = -1'),
    'many rows, truncated': sql('SELECT * FROM orders', { limit: 3 }),
    'a row beyond ASCII': sql("SELECT 'é €😀' AS text"),
    'caller parameters': sql('SELECT id FROM customers WHERE id = $1', { params: [2] }),
    'a rounded parameter': '{"sql":"SELECT $1","params":[0.12345678901234567890]}',
    'a hidden column': sql('SELECT email FROM customers'),
    'an unknown table': sql('SELECT * FROM nowhere'),
    'a statement that writes': sql('DELETE FROM customers'),
    'a syntax error': sql('SELEC 1'),
    'a failing query': sql('SELECT 1 / (id - id) FROM customers LIMIT 1'),
    'a wrong limit': sql('SELECT 1', { limit: 0 }),
    'an unknown field': sql('SELECT 1', { sqll: 1 }),
    'a field of another type': '{"sql":5}',
    'no field': '{}',
    'an array': '[]',
    null: 'null',
    'a number': '1',
    'not JSON': '{"sql":',
    'trailing text': '{"sql":"SELECT 1"} x',
    'a field twice': '{"sql":"SELECT 1","sql":"SELECT 2"}',
    'a dangerous key': '{"sql":"SELECT 1","__proto__":{"limit":1}}',
    'an escaped dangerous key': '{"sql":"SELECT 1","\\u005f_proto__":{"limit":1}}',
    'a constructor': '{"sql":"SELECT 1","constructor":{"prototype":{}}}',
    'the word constructor in the text': sql("SELECT 'constructor' AS word"),
    'an escaped text': '{"sql":"SELECT \\u0031 AS one"}',
    'half of a surrogate pair': '{"sql":"SELECT \'\\ud800\'"}',
    NUL: '{"sql":"SELECT \\u0000"}',
    'invalid UTF-8': Buffer.from([...Buffer.from('{"sql":"SELECT '), 0xff, ...Buffer.from('"}')]),
    'a byte order mark': `\ufeff${sql('SELECT 1')}`,
    'spaces around': `  ${sql('SELECT 1 AS one')}\n`,
    'deep nesting': `{"sql":"SELECT 1","params":${'['.repeat(1_100)}${']'.repeat(1_100)}}`,
    'a long text': sql(`SELECT ${'1 + '.repeat(9_000)}1`),
    'a body over the limit': sql(' '.repeat(1 << 20)),
  }

  for (const [name, body] of Object.entries(bodies)) {
    test(`the short paths give the answer of the ordinary path: ${name}`, async () => {
      const { short, ordinary } = await both({ body })
      assert.deepEqual(plain(short), plain(ordinary))
    })
  }

  test('the short paths give the answer of the ordinary path to all callers, scopes and paths', async () => {
    const { app, owner, teamId, datasourceId } = shop
    const stranger = await app.person('Stranger')
    const other = await app.team(stranger, 'Elsewhere')
    const keyOf = async (more: object): Promise<string> =>
      (await owner.must('POST', '/users/me/keys', { name: 'k', scopes: ['data:read'], ...more })).key
    const revoked = await owner.must('POST', '/users/me/keys', { name: 'k', scopes: ['data:read'] })
    await app.must('POST', path, { token: revoked.key, body: { sql: 'SELECT 1' } })
    await owner.must('DELETE', `/users/me/keys/${revoked.id}`)
    const tokens = [
      ...[
        revoked.key,
        await keyOf({ scopes: ['profile'] }),
        await keyOf({ teamIds: [await app.team(owner, 'Second')] }),
      ],
      ...[await app.key(stranger), owner.jwt, 'sk_live_nothing', ''],
    ]
    const at = (team: string, id: string): string => `/teams/${team}/datasources/${id}/query`
    const paths = [
      path,
      at(other, datasourceId),
      at(teamId, other),
      at('x', 'y'),
      `${path}?a=1`,
      `${path}/`,
      at(teamId, '%41'),
      at('', datasourceId),
    ]
    for (const token of tokens) {
      const headers = { authorization: `Bearer ${token}` }
      // At the second request, the caches are full.
      for (const _time of [1, 2]) {
        const { short, ordinary } = await both({ body: sql('SELECT 1 AS one'), headers })
        assert.deepEqual(plain(short), plain(ordinary), token)
      }
    }
    for (const to of paths) {
      const { short, ordinary } = await both({ body: sql('SELECT 1 AS one'), path: to })
      assert.deepEqual(plain(short), plain(ordinary), to)
    }
    for (const method of ['GET', 'PUT', 'QUERY']) {
      const { short, ordinary } = await both({ body: sql('SELECT 1 AS one'), method })
      assert.equal(short.status, ordinary.status, method)
    }
  })

  test('the short path handles a usual request with a known key, and leaves unusual requests to Fastify', async () => {
    const body = sql('SELECT 1 AS one')
    const framedBy = async (sent: Sent, isChunked = false): Promise<number> => {
      const before = framed
      await raw(written(sent, isChunked))
      return framed - before
    }
    // A change empties the caches. This request fills them again.
    await framedBy({ body }, true)
    const before = parsed
    assert.equal(await framedBy({ body }), 0)
    assert.equal(parsed, before)
    assert.equal(await framedBy({ body, headers: { te: 'trailers' } }), 0)
    assert.equal(parsed, before + 1)
    assert.equal(await framedBy({ body }, true), 1)
    const unusual: readonly Sent[] = [
      { body, headers: { 'content-type': 'application/json;charset=utf-8' } },
      { body, headers: { 'content-encoding': 'identity' } },
      { body, headers: { expect: '100-continue' } },
      { body, path: `${path}?` },
      { body: sql(`SELECT ${'1 + '.repeat(9_000)}1`) },
      { body, headers: { authorization: `bearer  ${key}` } },
    ]
    for (const sent of unusual) assert.equal(await framedBy(sent), 1, JSON.stringify(sent.headers))
  })

  test('both paths give the same refusal when the budget is used up', async () => {
    const { owner, teamId } = shop
    await owner.must('PATCH', `/teams/${teamId}`, { settings: { queryBudget: { limit: 1, windowSeconds: 3_600 } } })
    await raw(written({ body: sql('SELECT 1') }, false))
    const { short, ordinary } = await both({ body: sql('SELECT 1') })
    assert.equal(short.status, 429)
    assert.deepEqual(plain(short), plain(ordinary))
    await owner.must('PATCH', `/teams/${teamId}`, { settings: { queryBudget: { limit: 100_000, windowSeconds: 60 } } })
  })

  test('a revoked key, a disabled datasource and a raised minRole take effect at the next request', async () => {
    const { owner, app, teamId, datasourceId } = shop
    const made = await owner.must('POST', '/users/me/keys', { name: 'k', scopes: ['data:read'] })
    const status = async (token: string): Promise<number | undefined> =>
      (await raw(written({ body: sql('SELECT 1'), headers: { authorization: `Bearer ${token}` } }, false)))[0]?.status
    assert.deepEqual([await status(made.key), await status(made.key)], [200, 200])
    await owner.must('DELETE', `/users/me/keys/${made.id}`)
    assert.equal(await status(made.key), 401)
    await owner.must('POST', `/teams/${teamId}/datasources/${datasourceId}/disable`)
    assert.equal(await status(key), 409)
    await owner.must('POST', `/teams/${teamId}/datasources/${datasourceId}/enable`)
    const member = await app.person('Mo')
    await app.join(owner, teamId, member)
    const theirs = await app.key(member)
    assert.deepEqual([await status(theirs), await status(theirs)], [200, 200])
    await owner.must('PATCH', `/teams/${teamId}/datasources/${datasourceId}`, { minRole: 'ADMIN' })
    assert.equal(await status(theirs), 404)
    await owner.must('PATCH', `/teams/${teamId}/datasources/${datasourceId}`, { minRole: 'MEMBER' })
    assert.equal(await status(theirs), 200)
  })

  test('pipelined queries are answered in their order', async () => {
    const slow = sql('SELECT count(*) AS n FROM orders a, orders b WHERE a.id <> b.id')
    const texts = [slow, sql('SELECT 1 AS n'), '{', sql('SELECT 2 AS n')]
    // After a body that is not JSON, the ordinary path closes the connection. So first make the key known, which leads
    // to the short path.
    await raw(written({ body: sql('SELECT 1') }, false))
    const answers = await raw(Buffer.concat(texts.map((body) => written({ body }, false))), texts.length)
    assert.deepEqual(
      answers.map(({ status, body }) => `${status} ${/"rows":(\[\[[12]\]\])/.exec(body)?.[1] ?? ''}`),
      ['200 ', '200 [[1]]', '400 ', '200 [[2]]'],
    )
  })

  test('a connection may have 32 unanswered requests, and at a further request it is closed', async () => {
    for (const isChunked of [false, true]) {
      const request = written({ body: sql('SELECT 1 AS n') }, isChunked)
      const fine = await raw(Buffer.concat(Array.from({ length: 32 }, () => request)), 32)
      assert.equal(fine.length, 32)
      const socket = dial()
      let received = ''
      socket.on('data', (data: Buffer) => (received += data.toString()))
      const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
      socket.write(Buffer.concat(Array.from({ length: 33 }, () => request)))
      await closed
      const statuses = [...received.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => status)
      assert.equal(statuses.at(-1), '503')
      assert.ok(statuses.length <= 33)
    }
    assert.equal((await raw(written({ body: sql('SELECT 1') }, false)))[0]?.status, 200)
  })

  test('a query that arrives byte by byte is read whole, and after a client disconnects in the middle of its body, the next query is answered', async () => {
    const bytes = written({ body: sql('SELECT 7 AS n') }, false)
    const socket = dial().setNoDelay(true)
    let received = ''
    socket.on('data', (data: Buffer) => (received += data.toString()))
    for (const byte of bytes)
      await new Promise<void>((resolve) => void socket.write(Buffer.from([byte]), () => resolve()))
    await until('the answer', () => received.includes('[[7]]'))
    socket.destroy()
    const gone = dial()
    await new Promise<void>((resolve) => void gone.write(bytes.subarray(0, -3), () => resolve()))
    gone.destroy()
    assert.equal((await raw(bytes))[0]?.status, 200)
  })

  test('one connection carries usual queries, in one or in several packets, and anything else, in any order', async () => {
    const query = (n: number, more: Sent['headers'] = {}): Buffer =>
      written({ body: sql(`SELECT ${n} AS n`), headers: more }, false)
    await raw(query(1))
    const socket = dial().setNoDelay(true)
    let received = Buffer.alloc(0)
    let answers = 0
    socket.on('data', (data: Buffer) => (received = Buffer.concat([received, data])))
    const answer = async (...parts: readonly Buffer[]): Promise<Answer | undefined> => {
      for (const part of parts) await new Promise<void>((resolve) => void socket.write(part, () => resolve()))
      answers++
      await until('an answer', () => split(received).length === answers)
      return split(received).at(-1)
    }
    const rows = (answered: Answer | undefined): string =>
      `${answered?.status} ${/\[\[\d+\]\]/.exec(answered?.body ?? '')}`
    const before = parsed
    assert.equal(rows(await answer(query(1))), '200 [[1]]')
    assert.equal(rows(await answer(query(22))), '200 [[22]]')
    assert.equal(rows(await answer(query(3, { 'user-agent': 'another/1' }))), '200 [[3]]')
    const bytes = query(4)
    const end = bytes.indexOf('\r\n\r\n') + 4
    assert.equal(rows(await answer(bytes.subarray(0, end), bytes.subarray(end))), '200 [[4]]')
    assert.equal(
      rows(await answer(bytes.subarray(0, end + 3), bytes.subarray(end + 3, -2), bytes.subarray(-2))),
      '200 [[4]]',
    )
    assert.equal(parsed, before)
    // The second request arrives during the first. node:http must then read all further requests of the connection.
    const slow = written({ body: sql('SELECT count(*) AS n FROM orders a, orders b WHERE a.id <> b.id') }, false)
    socket.write(slow)
    answers++
    assert.equal(rows(await answer(query(5))), '200 [[5]]')
    const health = await answer(Buffer.from('GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n'))
    assert.equal(health?.status, 200)
    assert.ok(parsed > before)
    assert.equal(rows(await answer(query(6))), '200 [[6]]')
    socket.destroy()
  })

  test('a query that arrives slowly is handed to node:http, and answered', async () => {
    const bytes = written({ body: sql('SELECT 8 AS n') }, false)
    await raw(bytes)
    const end = bytes.indexOf('\r\n\r\n') + 4
    for (const sent of [end, end + 5]) {
      const socket = dial()
      let received = Buffer.alloc(0)
      socket.on('data', (data: Buffer) => (received = Buffer.concat([received, data])))
      const before = parsed
      socket.write(bytes.subarray(0, sent))
      await until('node:http has the head', () => parsed > before)
      socket.write(bytes.subarray(sent))
      await until('the answer', () => split(received).length === 1)
      assert.match(split(received)[0]?.body ?? '', /\[\[8\]\]/)
      socket.destroy()
    }
  })

  test('a query is cancelled when its client hangs up', async () => {
    const slow = sql('SELECT count(*) AS n FROM orders a, orders b, orders c WHERE a.id <> b.id + c.id')
    await raw(written({ body: sql('SELECT 1') }, false))
    const isActive = async (): Promise<boolean> => (await shop.postgres.query(shop.database, ACTIVE))[0]?.[0] !== '0'
    const socket = dial()
    socket.on('error', () => undefined)
    const before = parsed
    socket.write(written({ body: slow }, false))
    await until('the query runs', isActive)
    assert.equal(parsed, before)
    socket.destroy()
    // A query that was not cancelled would have the outcome ANSWERED.
    await until('the row of the cancelled query', async () => {
      const { items } = await shop.owner.must('GET', `/teams/${shop.teamId}/audit?limit=1`)
      return items[0].action === 'runQuery' && items[0].outcome === 'FAILED'
    })
    await until('the query has ended', async () => !(await isActive()))
  })

  test('a query is cancelled, and its connection closed, when too many bytes wait behind it', async () => {
    const slow = sql('SELECT count(*) AS n FROM orders a, orders b, orders c WHERE a.id <> b.id + c.id + 1')
    await raw(written({ body: sql('SELECT 1') }, false))
    const newest = async () => (await shop.owner.must('GET', `/teams/${shop.teamId}/audit?limit=1`)).items[0]
    await until('the row of the first query', async () => (await newest()).outcome === 'ANSWERED')
    const isActive = async (): Promise<boolean> => (await shop.postgres.query(shop.database, ACTIVE))[0]?.[0] !== '0'
    const socket = dial()
    let received = 0
    socket.on('data', (data: Buffer) => (received += data.length))
    socket.on('error', () => undefined)
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
    socket.write(written({ body: slow }, false))
    await until('the query runs', isActive)
    socket.write('x'.repeat(200_000))
    await closed
    assert.equal(received, 0)
    // A query that was not cancelled would have the outcome ANSWERED.
    await until('the row of the cancelled query', async () => (await newest()).outcome === 'FAILED')
    await until('the query has ended', async () => !(await isActive()))
  })

  test('a client that closes its side after its request gets a whole answer or none, and no connection stays open', async () => {
    const slow = sql('SELECT count(*) AS n FROM orders a, orders b, orders c WHERE a.id <> b.id + c.id')
    const halfClosed = async (body: string, isChunked: boolean): Promise<readonly Answer[]> => {
      const socket = dial()
      let received = Buffer.alloc(0)
      socket.on('data', (data: Buffer) => (received = Buffer.concat([received, data])))
      socket.end(written({ body }, isChunked))
      await new Promise<void>((resolve) => socket.once('close', () => resolve()))
      const answers = split(received)
      assert.equal(received.length > 0, answers.length === 1)
      return answers
    }
    // There are more clients than connections in a pool.
    const all = Array.from({ length: 24 }, (_, n) => halfClosed(n % 3 === 0 ? slow : sql('SELECT 1 AS n'), n % 2 === 0))
    for (const answers of await Promise.all(all)) for (const { status } of answers) assert.equal(status, 200)
    for (let i = 0; i < 12; i++) assert.equal((await raw(written({ body: sql('SELECT 1') }, false)))[0]?.status, 200)
  })

  test('clients that do not read their answers hold no database connection', async () => {
    const large = sql("SELECT repeat('x', 5000) AS x FROM generate_series(1, 1000)", {})
    // There are more clients than connections in a pool.
    const idlers = Array.from({ length: 12 }, () => {
      const socket = dial()
      socket.pause()
      socket.on('error', () => undefined)
      socket.write(written({ body: large }, false))
      return socket
    })
    for (let i = 0; i < 20; i++) assert.equal((await raw(written({ body: sql('SELECT 1') }, false)))[0]?.status, 200)
    for (const socket of idlers) socket.destroy()
  })

  // The memory of an answer is used again once the answer is sent. These answers are longer than the buffers of the
  // sockets.
  test('a large answer that the client has not read yet is not overwritten by another answer', async () => {
    const letters = (letter: string): string =>
      sql(`SELECT repeat('${letter}', 6000) AS x FROM generate_series(1, 600)`)
    const rows = (letter: string): string => JSON.stringify(Array.from({ length: 600 }, () => [letter.repeat(6000)]))
    const check = (answers: readonly Answer[], expected: readonly string[]): void => {
      assert.deepEqual(
        answers.map(({ status, body }) => [
          status,
          expected.find((letter) => body.includes(`"rows":${rows(letter)},`)),
        ]),
        expected.map((letter) => [200, letter]),
      )
    }
    const paused = await Promise.all(
      ['abc', 'def', 'ghi'].map(async (asked) => {
        const socket = dial()
        socket.on('error', () => undefined)
        socket.write(Buffer.concat([...asked].map((letter) => written({ body: letters(letter) }, false))))
        // Once the answer begins to arrive, the client reads no more of it.
        await once(socket, 'readable')
        return { socket, asked }
      }),
    )
    paused.pop()?.socket.destroy()
    for (const letter of 'uvwxyz') check(await raw(written({ body: letters(letter) }, false)), [letter])
    for (const { socket, asked } of paused) {
      const received: Buffer[] = []
      socket.on('data', (part: Buffer) => received.push(part))
      await until('three answers', () => split(Buffer.concat(received)).length === 3)
      check(split(Buffer.concat(received)), [...asked])
      socket.destroy()
    }
  })
})

const ACTIVE = `SELECT count(*) AS n FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid() AND query LIKE '%count%OPERATOR%'`

/**
 * Returns the parts of an answer that must be equal, without the clock and the counters. After a body that is not JSON,
 * Fastify closes the connection. The short path has read the whole body, so it keeps the connection open.
 */
function plain({ status, headers, body }: Answer): unknown {
  const same = headers.filter(
    (line) => !/^(date|connection|keep-alive|content-length|ratelimit-(remaining|reset)|retry-after):/i.test(line),
  )
  const text = body
    .replace(/"durationMs":[\d.]+/, '')
    .replace(/"retryAfter":\d+/, '')
    .replace(/in \d+ s/, '')
  const alike = same.map((line) =>
    line
      .toLowerCase()
      .replace(/^(x-request-id: )[\da-z]+-[\da-z]+$/, '$1')
      .replace(/\?from=[\w-]+$/, '?from=audit'),
  )
  return { status, headers: alike.toSorted(), body: text }
}

function split(received: Buffer): Answer[] {
  const answers: Answer[] = []
  let at = 0
  for (;;) {
    const end = received.indexOf('\r\n\r\n', at)
    if (end < 0) return answers
    const [first = '', ...headers] = received.toString('latin1', at, end).split('\r\n')
    const length = Number(headers.find((line) => /^content-length:/i.test(line))?.split(':')[1] ?? 0)
    const stop = end + 4 + length
    const status = Number(first.split(' ')[1])
    if (status >= 200)
      answers.push({ status, headers, body: received.toString('utf8', end + 4, Math.min(stop, received.length)) })
    if (received.length < stop) return answers.slice(0, -1)
    at = stop
  }
}
