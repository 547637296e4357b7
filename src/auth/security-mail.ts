// Sends a mail to the owner of an account when its security changes: a new key, a new password, another second factor.
// Unverified addresses get no mail, because they may belong to a stranger.
import type { AccountId } from '../ids.ts'
import { securityLetter, type SecurityChange } from '../mail/mail-texts.ts'
import type { Mail } from '../mail/send-mail.ts'
import { isTrue } from '../store/better-auth-booleans.ts'
import type { Store } from '../store/open.ts'
import type { Attempts } from './attempt-counter.ts'
import { addressOf } from './client-name-and-address.ts'

/**
 * A stolen session must not flood the mailbox. Each kind of change is counted separately, so a mail about a new
 * password is sent even after many new keys.
 */
const NEW_KEYS = { limit: 30, windowMs: 3_600_000 }
const OTHERS = { limit: 10, windowMs: 3_600_000 }

export interface DoneFrom {
  readonly client?: string | undefined
  readonly address?: string | undefined
}

export interface Notices {
  /** Sends nothing if the address is not verified, or after too many mails of this kind. Never throws. */
  tell(accountId: AccountId, change: SecurityChange, from: DoneFrom): Promise<void>
}

interface Deps {
  readonly store: Pick<Store, 'db'>
  readonly mail: Mail
  readonly tries: Pick<Attempts, 'allows'>
  readonly origin: () => string
  readonly log?: { error(detail: object, message: string): void }
  readonly now?: () => number
}

export function openNotices({ store, mail, tries, origin, log, now = Date.now }: Deps): Notices {
  return {
    async tell(accountId, change, { client, address }) {
      if (!mail.isOn) return
      try {
        const account = await store.db
          .selectFrom('accounts')
          .select(['email', 'emailVerified'])
          .where('id', '=', accountId)
          .executeTakeFirst()
        if (account === undefined || !isTrue(account.emailVerified)) return
        const limit = change.kind === 'new key' ? NEW_KEYS : OTHERS
        if (!(await tries.allows([{ key: `notices: ${change.kind} ${accountId}`, ...limit }]))) return
        const at = new Date(now())
        const letter = securityLetter({ to: account.email, origin: origin(), change, at, client, address })
        mail.send(letter, `account ${accountId}`)
      } catch (err) {
        // The change is already stored, so the request must not fail.
        log?.error({ err, accountId, notice: change.kind }, 'notifying an account of a change failed')
      }
    },
  }
}

export function doneFrom(request: Pick<Request, 'headers'>): DoneFrom {
  return { client: request.headers.get('user-agent') ?? undefined, address: addressOf(request) }
}
