// A limited number of datasources and webhooks can be tested at the same time. One account cannot take all these slots,
// not even with all its teams together.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { test } from 'node:test'
import { startApp, type Person } from '../support/app.ts'
import { until } from '../support/until.ts'

async function startSilent() {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => void sockets.add(socket.on('error', () => undefined)))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    sockets,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

/**
 * Sends two requests to each path at once. Waits until four requests are running, and all other requests were refused.
 */
async function flood(eve: Person, paths: readonly string[], running: ReadonlySet<Socket>): Promise<void> {
  const refused: number[] = []
  const answered = paths
    .flatMap((path) => [path, path])
    .map(async (path) => {
      const { status } = await eve.ask('POST', path)
      if (status === 429) refused.push(status)
    })
  void Promise.allSettled(answered)
  await until('four tests that run', () => running.size === 4 && refused.length === answered.length - 4)
}

test('while one account runs four tests of datasources, other accounts can still test theirs', async () => {
  await using app = await startApp()
  await using silent = await startSilent()
  const [eve, vic] = [await app.person('Eve'), await app.person('Vic')]
  const login = { database: 'x', username: 'x', password: 'x', sslMode: 'disable' }
  const order = (port: number) => {
    const connection = { type: 'POSTGRES', connectionMode: 'DIRECT', host: '127.0.0.1', port, ...login }
    return { name: 'd', accessMode: 'ROLE_BASED', minRole: 'MEMBER', ...connection }
  }
  const paths: string[] = []
  for (let n = 0; n < 3; n++) {
    const team = `/teams/${await app.team(eve, `Eve ${n}`)}/datasources`
    paths.push(`${team}/${(await eve.must('POST', team, order(silent.port))).id}/test`)
  }
  await flood(eve, paths, silent.sockets)
  const team = `/teams/${await app.team(vic)}/datasources`
  const { name: _name, accessMode: _mode, minRole: _role, ...unsaved } = order(1)
  assert.equal((await vic.ask('POST', `${team}/test`, unsaved)).status, 200)
})

test('while one account runs four tests of webhooks, other accounts can still test theirs', async () => {
  await using app = await startApp()
  await using silent = await startSilent()
  const [eve, vic] = [await app.person('Eve'), await app.person('Vic')]
  const make = async (by: Person, teamId: string, port: number) => {
    const webhooks = `/teams/${teamId}/webhooks`
    const order = { name: 'w', url: `http://127.0.0.1:${port}/`, events: ['drift'] }
    return `${webhooks}/${(await by.must('POST', webhooks, order)).id}/test`
  }
  const paths: string[] = []
  for (let n = 0; n < 3; n++) paths.push(await make(eve, await app.team(eve, `Eve ${n}`), silent.port))
  await flood(eve, paths, silent.sockets)
  assert.equal((await vic.ask('POST', await make(vic, await app.team(vic), 1))).status, 200)
})
