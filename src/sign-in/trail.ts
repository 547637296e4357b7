// What becomes of an account under /auth, in the audit: rows of no team, without an address, a password, a code or a token.
// Where nobody knows the account no row is kept: it would tell nothing, and anybody could make as many as they like.
import { z } from 'zod'
import { clientOf } from '../auth/client.ts'
import type { Audit } from '../audit/audit.ts'
import type { Changes } from '../audit/changes.ts'
import type { AuditedCall } from '../audit/rows.ts'
import { AppError, STATUS } from '../errors.ts'
import { asId, type AccountId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import { accountBy } from './account-by.ts'
import { accountTarget } from '../auth/accounts.ts'
import type { Asking } from './library.ts'
import { isOfPerson, PATHS, RESET, SIGN_IN, VERIFY_EMAIL } from './paths.ts'
import { trailChanges } from './trail-changes.ts'

/** One request under /auth. */
interface Told {
  /** `POST /auth/sign-in/email` */
  readonly name: string
  readonly request: Pick<Request, 'headers'>
  /** Of the body, in lower case. */
  readonly email: string | undefined
  readonly asking: Asking
}

export interface Trail {
  /** Told by the library, which alone knows whose link it was; done() waits for it. */
  recordAction(action: string, accountId: AccountId, request?: Pick<Request, 'headers'>, more?: Changes): void
  /** What was done is in the audit when this is answered; that somebody signed in, within a second. */
  done(told: Told, response: Response): Promise<void>
  /** What was refused to an account in one way within a minute is one row that counts. */
  refused(told: Told, error: unknown): Promise<void>
}

interface Deps {
  readonly store: Pick<Store, 'db'>
  readonly audit: Pick<Audit, 'record' | 'folded' | 'flush'>
}

export function openTrail({ store, audit }: Deps): Trail {
  /** Told by the library, which does not wait; whoever answers does. */
  const telling = new Set<Promise<void>>()
  const tell = async (...[action, accountId, request, more]: Parameters<Trail['recordAction']>) => {
    const name = await nameOf(store, accountId)
    const target = accountTarget(accountId, name ?? '')
    const call = callOf(action, { accountId, name }, request)
    audit.record(call, { outcome: 'ANSWERED', target, changes: { ...trailChanges(action), ...more } })
  }
  const recordAction: Trail['recordAction'] = (...what) => {
    const told = tell(...what).finally(() => telling.delete(told))
    telling.add(told)
  }
  return {
    recordAction,
    async done(told, response) {
      const action = actionOf(told)
      const isByLink = told.name === RESET || told.name === VERIFY_EMAIL
      const by = action === undefined ? null : await whoDid(store, told, response)
      if (action !== undefined && by !== null) recordAction(action, by, told.request)
      await Promise.all(telling)
      // Where nobody did anything nothing is written: signing out is counted by nobody.
      if (isByLink || (by !== null && action !== 'signIn')) await audit.flush()
    },
    async refused(told, error) {
      const action = actionOf(told)
      // What went wrong on our side is in the log.
      if (action === undefined || !(error instanceof AppError) || error.code === 'INTERNAL') return
      const { signedIn, waiting } = told.asking
      const by = told.name === SIGN_IN ? await accountBy(store, told.email) : (signedIn ?? waiting)
      // Asked for in either case: how long it takes says nothing of whether there is such an account.
      const name = await nameOf(store, by)
      if (by === null) return
      const outcome = STATUS[error.code] >= 500 ? 'FAILED' : 'DENIED'
      const call = callOf(action, { accountId: by, name }, told.request)
      audit.folded(call, { outcome, code: error.code, error: error.message })
    },
  }
}

/** Null where a code is still waited for, and for the account that who signs up with a taken address seems to get. */
async function whoDid(store: Pick<Store, 'db'>, told: Told, response: Response): Promise<AccountId | null> {
  if (isOfPerson(told.name) && told.asking.signedIn !== null) return told.asking.signedIn
  const by = await userIn(response)
  if (isOfPerson(told.name)) return by
  return by !== null && by === (await accountBy(store, told.email)) ? by : null
}

/** What a person who is signed in sends a code for is to switch their second factor on, or to confirm it. */
function actionOf({ name, asking }: Told): string | undefined {
  const path = PATHS.get(name)
  return path?.asksCode === true && asking.signedIn !== null ? 'confirmSecondFactor' : path?.action
}

const Answered = z.object({ user: z.object({ id: z.string() }) })

async function userIn(response: Response): Promise<AccountId | null> {
  const read = Answered.safeParse(await response.clone().json())
  return read.success ? asId<AccountId>(read.data.user.id) : null
}

const NOBODY = asId<AccountId>('nobody')

/** Undefined for an account that is gone, and where the store does not answer: that it did something is told all the same. */
async function nameOf(store: Pick<Store, 'db'>, id: AccountId | null): Promise<string | undefined> {
  try {
    const row = await store.db
      .selectFrom('accounts')
      .select('name')
      .where('id', '=', id ?? NOBODY)
      .executeTakeFirst()
    return row?.name
  } catch {
    return undefined
  }
}

function callOf(
  action: string,
  who: Pick<AuditedCall['caller'], 'accountId' | 'name'>,
  request?: Pick<Request, 'headers'>,
): AuditedCall {
  return { action, caller: { kind: 'session', ...who }, client: clientOf(request?.headers.get('user-agent')) }
}
