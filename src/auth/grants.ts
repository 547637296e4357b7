// A grant is the access that a person gave an agent on the consent page. It can become narrower, but never wider. For
// more access, the person must consent again.
import type { Kysely, Transaction } from 'kysely'
import type { Audit } from '../audit/audit.ts'
import { changesOf, type Target } from '../audit/recorded-changes.ts'
import type { AuditedCall } from '../audit/make-rows.ts'
import { AppError, invalidRequest, notFound } from '../errors.ts'
import { mapInSlices } from '../event-loop-slices.ts'
import { newId, type AccountId, type DatasourceId, type GrantId, type TeamId } from '../ids.ts'
import { deleteInPortions } from '../store/delete-in-portions.ts'
import type { Store } from '../store/open.ts'
import type { ConnectorGrantTable, Tables } from '../store/tables.ts'
import { requireOwn } from './api-keys.ts'
import type { Call, Scope } from './caller.ts'
import { datasourceIdsOf, requireFewListed, scopesOf, teamIdsOf } from './read-restrictions.ts'

export interface ShownGrant {
  readonly id: string
  readonly clientName: string
  /** The host that is responsible for the client (hostOf() in oauth/find-client.ts). */
  readonly clientHost: string
  readonly scopes: readonly Scope[]
  readonly teamIds: readonly TeamId[] | null
  readonly datasourceIds: readonly DatasourceId[] | null
  readonly createdAt: string
  readonly lastUsedAt: string | null
  readonly expiresAt: string | null
}

export interface GrantOrder {
  readonly clientId: string
  readonly clientName: string
  readonly clientHost: string
  readonly scopes: readonly Scope[]
  readonly teamIds: readonly string[]
  /** If missing, the grant covers all datasources in these teams, including future ones. */
  readonly datasourceIds?: readonly string[]
  /** ISO 8601. */
  readonly expiresAt?: string
}

export interface GrantChange {
  readonly scopes?: readonly Scope[]
  readonly teamIds?: readonly string[]
  readonly datasourceIds?: readonly string[]
  readonly expiresAt?: string
}

export interface GrantDeps {
  readonly store: Store
  readonly audit: Pick<Audit, 'change'>
  /** Returns those of `ids` that the account can reach. */
  readonly reached: (
    tx: Transaction<Tables>,
    accountId: AccountId,
    ids: readonly string[],
  ) => Promise<ReadonlySet<string>>
  readonly now?: () => number
}

const GRANTS_MAX = 100
/** Older ended grants are deleted when a grant is created. */
const ENDED_KEPT = 100

export async function listGrants(deps: Pick<GrantDeps, 'store' | 'now'>, call: Call): Promise<readonly ShownGrant[]> {
  const rows = await aliveGrantsOf(deps.store.db, call.caller.accountId, now(deps))
  // Each grant may list 1,000 datasources.
  return await mapInSlices(rows, shownGrant)
}

/** Throws INVALID_REQUEST if the account cannot reach a team or datasource, and CONFLICT if it has too many grants. */
export async function makeGrant(deps: GrantDeps, call: Call, order: GrantOrder): Promise<GrantId> {
  const at = now(deps)
  const { accountId } = call.caller
  const { id, old } = await deps.store.write(async (tx) => {
    await requireOwn(deps, tx, accountId, order)
    const row: ConnectorGrantTable = {
      id: newId<GrantId>(),
      account_id: accountId,
      client_id: order.clientId,
      client_name: order.clientName,
      client_host: order.clientHost,
      scopes: JSON.stringify([...new Set(order.scopes)]),
      team_ids: JSON.stringify([...new Set(order.teamIds)]),
      datasource_ids: order.datasourceIds === undefined ? null : JSON.stringify([...new Set(order.datasourceIds)]),
      ended_team_ids: '[]',
      created_at: new Date(at).toISOString(),
      expires_at: order.expiresAt ?? null,
      last_used_at: null,
      revoked_at: null,
    }
    const old = await makeRoom(tx, row, at)
    await tx.insertInto('connector_grants').values(row).execute()
    const changes = changesOf(null, { ...limitsOf(row), clientHost: row.client_host })
    await deps.audit.change(tx, call, {}, { target: grantTarget(row), changes })
    return { id: row.id, old }
  })
  forgetTokens(deps.store, old)
  return id
}

/**
 * Throws NOT_FOUND if the caller has no such grant, and INVALID_REQUEST if the change would allow more, names a team or
 * datasource that the account cannot reach, or has an expiry in the past.
 */
export async function narrowGrant(deps: GrantDeps, call: Call, id: GrantId, change: GrantChange): Promise<ShownGrant> {
  const { accountId } = call.caller
  return await deps.store.write(async (tx) => {
    const row = await ownAlive(tx, accountId, id, now(deps))
    const details = wideningOf(row, change, now(deps))
    if (details.length > 0) throw invalidRequest(details)
    await requireOwn(deps, tx, accountId, change)
    const { scopes, teamIds, datasourceIds, expiresAt } = change
    const set = {
      ...(scopes !== undefined && { scopes: JSON.stringify([...new Set(scopes)]) }),
      ...(teamIds !== undefined && { team_ids: JSON.stringify([...new Set(teamIds)]) }),
      ...(datasourceIds !== undefined && { datasource_ids: JSON.stringify([...new Set(datasourceIds)]) }),
      ...(expiresAt !== undefined && { expires_at: new Date(expiresAt).toISOString() }),
    }
    const narrowed = { ...row, ...set }
    if (Object.keys(set).length === 0) return shownGrant(row)
    await tx.updateTable('connector_grants').set(set).where('id', '=', id).execute()
    const changes = changesOf(limitsOf(row), limitsOf(narrowed))
    await deps.audit.change(tx, call, {}, { target: grantTarget(row), changes })
    return shownGrant(narrowed)
  })
}

/** Throws NOT_FOUND if the caller has no such grant. */
export async function requireOwnGrant(deps: Pick<GrantDeps, 'store' | 'now'>, call: Call, id: GrantId): Promise<void> {
  await ownAlive(deps.store.db, call.caller.accountId, id, now(deps))
}

/**
 * The next request with the grant's tokens is refused. The audit records `reason`. Throws NOT_FOUND if the caller has
 * no such grant.
 */
export async function endGrant(
  deps: Omit<GrantDeps, 'reached'>,
  call: AuditedCall,
  id: GrantId,
  reason?: string,
): Promise<void> {
  await deps.store.write(async (tx) => {
    const row = await ownAlive(tx, call.caller.accountId, id, now(deps))
    await end(tx, [row.id], now(deps))
    const revokedAt = new Date(now(deps)).toISOString()
    const changes = changesOf(null, { revokedAt, ...(reason !== undefined && { reason }) })
    await deps.audit.change(tx, call, {}, { target: grantTarget(row), changes })
  })
  forgetTokens(deps.store, [id])
}

/**
 * Deletes the refresh tokens of ended grants in the background, because a grant may have many. Call this after the
 * transaction that ends the grants: from then on, their tokens are refused.
 */
export function forgetTokens(store: Pick<Store, 'commit' | 'dialect' | 'later'>, ids: readonly string[]): void {
  if (ids.length === 0) return
  store.later(() => deleteInPortions(store, 'oauth_refresh_tokens', (eb) => eb('referenceId', 'in', ids)))
}

/**
 * Ends all grants of an account except `kept`. The caller must record the returned grants in the audit, and then call
 * forgetTokens().
 */
export async function endGrantsOf(
  tx: Transaction<Tables>,
  accountId: AccountId,
  at: number,
  kept: readonly string[] = [],
): Promise<readonly ConnectorGrantTable[]> {
  const rows = (await aliveGrantsOf(tx, accountId, at)).filter((row) => !kept.includes(row.id))
  await end(
    tx,
    rows.map((row) => row.id),
    at,
  )
  return rows
}

export function aliveGrantsOf(
  db: Kysely<Tables>,
  accountId: AccountId,
  at: number,
): Promise<readonly ConnectorGrantTable[]> {
  return alive(db, at)
    .where('account_id', '=', accountId)
    .orderBy('connector_grants.created_at')
    .orderBy('connector_grants.id')
    .execute()
}

function alive(db: Kysely<Tables>, at: number) {
  return db
    .selectFrom('connector_grants')
    .selectAll('connector_grants')
    .where('revoked_at', 'is', null)
    .where((eb) => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', new Date(at).toISOString())]))
}

export function grantTarget(row: Pick<ConnectorGrantTable, 'id' | 'client_name'>): Target {
  return { kind: 'grant', id: row.id, name: row.client_name }
}

export function shownGrant(row: ConnectorGrantTable): ShownGrant {
  return {
    id: row.id,
    clientName: row.client_name,
    clientHost: row.client_host,
    scopes: scopesOf(row),
    teamIds: teamIdsOf(row),
    datasourceIds: datasourceIdsOf(row),
    createdAt: row.created_at,
    lastUsedAt: row.last_used_at,
    expiresAt: row.expires_at,
  }
}

function limitsOf(row: ConnectorGrantTable) {
  return {
    scopes: scopesOf(row),
    teamIds: teamIdsOf(row) ?? 'all',
    datasourceIds: datasourceIdsOf(row) ?? 'all',
    expiresAt: row.expires_at ?? 'never',
  }
}

async function end(tx: Transaction<Tables>, ids: readonly GrantId[], at: number): Promise<void> {
  if (ids.length === 0) return
  const revoked_at = new Date(at).toISOString()
  await tx.updateTable('connector_grants').set({ revoked_at }).where('id', 'in', ids).execute()
}

async function ownAlive(
  db: Kysely<Tables>,
  accountId: AccountId,
  id: GrantId,
  at: number,
): Promise<ConnectorGrantTable> {
  const row = await alive(db, at).where('id', '=', id).where('account_id', '=', accountId).executeTakeFirst()
  if (row === undefined) throw notFound()
  return row
}

function wideningOf(row: ConnectorGrantTable, change: GrantChange, at: number): readonly string[] {
  const isWithin = (before: readonly string[] | null, after: readonly string[] | undefined) =>
    before === null || after === undefined || after.every((each) => before.includes(each))
  const wider = [
    ...(isWithin(scopesOf(row), change.scopes) ? [] : ['scopes']),
    ...(isWithin(teamIdsOf(row), change.teamIds) ? [] : ['teamIds']),
    ...(isWithin(datasourceIdsOf(row), change.datasourceIds) ? [] : ['datasourceIds']),
  ].map((field) => `${field}: can only lose items. To allow more, connect the agent again.`)
  if (change.expiresAt === undefined) return wider
  const expiry = Date.parse(change.expiresAt)
  if (!(expiry > at)) return [...wider, 'expiresAt: must be in the future']
  if (row.expires_at === null || expiry <= Date.parse(row.expires_at)) return wider
  return [...wider, 'expiresAt: can only become earlier. To allow more, connect the agent again.']
}

/**
 * Deletes old ended grants and returns their ids. Throws CONFLICT if the account has too many grants, or if they list
 * too many datasources.
 */
async function makeRoom(
  tx: Transaction<Tables>,
  row: Pick<ConnectorGrantTable, 'account_id' | 'datasource_ids'>,
  at: number,
): Promise<readonly GrantId[]> {
  const accountId = row.account_id
  const grants = await aliveGrantsOf(tx, accountId, at)
  if (grants.length >= GRANTS_MAX) {
    throw new AppError(
      'CONFLICT',
      `An account can connect at most ${GRANTS_MAX} agents. End the access of an agent that you no longer use.`,
    )
  }
  requireFewListed([...grants, row], 'agents')
  const time = new Date(at).toISOString()
  const old = await tx
    .selectFrom('connector_grants')
    .select('id')
    .where('account_id', '=', accountId)
    .where((eb) => eb.or([eb('revoked_at', 'is not', null), eb('expires_at', '<=', time)]))
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .offset(ENDED_KEPT)
    // SQLite accepts OFFSET only with LIMIT.
    .limit(1_000)
    .execute()
  const ids = old.map((row) => row.id)
  if (ids.length > 0) await tx.deleteFrom('connector_grants').where('id', 'in', ids).execute()
  return ids
}

function now(deps: Pick<GrantDeps, 'now'>): number {
  return (deps.now ?? Date.now)()
}
