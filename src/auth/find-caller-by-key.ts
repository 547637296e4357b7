// Finds the caller of an API key. Every call needs this, so it reads one cached row and waits for no write.
import type { ApiKeyId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import type { ApiKeyTable } from '../store/tables.ts'
import type { KeyCaller } from './caller.ts'
import { hashOf, isKeyText } from './key-format.ts'
import { lastUses } from './note-last-use.ts'
import { restrictionsOf } from './read-restrictions.ts'

export interface KeyFinder {
  /** Returns null if the key does not exist, was revoked or has expired. `userAgent` is stored as the last client. */
  find(token: string, userAgent?: string): Promise<KeyCaller | null>
  cacheKey(token: string): string
  /** Like find(), but without waiting. Returns null if the row is not cached. */
  known(cacheKey: string, userAgent?: string): KeyCaller | null
  again(id: ApiKeyId): Promise<KeyCaller | null>
}

interface Found {
  readonly caller: KeyCaller
  readonly expiresAt: number
}

export function keyFinder(deps: { readonly store: Store; readonly now: () => number }): KeyFinder {
  const { store, now } = deps
  const noteUse = lastUses<ApiKeyId>(store, (db, { id, time, before, client }) =>
    db
      .updateTable('api_keys')
      .set({ last_used_at: time, last_client: client })
      .where('id', '=', id)
      .where((eb) => eb.or([eb('last_used_at', 'is', null), eb('last_used_at', '<=', before)]))
      .execute(),
  )
  const used = (found: Found | null, userAgent: string | undefined): KeyCaller | null => {
    const at = now()
    if (found === null || found.expiresAt <= at) return null
    noteUse(found.caller.keyId, at, userAgent)
    return found.caller
  }
  return {
    async find(token, userAgent) {
      if (!isKeyText(token)) return null
      const hash = hashOf(token)
      return used(await store.recall(nameOf(hash), () => load(store, 'hash', hash)), userAgent)
    },
    cacheKey: (token) => nameOf(hashOf(token)),
    known: (cacheKey, userAgent) => used(store.known<Found | null>(cacheKey) ?? null, userAgent),
    async again(id) {
      const found = await store.recall(`key id ${id}`, () => load(store, 'id', id))
      return found === null || found.expiresAt <= now() ? null : found.caller
    },
  }
}

function nameOf(hash: string): string {
  return `key ${hash}`
}

async function load(store: Store, by: 'hash' | 'id', value: string): Promise<Found | null> {
  const row = await store.db
    .selectFrom('api_keys')
    .innerJoin('accounts', 'accounts.id', 'api_keys.account_id')
    .selectAll('api_keys')
    .select('accounts.name as accountName')
    .where(`api_keys.${by}`, '=', value)
    .executeTakeFirst()
  if (row === undefined || row.revoked_at !== null) return null
  return {
    caller: callerOf(row, row.accountName),
    expiresAt: row.expires_at === null ? Infinity : Date.parse(row.expires_at),
  }
}

/** Does not check whether the key was revoked or has expired. */
export function callerOf(row: ApiKeyTable, accountName: string): KeyCaller {
  return { kind: 'key', name: accountName, keyId: row.id, keyName: row.name, ...restrictionsOf(row) }
}
