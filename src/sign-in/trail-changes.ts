// Pure: what each act of an account under /auth changes of it, as the audit tells it. Of nothing secret is the value said.
import { changesOf, NOT_SET, SET, type Changes } from '../audit/changes.ts'

const replaced = { from: SET, to: SET }

/** By the action; what is not here changes sessions alone. */
const CHANGES: Readonly<Record<string, Changes>> = {
  signUp: { password: { from: NOT_SET, to: SET } },
  verifyEmail: { emailVerified: { from: false, to: true } },
  changePassword: { password: replaced },
  // An account that was made by another service's sign-in had none.
  resetPassword: { password: { from: null, to: SET } },
  beginSecondFactor: { secondFactor: { from: null, to: 'waits for a code' }, backupCodes: { from: null, to: SET } },
  // A code that is sent once more finds it on already.
  confirmSecondFactor: { secondFactor: { from: null, to: 'on' } },
  renewBackupCodes: { backupCodes: replaced },
  endSecondFactor: { secondFactor: { from: 'on', to: 'off' } },
}

/** What a reset ended beside the password. */
export function resetChanges(ended: {
  readonly sessions: number
  readonly keys: readonly { readonly name: string }[]
  readonly secondFactor: boolean
}): Changes {
  const before = { sessions: ended.sessions, keys: ended.keys.map((key) => key.name), secondFactor: 'on' }
  const after = { sessions: 0, keys: [], secondFactor: ended.secondFactor ? 'off' : 'on' }
  return changesOf(before, after)
}

export function trailChanges(action: string): Changes {
  return CHANGES[action] ?? {}
}
