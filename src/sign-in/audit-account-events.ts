// Records account events under /auth in the audit. The rows contain no team, e-mail address, password, token or code. A
// request without a known account is not recorded, because anybody could send any number of such requests.
import { z } from 'zod'
import { clientOf, requestIdOf } from '../auth/client-name-and-address.ts'
import type { Audit } from '../audit/audit.ts'
import type { Changes } from '../audit/recorded-changes.ts'
import type { AuditedCall } from '../audit/make-rows.ts'
import { AppError, STATUS } from '../errors.ts'
import { asId, type AccountId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import { accountBy } from './account-by-address.ts'
import { accountTarget } from '../auth/own-account.ts'
import type { Identity } from './sign-in-library.ts'
import { isOfPerson, PATHS, RESET, SIGN_IN, VERIFY_EMAIL } from './allowed-paths.ts'
import { trailChanges } from './audited-account-changes.ts'

interface TrailEvent {
  /** The method and path, for example `POST /auth/sign-in/email`. */
  readonly name: string
  readonly request: Pick<Request, 'headers'>
  /** The e-mail address in the body, in lower case. */
  readonly email: string | undefined
  readonly identity: Identity
}

export interface Trail {
  /** Records an action. Handlers call this if done() cannot know the account or the change. */
  recordAction(action: string, accountId: AccountId, request?: Pick<Request, 'headers'>, more?: Changes): void
  /** Resolves when the row is in the audit, except for a sign-in, whose row is written within a second. */
  done(event: TrailEvent, response: Response): Promise<void>
  /** Records a refusal. One row counts the refusals of one kind to an account within a minute. */
  refused(event: TrailEvent, error: unknown): Promise<void>
  refusedTo(action: string, accountId: AccountId, request: Pick<Request, 'headers'>, error: unknown): Promise<void>
}

interface Deps {
  readonly store: Pick<Store, 'db'>
  readonly audit: Pick<Audit, 'record' | 'folded' | 'flush'>
}

export function openTrail({ store, audit }: Deps): Trail {
  /** Rows that are being recorded. done() waits for them. */
  const pending = new Set<Promise<void>>()
  const tell = async (...[action, accountId, request, more]: Parameters<Trail['recordAction']>) => {
    const name = await nameOf(store, accountId)
    const target = accountTarget(accountId, name ?? '')
    const call = callOf(action, { accountId, name }, request)
    audit.record(call, { outcome: 'ANSWERED', target, changes: { ...trailChanges(action), ...more } })
  }
  const recordAction: Trail['recordAction'] = (...what) => {
    const task = tell(...what).finally(() => pending.delete(task))
    pending.add(task)
  }
  const fold = (action: string, who: Who, request: Pick<Request, 'headers'>, error: AppError) => {
    const outcome = STATUS[error.code] >= 500 ? 'FAILED' : 'DENIED'
    audit.folded(callOf(action, who, request), { outcome, code: error.code, error: error.message })
  }
  return {
    recordAction,
    async done(event, response) {
      const action = PATHS.get(event.name)?.ownRow === true ? undefined : actionOf(event)
      const isByLink = event.name === RESET || event.name === VERIFY_EMAIL
      const by = action === undefined ? null : await whoDid(store, event, response)
      if (action !== undefined && by !== null) recordAction(action, by, event.request)
      await Promise.all(pending)
      // Flush only for an account that acted or a link that was used. Otherwise anybody could force flushes by signing
      // out without a session.
      if (isByLink || (by !== null && action !== 'signIn')) await audit.flush()
    },
    async refused(event, error) {
      const action = actionOf(event)
      if (action === undefined || !(error instanceof AppError) || error.code === 'INTERNAL') return
      const { signedIn, waiting } = event.identity
      const by = event.name === SIGN_IN ? await accountBy(store, event.email) : (signedIn ?? waiting)
      // Look up the name even without an account, so that the duration does not reveal whether there is one.
      const name = await nameOf(store, by)
      if (by === null) return
      fold(action, { accountId: by, name }, event.request, error)
    },
    async refusedTo(action, accountId, request, error) {
      if (!(error instanceof AppError) || error.code === 'INTERNAL') return
      fold(action, { accountId, name: await nameOf(store, accountId) }, request, error)
    },
  }
}

/**
 * Null if nobody is signed in or a code is needed. Compares the id in the answer with the store, because the answer to
 * a sign-up with a taken address contains an invented id.
 */
async function whoDid(store: Pick<Store, 'db'>, event: TrailEvent, response: Response): Promise<AccountId | null> {
  if (isOfPerson(event.name) && event.identity.signedIn !== null) return event.identity.signedIn
  const by = await userIn(response)
  if (isOfPerson(event.name)) return by
  return by !== null && by === (await accountBy(store, event.email)) ? by : null
}

/** A code from a person who is signed in confirms the second factor. */
function actionOf({ name, identity }: TrailEvent): string | undefined {
  const path = PATHS.get(name)
  return path?.asksCode === true && identity.signedIn !== null ? 'confirmSecondFactor' : path?.action
}

const Answered = z.object({ user: z.object({ id: z.string() }) })

async function userIn(response: Response): Promise<AccountId | null> {
  const read = Answered.safeParse(await response.clone().json())
  return read.success ? asId<AccountId>(read.data.user.id) : null
}

type Who = Pick<AuditedCall['caller'], 'accountId' | 'name'>

const NOBODY = asId<AccountId>('nobody')

/** Returns undefined if the account was deleted or the store fails, so that the event is recorded without a name. */
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

function callOf(action: string, who: Who, request?: Pick<Request, 'headers'>): AuditedCall {
  const client = clientOf(request?.headers.get('user-agent'))
  const requestId = request === undefined ? undefined : requestIdOf(request)
  return { action, caller: { kind: 'session', ...who }, client, requestId }
}
