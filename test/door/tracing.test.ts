// The spans of a request, the guard and the database arrive at a real OTLP receiver over HTTP. They contain no query
// texts and no values.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { startApp } from '../support/app.ts'
import { openShop } from '../support/shop.ts'
import { until } from '../support/until.ts'

interface Span {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[]
}

async function startCollector() {
  const bodies: string[] = []
  const requests: IncomingMessage[] = []
  const take = async (request: IncomingMessage, response: ServerResponse) => {
    requests.push(request)
    bodies.push(await text(request))
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
  }
  const server = createServer((request, response) => void take(request, response)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    bodies,
    requests,
    spans: () =>
      bodies.flatMap((body) =>
        JSON.parse(body).resourceSpans.flatMap((resource: { scopeSpans: { spans: Span[] }[] }) =>
          resource.scopeSpans.flatMap(({ spans }) => spans),
        ),
      ) as Span[],
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

const attributeOf = (span: Span, key: string) => {
  const value = span.attributes.find((attribute) => attribute.key === key)?.value ?? {}
  return Object.values(value)[0]
}

test('a query has spans for the request, the guard and the database', async () => {
  await using collector = await startCollector()
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_HEADERS: 'x-token=a%20secret',
    OTEL_SERVICE_NAME: 'vitrine-test',
    VITRINE_TRUST_PROXY: '1',
  }
  await using shop = await openShop({ env })
  const path = `${shop.at}/query`
  const parent = { trace: '0af7651916cd43dd8448eb211c80319c', span: 'b7ad6b7169203331' }
  const headers = { traceparent: `00-${parent.trace}-${parent.span}-01` }
  const sql = "SELECT id FROM customers WHERE name = 'canary-value'"
  // The second query takes the short path (query-short-path.ts).
  await shop.app.ask('POST', path, { token: shop.key, body: { sql }, headers })
  const answer = await shop.app.ask('POST', path, { token: shop.key, body: { sql }, headers })
  assert.equal(answer.status, 200)
  const requestId = answer.headers.get('x-request-id')
  const find = () => collector.spans().find((span) => attributeOf(span, 'vitrine.request_id') === requestId)
  await until('the span arrives', () => find() !== undefined)
  const request = find() ?? assert.fail()
  assert.deepEqual([request.name, request.traceId, request.parentSpanId], ['runQuery', parent.trace, parent.span])
  assert.equal(attributeOf(request, 'http.response.status_code'), 200)
  const parts = () => collector.spans().filter(({ parentSpanId }) => parentSpanId === request.spanId)
  await until('its parts arrive', () => parts().length === 3)
  assert.deepEqual(
    parts().map(({ name, traceId }) => [name, traceId]),
    ['guard', 'wait for a connection', 'database'].map((name) => [name, parent.trace]),
  )
  for (const span of parts()) {
    assert.equal(attributeOf(span, 'db.system.name'), 'postgresql')
    assert.ok(BigInt(span.startTimeUnixNano) <= BigInt(span.endTimeUnixNano))
  }
  const [first] = collector.requests
  assert.deepEqual([first?.url, first?.headers['x-token']], ['/v1/traces', 'a secret'])
  const all = collector.bodies.join('')
  assert.match(all, /"vitrine-test"/)
  assert.doesNotMatch(all, /canary|customers|SELECT|sk_live|Olga|example\.test/)
})

test('the span of a refusal has its code, a caller’s traceparent is ignored, and a missing collector causes no error', async () => {
  await using collector = await startCollector()
  await using app = await startApp({ env: { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/own/path` } })
  const trace = '0af7651916cd43dd8448eb211c80319c'
  await app.ask('GET', '/users/me', { headers: { traceparent: `00-${trace}-b7ad6b7169203331-01` } })
  await until('the span arrives', () => collector.spans().length > 0)
  const [span] = collector.spans()
  assert.ok(span !== undefined)
  assert.deepEqual([attributeOf(span, 'error.type'), span.name], ['UNAUTHENTICATED', 'getAccount'])
  assert.notEqual(span.traceId, trace)
  assert.equal(collector.requests[0]?.url, '/own/path')
  await using alone = await startApp({ env: { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' } })
  assert.equal((await alone.ask('GET', '/users/me')).status, 401)
})
