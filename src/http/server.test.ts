import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pino } from 'pino'
import { createServer } from './server.ts'

test('a connection on which nothing moves is ended, but none whose query may still be answered', async () => {
  const never = (): never => assert.fail('nobody asks')
  const app = createServer({
    routes: {},
    handlers: {},
    preconditions: {},
    authenticator: { authenticate: never },
    places: { team: never, datasource: never },
    witness: { answered: never, refused: never },
    signIn: { handle: never },
    ready: never,
    trustProxy: false,
    metrics: null,
    log: pino({ level: 'silent' }),
  })
  await app.ready()
  // The longest statement timeout of a team, and the waits for a connection before it (datasources/leases.ts).
  const longest = 60_000 + 5_000 + 12_000
  assert.ok(app.server.timeout > longest && app.server.timeout <= 2 * longest, `${app.server.timeout} ms`)
  await app.close()
})
