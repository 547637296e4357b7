// Tests the agent connector as a protocol (MCP): both generations of versions, headers, tokens, and invalid messages. A
// well-formed `tools/call` takes a short path, and the MCP SDK answers all other messages.
import assert from 'node:assert/strict'
import { request } from 'node:http'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { text } from 'node:stream/consumers'
import { SUPPORTED_PROTOCOL_VERSIONS } from '@modelcontextprotocol/server'
import { openSdk } from '../../src/connector/answer-with-sdk.ts'
import { Agent, ERAS, headersOf, messageOf, MODERN, type Era } from '../support/agent.ts'
import { newId, type GrantId } from '../../src/ids.ts'
import { SCOPES, startApp } from '../support/app.ts'
import { openShop, type Shop } from '../support/shop.ts'
import { until } from '../support/until.ts'

const FIVE = ['whoami', 'list_teams', 'list_datasources', 'describe_datasource', 'run_query']
const META = 'io.modelcontextprotocol/'

describe('the connector', () => {
  let shop: Shop
  let agent: Agent
  let at: { teamId: string; datasourceId: string }
  before(async () => {
    shop = await openShop()
    agent = new Agent(shop.app, shop.key)
    at = { teamId: shop.teamId, datasourceId: shop.datasourceId }
  })
  after(() => shop[Symbol.asyncDispose]())

  const modernHeaders = (method: string, params: object = {}) => headersOf('modern', method, params)
  const modern = (method: string, params: object = {}) => messageOf('modern', method, params)
  const codeOf = (reply: { status: number; json: { error: { code: number } } }) => [reply.status, reply.json.error.code]

  describe('the connector in version 2026-07-28', () => {
    test('server/discover names the version, the capabilities and the instructions, and may be cached', async () => {
      const { status, json } = await agent.ask('modern', 'server/discover')
      const { supportedVersions, capabilities, ttlMs, cacheScope, instructions, resultType } = json.result
      assert.equal(status, 200)
      assert.ok(supportedVersions.includes(MODERN))
      assert.equal(capabilities.tools.listChanged, false)
      assert.deepEqual([ttlMs > 0, cacheScope, resultType], [true, 'public', 'complete'])
      assert.ok(instructions.split(/\s+/).length <= 60)
    })

    test('tools/list may be cached by everybody', async () => {
      const { result } = (await agent.ask('modern', 'tools/list')).json
      assert.ok(result.ttlMs >= 0)
      assert.deepEqual([result.cacheScope, result.resultType], ['public', 'complete'])
    })

    test('an unknown protocol version is refused with a list of the known versions', async () => {
      const meta = { [`${META}protocolVersion`]: '2027-01-01' }
      const headers = { 'mcp-protocol-version': '2027-01-01' }
      for (const method of ['tools/list', 'tools/call']) {
        const reply = await agent.ask('modern', method, { name: 'whoami' }, { meta, headers })
        assert.deepEqual(codeOf(reply), [400, -32022])
        assert.deepEqual(reply.json.error.data.supported, [MODERN])
      }
    })

    test('the MCP headers are required and must agree with the body', async () => {
      const whoami = { name: 'whoami', arguments: {} }
      for (const headers of [
        { 'mcp-protocol-version': '2025-11-25' },
        { 'mcp-protocol-version': undefined },
        { 'mcp-method': undefined },
        { 'mcp-method': 'tools/list' },
        { 'mcp-name': undefined },
        { 'mcp-name': 'run_query' },
      ]) {
        const reply = await agent.ask('modern', 'tools/call', whoami, { headers })
        assert.deepEqual(codeOf(reply), [400, -32020], JSON.stringify(headers))
      }
    })

    test('an MCP message without _meta is refused', async () => {
      const message = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }
      assert.deepEqual(codeOf(await agent.post(message, modernHeaders('tools/list'))), [400, -32602])
      const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'whoami' } }
      assert.deepEqual(codeOf(await agent.post(call, modernHeaders('tools/call', { name: 'whoami' }))), [400, -32602])
    })

    test('unknown methods and methods of older versions get 404', async () => {
      for (const method of ['no/such', 'ping', 'logging/setLevel']) {
        assert.deepEqual(codeOf(await agent.ask('modern', method)), [404, -32601], method)
      }
    })

    test('a subscription is refused, because the lists never change', async () => {
      const { json } = await agent.ask('modern', 'subscriptions/listen', { notifications: { toolsListChanged: true } })
      assert.equal(json.error.code, -32601)
    })
  })

  describe('the connector in older versions', () => {
    const hello = (protocolVersion: string) =>
      agent.ask('legacy', 'initialize', { protocolVersion, capabilities: {}, clientInfo: { name: 'c', version: '1' } })

    test('initialize answers with the requested version, or the newest version', async () => {
      for (const version of ['2025-03-26', '2025-06-18', '2025-11-25']) {
        assert.equal((await hello(version)).json.result.protocolVersion, version)
      }
      assert.equal((await hello('1999-01-01')).json.result.protocolVersion, '2025-11-25')
    })

    test('a notification gets 202 without a body, and a ping is answered', async () => {
      const { status, text } = await agent.post({ jsonrpc: '2.0', method: 'notifications/initialized' })
      assert.deepEqual([status, text], [202, ''])
      assert.deepEqual((await agent.ask('legacy', 'ping')).json.result, {})
    })

    test('a client must accept both JSON and event streams', async () => {
      for (const name of ['whoami', 'none']) {
        const reply = await agent.call('legacy', name, {}, { headers: { accept: 'application/json' } })
        assert.equal(reply.status, 406)
      }
    })

    test('an unknown protocol version in the header is refused', async () => {
      const reply = await agent.call('legacy', 'whoami', {}, { headers: { 'mcp-protocol-version': '1999-01-01' } })
      assert.equal(reply.status, 400)
    })

    test('the short path knows the same protocol versions as the SDK', async () => {
      for (const version of SUPPORTED_PROTOCOL_VERSIONS.filter((it) => it < MODERN)) {
        const reply = await agent.call('legacy', 'whoami', {}, { headers: { 'mcp-protocol-version': version } })
        // Older versions get plain JSON only from the short path.
        assert.match(reply.headers.get('content-type') ?? '', /^application\/json/, version)
      }
    })
  })

  test('the connector ignores a session header, and never sends one', async () => {
    for (const era of ERAS) {
      const reply = await agent.call(era, 'whoami', {}, { headers: { 'mcp-session-id': 'abc' } })
      assert.equal(reply.status, 200)
      assert.equal(reply.headers.get('mcp-session-id'), null)
    }
  })

  test('tools/list has the same five tools in both generations of the protocol, and the same bytes for each key', async () => {
    const other = new Agent(shop.app, await shop.app.key(shop.owner, { scopes: ['profile'] }))
    const [one, two, three] = await Promise.all([
      agent.ask('modern', 'tools/list', {}, { id: 7 }),
      other.ask('modern', 'tools/list', {}, { id: 7 }),
      agent.ask('legacy', 'tools/list'),
    ])
    assert.equal(one.text, two.text)
    for (const { json } of [one, three]) {
      assert.deepEqual(
        json.result.tools.map((tool: { name: string }) => tool.name),
        FIVE,
      )
    }
  })

  test('the connector accepts only POST', async () => {
    for (const method of ['GET', 'DELETE', 'PUT', 'OPTIONS']) {
      for (const headers of [{}, { 'content-type': 'application/json' }]) {
        const answer = await shop.app.ask(method, '/mcp', { token: shop.key, headers })
        assert.deepEqual([answer.status, answer.headers.get('allow')], [405, 'POST'], method)
        assert.equal(answer.json.jsonrpc, '2.0')
      }
    }
  })

  test('the connector answers a DELETE with a body with 405', async () => {
    const answer = await shop.app.ask('DELETE', '/mcp', { token: shop.key, body: { x: 1 } })
    assert.deepEqual([answer.status, answer.headers.get('allow')], [405, 'POST'])
  })

  test('a call of an unknown tool is a protocol error', async () => {
    for (const era of ERAS) assert.deepEqual(codeOf(await agent.call(era, 'no_such_tool')), [200, -32602])
  })

  test('a body that is not a message is refused as JSON-RPC, without an error text of a library', async () => {
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`
    const id = (value: string) => `{"jsonrpc":"2.0","id":${value},"method":"tools/list"}`
    for (const [body, code] of [
      ['{', -32700],
      [`{${' '.repeat(100_000)}`, -32700],
      ['', -32700],
      ['{"a":1,"a":2}', -32600],
      ['[]', -32600],
      [`{"x":[${'1,'.repeat(30_000)}1]}`, -32600],
      [JSON.stringify({ ...Object.fromEntries(Array.from({ length: 20 }, (_, k) => [`x${k}`, k])), id: 1 }), -32600],
      [JSON.stringify([modern('tools/list')]), -32600],
      [deep, -32600],
      [`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${deep}}`, -32600],
      [id('null'), -32600],
      [id('{}'), -32600],
      [id('[1]'), -32600],
      ['null', -32600],
      ['"text"', -32600],
      ['{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600],
    ] as const) {
      const reply = await agent.post(body)
      assert.deepEqual(codeOf(reply), [400, code], body.slice(0, 60))
      assert.equal(reply.json.jsonrpc, '2.0')
      assert.doesNotMatch(reply.text, /FST_|Fastify|Unexpected token|JSON at position/)
    }
  })

  test('the connector answers a body over 1 MiB with 413 and another content type with 415, and continues', async () => {
    const large = await agent.post(JSON.stringify({ ...modern('tools/list'), padding: 'x'.repeat(2 << 20) }))
    assert.deepEqual(codeOf(large), [413, -32000])
    const plain = await agent.post(JSON.stringify(modern('tools/list')), { 'content-type': 'text/plain' })
    assert.deepEqual(codeOf(plain), [415, -32000])
    assert.deepEqual(
      [large, plain].map(({ json }) => json.error.data.code),
      ['BODY_TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE'],
    )
    assert.equal((await agent.call('modern', 'whoami')).status, 200)
  })

  test('a batch is refused and spends no budget', async () => {
    const left = async () =>
      (await shop.app.must('GET', `/teams/${shop.teamId}/usage`, { token: shop.owner.jwt })).budget.remaining
    const before = await left()
    const call = messageOf('legacy', 'tools/call', { name: 'run_query', arguments: { ...at, sql: 'SELECT 1' } })
    assert.equal((await agent.post([call, call, call])).status, 400)
    assert.equal(await left(), before)
  })

  test('a request from a page of another site is refused, but a request from a program is not', async () => {
    for (const [origin, status] of [
      ['https://evil.example', 403],
      ['null', 403],
      ['http://localhost.evil.example', 403],
      ['http://localhost:1', 200],
      [undefined, 200],
    ] as const) {
      const reply = await agent.call('modern', 'whoami', {}, { headers: { origin } })
      assert.equal(reply.status, status, origin)
    }
  })

  test('on loopback, the connector refuses a Host header with another name', async () => {
    for (const [host, status] of [
      ['evil.example', 403],
      ['evil.example:80', 403],
      ['localhost:1', 405],
      ['[::1]:1', 405],
    ] as const) {
      const sent = request(`${shop.app.url}/mcp`, { headers: { host } }).end()
      const [response] = await once(sent, 'response')
      assert.equal(response.statusCode, status, host)
      await text(response)
    }
  })

  describe('without a valid token', () => {
    test('a request without a token gets the address of the sign-in, and the scopes to ask for', async () => {
      const reply = await new Agent(shop.app).call('modern', 'whoami')
      assert.equal(reply.status, 401)
      assert.equal(
        reply.headers.get('www-authenticate'),
        `Bearer resource_metadata="${shop.app.url}/.well-known/oauth-protected-resource/mcp", scope="profile data:schema data:read"`,
      )
    })

    test('a wrong, revoked or expired key, a session token and a cookie get the same refusal', async () => {
      const revoked = await shop.app.key(shop.owner, { name: 'revoked' })
      const { id } = (await shop.owner.must('GET', '/users/me/keys')).find(
        (key: { name: string }) => key.name === 'revoked',
      )
      await shop.owner.must('DELETE', `/users/me/keys/${id}`)
      const expired = await expiredKey(shop)
      const none = await new Agent(shop.app).call('modern', 'whoami')
      const withCookie = await new Agent(shop.app).call(
        'modern',
        'whoami',
        {},
        { headers: { cookie: shop.owner.cookie } },
      )
      assert.deepEqual([withCookie.status, withCookie.text], [401, none.text])
      for (const token of ['sk_live_nonsense', 'a.b.c', revoked, expired, shop.owner.jwt]) {
        for (const era of ERAS) {
          const reply = await new Agent(shop.app, token).call(era, 'whoami')
          assert.deepEqual([reply.status, reply.text], [401, none.text], token)
          assert.match(reply.headers.get('www-authenticate') ?? '', /^Bearer error="invalid_token", resource_metadata=/)
        }
      }
    })
  })

  test('a grant without the needed scope gets a 403 that names the scope, in both generations of the protocol', async () => {
    const { authenticator } = shop.app.rooms
    const key = await authenticator.authenticate(`Bearer ${shop.key}`)
    assert.ok(key.kind === 'key')
    const { keyId: _id, keyName: _name, ...restricted } = key
    const own = { clientId: 'c', clientName: 'Agent', scopes: new Set(['data:schema'] as const) }
    const grant = { ...restricted, ...own, kind: 'grant' as const, grantId: newId<GrantId>() }
    await using app = await startApp({ connector: { authenticator: { authenticateConnector: async () => grant } } })
    const from = new Agent(app)
    for (const era of ERAS) {
      for (const [method, params, scope] of [
        ['tools/call', { name: 'whoami', arguments: {} }, 'profile'],
        ['tools/call', { name: 'run_query', arguments: at }, 'data:read'],
        // This message is malformed. It would reach the SDK if the grant had the scope.
        ['tools/call', { name: 'run_query', arguments: at, more: 1 }, 'data:read'],
      ] as const) {
        const reply = await from.ask(era, method, params)
        assert.equal(reply.status, 403)
        assert.equal(
          reply.headers.get('www-authenticate'),
          `Bearer error="insufficient_scope", resource_metadata="${app.url}/.well-known/oauth-protected-resource/mcp", scope="${scope}"`,
        )
      }
      assert.equal((await from.ask(era, 'tools/list')).status, 200)
    }
  })

  test('a client that never reads its answers does not keep others waiting', async () => {
    const { hostname, port } = new URL(shop.app.url)
    const sql = `SELECT repeat('x', 1000) AS wide FROM orders`
    const body = JSON.stringify(
      messageOf('legacy', 'tools/call', { name: 'run_query', arguments: { ...at, sql, limit: 250 } }),
    )
    const head = `POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${shop.key}\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`
    const silent = Array.from({ length: 30 }, () => {
      const socket = connect(Number(port), hostname).pause()
      socket.on('error', () => undefined)
      for (let n = 0; n < 5; n++) socket.write(head + body)
      return socket
    })
    for (let n = 0; n < 20; n++) assert.equal((await agent.call('modern', 'whoami')).status, 200)
    for (const socket of silent) socket.destroy()
    assert.equal((await agent.tool('run_query', { ...at, sql: 'SELECT 1' })).rowCount, 1)
  })

  test('the short path and the SDK answer every message alike', async () => {
    const { authenticator, operations } = shop.app.rooms
    const sdk = openSdk({ operations, log: { error: () => undefined } })
    const caller = await authenticator.authenticate(`Bearer ${shop.key}`)
    const arrival = {
      caller,
      knownAt: performance.now(),
      via: 'CONNECTOR',
      signal: new AbortController().signal,
    } as const
    /** Removes the digits of durationMs and the id of the audit row, which differ in each call. */
    const comparable = (message: unknown) =>
      JSON.stringify(sorted(message))
        .replaceAll(/durationMs\\*":[\d.]+/g, 'durationMs')
        .replaceAll(/\?from=[\w-]+/g, '?from=audit')
    const messages: [object, Record<string, string>][] = []
    const add = (era: Era, params: object, message: object = {}, headers: Record<string, string> = {}) =>
      messages.push([
        { ...messageOf(era, 'tools/call', params), ...message },
        { ...headersOf(era, 'tools/call', params), ...headers },
      ])
    for (const era of ERAS) {
      for (const [name, args] of [
        ['whoami', {}],
        ['whoami', { nope: 1 }],
        ['list_teams', {}],
        ['list_datasources', { teamId: at.teamId }],
        ['list_datasources', { teamId: 'other' }],
        ['list_datasources', { teamId: 5 }],
        ['describe_datasource', at],
        ['describe_datasource', { ...at, tables: ['orders', 'payroll'] }],
        ['run_query', { ...at, sql: 'SELECT id, name FROM customers ORDER BY id LIMIT 3' }],
        ['run_query', { ...at, sql: 'SELECT * FROM orders' }],
        ['run_query', { ...at, sql: 'SELECT email FROM customers' }],
        ['run_query', { ...at, sql: 'SELEC' }],
        ['run_query', { ...at }],
        ['run_query', {}],
      ] as const)
        add(era, { name, arguments: args })
      add(era, { name: 'whoami' })
      for (const id of ['text', 0, -1, 2 ** 53 - 1, 1.5, '', 2 ** 60]) add(era, { name: 'whoami' }, { id })
      add(era, { name: 'whoami', arguments: [] })
      add(era, { name: 'whoami', arguments: 'text' })
      add(era, { name: 'whoami', arguments: null })
      add(era, { name: 5 })
      add(era, {})
      add(era, { name: 'whoami', more: 1 })
      add(era, { name: 'none' })
      add(era, { name: '__proto__' })
      add(era, { name: 'whoami' }, { more: 1 })
      add(era, { name: 'whoami' }, { jsonrpc: '2' })
      for (const meta of [
        { progressToken: 1 },
        { progressToken: 'p' },
        { progressToken: {} },
        { progressToken: null },
        { other: { x: 1 } },
        { [`${META}clientCapabilities`]: { sampling: {}, roots: { listChanged: true } } },
        { [`${META}clientCapabilities`]: 5 },
        { [`${META}clientCapabilities`]: { sampling: 5 } },
        { [`${META}clientInfo`]: { name: 'x' } },
        { [`${META}clientInfo`]: 'x' },
        { [`${META}logLevel`]: 'debug' },
        { [`${META}logLevel`]: 'none' },
        { [`${META}protocolVersion`]: '2025-11-25' },
        { [`${META}protocolVersion`]: 5 },
      ]) {
        const params = { name: 'whoami' }
        messages.push([messageOf(era, 'tools/call', params, { meta }), headersOf(era, 'tools/call', params)])
      }
    }
    for (const headers of [
      { 'mcp-name': '=?base64?d2hvYW1p?=' },
      { 'mcp-name': ' whoami ' },
      { 'mcp-method': 'TOOLS/CALL' },
      { 'mcp-protocol-version': '2026-07-28, 2026-07-28' },
    ]) {
      add('modern', { name: 'whoami' }, {}, headers)
    }
    for (const [body, headers] of messages) {
      const all = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers }
      const door = await agent.post(body, headers)
      const response = await sdk(new Headers(all), body, arrival)
      const theirs = await response.text()
      const message = /^data: (.+)$/m.exec(theirs)?.[1] ?? theirs
      const what = JSON.stringify([body, headers])
      assert.equal(door.status, response.status, what)
      assert.equal(comparable(door.json), comparable(message === '' ? undefined : JSON.parse(message)), what)
    }
  })
})

/**
 * Returns a key that has expired. On a busy machine, creating the key may take longer than its lifetime, so each
 * attempt doubles the lifetime.
 */
async function expiredKey(shop: Shop): Promise<string> {
  for (let ms = 2_000; ; ms *= 2) {
    const expiresAt = new Date(Date.now() + ms).toISOString()
    const { status, json } = await shop.owner.ask('POST', '/users/me/keys', { name: 'test', scopes: SCOPES, expiresAt })
    if (status >= 300) continue
    await until('the key has expired', () => Date.now() > Date.parse(expiresAt))
    return json.key
  }
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, item]) => [key, sorted(item)]),
  )
}
