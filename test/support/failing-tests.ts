// Tests that fail in every way in which a test can fail, for follow-tests.test.ts.
import assert from 'node:assert/strict'
import { executionAsyncResource } from 'node:async_hooks'
import { EventEmitter, once } from 'node:events'
import { stat } from 'node:fs'
import { createServer, get } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, afterEach, before, beforeEach, describe, it, test } from 'node:test'
import { setImmediate as turn, setTimeout as wait } from 'node:timers/promises'

const fail = (why: string) => assert.fail(why)
const failLater = async (why: string) => {
  await turn()
  fail(why)
}

test('reports whether an async hook sees promises', async (t) => {
  await turn()
  t.diagnostic(`an async hook sees promises: ${executionAsyncResource() instanceof Promise}`)
})

describe('a suite', () => {
  describe('in a suite', () => {
    it('fails after an await', () => failLater('after an await'))
    it('passes', () => turn())
    it('is skipped', { skip: true }, () => fail('not skipped'))
    it('is to do', { todo: true }, () => fail('not done'))
  })
  it('calls back with an error', (_, done) => void setImmediate(() => done(new Error('called back'))))
  it('never ends', { timeout: 50 }, async ({ signal }) => {
    await once(signal, 'abort')
  })
})
describe('an asynchronous suite', async () => {
  await turn()
  let prepared = false
  before(() => void (prepared = true))
  it('fails', () => failLater('in an asynchronous suite'))
  it('passes', () => assert.ok(prepared))
})
describe('a suite that fails', () => failLater('suite'))
for (const [name, hook] of Object.entries({ before, after, beforeEach, afterEach }))
  describe(`a suite whose hook ${name} fails`, () => {
    hook(() => failLater(`hook ${name}`))
    it('has a test', () => {})
  })

test('a test with tests', async (t) => {
  await turn()
  await t.test('fails', () => failLater('subtest'))
  await test('fails, and was not defined by its context', () => failLater('other subtest'))
  await Promise.all([t.test('passes', () => turn()), t.test('fails too', () => failLater('concurrent subtest'))])
})
test('a test whose own hook fails', (t) => t.after(() => failLater('own hook')))
test('a test that calls after() late', async () => {
  await turn()
  after(() => failLater('hook of after()'))
})

const strays: Record<string, (signal: AbortSignal) => unknown> = {
  'an unhandled rejection': () => void failLater('rejection'),
  'an error in a timer': () => setTimeout(() => fail('timer'), 1),
  'an error in an immediate': () => setImmediate(() => fail('immediate')),
  'an error in a tick': () => process.nextTick(() => fail('tick')),
  'an error in a callback': () => stat('.', () => fail('callback')),
  'an error event': () => setImmediate(() => new EventEmitter().emit('error', new Error('event'))),
  'an error in a server': async (signal) => {
    const server = createServer(() => fail('server')).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const request = get({ host: '127.0.0.1', port: (server.address() as AddressInfo).port }).on('error', () => {})
    await once(signal, 'abort')
    request.destroy()
    server.close()
  },
}
for (const [title, start] of Object.entries(strays))
  test(title, async ({ signal }) => {
    await turn()
    start(signal)
    // No promise of the test rejects. The runner ends the test, because the error belongs to it.
    await once(signal, 'abort')
  })
test('a test that fails after its end', () => void setTimeout(() => fail('after the end'), 1))
test('a test that is running then', () => wait(50))
test('a test that rejects after its end', () => void wait(1).then(() => fail('rejected after the end')))
test('a test that is running then too', () => wait(50))
after(() => failLater('hook of the file'))
