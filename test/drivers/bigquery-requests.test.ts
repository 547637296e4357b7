// Tests the requests to BigQuery, and responses of servers that are slow, broken or hostile.
import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import { setImmediate as immediate } from 'node:timers/promises'
import type { WireValue } from '../support/bigquery-evaluator.ts'
import { createBigQueryDriver } from '../../src/drivers/bigquery/driver.ts'
import { connectBigQuery, soon, WIDE, type ConnectedBigQuery } from '../support/bigquery-connected.ts'
import { select } from '../support/bigquery-shop.ts'
import { failed, ok, type DoubleRequest } from '../support/bigquery.ts'
import { until } from '../support/until.ts'

const ID = { name: 'id', type: 'INTEGER' }
const cells = (count: number): WireValue[][] => Array.from({ length: count }, (_, n) => [String(n + 1)])
const SMALL = 'SELECT id, name FROM shop.products ORDER BY id LIMIT 2'
const SLOW = "SELECT id FROM shop.products WHERE name = 'slow'"
const WAITS = "SELECT id FROM shop.products WHERE name = 'waits'"
const MANY = "SELECT id FROM shop.products WHERE name = 'many'"

const KNOWN = [
  {
    says: /'waits'/,
    analysis: select('products'),
    evaluation: { waits: 3, then: { schema: { fields: [ID] }, rows: cells(5) } },
  },
]

describe('requests to BigQuery', () => {
  let at: ConnectedBigQuery
  before(async () => {
    at = await connectBigQuery({ known: KNOWN, double: { pageRows: 700 } })
  })
  afterEach(() => {
    at.double.unrig()
    assert.deepEqual(at.double.violations, [])
    assert.deepEqual(at.door.refused, [])
    at.double.requests.length = 0
  })
  after(async () => {
    await at[Symbol.asyncDispose]()
  })
  const kinds = (): string[] => at.double.requests.map(({ kind }) => kind)

  test('a small query makes one dry run and one run of the same SQL', async () => {
    await at.run(SMALL)
    assert.deepEqual(kinds(), ['dry run', 'run'])
    const [dry, run] = at.double.requests
    assert.equal(dry?.body.configuration.query.query, run?.body.query)
    const { requestId, jobTimeoutMs, query, ...body } = run?.body ?? {}
    assert.ok(Number(jobTimeoutMs) <= 10_000 && requestId.length === 36 && /shop\W+products/.test(query))
    assert.deepEqual(body, {
      useLegacySql: false,
      maximumBytesBilled: '1000000000',
      timeoutMs: 2000,
      useQueryCache: true,
      location: 'EU',
      maxResults: 10_001,
      labels: { app: 'vitrine' },
      formatOptions: { useInt64Timestamp: true },
    })
  })

  test('comments of the caller are not sent to BigQuery', async () => {
    await at.run(`/* CANARY */ ${SMALL} -- CANARY`)
    assert.doesNotMatch(JSON.stringify(at.double.requests), /CANARY/)
  })

  test('all pages of a BigQuery result are read', async () => {
    const answer = await at.run(MANY)
    assert.deepEqual([answer.rowCount, answer.truncated], [2000, false])
    assert.deepEqual(kinds(), ['dry run', 'run', 'results', 'results'])
  })

  test('no further page is read when the limit on rows or bytes is reached', async () => {
    const limits = { ...WIDE, rowCap: 701 }
    const answer = await at.run(MANY, limits)
    assert.deepEqual([answer.rowCount, answer.truncated], [701, true])
    assert.deepEqual(kinds(), ['dry run', 'run', 'results'])
    assert.equal(at.double.requests.at(-1)?.url.searchParams.get('maxResults'), '2')
    await at.run(MANY, { ...WIDE, maxResponseBytes: 100 })
    assert.equal(at.double.count('results'), 1)
  })

  test('the driver waits for a job that is not complete', async () => {
    const answer = await at.run(WAITS)
    assert.equal(answer.rows, '[[1],[2],[3],[4],[5]]')
    assert.deepEqual(kinds(), ['dry run', 'run', 'results', 'results', 'results'])
  })

  test('no job is left if the caller disconnects before the job has a name', async () => {
    const gone = new AbortController()
    const running = at.run(SLOW, WIDE, gone.signal)
    while (at.double.working === 0) await immediate()
    gone.abort()
    await assert.rejects(running)
    while (at.double.working > 0) await immediate()
    assert.deepEqual(kinds(), ['dry run', 'run', 'cancel'])
  })

  test('no job is left if the caller disconnects while the job runs', async () => {
    const gone = new AbortController()
    const running = at.run(SLOW, WIDE, gone.signal)
    running.catch(() => undefined)
    while (at.double.count('results') === 0) await immediate()
    gone.abort()
    await assert.rejects(running)
    while (at.double.working > 0) await immediate()
    assert.deepEqual(kinds(), ['dry run', 'run', 'results', 'cancel'])
  })

  test('if a caller disconnects before the run starts, nothing runs', async () => {
    const gone = new AbortController()
    at.double.rig('dry run', (asked: DoubleRequest) => {
      gone.abort()
      return ok({ nothing: asked.kind })
    })
    await assert.rejects(at.run(SMALL, WIDE, gone.signal))
    assert.deepEqual(kinds(), ['dry run'])
  })

  test('a query to a server that never answers ends at its timeout, and the connection stays usable', async () => {
    at.double.rig('dry run', 'hang')
    const limits = { ...WIDE, timeoutMs: 200 }
    assert.equal((await at.refusal(SMALL, limits)).code, 'QUERY_TIMEOUT')
    at.double.rig('run', 'hang')
    assert.equal((await at.refusal(SMALL, limits)).code, 'QUERY_TIMEOUT')
    assert.equal((await at.run(SMALL)).rowCount, 2)
  })

  test('a timeout says that the query was cancelled only if the job is known to have ended', async () => {
    // In this double, jobs run until they are cancelled.
    await using at = await connectBigQuery()
    // Even on a busy machine, this is enough for the dry run and the start of the job.
    const limits = { ...WIDE, timeoutMs: 2_000 }
    const seen = await at.refusal(SLOW, limits)
    assert.deepEqual(
      [seen.code, seen.message],
      ['QUERY_TIMEOUT', 'The query took too long and was cancelled in BigQuery.'],
    )
    for (const reply of ['hang', failed({ status: 400, reason: 'invalid', message: 'x' })] as const) {
      // If a cancel hangs, the driver waits for 5 seconds, but the caller does not. A busy machine may delay one
      // answer, so retry.
      await until('the caller is answered while the cancel hangs', async () => {
        const started = performance.now()
        at.double.rig('cancel', reply)
        const unseen = await at.refusal(SLOW, limits)
        assert.equal(unseen.code, 'QUERY_TIMEOUT')
        assert.match(unseen.message, /whether it did is not known/)
        return performance.now() - started < 4_900
      })
    }
    at.double.rig('cancel', ok({}))
    assert.match((await at.refusal(SLOW, limits)).message, /whether it did is not known/)
    at.double.rig('dry run', 'hang')
    assert.doesNotMatch((await at.refusal(SLOW, limits)).message, /was cancelled/)
  })

  test('a socket that breaks once causes no error, and the second attempt has the same requestId', async () => {
    at.double.rig('dry run', 'reset')
    at.double.rig('run', 'reset', 2)
    assert.equal((await at.run(SMALL)).rowCount, 2)
    const ids = at.double.requests.filter(({ kind }) => kind === 'run').map(({ body }) => body.requestId)
    assert.deepEqual([ids.length, new Set(ids).size], [3, 1])
  })

  test('a temporary error of BigQuery is tried again three times', async () => {
    at.double.rig('dry run', { status: 503, body: { error: { code: 503, errors: [{ reason: 'backendError' }] } } }, 99)
    assert.equal((await at.refusal(SMALL)).code, 'DATASOURCE_UNAVAILABLE')
    assert.equal(at.double.count('dry run'), 4)
  })

  test('a permanent error of BigQuery is not tried again', async () => {
    for (const reason of ['quotaExceeded', 'invalidQuery']) {
      at.double.requests.length = 0
      at.double.rig('dry run', { status: 403, body: { error: { code: 403, errors: [{ reason, message: 'x' }] } } })
      await at.refusal(SMALL)
      assert.equal(at.double.count('dry run'), 1, reason)
    }
  })

  test('the driver does not wait for a server that sends a long Retry-After', async () => {
    const busy = { status: 429, headers: { 'retry-after': '30' }, body: {} }
    at.double.rig('dry run', busy, 99)
    const refusal = await at.refusal(SMALL)
    assert.deepEqual([refusal.code, refusal.extra['retryAfter']], ['OVERLOADED', 30])
    assert.equal(at.double.count('dry run'), 1)
  })

  test('one token serves many queries, and a refused token is replaced once', async () => {
    await at.run(SMALL)
    assert.equal(at.double.count('token'), 0)
    at.door.revoke()
    await at.run(SMALL)
    assert.deepEqual(kinds().slice(2), ['dry run', 'token', 'dry run', 'run'])
    at.double.requests.length = 0
    at.double.rig('dry run', { status: 401, body: { error: { code: 401, status: 'UNAUTHENTICATED' } } }, 99)
    assert.equal((await at.refusal(SMALL)).code, 'DATASOURCE_UNAVAILABLE')
    assert.deepEqual(kinds(), ['dry run', 'token', 'dry run'])
  })

  test('a token that is about to expire is not used, and a token is sent only to one address', async () => {
    at.door.revoke()
    at.door.expiresIn = 299
    await at.run(SMALL)
    await at.run(SMALL)
    at.door.expiresIn = 3600
    assert.ok(at.double.count('token') >= 3)
    const other = at.double.requests.filter(
      ({ url, authorization }) => authorization !== undefined && !/^\/bigquery/.test(url.pathname),
    )
    assert.deepEqual(other, [])
  })

  test('a failed request for a token is tried again while connecting', async () => {
    await using driver = await createBigQueryDriver({ connector: at.double.connector })
    at.double.rig('token', { status: 503, body: '' })
    at.double.rig('token', 'reset')
    const settings = driver.settings({ ...at.settings, config: {} })
    await using connection = await driver.connect(settings, { allowPrivateHosts: true }, soon())
    assert.equal(connection.usable, true)
    assert.equal(at.double.count('token'), 3)
  })

  test('a key that cannot sign is refused with the reason, and nothing is sent', async () => {
    const { private_key: pem, ...file } = JSON.parse(at.door.keyFile())
    const der = Buffer.from(String(pem).replace(/-----.*-----/g, ''), 'base64')
    // An even modulus is never valid, so make the modulus of the PKCS #8 key even. The modulus follows 26 bytes of
    // envelope, 7 bytes of the inner header and the version, and 5 bytes of its own header.
    der.writeUInt8(der.readUInt8(38 + 255) & 0xfe, 38 + 255)
    const damaged = `-----BEGIN PRIVATE KEY-----\n${der.toString('base64')}\n-----END PRIVATE KEY-----\n`
    await using driver = await createBigQueryDriver({ connector: at.double.connector })
    const secrets = { serviceAccountKey: JSON.stringify({ ...file, private_key: damaged }) }
    await assert.rejects(
      driver.connect(driver.settings({ ...at.settings, secrets }), { allowPrivateHosts: true }, soon()),
      { code: 'DATASOURCE_UNAVAILABLE', message: /cannot sign: it is damaged/ },
    )
    assert.equal(at.double.count('token'), 0)
  })

  test('connections with one key share a token', async () => {
    const settings = at.driver.settings(at.settings)
    await Promise.all(
      Array.from({ length: 5 }, async () => {
        await using connection = await at.driver.connect(settings, { allowPrivateHosts: true }, soon())
        assert.equal(connection.usable, true)
      }),
    )
    assert.ok(at.double.count('token') <= 1)
  })

  test('a closed BigQuery connection accepts no work', async () => {
    const connection = await at.driver.connect(at.driver.settings(at.settings), { allowPrivateHosts: true }, soon())
    const query = await at.confined(SMALL)
    await connection[Symbol.asyncDispose]()
    await connection[Symbol.asyncDispose]()
    assert.equal(connection.usable, false)
    await assert.rejects(connection.run(query, WIDE, soon()), { code: 'DATASOURCE_UNAVAILABLE' })
  })

  const hostile: readonly (readonly [string, unknown, Record<string, string>?])[] = [
    ['HTML', '<html>Bad Gateway</html>', { 'content-type': 'text/html' }],
    ['nothing', ''],
    ['half of JSON', '{"jobComplete":tr'],
    ['a list', []],
    ['an empty object', {}],
    ['nothing but null', 'null'],
    ['a redirect', { elsewhere: true }, { location: 'http://169.254.169.254/' }],
    ['a hundred thousand brackets', '['.repeat(100_000)],
    ['an object with hostile names', '{"__proto__":{"jobComplete":true},"constructor":{"prototype":{}}}'],
    ['endless headers', {}, { 'x-large': 'x'.repeat(40_000) }],
  ]
  for (const [what, body, headers] of hostile) {
    test(`if the server sends ${what}, the query gets DATASOURCE_UNAVAILABLE without an error text of a library`, async () => {
      for (const kind of ['dry run', 'run'] as const) {
        const status = what === 'a redirect' ? 302 : 200
        at.double.rig(kind, { status, body, ...(headers === undefined ? {} : { headers }) }, 99)
        const refusal = await at.refusal(SMALL)
        assert.equal(refusal.code, 'DATASOURCE_UNAVAILABLE', `${kind}: ${refusal.message}`)
        assert.doesNotMatch(refusal.message, /JSON|html|undici|UND_ERR|Unexpected/i)
        at.double.unrig()
      }
      assert.equal((await at.run(SMALL)).rowCount, 2)
    })
  }

  test('a response of 9 MiB is refused', async () => {
    const flood = '"'.padEnd(9 * 1024 * 1024, 'x')
    at.double.rig('dry run', { status: 200, body: flood })
    assert.equal((await at.refusal(SMALL)).code, 'DATASOURCE_UNAVAILABLE')
    at.double.rig('dry run', { status: 500, body: flood }, 99)
    assert.equal((await at.refusal(SMALL)).code, 'DATASOURCE_UNAVAILABLE')
  })

  test('if a result never ends, reading stops at the maximum number of pages, or at the deadline', async () => {
    const endless = {
      jobComplete: true,
      jobReference: { projectId: 'vitrine-test', jobId: 'job_x', location: 'EU' },
      schema: { fields: [ID] },
      totalRows: '1',
      pageToken: 'again',
    }
    at.double.rig('run', ok(endless))
    at.double.rig('results', ok(endless), 1_000_000)
    const ended = await at.refusal(SMALL, { ...WIDE, timeoutMs: 60_000 })
    assert.deepEqual([ended.code, at.double.count('results')], ['DATASOURCE_UNAVAILABLE', 999])
    at.double.unrig()
    at.double.rig('run', ok(endless))
    at.double.rig('results', ok(endless), 3)
    at.double.rig('results', 'hang')
    assert.equal((await at.refusal(SMALL, { ...WIDE, timeoutMs: 300 })).code, 'QUERY_TIMEOUT')
  })

  test('a job is cancelled if its result cannot be read', async () => {
    // A request for job_x of the previous test may still be pending.
    at.double.rig((asked) => asked.kind === 'results' && !/job_x/.test(asked.url.pathname), { status: 200, body: 'x' })
    assert.equal((await at.refusal(WAITS)).code, 'DATASOURCE_UNAVAILABLE')
    while (at.double.count('cancel') === 0) await immediate()
  })
})
