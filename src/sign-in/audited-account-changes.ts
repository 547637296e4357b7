// What the audit records as the change of each action under /auth. No value is a secret.
import { changesOf, NOT_SET, SET, type Changes } from '../audit/recorded-changes.ts'

const replaced = { from: SET, to: SET }

/** All other actions change nothing or only sessions, or their handlers record the change. */
const CHANGES: Readonly<Record<string, Changes>> = {
  signUp: { password: { from: NOT_SET, to: SET } },
  verifyEmail: { emailVerified: { from: false, to: true } },
  changePassword: { password: replaced },
  // An account from a provider had no password, so `from` is unknown.
  resetPassword: { password: { from: null, to: SET } },
  beginSecondFactor: { secondFactor: { from: null, to: 'waits for a code' }, backupCodes: { from: null, to: SET } },
  // The second factor may already be on, so `from` is unknown.
  confirmSecondFactor: { secondFactor: { from: null, to: 'on' } },
  renewBackupCodes: { backupCodes: replaced },
  endSecondFactor: { secondFactor: { from: 'on', to: 'off' } },
}

/** Returns what a reset changes besides the password. */
export function resetChanges(ended: {
  readonly sessions: number
  readonly keys: readonly { readonly name: string }[]
  readonly grants: readonly { readonly clientName: string }[]
  readonly passkeys: readonly { readonly name: string }[]
  readonly providers: readonly { readonly name: string }[]
  readonly secondFactor: boolean
}): Changes {
  const grants = ended.grants.map((grant) => grant.clientName)
  const keys = ended.keys.map((key) => key.name)
  const passkeys = ended.passkeys.map((passkey) => passkey.name)
  const providers = ended.providers.map((provider) => provider.name)
  const before = { sessions: ended.sessions, keys, grants, passkeys, providers, secondFactor: 'on' }
  const after = {
    sessions: 0,
    keys: [],
    grants: [],
    passkeys: [],
    providers: [],
    secondFactor: ended.secondFactor ? 'off' : 'on',
  }
  return changesOf(before, after)
}

export function trailChanges(action: string): Changes {
  return CHANGES[action] ?? {}
}
