// Only a few threads decrypt keys at the same time, and one owner cannot take all turns.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import ssh2 from 'ssh2'
import { decryptedKey } from './decrypt-ssh-key.ts'

const passphrase = 'a passphrase'
const { private: privateKey } = ssh2.utils.generateKeyPairSync('ed25519', {
  passphrase,
  cipher: 'aes256-ctr',
  rounds: 1,
})

const EVE = { account: 'eve', team: '' }

test('an owner with many encrypted keys delays no other owner, and most of these keys are refused', async () => {
  const stop = new AbortController()
  let [refused, read] = [0, 0]
  const eve = Array.from({ length: 100 }, () =>
    decryptedKey({ privateKey, passphrase }, EVE, stop.signal).then(
      () => read++,
      () => refused++,
    ),
  )
  const key = await decryptedKey({ privateKey, passphrase }, { account: 'vic', team: '' }, new AbortController().signal)
  assert.match(key ?? '', /^-----BEGIN OPENSSH PRIVATE KEY-----/)
  assert.equal(refused, 60)
  assert.ok(read < 40, 'eve’s keys are read one after the other')
  stop.abort()
  await Promise.all(eve)
})

test('an encrypted key waits no longer than its signal, and is then refused with a time to retry', async () => {
  const first = decryptedKey({ privateKey, passphrase }, EVE, new AbortController().signal)
  const stop = new AbortController()
  const second = decryptedKey({ privateKey, passphrase }, EVE, stop.signal)
  stop.abort()
  await assert.rejects(second, { code: 'OVERLOADED', extra: { retryAfter: 10 } })
  assert.notEqual(await first, null)
  assert.equal(await decryptedKey({ privateKey, passphrase: 'wrong' }, EVE, new AbortController().signal), null)
})
