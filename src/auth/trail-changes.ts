// Pure: what each act of an account under /auth changes of it, as the audit tells it. Of nothing secret is the value said.
import { NOT_SET, SET, type Changes } from '../audit/changes.ts'

const replaced = { from: SET, to: SET }

/** By the action; what is not here changes sessions alone. */
const CHANGES: Readonly<Record<string, Changes>> = {
  signUp: { password: { from: NOT_SET, to: SET } },
  verifyEmail: { emailVerified: { from: false, to: true } },
  changePassword: { password: replaced },
  // Who signed in elsewhere until then had none.
  resetPassword: { password: { from: null, to: SET } },
  beginSecondFactor: { secondFactor: { from: null, to: 'waits for a code' }, backupCodes: { from: null, to: SET } },
  // A code that is sent once more finds it on already.
  confirmSecondFactor: { secondFactor: { from: null, to: 'on' } },
  renewBackupCodes: { backupCodes: replaced },
  endSecondFactor: { secondFactor: { from: 'on', to: 'off' } },
}

export function trailChanges(action: string): Changes {
  return CHANGES[action] ?? {}
}
