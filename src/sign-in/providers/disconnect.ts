// Disconnects a provider from an account. Also ends mailed links, and sign-ins that wait for a code, because they may
// have begun at this provider.
import type { Audit } from '../../audit/audit.ts'
import { changesOf } from '../../audit/recorded-changes.ts'
import { accountTarget } from '../../auth/own-account.ts'
import { doneFrom, type Notices } from '../../auth/security-mail.ts'
import { notFound } from '../../errors.ts'
import type { Store } from '../../store/open.ts'
import { callBy, type Person } from '../signed-in-person.ts'
import { requireAnotherWay } from '../ways-to-sign-in.ts'
import type { Providers } from './trips-to-providers.ts'

interface Deps {
  readonly store: Store
  readonly audit: Pick<Audit, 'change'>
  readonly providers: Pick<Providers, 'all'>
  readonly notices: Notices
}

/** Throws NOT_FOUND if the provider is not connected, and CONFLICT if no other way to sign in is left. */
export async function disconnectProvider(deps: Deps, request: Request, { caller }: Person, id: string): Promise<void> {
  const { accountId, name } = caller
  const called = deps.providers.all.find((provider) => provider.id === id)?.name ?? id
  await deps.store.write(async (tx) => {
    const removed = await tx
      .deleteFrom('sign_in_methods')
      .where('userId', '=', accountId)
      .where('providerId', '=', id)
      .returning('label')
      .executeTakeFirst()
    if (removed === undefined) throw notFound()
    await requireAnotherWay(tx, accountId, deps.providers)
    await tx.deleteFrom('verifications').where('value', '=', accountId).execute()
    const target = accountTarget(accountId, name)
    const changes = changesOf({ provider: called, login: removed.label }, {})
    await deps.audit.change(tx, callBy('disconnectProvider', caller, request), {}, { target, changes })
  })
  await deps.notices.tell(accountId, { kind: 'provider disconnected', name: called }, doneFrom(request))
}
