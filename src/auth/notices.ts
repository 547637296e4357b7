// Tells the owner of an account by mail what was done to it that a thief would do: a new key, a new password, another second
// factor. Nobody waits for it, and an address that nobody has verified is told nothing: it may be a stranger's.
import type { AccountId } from '../ids.ts'
import { securityLetter, type SecurityChange } from '../mail/letters.ts'
import type { Mail } from '../mail/mail.ts'
import type { Store } from '../store/open.ts'
import type { Attempts } from './attempts.ts'
import { addressOf } from './client.ts'

/** Letters of this kind to one account: a session can make keys without end. */
const LETTERS = { limit: 30, windowMs: 3_600_000 }

/** From where it was done. */
export interface DoneFrom {
  readonly client?: string | undefined
  readonly address?: string | undefined
}

export interface Notices {
  /** Never throws; answered when the letter is on its way. */
  tell(accountId: AccountId, change: SecurityChange, from: DoneFrom): Promise<void>
}

interface Deps {
  readonly store: Pick<Store, 'db'>
  readonly mail: Mail
  readonly tries: Pick<Attempts, 'allows'>
  /** Where people reach the service, for the text. */
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
        if (account === undefined || (account.emailVerified !== true && account.emailVerified !== 1)) return
        if (!(await tries.allows([{ key: `notices ${accountId}`, ...LETTERS }]))) return
        const at = new Date(now())
        mail.send(securityLetter({ to: account.email, origin: origin(), change, at, client, address }))
      } catch (err) {
        // What was done is done and in the audit: its answer must not fail for the letter.
        log?.error({ err, accountId, notice: change.kind }, 'an account could not be told of a change')
      }
    },
  }
}

/** From where a request under /auth comes. */
export function doneFrom(request: Pick<Request, 'headers'>): DoneFrom {
  return { client: request.headers.get('user-agent') ?? undefined, address: addressOf(request) }
}
