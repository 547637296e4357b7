// The short path reads queries directly from the socket. Tests which connection is closed if there are too many, and
// what is logged about a refused connection and a hang-up. The limit is per client address, so these connections have
// their own address.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { openShop, type Shop } from '../support/shop.ts'
import { until } from '../support/until.ts'

const ENDLESS = 'SELECT count(*) AS n FROM orders a, orders b, orders c, orders d WHERE a.id + b.id + c.id < d.id - 5'
const ACTIVE = `SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid() AND query LIKE '%count%orders%'`

describe('with a limit of two connections per address', () => {
  const logged: string[] = []
  let shop: Shop
  before(async () => {
    const env = { VITRINE_CONNECTIONS_PER_ADDRESS: '2', VITRINE_ACCESS_LOG: '1' }
    shop = await openShop({ env, logged: (line) => void logged.push(line) })
    const settings = { statementTimeoutMs: 60_000, postgresMaxPlanCost: 1e15 }
    await shop.owner.must('PATCH', `/teams/${shop.teamId}`, { settings })
    // The first query with a new key takes the ordinary path, and the second query takes the short path.
    for (const _time of [1, 2]) assert.equal((await shop.query('SELECT 1')).status, 200)
  })
  after(() => shop[Symbol.asyncDispose]())

  async function dial(): Promise<Socket & { text: string }> {
    const { hostname, port } = new URL(shop.app.url)
    const socket = connect({ host: hostname, port: Number(port), localAddress: '127.0.0.2', noDelay: true })
    const read = Object.assign(socket, { text: '' })
    socket.on('data', (data: Buffer) => (read.text += data.toString()))
    socket.on('error', () => undefined)
    await once(socket, 'connect')
    return read
  }

  function request(sql: string, more = ''): string {
    const body = JSON.stringify({ sql })
    const type = `content-type: application/json\r\ncontent-length: ${body.length}`
    return `POST ${shop.at}/query HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${shop.key}\r\n${more}${type}\r\n\r\n${body}`
  }

  const send = (socket: Socket, text: string): Promise<void> =>
    new Promise((resolve) => void socket.write(text, () => resolve()))

  const rows = async (): Promise<readonly { outcome: string }[]> =>
    (await shop.owner.must('GET', `/teams/${shop.teamId}/audit?action=runQuery&limit=50`)).items

  for (const more of ['', 'te: trailers\r\n']) {
    test(`if there are too many connections, an idle connection is closed, and not one whose first query is arriving (${more === '' ? 'socket' : 'node:http'})`, async () => {
      const arriving = await dial()
      const bytes = request('SELECT 5 AS n', more)
      await send(arriving, bytes.slice(0, -4))
      const idle = await dial()
      // Once the service answers this request, it has read the bytes above.
      idle.write('GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n')
      await until('an answer', () => idle.text.startsWith('HTTP/1.1 200'))
      const closed = once(idle, 'close')
      const third = await dial()
      await Promise.race([closed, once(arriving, 'close')])
      arriving.write(bytes.slice(-4))
      await until('the answer, or the end', () => arriving.closed || arriving.text.includes('[[5]]'))
      assert.deepEqual([arriving.closed, idle.closed, third.closed], [false, true, false])
      arriving.destroy()
      third.destroy()
    })
  }

  test('a refused connection runs no query, and a hang-up is not logged as an answer or a timeout', async () => {
    const active = async (): Promise<unknown> => (await shop.postgres.query(shop.database, ACTIVE))[0]?.[0]
    const before = await rows()
    const busy = [await dial(), await dial()]
    for (const [n, socket] of busy.entries()) await send(socket, request(ENDLESS, n === 0 ? '' : 'te: trailers\r\n'))
    await until('two queries run', async () => (await active()) === '2')
    for (const more of ['', 'te: trailers\r\n']) {
      const refused = await dial()
      refused.write(request('SELECT 401 AS n', more))
      await once(refused, 'close')
      assert.match(refused.text, /^HTTP\/1\.1 503 /)
    }
    for (const socket of busy) socket.destroy()
    await until('no query runs', async () => (await active()) === '0')
    assert.equal((await shop.query('SELECT 2')).status, 200)
    await until('the rows of all queries', async () => (await rows()).length >= before.length + 3)
    const outcomes = (await rows()).slice(0, -before.length).map(({ outcome }) => outcome)
    assert.deepEqual(outcomes.toSorted(), ['ANSWERED', 'FAILED', 'FAILED'])
    const lines = logged.filter((line) => line.includes('"operation":"runQuery"'))
    assert.deepEqual(
      lines.filter((line) => !line.includes('"status":200')),
      [],
    )
  })

  test('if 50 requests arrive in one packet, the first 32 are answered, and the next request gets 503', async () => {
    const socket = await dial()
    const failed: Error[] = []
    socket.on('error', (error) => failed.push(error))
    socket.write(request('SELECT 1 AS n').repeat(50))
    await once(socket, 'close')
    const statuses = [...socket.text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)
    assert.deepEqual(statuses, [...Array<string>(32).fill('200'), '503'])
    assert.match(socket.text, /connection: close\r\n[^{]*\{"error":"[^"]*waiting requests[^"]*","code":"OVERLOADED"/i)
    assert.deepEqual(failed, [])
  })

  test('a request that arrives byte by byte during a running query is answered', async () => {
    const socket = await dial()
    await send(socket, request('SELECT count(*) AS n FROM orders a, orders b WHERE a.id <> b.id'))
    for (const byte of request('SELECT 77 AS n')) await send(socket, byte)
    await until('the answer', () => socket.text.includes('[[77]]'))
    assert.match(socket.text, /\[\["?89700"?\]\][^]*\[\[77\]\]/)
    socket.destroy()
  })
})
