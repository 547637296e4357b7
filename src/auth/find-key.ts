// Finds the caller of an API key: checks the format, then the hash, then the state. This is the hot path of every call
// with a key. It reads one cached row and waits for no write.
import { z } from 'zod'
import { asId, type ApiKeyId, type DatasourceId, type TeamId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import type { ApiKeyTable } from '../store/tables.ts'
import type { KeyCaller } from './caller.ts'
import { hashOf, isKeyText } from './key-text.ts'
import { lastUses } from './last-use.ts'

const Scopes = z.array(z.enum(['profile', 'data:schema', 'data:read']))
const Ids = z.array(z.string())

export interface KeyFinder {
  /** Returns null if the key does not exist, is revoked or has expired. `userAgent`: the client's name for itself. */
  find(token: string, userAgent?: string): Promise<KeyCaller | null>
  /** The name under which the store caches a key. */
  cacheKey(token: string): string
  /** Like find(), without waiting: null also if the store has nothing cached. */
  known(cacheKey: string, userAgent?: string): KeyCaller | null
  /** Returns the current state of the key, or null if it was revoked or has expired since. */
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

/** Returns the key's permissions from its row. Does not check revocation or expiry. */
export function callerOf(row: ApiKeyTable, accountName: string): KeyCaller {
  const teamIds = teamIdsOf(row)
  const datasourceIds = datasourceIdsOf(row)
  return {
    kind: 'key',
    accountId: row.account_id,
    name: accountName,
    keyId: row.id,
    keyName: row.name,
    scopes: new Set(scopesOf(row)),
    teamIds: teamIds && new Set(teamIds),
    datasourceIds: datasourceIds && new Set(datasourceIds),
    endedTeamIds: new Set(endedTeamIdsOf(row)),
    expiresAt: row.expires_at,
  }
}

/** Parse the JSON columns of a key or a grant. */
export function scopesOf(row: Pick<ApiKeyTable, 'scopes'>) {
  return Scopes.parse(JSON.parse(row.scopes))
}
export function teamIdsOf(row: Pick<ApiKeyTable, 'team_ids'>): readonly TeamId[] | null {
  return row.team_ids === null ? null : ids(row.team_ids).map((id) => asId<TeamId>(id))
}
export function datasourceIdsOf(row: Pick<ApiKeyTable, 'datasource_ids'>): readonly DatasourceId[] | null {
  return row.datasource_ids === null ? null : ids(row.datasource_ids).map((id) => asId<DatasourceId>(id))
}
export function endedTeamIdsOf(row: Pick<ApiKeyTable, 'ended_team_ids'>): readonly TeamId[] {
  return ids(row.ended_team_ids).map((id) => asId<TeamId>(id))
}

function ids(json: string): readonly string[] {
  return Ids.parse(JSON.parse(json))
}
