// Decrypts SSH private keys in worker threads, because the file of a key decides how long this takes. Only a few
// threads run at the same time, and each has a deadline.
import { Worker } from 'node:worker_threads'
import { openFairLimit } from '../concurrency-limit.ts'
import { AppError } from '../errors.ts'
import type { Owner } from './driver.ts'
import type { SshKeyReply, SshKeyTask } from './ssh-key-worker.ts'

export const UNREADABLE_KEY = 'The SSH private key cannot be read: check the key and its passphrase.'

/** A round takes up to 20 ms. ssh-keygen uses 16 or 24 rounds by default, and careful people 100. */
const ROUNDS_MAX = 128
const MAGIC = 'openssh-key-v1\0'
const KEY_MS = 8_000
/** How many threads run at the same time for one owner and for all owners, and how many keys may wait. */
const THREADS = { each: 1, all: 2, waiting: 200 }
const threads = openFairLimit(THREADS)
const RETRY_AFTER_SECONDS = 10

/**
 * Returns the key without encryption, or null if the key cannot be decrypted or read. Owners take turns. Throws
 * DATASOURCE_UNAVAILABLE if the key has more rounds than ROUNDS_MAX. Throws
 * OVERLOADED if too many keys of the owner wait, or if no thread was free before `signal` aborted.
 */
export async function decryptedKey(task: SshKeyTask, owner: Owner, signal: AbortSignal): Promise<SshKeyReply> {
  const rounds = roundsOf(task.privateKey)
  if (rounds > ROUNDS_MAX) {
    const why = `The SSH private key takes too long to decrypt: its passphrase has ${rounds} rounds, and ${ROUNDS_MAX} are allowed.`
    throw new AppError('DATASOURCE_UNAVAILABLE', `${why} Change them with ssh-keygen -p -a 24 -f FILE.`)
  }
  using thread = await threads.take(owner.account, { signal, lane: owner.team }).catch(() => null)
  if (thread !== null) return await inThread(task)
  throw new AppError('OVERLOADED', `Other SSH keys are being decrypted. Try again in ${RETRY_AFTER_SECONDS} s.`, {
    extra: { retryAfter: RETRY_AFTER_SECONDS },
  })
}

/** How often the passphrase is hashed, which a key in OpenSSH's own format says unencrypted. 0 for other keys. */
function roundsOf(privateKey: string): number {
  const text = /-----BEGIN OPENSSH PRIVATE KEY-----([\s\S]*)/.exec(privateKey)?.[1]
  if (text === undefined) return 0
  const bytes = Buffer.from(text, 'base64')
  // See OpenSSH's PROTOCOL.key: a magic text, the cipher, the name of the hash function, and its salt and rounds.
  let at = MAGIC.length
  const length = (): number => (at + 4 <= bytes.length ? bytes.readUInt32BE(at) : 0)
  for (let skipped = 0; skipped < 2; skipped++) at += 4 + length()
  at += 4
  at += 4 + length()
  return length()
}

async function inThread(task: SshKeyTask): Promise<SshKeyReply> {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  const worker = new Worker(new URL(`./ssh-key-worker.${extension}`, import.meta.url), { workerData: task })
  worker.unref()
  const { promise, resolve } = Promise.withResolvers<SshKeyReply>()
  const timer = setTimeout(resolve, KEY_MS, null)
  worker.once('message', resolve)
  worker.once('error', () => resolve(null))
  try {
    return await promise
  } finally {
    clearTimeout(timer)
    await worker.terminate()
  }
}
