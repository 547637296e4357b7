import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeCertificates } from './certificates.ts'
import { startMongod, startNewest } from './mongodb.ts'
import { engineOrSkip } from './no-such-engine.ts'

test("a test's mongod has logins and TLS, and ends with its `await using` scope", async (t) => {
  await using certificates = await makeCertificates()
  const at = (name: string): string => `${certificates.folder}/${name}`
  const tls = { certFile: at('server.crt'), keyFile: at('server.key'), caFile: at('ca.crt') }
  const mongo = await engineOrSkip(t, () => startMongod({ auth: true, tls }))
  if (mongo === null) return
  await mongo.createUser('shop', 'ann', 'pw', ['read'])
  assert.equal((await mongo.client.db('admin').command({ ping: 1 }))['ok'], 1)
  await mongo[Symbol.asyncDispose]()
  await assert.rejects(mongo.client.db('admin').command({ ping: 1 }))
})

test("a test's replica set of three members starts", async (t) => {
  const mongo = await engineOrSkip(t, () => startMongod({ members: 3, auth: true }))
  if (mongo === null) return
  await using _ = mongo
  assert.equal(mongo.ports.length, 3)
  assert.equal(await mongo.working(), 0)
})

test('the newest MongoDB engine starts for tests', async (t) => {
  const mongo = await engineOrSkip(t, startNewest)
  if (mongo === null) return
  await using _ = mongo
  assert.ok((mongo.version[0] ?? 0) >= 7)
})
