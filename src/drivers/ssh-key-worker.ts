// Decrypts a private key in a worker thread, because deriving the decryption key from a passphrase can take seconds of
// processor time. The main thread ends this thread after one key, or at a deadline.
import { createPrivateKey } from 'node:crypto'
import { parentPort, workerData } from 'node:worker_threads'
import ssh2 from 'ssh2'

export interface SshKeyTask {
  readonly privateKey: string
  readonly passphrase: string
}

/** The key without encryption, in a form that the SSH library reads. Null if the key cannot be decrypted or read. */
export type SshKeyReply = string | null

function readKey({ privateKey, passphrase }: SshKeyTask): SshKeyReply {
  const parsed = ssh2.utils.parseKey(privateKey, passphrase)
  if (parsed instanceof Error || Array.isArray(parsed)) return null
  const pem = parsed.getPrivatePEM()
  // The library would write an Ed25519 key as PKCS #8, which it cannot read itself.
  return parsed.type === 'ssh-ed25519' ? openSshKey(pem, parsed.getPublicSSH()) : pem
}

/** Returns an Ed25519 key in the format of OpenSSH (PROTOCOL.key), without encryption. */
function openSshKey(pem: string, publicKey: Buffer): string {
  const { d = '', x = '' } = createPrivateKey(pem).export({ format: 'jwk' })
  const [secret, point] = [Buffer.from(d, 'base64url'), Buffer.from(x, 'base64url')]
  const check = Buffer.alloc(8)
  const body = [check, field('ssh-ed25519'), field(point), field(Buffer.concat([secret, point])), field('')]
  const length = Buffer.concat(body).length
  const padding = Buffer.from(Array.from({ length: (8 - (length % 8)) % 8 }, (_, n) => n + 1))
  const count = Buffer.from([0, 0, 0, 1])
  const head = [Buffer.from('openssh-key-v1\0'), field('none'), field('none'), field(''), count, field(publicKey)]
  const all = Buffer.concat([...head, field(Buffer.concat([...body, padding]))]).toString('base64')
  const lines = all.match(/.{1,70}/g) ?? []
  return ['-----BEGIN OPENSSH PRIVATE KEY-----', ...lines, '-----END OPENSSH PRIVATE KEY-----', ''].join('\n')
}

function field(value: string | Buffer): Buffer {
  const bytes = Buffer.from(value)
  const length = Buffer.alloc(4)
  length.writeUInt32BE(bytes.length)
  return Buffer.concat([length, bytes])
}

function isTask(data: unknown): data is SshKeyTask {
  return typeof data === 'object' && data !== null && 'privateKey' in data && 'passphrase' in data
}

parentPort?.postMessage(isTask(workerData) ? readKey(workerData) : null)
