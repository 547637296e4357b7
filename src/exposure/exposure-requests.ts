// If a query was refused because a table or column is hidden, a member can request to expose it. The request contains
// the audit id of the refused call, and a reason. A manager of the team closes the request, usually after saving
// another exposure.
import type { Selectable, Transaction } from 'kysely'
import type { z } from 'zod'
import type { Audit } from '../audit/audit.ts'
import { changesOf, type Target } from '../audit/recorded-changes.ts'
import { Blocked } from '../audit/refusal-reason.ts'
import { rowOfTeam } from '../audit/reading/newest-rows.ts'
import type { Call } from '../auth/caller.ts'
import { AppError, notFound } from '../errors.ts'
import { asId, newId, type AuditId, type DatasourceId, type ExposureRequestId, type TeamId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import type { ExposureRequestTable, Tables } from '../store/tables.ts'
import type { Membership } from '../teams/require-membership.ts'

export interface RequestDeps {
  readonly store: Store
  readonly audit: Pick<Audit, 'change' | 'flush'>
  reachableIds(call: Call, reader: Membership): Promise<readonly DatasourceId[]>
  readonly now?: () => number
}

export interface ExposureRequest {
  readonly id: string
  readonly datasourceId: string
  readonly accountId: string
  readonly name: string
  readonly auditId: string
  readonly why: string
  readonly blocked: z.infer<typeof Blocked>
  readonly state: 'OPEN' | 'CLOSED'
  readonly createdAt: string
  readonly closedAt?: string
  readonly closedBy?: string
  readonly resolution?: Resolution
  readonly note?: string
}

export type Resolution = 'EXPOSED' | 'DECLINED'

/** The kinds of refused objects that an exposure can show. */
const EXPOSABLE: ReadonlySet<string> = new Set(['table', 'column'])
/** One member must not bury the requests of other members. */
const OPEN_MAX = 20
/** A list shows at most this many requests, so a team has no more open ones. */
const LISTED_MAX = 500
/** How many closed requests of a team are kept, and how many others are deleted when a request is closed. */
const CLOSED_KEPT = 200
const DELETED_AT_ONCE = 8

/**
 * Throws NOT_FOUND if the audit item is not a call of this caller to this datasource. Throws CONFLICT if the call was
 * not refused for a table or column, if it already has an open request, or if the caller or the team has too many.
 */
export async function requestExposure(
  deps: RequestDeps,
  call: Call,
  at: { readonly id: DatasourceId; readonly teamId: TeamId },
  order: { readonly auditId: string; readonly why: string },
): Promise<ExposureRequest> {
  await deps.audit.flush()
  const { accountId } = call.caller
  const row = await rowOfTeam(deps.store, at.teamId, asId<AuditId>(order.auditId))
  if (row === null || row.account_id !== accountId || row.datasource_id !== at.id) throw notFound()
  const blocked = row.blocked === null ? null : Blocked.parse(JSON.parse(row.blocked))
  if (blocked === null || !EXPOSABLE.has(blocked.kind))
    throw conflict('This call was not refused for something that an exposure hides.')
  return await deps.store.write(async (tx) => {
    const own = tx.selectFrom('exposure_requests').where('team_id', '=', at.teamId).where('account_id', '=', accountId)
    const open = await own.select(['audit_id']).where('closed_at', 'is', null).execute()
    if (open.some((other) => other.audit_id === row.id)) throw conflict('You have already requested this.')
    if (open.length >= OPEN_MAX) throw conflict(`You have ${OPEN_MAX} open requests. A manager must close some first.`)
    await requireRoom(tx, at.teamId)
    const made: Selectable<ExposureRequestTable> = {
      id: newId<ExposureRequestId>(),
      team_id: at.teamId,
      datasource_id: at.id,
      account_id: accountId,
      audit_id: row.id,
      why: order.why,
      blocked: JSON.stringify(blocked),
      created_at: new Date((deps.now ?? Date.now)()).toISOString(),
      closed_at: null,
      closed_by: null,
      resolution: null,
      note: null,
    }
    await tx.insertInto('exposure_requests').values(made).execute()
    const changes = changesOf(null, { why: order.why, auditId: row.id })
    await deps.audit.change(tx, call, { teamId: at.teamId, datasourceId: at.id }, { target: targetOf(made), changes })
    return shown({ ...made, name: call.caller.name })
  })
}

/** Leaves out requests for datasources that the caller cannot reach. */
export async function listRequests(
  deps: RequestDeps,
  call: Call,
  membership: Membership,
  input: { readonly state?: ExposureRequest['state'] },
): Promise<readonly ExposureRequest[]> {
  const ids = await deps.reachableIds(call, membership)
  if (ids.length === 0) return []
  let query = requests(deps.store.db, membership.teamId).where('datasource_id', 'in', ids)
  if (input.state === 'OPEN') query = query.where('closed_at', 'is', null)
  if (input.state === 'CLOSED') query = query.where('closed_at', 'is not', null)
  const rows = await query
    .orderBy('exposure_requests.created_at', 'desc')
    .orderBy('exposure_requests.id')
    .limit(LISTED_MAX)
    .execute()
  return rows.map(shown)
}

/** Throws NOT_FOUND if the caller does not reach the request's datasource, and CONFLICT if the request is closed. */
export async function closeRequest(
  deps: RequestDeps,
  call: Call,
  membership: Membership,
  id: ExposureRequestId,
  order: { readonly resolution?: Resolution; readonly note?: string },
): Promise<ExposureRequest> {
  const ids = await deps.reachableIds(call, membership)
  return await deps.store.write(async (tx) => {
    const row = await requests(tx, membership.teamId).where('exposure_requests.id', '=', id).executeTakeFirst()
    if (row === undefined || !ids.includes(row.datasource_id)) throw notFound()
    if (row.closed_at !== null) throw conflict('This request is closed.')
    const set = {
      closed_at: new Date((deps.now ?? Date.now)()).toISOString(),
      closed_by: call.caller.accountId,
      resolution: order.resolution ?? null,
      note: order.note ?? null,
    }
    await tx.updateTable('exposure_requests').set(set).where('id', '=', id).execute()
    await trim(tx, membership.teamId)
    const after = { state: 'CLOSED', resolution: set.resolution, note: set.note }
    const changes = changesOf({ state: 'OPEN', resolution: null, note: null }, after)
    const place = { teamId: membership.teamId, datasourceId: row.datasource_id }
    await deps.audit.change(tx, call, place, { target: targetOf(row), changes })
    return shown({ ...row, ...set })
  })
}

async function requireRoom(tx: Transaction<Tables>, teamId: TeamId): Promise<void> {
  const { count } = await tx
    .selectFrom('exposure_requests')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('team_id', '=', teamId)
    .where('closed_at', 'is', null)
    .executeTakeFirstOrThrow()
  if (Number(count) < LISTED_MAX) return
  throw conflict(`Your team has ${LISTED_MAX} open requests. A manager must close some first.`)
}

/** Keeps the requests that were closed last. Otherwise a member could fill the table with requests that are closed. */
async function trim(tx: Transaction<Tables>, teamId: TeamId): Promise<void> {
  const old = await tx
    .selectFrom('exposure_requests')
    .select('id')
    .where('team_id', '=', teamId)
    .where('closed_at', 'is not', null)
    .orderBy('closed_at', 'desc')
    .offset(CLOSED_KEPT)
    .limit(DELETED_AT_ONCE)
    .execute()
  if (old.length === 0) return
  const ids = old.map(({ id }) => id)
  await tx.deleteFrom('exposure_requests').where('id', 'in', ids).execute()
}

export async function requireRequest(
  deps: RequestDeps,
  call: Call,
  membership: Membership,
  id: ExposureRequestId,
): Promise<void> {
  const ids = await deps.reachableIds(call, membership)
  const row = await requests(deps.store.db, membership.teamId).where('exposure_requests.id', '=', id).executeTakeFirst()
  if (row === undefined || !ids.includes(row.datasource_id)) throw notFound()
}

function requests(db: Store['db'], teamId: TeamId) {
  return db
    .selectFrom('exposure_requests')
    .innerJoin('accounts', 'accounts.id', 'exposure_requests.account_id')
    .selectAll('exposure_requests')
    .select('accounts.name')
    .where('exposure_requests.team_id', '=', teamId)
}

function targetOf({ id, blocked }: Pick<ExposureRequestTable, 'id' | 'blocked'>): Target {
  const { kind, name } = Blocked.parse(JSON.parse(blocked))
  return { kind: 'request', id, name: `${kind} ${name}` }
}

function shown(row: Selectable<ExposureRequestTable> & { readonly name: string }): ExposureRequest {
  return {
    id: row.id,
    datasourceId: row.datasource_id,
    accountId: row.account_id,
    name: row.name,
    auditId: row.audit_id,
    why: row.why,
    blocked: Blocked.parse(JSON.parse(row.blocked)),
    state: row.closed_at === null ? 'OPEN' : 'CLOSED',
    createdAt: row.created_at,
    ...(row.closed_at !== null && { closedAt: row.closed_at }),
    ...(row.closed_by !== null && { closedBy: row.closed_by }),
    ...(row.resolution !== null && { resolution: row.resolution }),
    ...(row.note !== null && { note: row.note }),
  }
}

function conflict(message: string): AppError {
  return new AppError('CONFLICT', message)
}
