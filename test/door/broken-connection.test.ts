// A connection to a database breaks in the middle of a large answer. The caller must get an error without rows, and the
// next query must use another connection.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import { openShop } from '../support/shop.ts'

interface Relay extends AsyncDisposable {
  readonly port: number
  /** Breaks the connection of the next answer after `bytes` more bytes from the server. */
  breakAfter(bytes: number): void
}

/** Passes bytes between clients and the server at port `to`. */
async function startRelay(to: number): Promise<Relay> {
  let left = Infinity
  const sockets = new Set<Socket>()
  const relay = createServer((client) => {
    const server = connect(to, '127.0.0.1')
    for (const socket of [client, server]) {
      sockets.add(socket)
      socket.on('error', () => undefined)
    }
    const end = (): void => {
      client.destroy()
      server.destroy()
    }
    client.on('data', (bytes) => server.write(bytes))
    server.on('data', (bytes) => {
      client.write(left < bytes.length ? bytes.subarray(0, left) : bytes)
      left -= bytes.length
      if (left > 0) return
      left = Infinity
      client.end()
      server.destroy()
    })
    client.on('close', end)
    server.on('close', () => client.end())
  })
  relay.listen(0, '127.0.0.1')
  await once(relay, 'listening')
  const address = relay.address()
  return {
    port: address !== null && typeof address !== 'string' ? address.port : 0,
    breakAfter: (bytes) => (left = bytes),
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      relay.close()
      await once(relay, 'close')
    },
  }
}

test('a connection that breaks in the middle of about 10,000 rows is an error without rows, and the next query is answered', async () => {
  await using shop = await openShop()
  await using relay = await startRelay(shop.postgres.port)
  const { app, owner, teamId, key } = shop
  await owner.must('PATCH', `/teams/${teamId}`, { settings: { rowCap: 20_000 } })
  const exposed = [{ schema: 'public', table: 'orders', columns: null }]
  const id = await app.datasource(owner, teamId, { ...shop.spec, name: 'relayed', port: relay.port }, exposed)
  const ask = (last: number) =>
    app.ask('POST', `/teams/${teamId}/datasources/${id}/query`, {
      token: key,
      body: {
        sql: `SELECT a.id, a.placed_at, repeat('x', 100) AS x FROM orders a, orders b WHERE b.id <= ${last} ORDER BY 1`,
      },
    })
  // The service prepares a query only if it has seen its form twice, so run the query several times.
  for (const last of [31, 32, 33, 34]) {
    const whole = await ask(last)
    assert.equal(whole.json.rowCount, last * 300)
    for (const bytes of [1, 5, 1_000, 65_536, 500_000]) {
      relay.breakAfter(bytes)
      const broken = await ask(last)
      assert.deepEqual([broken.status, broken.json.code, broken.json.rows], [502, 'DATASOURCE_UNAVAILABLE', undefined])
    }
    const again = await ask(last)
    assert.deepEqual(again.json.rows, whole.json.rows)
  }
})
