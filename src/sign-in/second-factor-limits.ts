// Rate limits for codes of a second factor. Sign-ins, signed-in people and reset links have separate counts, so that a
// stranger who uses up one count cannot lock out the owner.
import type { AccountId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import type { Attempts } from '../auth/attempt-counter.ts'
import type { KnownDevices } from './known-browser-cookie.ts'
import { countCode, forgetCodes } from './second-factor-lock.ts'
import { sessionOf } from './sign-in-limits.ts'
import { factorOf } from './consume-second-factor-code.ts'

const BY_DEVICE = { limit: 10, windowMs: 900_000 }
const BY_SESSION = { limit: 10, windowMs: 300_000 }
/** For one account in all its sessions. With a stolen session, somebody can try only 50 of a million codes a day. */
const SIGNED_IN = { limit: 50, windowMs: 86_400_000 }
const BY_LINK = { limit: 10, windowMs: 900_000 }

/** Resets the count after a correct code. */
type Settle = () => Promise<void>

export interface CodeTries {
  /** Counts a code of a sign-in. A device that has passed this second factor before has its own limit. */
  waiting(request: Request, accountId: AccountId): Promise<Settle>
  signedIn(request: Request, accountId: AccountId): Promise<Settle>
  byLink(accountId: AccountId): Promise<Settle>
}

/** All methods throw RATE_LIMITED after too many codes. */
export function openCodeTries(deps: {
  readonly store: Store
  readonly tries: Attempts
  readonly devices: KnownDevices
  readonly sessionCookie: string
  readonly now: () => number
}): CodeTries {
  const { store, tries, devices } = deps
  return {
    async waiting(request, accountId) {
      const factor = await factorOf(store, accountId)
      const device = factor === null ? null : devices.passed(request, factor.id)
      if (device !== null) {
        const key = `code device: ${device} ${accountId}`
        await tries.spend([{ key, ...BY_DEVICE }])
        return () => tries.clear([key])
      }
      await countCode(store, accountId, deps.now())
      return () => forgetCodes(store, accountId)
    },
    async signedIn(request, accountId) {
      const session = `code session: ${sessionOf(request, deps.sessionCookie)}`
      const account = `code signed in: ${accountId}`
      await tries.spend([
        { key: session, ...BY_SESSION },
        { key: account, ...SIGNED_IN },
      ])
      return () => tries.clear([session, account])
    },
    async byLink(accountId) {
      const key = `code link: ${accountId}`
      await tries.spend([{ key, ...BY_LINK }])
      return () => tries.clear([key])
    },
  }
}
