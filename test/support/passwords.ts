// Fast password hashes for tests that are not about passwords. The service’s own scrypt takes 80 ms of CPU time for
// each password. Another process of the service cannot verify these hashes, so do not use them in a store that it
// reads.
import { createHash, randomBytes } from 'node:crypto'
import { verifyPassword } from 'better-auth/crypto'
import type { PasswordHash } from '../../src/sign-in/better-auth.ts'

const PREFIX = 'test:'

export const CHEAP_PASSWORDS: PasswordHash = {
  hash: async (password) => hashed(randomBytes(8).toString('hex'), password),
  /** An earlier version of the service, or another process, may have written real hashes into the store. */
  async verify({ hash, password }) {
    if (!hash.startsWith(PREFIX)) return await verifyPassword({ hash, password })
    return hash === hashed(hash.slice(PREFIX.length).split(':', 1)[0] ?? '', password)
  },
}

function hashed(salt: string, password: string): string {
  return `${PREFIX}${salt}:${createHash('sha256').update(`${salt} ${password}`).digest('hex')}`
}
