// A 504 may say that the query was cancelled only if the server confirmed the cancellation.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { emptyKnown, LIMITS, queryOf, settingsOf } from '../../../../test/support/postgres-session.ts'
import { startPostgres } from '../../../../test/support/postgres.ts'
import { until } from '../../../../test/support/until.ts'
import { AppError } from '../../../errors.ts'
import { seal } from '../../confined.ts'
import { logIn } from './connect.ts'
import { PostgresConnection } from './connection.ts'
import { targetOf } from './settings.ts'

const never = new AbortController().signal
const SLOW = 'SELECT count(*) FROM generate_series(1, 1e12)'

/** Starts a relay to the server. It can stop forwarding on all connections, or only on the current ones. */
async function relay(
  port: number,
): Promise<AsyncDisposable & { readonly port: number; silence(): void; silenceOpen(): void }> {
  const sockets = new Set<Socket>()
  const silent = new Set<Socket>()
  let isSilent = false
  const server = createServer((near) => {
    const far = connect(port, '127.0.0.1')
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from)
      from.on('error', () => undefined)
      from.on('close', () => to.destroy())
      from.on('data', (bytes: Buffer) => {
        if (!isSilent && !silent.has(from)) to.write(bytes)
      })
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    silence: () => (isSilent = true),
    silenceOpen: () => {
      for (const socket of sockets) silent.add(socket)
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

test('a 504 says that the query was cancelled only if the server confirmed the cancellation', async () => {
  await using server = await startPostgres()
  const database = await server.createDatabase('slow')
  const version = Number((await server.query(database, 'SHOW server_version_num'))[0]?.[0])
  await using way = await relay(server.port)
  const open = async (): Promise<PostgresConnection> => {
    const settings = settingsOf(server, database, { port: way.port })
    const known = emptyKnown()
    return new PostgresConnection(await logIn(targetOf(settings), true, AbortSignal.timeout(60_000)), () => known)
  }
  const query = seal('POSTGRES', queryOf(SLOW, version))
  const limits = { ...LIMITS, timeoutMs: 300 }

  // First, the timeout of the server ends the query. Then, the deadline of the service does.
  for (const [timeoutMs, deadlineMs] of [
    [300, 60_000],
    [LIMITS.timeoutMs, 200],
  ] as const) {
    // Retry, because on a busy machine the server may take longer than the half second that a caller waits.
    await until('the server confirms in time', async () => {
      await using at = await open()
      const error: unknown = await at
        .run(query, { ...LIMITS, timeoutMs }, AbortSignal.timeout(deadlineMs))
        .catch((failed: unknown) => failed)
      assert.ok(error instanceof AppError && error.code === 'QUERY_TIMEOUT', String(error))
      assert.match(error.message, /was cancelled in the database|whether it did is not known/)
      if (deadlineMs < timeoutMs) assert.equal(at.usable, false)
      return error.message.includes('was cancelled in the database')
    })
  }

  await using silent = await open()
  const running = silent.run(query, limits, never)
  setImmediate(way.silence)
  await assert.rejects(running, { code: 'QUERY_TIMEOUT', message: /asked to stop it; whether it did is not known/ })
  assert.equal(silent.usable, false)
})

test('a query that was given up counts as ended when another session sees that the server does not run it', async () => {
  await using server = await startPostgres()
  const database = await server.createDatabase('unseen')
  const version = Number((await server.query(database, 'SHOW server_version_num'))[0]?.[0])
  await using way = await relay(server.port)
  const settings = settingsOf(server, database, { port: way.port })
  const login = await logIn(targetOf(settings), true, AbortSignal.timeout(60_000))
  await using connection = new PostgresConnection(login, emptyKnown)
  assert.equal(connection.ended(never), null)
  const query = seal('POSTGRES', queryOf(SLOW, version))
  const caller = new AbortController()
  const running = connection.run(query, LIMITS, caller.signal)
  const active = `SELECT 1 FROM pg_stat_activity WHERE datname = '${database}' AND state = 'active'`
  await until('the query runs', async () => (await server.query('postgres', active)).length === 1)
  assert.equal(await login.isRunning(AbortSignal.timeout(60_000)), true)
  // The server ends the query, but the relay does not forward its answer.
  way.silenceOpen()
  caller.abort(new AppError('QUERY_TIMEOUT', 'given up'))
  await assert.rejects(running, { code: 'QUERY_TIMEOUT' })
  await connection.ended(AbortSignal.timeout(60_000))
  assert.equal(login.session.wire.isQuiet, false)
  assert.equal(await login.isRunning(AbortSignal.timeout(60_000)), false)
})
