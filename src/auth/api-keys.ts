// The API keys of an account. The key itself is returned only when it is created.
import type { Kysely, Transaction } from 'kysely'
import type { Audit } from '../audit/audit.ts'
import { changesOf, type Target } from '../audit/recorded-changes.ts'
import { AppError, invalidRequest, notFound } from '../errors.ts'
import { mapInSlices } from '../event-loop-slices.ts'
import { asId, newId, type AccountId, type ApiKeyId, type DatasourceId, type TeamId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import type { ApiKeyTable, Tables } from '../store/tables.ts'
import { unauthenticated } from './authenticate.ts'
import type { Call, Scope } from './caller.ts'
import { datasourceIdsOf, requireFewListed, scopesOf, teamIdsOf } from './read-restrictions.ts'
import { hashOf, hintOf, makeKeyText } from './key-format.ts'
import { EXPIRING_MS, type KeyWarnings } from './key-expiry-warnings.ts'
import type { Notices } from './security-mail.ts'

export interface ShownKey {
  readonly id: string
  readonly name: string
  readonly hint: string
  readonly scopes: readonly Scope[]
  readonly teamIds: readonly TeamId[] | null
  readonly datasourceIds: readonly DatasourceId[] | null
  readonly createdAt: string
  readonly lastUsedAt: string | null
  readonly expiresAt: string | null
  /** True if the key expires within a week or has expired. */
  readonly expiring: boolean
  /** GRACE: a rotation has replaced the key, but it works until it expires. */
  readonly state: 'ACTIVE' | 'GRACE' | 'EXPIRED'
  readonly replaces?: ApiKeyId
  readonly replacedBy?: ApiKeyId
  readonly lastClient?: string
}

/** `key` is the API key itself, which is never shown again. */
export type NewKey = ShownKey & { readonly key: string }

export interface KeyOrder {
  readonly name: string
  readonly scopes: readonly Scope[]
  /** ISO 8601 with a time zone. */
  readonly expiresAt?: string
  readonly teamIds?: readonly string[]
  readonly datasourceIds?: readonly string[]
}

export interface KeyDeps {
  readonly store: Store
  readonly audit: Pick<Audit, 'change'>
  /** Returns those of `ids` that the account can reach. */
  readonly reached: (
    tx: Transaction<Tables>,
    accountId: AccountId,
    ids: readonly string[],
  ) => Promise<ReadonlySet<string>>
  /** Called when a created or changed key expires within a week. */
  readonly keyWarnings?: Pick<KeyWarnings, 'soon'>
  readonly notices?: Notices
  readonly now?: () => number
}

export async function listKeys(deps: Pick<KeyDeps, 'store' | 'now'>, call: Call): Promise<readonly ShownKey[]> {
  const rows = await deps.store.db
    .selectFrom('api_keys')
    .selectAll()
    .where('account_id', '=', call.caller.accountId)
    .where('revoked_at', 'is', null)
    .orderBy('created_at')
    .orderBy('id')
    .execute()
  // Each key may list 1,000 datasources.
  return await mapInSlices(rows, (row) => shownKey(row, now(deps)))
}

/**
 * Limited because a list of keys contains all keys of an account. An expired key counts until it is revoked, and a
 * rotated key until it expires.
 */
const KEYS_MAX = 100
/** Older revoked keys are deleted when a key is created. */
const REVOKED_KEPT = 100

/**
 * Throws UNAUTHENTICATED if the session has ended, CONFLICT if the account has too many keys, and INVALID_REQUEST if
 * the expiry is in the past or the account cannot reach a team or datasource in `order`.
 */
export async function createKey(deps: KeyDeps, call: Call, order: KeyOrder): Promise<NewKey> {
  const at = now(deps)
  const expiry = order.expiresAt === undefined ? null : Date.parse(order.expiresAt)
  if (expiry !== null && !(expiry > at)) throw invalidRequest(['expiresAt: must be in the future'])
  const key = await deps.store.write(async (tx) => {
    await requireAlive(tx, call)
    await requireOwn(deps, tx, call.caller.accountId, order)
    const made = await insert(tx, at, {
      account_id: call.caller.accountId,
      name: order.name,
      scopes: JSON.stringify([...new Set(order.scopes)]),
      team_ids: order.teamIds === undefined ? null : JSON.stringify([...new Set(order.teamIds)]),
      datasource_ids: order.datasourceIds === undefined ? null : JSON.stringify([...new Set(order.datasourceIds)]),
      created_at: new Date(at).toISOString(),
      expires_at: expiry === null ? null : new Date(expiry).toISOString(),
      ended_team_ids: '[]',
      replaces: null,
    })
    const { scopes, teamIds, datasourceIds, expiresAt } = made
    const narrowed = { teamIds: teamIds ?? 'all', datasourceIds: datasourceIds ?? 'all' }
    const changes = changesOf(null, { scopes, ...narrowed, expiresAt: expiresAt ?? 'never' })
    await deps.audit.change(tx, call, {}, { target: keyTarget(made), changes })
    return made
  })
  await announce(deps, call, key)
  return key
}

/**
 * Renames a key or changes its expiry (null: never). Throws CONFLICT for a new expiry if the key has expired or was
 * rotated, because somebody may rely on its end. Throws INVALID_REQUEST if the new expiry is in the past, NOT_FOUND if
 * the caller has no such key, and UNAUTHENTICATED if the session has ended.
 */
export async function changeKey(
  deps: KeyDeps,
  call: Call,
  id: ApiKeyId,
  change: { readonly name?: string; readonly expiresAt?: string | null },
): Promise<ShownKey> {
  const at = now(deps)
  const expiry = typeof change.expiresAt === 'string' ? Date.parse(change.expiresAt) : null
  if (expiry !== null && !(expiry > at)) throw invalidRequest(['expiresAt: must be in the future'])
  const key = await deps.store.write(async (tx) => {
    await requireAlive(tx, call)
    const old = await ownAlive(tx, call.caller.accountId, id)
    if (old === undefined) throw notFound()
    const moves = change.expiresAt !== undefined
    if (moves) requireMovable(old, at)
    const set = {
      name: change.name ?? old.name,
      expires_at: !moves ? old.expires_at : expiry === null ? null : new Date(expiry).toISOString(),
      // Null lets the owner be warned again before the new expiry.
      warned_at: moves ? null : old.warned_at,
    }
    await tx.updateTable('api_keys').set(set).where('id', '=', id).execute()
    const audited = (row: typeof set) => ({ name: row.name, expiresAt: row.expires_at ?? 'never' })
    const changes = changesOf(audited(old), audited(set))
    await deps.audit.change(tx, call, {}, { target: keyTarget({ id, name: set.name }), changes })
    return shownKey({ ...old, ...set }, at)
  })
  if (key.expiring) deps.keyWarnings?.soon()
  return key
}

function requireMovable(key: ApiKeyTable, at: number): void {
  if (endOf(key) <= at) throw new AppError('CONFLICT', 'This key has expired. Create another key.')
  if (key.replaced_by === null) return
  throw new AppError('CONFLICT', 'This key was replaced by a rotation. It works only until its grace period ends.')
}

/**
 * The old key works for another `graceSeconds` (default 0). The new key does not work in teams in which the old one was
 * ended. Throws NOT_FOUND if the caller has no such valid key, CONFLICT if the account has too many keys, and
 * UNAUTHENTICATED if the session has ended.
 */
export async function rotateKey(
  deps: KeyDeps,
  call: Call,
  id: ApiKeyId,
  body: { readonly graceSeconds?: number },
): Promise<NewKey> {
  const at = now(deps)
  const grace = (body.graceSeconds ?? 0) * 1000
  const key = await deps.store.write(async (tx) => {
    await requireAlive(tx, call)
    const old = await ownAlive(tx, call.caller.accountId, id)
    if (old === undefined || endOf(old) <= at) throw notFound()
    // The person who rotates a key knows that the old one expires, so no warning is needed.
    const warned_at = new Date(at).toISOString()
    const set =
      grace === 0
        ? { revoked_at: new Date(at).toISOString() }
        : { expires_at: new Date(Math.min(endOf(old), at + grace)).toISOString(), warned_at }
    await tx.updateTable('api_keys').set(set).where('id', '=', id).execute()
    const made = await insert(tx, at, {
      account_id: old.account_id,
      name: old.name,
      scopes: old.scopes,
      team_ids: old.team_ids,
      datasource_ids: old.datasource_ids,
      created_at: new Date(at).toISOString(),
      expires_at: old.expires_at,
      ended_team_ids: old.ended_team_ids,
      replaces: id,
    })
    await tx
      .updateTable('api_keys')
      .set({ replaced_by: asId<ApiKeyId>(made.id) })
      .where('id', '=', id)
      .execute()
    const was = { replacedBy: null, revokedAt: null, expiresAt: old.expires_at }
    const expiry = 'revoked_at' in set ? { revokedAt: set.revoked_at } : { expiresAt: set.expires_at }
    const changes = changesOf(was, { ...was, ...expiry, replacedBy: made.id })
    await deps.audit.change(tx, call, {}, { target: keyTarget(old), changes })
    return made
  })
  await announce(deps, call, key)
  return key
}

async function announce(deps: KeyDeps, call: Call, { name, hint, expiring }: NewKey): Promise<void> {
  if (expiring) deps.keyWarnings?.soon()
  await deps.notices?.tell(call.caller.accountId, { kind: 'new key', name, hint }, call)
}

/** The next request with the key is refused. Throws NOT_FOUND if the caller has no such key. */
export async function revokeKey(deps: KeyDeps, call: Call, id: ApiKeyId): Promise<void> {
  await deps.store.write(async (tx) => {
    const key = await ownAlive(tx, call.caller.accountId, id)
    if (key === undefined) throw notFound()
    const revoked_at = new Date(now(deps)).toISOString()
    await tx.updateTable('api_keys').set({ revoked_at }).where('id', '=', id).execute()
    const changes = changesOf(null, { revokedAt: revoked_at })
    await deps.audit.change(tx, call, {}, { target: keyTarget(key), changes })
  })
}

export function keyTarget({ id, name }: { readonly id: string; readonly name: string }): Target {
  return { kind: 'key', id, name }
}

export function shownKey(row: ApiKeyTable, at: number): ShownKey {
  return {
    id: row.id,
    name: row.name,
    hint: row.hint,
    scopes: scopesOf(row),
    teamIds: teamIdsOf(row),
    datasourceIds: datasourceIdsOf(row),
    createdAt: row.created_at,
    lastUsedAt: row.last_used_at,
    expiresAt: row.expires_at,
    expiring: endOf(row) - at <= EXPIRING_MS,
    state: endOf(row) <= at ? 'EXPIRED' : row.replaced_by === null ? 'ACTIVE' : 'GRACE',
    ...(row.replaces !== null && { replaces: row.replaces }),
    ...(row.replaced_by !== null && { replacedBy: row.replaced_by }),
    ...(row.last_client !== null && { lastClient: row.last_client }),
  }
}

async function insert(
  tx: Transaction<Tables>,
  at: number,
  row: Omit<
    ApiKeyTable,
    'id' | 'hash' | 'hint' | 'last_used_at' | 'revoked_at' | 'warned_at' | 'replaced_by' | 'last_client'
  >,
): Promise<NewKey> {
  await requireRoom(tx, at, row)
  const key = makeKeyText()
  const whole = {
    ...row,
    id: newId<ApiKeyId>(),
    hash: hashOf(key),
    hint: hintOf(key),
    last_used_at: null,
    revoked_at: null,
    warned_at: null,
    replaced_by: null,
    last_client: null,
  }
  await tx.insertInto('api_keys').values(whole).execute()
  return { ...shownKey(whole, at), key }
}

/** Throws UNAUTHENTICATED if the session has ended, for example by a password reset, which also revokes all keys. */
async function requireAlive(tx: Transaction<Tables>, { caller }: Call): Promise<void> {
  if (caller.kind !== 'session') return
  const row = await tx.selectFrom('sessions').select('id').where('id', '=', caller.sessionId).executeTakeFirst()
  if (row === undefined) throw unauthenticated()
}

/**
 * Throws CONFLICT if the account has too many keys, or if they list too many datasources. Revokes expired rotated keys,
 * and deletes old revoked keys.
 */
async function requireRoom(
  tx: Transaction<Tables>,
  at: number,
  { account_id: accountId, datasource_ids }: Pick<ApiKeyTable, 'account_id' | 'datasource_ids'>,
): Promise<void> {
  await tx
    .updateTable('api_keys')
    .set((eb) => ({ revoked_at: eb.ref('expires_at') }))
    .where('account_id', '=', accountId)
    .where('replaced_by', 'is not', null)
    .where('revoked_at', 'is', null)
    .where('expires_at', '<=', new Date(at).toISOString())
    .execute()
  const own = () => tx.selectFrom('api_keys').where('account_id', '=', accountId)
  const alive = await own().where('revoked_at', 'is', null).select('datasource_ids').execute()
  if (alive.length >= KEYS_MAX) {
    throw new AppError(
      'CONFLICT',
      `An account can have at most ${KEYS_MAX} API keys. Revoke a key that you no longer need.`,
    )
  }
  requireFewListed([...alive, { datasource_ids }], 'API keys')
  const old = await own()
    .where('revoked_at', 'is not', null)
    .select('id')
    .orderBy('revoked_at', 'desc')
    .orderBy('id')
    .offset(REVOKED_KEPT)
    // SQLite accepts OFFSET only with LIMIT.
    .limit(1_000)
    .execute()
  if (old.length === 0) return
  const ids = old.map((row) => row.id)
  await tx.deleteFrom('api_keys').where('id', 'in', ids).execute()
}

/** Throws NOT_FOUND if the caller has no such key, or if it was revoked. */
export async function requireListedKey(deps: Pick<KeyDeps, 'store'>, call: Call, id: ApiKeyId): Promise<void> {
  if ((await ownAlive(deps.store.db, call.caller.accountId, id)) === undefined) throw notFound()
}

/** Throws NOT_FOUND if the caller has no such key, or if it was revoked or has expired. */
export async function requireOwnKey(deps: Pick<KeyDeps, 'store' | 'now'>, call: Call, id: ApiKeyId): Promise<void> {
  const key = await ownAlive(deps.store.db, call.caller.accountId, id)
  if (key === undefined || endOf(key) <= now(deps)) throw notFound()
}

function ownAlive(tx: Kysely<Tables>, accountId: AccountId, id: ApiKeyId): Promise<ApiKeyTable | undefined> {
  return tx
    .selectFrom('api_keys')
    .selectAll()
    .where('id', '=', id)
    .where('account_id', '=', accountId)
    .where('revoked_at', 'is', null)
    .executeTakeFirst()
}

function endOf(row: Pick<ApiKeyTable, 'expires_at'>): number {
  return row.expires_at === null ? Infinity : Date.parse(row.expires_at)
}

/**
 * Throws INVALID_REQUEST if the account cannot reach one of the teams and datasources. The text is the same for an id
 * that does not exist, so it reveals nothing.
 */
export async function requireOwn(
  deps: Pick<KeyDeps, 'reached'>,
  tx: Transaction<Tables>,
  accountId: AccountId,
  order: Pick<KeyOrder, 'teamIds' | 'datasourceIds'>,
): Promise<void> {
  const teams = await tx.selectFrom('memberships').select('team_id').where('account_id', '=', accountId).execute()
  const teamIds = new Set<string>(teams.map((row) => row.team_id))
  const details: string[] = []
  if (order.teamIds?.some((id) => !teamIds.has(id)) === true) {
    details.push('teamIds: contains a team that you do not belong to')
  }
  if (order.datasourceIds !== undefined) {
    const reached = await deps.reached(tx, accountId, order.datasourceIds)
    if (order.datasourceIds.some((id) => !reached.has(id))) {
      details.push('datasourceIds: contains a datasource that you do not reach')
    }
  }
  if (details.length > 0) throw invalidRequest(details)
}

function now(deps: Pick<KeyDeps, 'now'>): number {
  return (deps.now ?? Date.now)()
}
