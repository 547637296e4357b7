// Every call with an OAuth token needs its grant, so this reads one cached row and waits for no write.
import type { GrantId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import type { ConnectorGrantTable } from '../store/tables.ts'
import type { GrantCaller } from './caller.ts'
import { lastUses } from './note-last-use.ts'
import { restrictionsOf } from './read-restrictions.ts'

export interface GrantFinder {
  /** Returns null if the grant does not exist, has ended or has expired. */
  find(id: GrantId, at: number): Promise<GrantCaller | null>
}

export function openGrants({ store }: { readonly store: Store }): GrantFinder {
  const noteUse = lastUses<GrantId>(store, (db, { id, time, before }) =>
    db
      .updateTable('connector_grants')
      .set({ last_used_at: time })
      .where('id', '=', id)
      .where((eb) => eb.or([eb('last_used_at', 'is', null), eb('last_used_at', '<=', before)]))
      .execute(),
  )
  return {
    async find(id, at) {
      const found = await store.recall(`grant ${id}`, () => load(store, id))
      if (found === null || found.expiresAt <= at) return null
      noteUse(id, at)
      return found.caller
    },
  }
}

async function load(store: Store, id: GrantId) {
  const row = await store.db
    .selectFrom('connector_grants')
    .innerJoin('accounts', 'accounts.id', 'connector_grants.account_id')
    .selectAll('connector_grants')
    .select('accounts.name as accountName')
    .where('connector_grants.id', '=', id)
    .where('revoked_at', 'is', null)
    .executeTakeFirst()
  if (row === undefined) return null
  const expiresAt = row.expires_at === null ? Infinity : Date.parse(row.expires_at)
  return { caller: callerOf(row, row.accountName), expiresAt }
}

function callerOf(row: ConnectorGrantTable, accountName: string): GrantCaller {
  const { id: grantId, client_id: clientId, client_name: clientName } = row
  return { kind: 'grant', name: accountName, grantId, clientId, clientName, ...restrictionsOf(row) }
}
