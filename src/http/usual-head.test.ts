import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { describe, test } from 'node:test'
import { pathForm, readUsualHead } from './usual-head.ts'

const FORM = pathForm('/teams/{teamId}/datasources/{id}/query')
const FIRST = 'POST /teams/team_1/datasources/ds-2/query HTTP/1.1'
const USUAL: readonly string[] = [
  'Host: vitrine.test',
  'Authorization: Bearer key',
  'Content-Type: application/json',
  'Content-Length: 7',
]

const headOf = (lines: readonly string[], first = FIRST): string => [first, ...lines, '', ''].join('\r\n')
const read = (lines: readonly string[], first = FIRST) => readUsualHead(headOf(lines, first), FORM)
const without = (name: string): string[] => USUAL.filter((line) => !line.startsWith(name))

describe('the head of a usual query', () => {
  test('readUsualHead() accepts header names in any case and lines in any order', () => {
    const expected = {
      ...{ teamId: 'team_1', datasourceId: 'ds-2', length: 7, authorization: 'Bearer key', userAgent: undefined },
      ...{ requestId: undefined, traceparent: undefined },
    }
    assert.deepEqual(read(USUAL), expected)
    assert.deepEqual(
      read(USUAL.toReversed().map((line) => line.replace(/^[^:]+/, (name) => name.toUpperCase()))),
      expected,
    )
    const more = [
      'user-agent: \t a/1 (b) ',
      'x-request-id: abcdefgh',
      'traceparent: 00-1',
      'connection: Keep-Alive',
      'accept: */*',
    ]
    assert.deepEqual(read([...USUAL, ...more]), {
      ...expected,
      ...{ userAgent: 'a/1 (b)', requestId: 'abcdefgh', traceparent: '00-1' },
    })
  })

  const refused: Readonly<Record<string, readonly [lines: readonly string[], first?: string]>> = {
    'another method': [USUAL, FIRST.replace('POST', 'QUERY')],
    'another version': [USUAL, FIRST.replace('1.1', '1.0')],
    'another path': [USUAL, FIRST.replace('query', 'check')],
    'a query string': [USUAL, FIRST.replace('query', 'query?a=1')],
    'an absolute URL': [USUAL, FIRST.replace('/teams', 'http://vitrine.test/teams')],
    'percent-encoding': [USUAL, FIRST.replace('ds-2', 'ds%2D2')],
    'two spaces': [USUAL, FIRST.replace(' HTTP', '  HTTP')],
    'no host': [without('Host')],
    'no key': [without('Authorization')],
    'no type': [without('Content-Type')],
    'no length': [without('Content-Length')],
    'another type': [[...without('Content-Type'), 'Content-Type: text/json']],
    'a length of 0': [[...without('Content-Length'), 'Content-Length: 0']],
    'a length with a zero in front': [[...without('Content-Length'), 'Content-Length: 07']],
    'a length with a sign': [[...without('Content-Length'), 'Content-Length: +7']],
    'a list of lengths': [[...without('Content-Length'), 'Content-Length: 7, 7']],
    'a long body': [[...without('Content-Length'), 'Content-Length: 32769']],
    'the same length twice': [[...USUAL, 'Content-Length: 7']],
    'a length twice': [[...USUAL, 'content-length: 8']],
    'a key twice': [[...USUAL, 'authorization: Bearer other']],
    'any header twice': [[...USUAL, 'x-a: 1', 'X-A: 1']],
    chunks: [[...USUAL, 'Transfer-Encoding: chunked']],
    'an encoding': [[...USUAL, 'Content-Encoding: identity']],
    'an expectation': [[...USUAL, 'Expect: 100-continue']],
    'an upgrade': [[...USUAL, 'Upgrade: h2c', 'Connection: upgrade']],
    'a connection that ends': [[...USUAL, 'Connection: close']],
    'hop-by-hop names': [[...USUAL, 'Connection: keep-alive, content-length']],
    'another origin': [[...USUAL, 'Origin: https://elsewhere.test']],
    'a folded line': [[...USUAL, 'x-a: 1', ' 2']],
    'a space before the colon': [[...USUAL, 'x-a : 1']],
    'a line without a colon': [[...USUAL, 'x-a']],
    'an empty name': [[...USUAL, ': 1']],
    'an empty value': [[...USUAL, 'x-a:']],
    'a lone line feed': [[...USUAL, 'x-a: 1\nx-b: 2']],
    'a lone carriage return': [[...USUAL, 'x-a: 1\rx-b: 2']],
    'a NUL': [[...USUAL, 'x-a: 1\0']],
    'a letter beyond ASCII': [[...USUAL, 'x-a: \xe9']],
    'too many headers': [[...USUAL, ...Array.from({ length: 47 }, (_, n) => `x-${n}: 1`)]],
  }
  for (const [what, [lines, first]] of Object.entries(refused)) {
    test(`readUsualHead() leaves a head to node:http: ${what}`, () => assert.equal(read(lines, first), null))
  }

  test('node:http reads every accepted head in the same way', async () => {
    let seen: IncomingMessage | null = null
    let body = ''
    await using server = createServer((request, response) => {
      seen = request
      request.setEncoding('utf8').on('data', (part: string) => (body += part))
      request.on('end', () => response.end())
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const address = server.address()
    assert.ok(address !== null && typeof address !== 'string')
    let taken = 0
    for (const head of mutants()) {
      const usual = readUsualHead(head, FORM)
      if (usual === null) continue
      taken++
      seen = null
      body = ''
      const socket = connect(address.port, '127.0.0.1')
      socket.write(head + '#'.repeat(usual.length))
      await once(socket, 'data')
      socket.destroy()
      const request = seen as IncomingMessage | null
      assert.ok(request !== null, head)
      assert.deepEqual(
        [
          request.url,
          request.headers.authorization,
          request.headers['user-agent'],
          body.length,
          request.headers['x-request-id'],
        ],
        [
          `/teams/${usual.teamId}/datasources/${usual.datasourceId}/query`,
          ...[usual.authorization, usual.userAgent, usual.length, usual.requestId],
        ],
        head,
      )
    }
    assert.ok(taken > 100, `${taken} of the heads were accepted`)
  })
})

/** Yields heads with one to three random changes. The seed is fixed. */
function* mutants(): Generator<string> {
  const letters = [
    ...'\r\n\t :;,0179aZ-_"#%/?\0\x7f\xe9',
    'Content-Length: 9\r\n',
    'x: ',
    '\r\n ',
    'chunked',
    'host: a\r\n',
  ]
  let state = 27
  const random = (max: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * max)
  }
  for (let n = 0; n < 3_000; n++) {
    let head = headOf([...USUAL, 'User-Agent: test/1', 'X-Request-Id: abcdefgh'])
    for (let changes = random(3); changes >= 0; changes--) {
      const at = random(head.length - 2)
      head = head.slice(0, at) + letters[random(letters.length)] + head.slice(at + random(2))
    }
    // readUsualHead() gets the head up to the first empty line.
    yield head.slice(0, head.indexOf('\r\n\r\n') + 4)
  }
}
