// These tests read documents from a real TLS server with its own host name.
import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import { after, before, describe, test } from 'node:test'
import { makeCertificates, type Certificates } from '../../test/support/certificates.ts'
import { asked as consentQuery, authorizePath, onRooms, pkce } from '../../test/support/oauth.ts'
import { auth, openRooms, PASSWORD } from '../../test/support/people.ts'
import { storeSource } from '../../test/support/stores.ts'
import { until } from '../../test/support/until.ts'
import { dial } from '../drivers/allowed-addresses.ts'
import { openClientDocuments, type DocumentTransport } from './client-documents.ts'
import { isDocumentId } from './find-client.ts'

const ID = 'https://agent.example/client.json'
const FROM = '192.0.2.1'
const REDIRECT = 'https://agent.example/callback'
const DOCUMENT = { client_id: ID, client_name: 'Agent', redirect_uris: [REDIRECT] }

describe('client metadata documents', () => {
  let certificates: Certificates
  let server: Server
  let transport: DocumentTransport
  let answer: (request: IncomingMessage, response: ServerResponse) => void
  let asked: string[] = []

  before(async () => {
    certificates = await makeCertificates()
    const { pem } = certificates
    server = createServer({ key: pem['server.key'], cert: pem['server.crt'] }, (request, response) => {
      asked.push(`${request.method} https://${request.headers.host}${request.url}`)
      answer(request, response)
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const address = server.address()
    assert.ok(typeof address === 'object' && address !== null)
    const { port } = address
    transport = {
      dial: (at, signal) => {
        assert.deepEqual(at, { host: 'agent.example', port: 443 })
        return dial({ host: '127.0.0.1', port }, true, signal)
      },
      ca: pem['ca.crt'] ?? '',
      deadlineMs: 60_000,
    }
  })
  after(async () => {
    server.closeAllConnections()
    server.close()
    await certificates[Symbol.asyncDispose]()
  })

  const json = (body: unknown, headers: Readonly<Record<string, string>> = {}, status = 200) => {
    asked = []
    answer = (_request, response) =>
      void response
        .writeHead(status, { 'content-type': 'application/json', ...headers })
        .end(typeof body === 'string' ? body : JSON.stringify(body))
  }

  test('a document is read from its URL, and identifies the client', async () => {
    json({ ...DOCUMENT, logo_uri: 'http://169.254.169.254/', jwks_uri: 'http://10.0.0.1/' })
    const client = await openClientDocuments(transport).read(ID, FROM)
    assert.deepEqual(client, { id: ID, name: 'Agent', host: 'agent.example', redirectUris: [REDIRECT] })
    assert.deepEqual(asked, [`GET ${ID}`])
  })

  test('a document is cached for the max-age of the answer, from one minute to one hour, or for five minutes without a max-age', async () => {
    const cases = [
      ['max-age=600', 600],
      ['max-age=1', 60],
      ['no-store', 60],
      ['max-age=999999999', 3_600],
      ['', 300],
    ] as const
    for (const [header, seconds] of cases) {
      json(DOCUMENT, header === '' ? {} : { 'cache-control': header })
      let now = 0
      const documents = openClientDocuments(transport, () => now)
      await Promise.all([1, 2, 3].map(() => documents.read(ID, FROM)))
      now = seconds * 1000 - 1
      await documents.read(ID, FROM)
      assert.equal(asked.length, 1, header)
      now++
      await documents.read(ID, FROM)
      assert.equal(asked.length, 2, header)
    }
  })

  test('a failure is cached for half a minute', async () => {
    json('{', {}, 500)
    let now = 0
    const documents = openClientDocuments(transport, () => now)
    assert.equal(await documents.read(ID, FROM), null)
    json(DOCUMENT)
    now = 29_999
    assert.equal(await documents.read(ID, FROM), null)
    assert.deepEqual(asked, [])
    now = 30_000
    assert.equal((await documents.read(ID, FROM))?.name, 'Agent')
  })

  test('a name is one line, cut after 100 characters; without a name, the host is the name', async () => {
    const names: [unknown, string][] = [
      [undefined, 'agent.example'],
      [' \n ', 'agent.example'],
      ['A\u202Eb\u0000c\nd', 'A b c d'],
      ['x'.repeat(300), `${'x'.repeat(100)}…`],
    ]
    for (const [given, shown] of names) {
      json({ ...DOCUMENT, client_name: given })
      assert.equal((await openClientDocuments(transport).read(ID, FROM))?.name, shown)
    }
  })

  test('redirect URIs with unknown schemes are left out', async () => {
    json({ ...DOCUMENT, redirect_uris: ['weird://x', REDIRECT, 'http://127.0.0.1/callback'] })
    const client = await openClientDocuments(transport).read(ID, FROM)
    assert.deepEqual(client?.redirectUris, [REDIRECT, 'http://127.0.0.1/callback'])
  })

  const bad: [string, unknown, Readonly<Record<string, string>>?, number?][] = [
    ['another client', { ...DOCUMENT, client_id: `${ID}?` }],
    ['no client', { redirect_uris: [REDIRECT] }],
    ['no redirect URI', { ...DOCUMENT, redirect_uris: [] }],
    ['a redirect URI that is a script', { ...DOCUMENT, redirect_uris: [REDIRECT, 'javascript:alert(1)'] }],
    ['a redirect URI over http', { ...DOCUMENT, redirect_uris: ['http://agent.example/callback'] }],
    ['only redirect URIs of unknown schemes', { ...DOCUMENT, redirect_uris: ['weird://x'] }],
    ['a client with a secret', { ...DOCUMENT, token_endpoint_auth_method: 'client_secret_post' }],
    ['a client with a key', { ...DOCUMENT, token_endpoint_auth_method: 'private_key_jwt' }],
    ['a client without codes', { ...DOCUMENT, grant_types: ['client_credentials'] }],
    ['another response type', { ...DOCUMENT, response_types: ['token'] }],
    ['JSON that is a list', [DOCUMENT]],
    ['JSON that is cut', JSON.stringify(DOCUMENT).slice(0, -1)],
    ['a type that is not JSON', DOCUMENT, { 'content-type': 'text/html' }],
    ['a redirect', DOCUMENT, { location: 'https://agent.example/other.json' }, 302],
    ['another status', DOCUMENT, {}, 203],
    ['more than 5 KiB', { ...DOCUMENT, more: 'x'.repeat(5 * 1024) }],
    ['huge headers', DOCUMENT, { 'x-more': 'x'.repeat(9 * 1024) }],
  ]
  for (const [name, body, headers, status] of bad) {
    test(`a document with ${name} is refused`, async () => {
      json(body, headers, status)
      assert.equal(await openClientDocuments(transport).read(ID, FROM), null)
      assert.equal(asked.length, 1)
    })
  }

  test('a document that is not UTF-8 is refused', async () => {
    answer = (_request, response) => {
      const [head = '', tail = ''] = JSON.stringify({ ...DOCUMENT, client_name: '?' }).split('?')
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(Buffer.concat([Buffer.from(head), Buffer.from([0xff]), Buffer.from(tail)]))
    }
    assert.equal(await openClientDocuments(transport).read(ID, FROM), null)
  })

  test('a document that takes too long or is too large is refused', async () => {
    answer = (_request, response) =>
      void response.writeHead(200, { 'content-type': 'application/json' }).write('{"client_id":')
    assert.equal(await openClientDocuments({ ...transport, deadlineMs: 300 }).read(ID, FROM), null)
    let ended = false
    answer = (_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.on('close', () => (ended = true))
      const more = () => {
        while (!response.destroyed && response.write('x'.repeat(1024)));
      }
      response.on('drain', more)
      more()
    }
    assert.equal(await openClientDocuments(transport).read(ID, FROM), null)
    while (!ended) await new Promise((resolve) => setImmediate(resolve))
  })

  test('a server whose certificate is for another host, or not trusted, is refused', async () => {
    json(DOCUMENT)
    const other = certificates.pem['other.crt'] ?? ''
    assert.equal(await openClientDocuments({ ...transport, ca: other }).read(ID, FROM), null)
    const anyHost = { ...transport, dial: transport.dial }
    const wrongHost = 'https://other.example/client.json'
    anyHost.dial = (_at, signal) => transport.dial({ host: 'agent.example', port: 443 }, signal)
    assert.equal(await openClientDocuments(anyHost).read(wrongHost, FROM), null)
    assert.deepEqual(asked, [])
  })

  test('if one network asks for documents of silent hosts, only the reads of this network are delayed', async () => {
    asked = []
    const waiting: ServerResponse[] = []
    answer = (_request, response) => void waiting.push(response)
    const documents = openClientDocuments(transport)
    const ids = Array.from({ length: 12 }, (_, n) => `https://agent.example/${n}.json`)
    const silent = ids.map((id) => documents.read(id, '192.0.2.1'))
    await until('two reads', () => waiting.length >= 2)
    answer = (_request, response) =>
      void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(DOCUMENT))
    assert.equal((await documents.read(ID, '192.0.2.2'))?.id, ID)
    // Reads that only wait are not shared, so another network gets the last document at once.
    answer = (_request, response) => void response.writeHead(404).end()
    await documents.read(ids[11] ?? '', '192.0.2.2')
    assert.deepEqual(new Set(asked), new Set([ids[0], ids[1], ID, ids[11]].map((id) => `GET ${id}`)))
    for (const response of waiting) response.writeHead(404).end()
    await Promise.all(silent)
    assert.equal(asked.length, 13)
  })

  test('the networks of a block share the places for reads, at the authorization and on the consent page', async () => {
    await using source = await storeSource('sqlite')
    await using rooms = await openRooms(source, {}, { documents: transport })
    const service = onRooms(rooms)
    const { challenge } = pkce()
    json(DOCUMENT, { 'cache-control': 'no-store' })
    const order = { name: 'Ada', email: 'ada@example.test', password: PASSWORD }
    const signedUp = await auth(rooms, 'POST sign-up/email', order)
    const ada = { id: signedUp.json.user.id, cookie: signedUp.cookie }
    const query = await consentQuery(service, ada, { clientId: ID, redirectUri: REDIRECT }, challenge)
    rooms.clock.at += 61_000 // The document is no longer cached.

    asked = []
    const waiting: ServerResponse[] = []
    answer = (_request, response) => void waiting.push(response)
    const ask = (path: string, from: string) => service.send('GET', path, { headers: { 'x-vitrine-client': from } })
    const authorize = (name: string, from: string) => {
      const client = { clientId: `https://agent.example/${name}.json`, redirectUri: REDIRECT }
      return ask(authorizePath(service, client, challenge), from)
    }
    const silent = [authorize('1', '192.0.2.1'), authorize('2', '192.0.2.2')]
    await until('two reads', () => waiting.length === 2)
    silent.push(ask(`/auth/consent?${query}`, '192.0.2.3'), authorize('3', '192.0.2.4'))
    silent.push(authorize('other', '198.51.100.1'))
    await until('a read for another block', () => asked.includes('GET https://agent.example/other.json'))
    assert.deepEqual(
      asked.toSorted().slice(0, 2),
      ['1', '2'].map((n) => `GET https://agent.example/${n}.json`),
    )
    assert.equal(asked.length, 3)
    answer = (_request, response) => void response.writeHead(404).end()
    for (const response of waiting) response.writeHead(404).end()
    await Promise.all(silent)
  })

  test('a read that must wait for more than five seconds fails, and this failure is not cached', async () => {
    const waiting: ServerResponse[] = []
    asked = []
    answer = (_request, response) => void waiting.push(response)
    const documents = openClientDocuments(transport)
    const silent = [1, 2].map((n) => documents.read(`https://agent.example/${n}.json`, '192.0.2.1'))
    assert.equal(await documents.read(ID, '192.0.2.1'), null)
    assert.equal(asked.includes(`GET ${ID}`), false)
    for (const response of waiting) response.writeHead(404).end()
    await Promise.all(silent)
    json(DOCUMENT)
    assert.equal((await documents.read(ID, '192.0.2.1'))?.id, ID)
  })

  test('no connection is made to a private address', async () => {
    let sockets = 0
    const count = () => void sockets++
    subscribe('net.client.socket', count)
    try {
      for (const host of [
        '127.0.0.1',
        '10.0.0.1',
        '169.254.169.254',
        '192.168.1.1',
        '[::1]',
        '[fd00:ec2::254]',
        '[::ffff:10.0.0.1]',
        '100.100.100.200',
        '2130706433',
        '0x7f.1',
      ]) {
        const url = new URL(`https://${host}/client.json`).href
        assert.equal(await openClientDocuments().read(url, FROM), null, url)
      }
      assert.equal(sockets, 0)
    } finally {
      unsubscribe('net.client.socket', count)
    }
    // This name resolves to a private address, which is checked before the connection.
    assert.equal(await openClientDocuments().read('https://localhost/client.json', FROM), null)
  })

  test('only a normalized https URL with a path and the default port is the id of a document', () => {
    assert.ok(isDocumentId(ID) && isDocumentId('https://agent.example/a?b=c'))
    const others = [
      'http://agent.example/client.json',
      'https://agent.example',
      'https://agent.example/',
      'https://agent.example:8443/client.json',
      'https://agent.example:443/client.json',
      'https://user@agent.example/client.json',
      'https://agent.example/client.json#a',
      'https://agent.example/client.json#',
      'https://agent.example/a/../client.json',
      'https://AGENT.example/client.json',
      'https://agent.example\\client.json',
      ' https://agent.example/client.json',
      'https://127.1/client.json',
      `https://agent.example/${'x'.repeat(2_000)}`,
      'file:///etc/passwd',
      '9d2c',
    ]
    for (const id of others) assert.ok(!isDocumentId(id), id)
  })
})
