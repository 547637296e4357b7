// A route without a scope accepts only sessions. No list names these routes, so this test adds a route and calls it.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { SCOPES, startApp } from '../support/app.ts'

const ADDED = {
  method: 'GET',
  path: '/added',
  summary: 'Added by a test.',
  answer: z.object({ seen: z.string() }),
  errors: [],
} as const

test('a route added without a scope refuses API keys, whatever their scopes', async () => {
  const called: string[] = []
  await using app = await startApp({
    more: {
      routes: { added: ADDED, addedWithScope: { ...ADDED, path: '/added-with-scope', scope: 'profile' } },
      operations: {
        added: async (at) => ({ seen: (called.push(at.call.caller.kind), at.call.caller.kind), undeclared: 'secret' }),
        addedWithScope: async (at) => ({ seen: at.call.caller.kind }),
      },
    },
  })
  const ada = await app.person()
  const key = await app.key(ada, { scopes: SCOPES })

  const refused = await app.ask('GET', '/added', { token: key })
  assert.equal(refused.status, 403)
  assert.deepEqual(refused.json, { error: 'API keys cannot be used for this endpoint', code: 'SCOPE_REQUIRED' })
  assert.deepEqual(called, [])
  assert.equal((await app.ask('GET', '/added')).status, 401)

  const answered = await app.ask('GET', '/added', { token: ada.jwt })
  assert.deepEqual([answered.status, answered.json], [200, { seen: 'session' }], 'undeclared fields are not sent')
  assert.deepEqual((await app.ask('GET', '/added-with-scope', { token: key })).json, { seen: 'key' })
})
