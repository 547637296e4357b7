// The callback is the URL to which a provider sends people back. It signs them in, asks for a code of the second
// factor, or connects the provider to the account of the session. The answer is always a redirect. If refused, it opens
// a page of the console, with a reason from a fixed list in the URL.
import type { z } from 'zod'
import { ProviderFailure, type ProviderReturn } from '../../contract/sign-in-routes.ts'
import type { Provider } from '../../config.ts'
import { AppError } from '../../errors.ts'
import { requestIdOf } from '../../auth/client-name-and-address.ts'
import { doneFrom, type Notices } from '../../auth/security-mail.ts'
import { asId, type SessionId } from '../../ids.ts'
import { sessionMadeBy } from '../cookies.ts'
import type { Library } from '../sign-in-library.ts'
import { requireMayEnter } from '../may-sign-in-without-password.ts'
import { personOf } from '../signed-in-person.ts'
import type { Trail } from '../audit-account-events.ts'
import { factorOf } from '../consume-second-factor-code.ts'
import { accountFor, connect, methodOf, type AccountDeps, type Entered, type Known } from './find-or-create-account.ts'
import { problemOf, ProviderProblem, providerRefusal } from './provider-identity.ts'
import { isBack, type HeldTrip, type Providers } from './trips-to-providers.ts'

export interface CallbackDeps extends AccountDeps {
  readonly providers: Providers
  readonly library: Library
  readonly notices: Notices
  readonly trail: Pick<Trail, 'recordAction' | 'refusedTo'>
}

type Sent = z.infer<typeof ProviderReturn>

/** `id` is the provider in the path. */
export async function providerCallback(
  deps: CallbackDeps,
  request: Request,
  id: string,
  sent: Sent,
): Promise<Response> {
  const { trips } = deps.providers
  const trip = await trips.read(request)
  // Any page may link to the callback, which must not end a sign-in in progress.
  if (!isBack(trip, id, sent.state)) return failed('EXPIRED', { id, target: '/app/', connects: null })
  const response = await arrived(deps, request, trip, sent).catch((error: unknown) => {
    return failed(failureOf(error), { id, target: trip.target, connects: trip.connects })
  })
  response.headers.append('set-cookie', trips.clear)
  return response
}

/** Redirects to the page that shows the reason. */
export function failed(
  reason: ProviderFailure,
  { id, target, connects }: { readonly id: string; readonly target: string; readonly connects: string | null },
): Response {
  const search = new URLSearchParams({ failed: reason, provider: id })
  if (connects !== null) return redirect(`/app/settings/security?${search}`)
  if (target !== '/app/') search.set('next', target)
  return redirect(`/app/sign-in?${search}`)
}

export function failureOf(error: unknown): ProviderFailure {
  if (!(error instanceof AppError)) throw error
  if (error.code === 'RATE_LIMITED') return 'RATE_LIMITED'
  const reason = ProviderFailure.safeParse(error.extra['reason'])
  if (reason.success) return reason.data
  if (error.extra['reason'] === 'EMAIL_NOT_VERIFIED') return 'ACCOUNT_UNVERIFIED'
  throw error
}

async function arrived(deps: CallbackDeps, request: Request, trip: HeldTrip, sent: Sent): Promise<Response> {
  const provider = deps.providers.all.find(({ id }) => id === trip.provider)
  if (provider === undefined) throw providerRefusal('SWITCHED_OFF')
  if (sent.error === 'access_denied') throw providerRefusal('CANCELLED')
  const profile = await profileAt(deps, request, provider, { trip, sent })
  const known = { provider, profile }
  if (trip.connects !== null) return await connected(deps, request, asId<SessionId>(trip.connects), known)
  const entered = await accountFor(deps, request, known, trip)
  return await enter(deps, request, provider, { trip, entered })
}

/** Throws SIGN_IN_REFUSED for every failure. Logs the reason, without secrets. */
async function profileAt(
  { providers }: Pick<CallbackDeps, 'providers'>,
  request: Request,
  provider: Provider,
  { trip, sent }: { readonly trip: HeldTrip; readonly sent: Sent },
) {
  try {
    if (sent.code === undefined)
      throw new ProviderProblem(`no code: ${/^[\w.-]{1,60}$/.exec(sent.error ?? '')?.[0] ?? 'no error'}`)
    return await (await providers.flowOf(provider)).profile(trip, { code: sent.code, iss: sent.iss })
  } catch (error) {
    const detail = { provider: provider.id, reason: problemOf(error), requestId: requestIdOf(request) }
    providers.warn(detail, 'a sign-in at a provider failed')
    throw providerRefusal('FAILED', error)
  }
}

async function enter(
  deps: CallbackDeps,
  request: Request,
  provider: Provider,
  { trip, entered }: { readonly trip: HeldTrip; readonly entered: Entered },
): Promise<Response> {
  const { library, trail, notices } = deps
  const { accountId } = entered
  const remember = trip.remember
  if (entered.joined) {
    await notices.tell(accountId, { kind: 'provider connected', name: provider.name }, doneFrom(request))
  }
  try {
    await requireMayEnter(deps, accountId)
    if ((await factorOf(deps.store, accountId)) !== null) {
      const waiting = await library.awaitCode(request, accountId, { remember })
      return redirect(`/app/two-factor?${new URLSearchParams({ next: trip.target })}`, waiting)
    }
    const made = await library.signedIn(request, accountId, { anew: true, remember })
    if (!(await stillConnected(deps, entered, made))) throw providerRefusal('FAILED')
    trail.recordAction('signIn', accountId, request, { method: { from: null, to: provider.name } })
    return redirect(trip.target, made)
  } catch (error) {
    await trail.refusedTo('signIn', accountId, request, error)
    throw error
  }
}

/** If the provider was disconnected, for example by a new password, ends the new session and returns false. */
async function stillConnected({ store }: CallbackDeps, { methodId }: Entered, made: Response): Promise<boolean> {
  const token = sessionMadeBy(made)
  return await store.write(async (tx) => {
    // Write the row instead of reading it. Then PostgreSQL detects a conflicting transaction, and the retry sees its
    // change.
    const same = await tx
      .updateTable('sign_in_methods')
      .set((eb) => ({ updatedAt: eb.ref('updatedAt') }))
      .where('id', '=', methodId)
      .executeTakeFirst()
    if (same.numUpdatedRows > 0n) return true
    if (token !== null) await tx.deleteFrom('sessions').where('token', '=', token).execute()
    return false
  })
}

/** The browser must still have the session that asked for this. Otherwise the wrong account could get the provider. */
async function connected(deps: CallbackDeps, request: Request, sessionId: SessionId, known: Known): Promise<Response> {
  const person = await personOf(deps.store, await deps.library.identify(request))
  if (person === null || person.caller.sessionId !== sessionId) throw providerRefusal('SESSION_ENDED')
  const { accountId, name } = person.caller
  try {
    await deps.store.write(async (tx) => {
      const session = await tx.selectFrom('sessions').select('id').where('id', '=', sessionId).executeTakeFirst()
      if (session === undefined) throw providerRefusal('SESSION_ENDED')
      const taken = await methodOf(tx, known.provider, known.profile)
      if (taken !== undefined && taken.userId !== accountId) throw providerRefusal('TAKEN')
      if (taken === undefined) await connect(deps, tx, request, { id: accountId, name }, known)
    })
  } catch (error) {
    await deps.trail.refusedTo('connectProvider', accountId, request, error)
    throw error
  }
  await deps.notices.tell(accountId, { kind: 'provider connected', name: known.provider.name }, doneFrom(request))
  return redirect(`/app/settings/security?${new URLSearchParams({ connected: known.provider.id })}`)
}

/** Redirects, and sets the cookies of the answer `from`. */
function redirect(location: string, from?: Response): Response {
  const headers = new Headers({ location, 'referrer-policy': 'no-referrer' })
  for (const line of from?.headers.getSetCookie() ?? []) headers.append('set-cookie', line)
  return new Response(null, { status: 302, headers })
}
