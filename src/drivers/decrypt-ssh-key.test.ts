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

test('a key whose passphrase has too many rounds is refused before a thread starts', async () => {
  const { signal } = new AbortController()
  const withRounds = (rounds: number) => {
    const [head = '', ...lines] = privateKey.trim().split('\n')
    const end = lines.pop() ?? ''
    const bytes = Buffer.from(lines.join(''), 'base64')
    const salt = bytes.indexOf('bcrypt') + 'bcrypt'.length + 4
    bytes.writeUInt32BE(rounds, salt + 4 + bytes.readUInt32BE(salt))
    return [head, ...(bytes.toString('base64').match(/.{1,70}/g) ?? []), end, ''].join('\n')
  }
  assert.equal(withRounds(1).replaceAll('\n', ''), privateKey.replaceAll('\n', ''))
  const refusal = { code: 'DATASOURCE_UNAVAILABLE', message: /has 2000000 rounds, and 128 are allowed/ }
  await assert.rejects(decryptedKey({ privateKey: withRounds(2_000_000), passphrase }, EVE, signal), refusal)
  assert.equal(await decryptedKey({ privateKey: withRounds(100), passphrase }, EVE, signal), null, 'another key')
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
