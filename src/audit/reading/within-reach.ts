// Reading the audit within a caller's reach: the rows of their team, without those of datasources they do not reach.
import type { Audit } from '../audit.ts'
import { CONTENT_TYPE, headOf, lineOf, type ExportFormat } from './export.ts'
import type { AuditItem, AuditPage } from './page.ts'
import type { AuditFilter, AuditScope } from './scope.ts'
import type { Call } from '../../auth/caller.ts'
import { invalidRequest, notFound } from '../../errors.ts'
import { asId, type AccountId, type ApiKeyId, type AuditId, type DatasourceId, type TeamId } from '../../ids.ts'
import type { Role } from '../../store/tables.ts'
import { openConcurrencyLimit, type ConcurrencyLimit } from '../../jobs/concurrency-limit.ts'

/** A member of the team whose audit is read. */
interface Reader {
  readonly teamId: TeamId
  readonly accountId: AccountId
  readonly role: Role
  readonly status: 'INVITED' | 'ACTIVE'
}

export interface AuditTrailDeps {
  readonly audit: Audit
  /** The datasources of the team that a caller reaches. */
  reachableIds(call: Call, reader: Reader): Promise<readonly DatasourceId[]>
}

/** A file may have a million rows: each is read while it is sent, and keeps the store busy. */
const EXPORTS = { each: 2, all: 6, retryAfterSeconds: 10, why: 'Other exports of the audit are under way.' }

export function openExports(): ConcurrencyLimit {
  return openConcurrencyLimit(EXPORTS)
}

export interface ExportDeps extends AuditTrailDeps {
  readonly exports: ConcurrencyLimit
}

/** As they came over the wire: ids unbranded, times in any zone. */
export interface AuditFilterInput {
  readonly datasourceId?: string
  readonly accountId?: string
  readonly keyId?: string
  readonly action?: string
  readonly outcome?: AuditItem['outcome']
  readonly code?: string
  readonly from?: string
  readonly to?: string
}

/** A file that is written while it is read. */
export interface AuditExport {
  readonly contentType: string
  readonly filename: string
  readonly parts: AsyncIterable<string>
}

const LIMIT = 50

/** Newest first. An OWNER reaches all, so also what was done to datasources that are gone. */
export async function listAudit(
  deps: AuditTrailDeps,
  call: Call,
  reader: Reader,
  asked: AuditFilterInput & { readonly cursor?: string; readonly limit?: number },
): Promise<AuditPage> {
  const scope = await scopeOf(deps, call, reader, asked)
  const ask = { ...scope, cursor: asked.cursor, limit: asked.limit ?? LIMIT }
  return await deps.audit.page(reader.teamId, ask, call.signal)
}

/** One of them. Throws NOT_FOUND for one that is not among those that listAudit() would show. */
export async function getAuditItem(deps: AuditTrailDeps, call: Call, reader: Reader, id: AuditId): Promise<AuditItem> {
  const item = await deps.audit.one(reader.teamId, id, await scopeOf(deps, call, reader, {}))
  if (item === null) throw notFound()
  return item
}

/**
 * The same, all of it. The export itself is in the audit, with how many rows were taken. Reading throws RATE_LIMITED, before
 * the first part, while as many are under way as may be.
 */
export async function exportAudit(
  deps: ExportDeps,
  call: Call,
  reader: Reader,
  asked: AuditFilterInput & { readonly format?: ExportFormat },
): Promise<AuditExport> {
  const format = asked.format ?? 'csv'
  const scope = await scopeOf(deps, call, reader, asked)
  const day = new Date().toISOString().slice(0, 10)
  return {
    contentType: CONTENT_TYPE[format],
    filename: `audit-${reader.teamId}-${day}.${format}`,
    parts: linesOf(deps, call, reader, scope, format),
  }
}

async function* linesOf(
  deps: ExportDeps,
  call: Call,
  { teamId }: Reader,
  scope: AuditScope,
  format: ExportFormat,
): AsyncIterable<string> {
  // Taken here: what is never read holds none.
  using _slot = slotFor(deps, call, teamId)
  let rowCount = 0
  let isWhole = false
  try {
    // With the first rows, so that what cannot be read is refused before anything is sent.
    let head = headOf(format)
    for await (const items of deps.audit.all(teamId, scope, call.signal)) {
      yield head + items.map((item) => lineOf(format, item)).join('')
      head = ''
      rowCount += items.length
    }
    if (head !== '') yield head
    isWhole = true
  } finally {
    deps.audit.record(call, { teamId, outcome: isWhole ? 'ANSWERED' : 'FAILED', rowCount })
  }
}

/** Throws RATE_LIMITED, which the audit keeps: an export is never without a row. */
function slotFor(deps: ExportDeps, call: Call, teamId: TeamId): Disposable {
  try {
    return deps.exports.take(teamId)
  } catch (error) {
    deps.audit.refused(call, { teamId }, error)
    throw error
  }
}

async function scopeOf(deps: AuditTrailDeps, call: Call, reader: Reader, asked: AuditFilterInput): Promise<AuditScope> {
  const filter = filterOf(asked)
  if (reader.role === 'OWNER') return { filter }
  return { datasourceIds: await deps.reachableIds(call, reader), filter }
}

/** Throws INVALID_REQUEST for a time that ends before it begins. */
function filterOf(asked: AuditFilterInput): AuditFilter {
  const { datasourceId, accountId, keyId, action, outcome, code, from, to } = asked
  const filter = {
    ...(datasourceId !== undefined && { datasourceId: asId<DatasourceId>(datasourceId) }),
    ...(accountId !== undefined && { accountId: asId<AccountId>(accountId) }),
    ...(keyId !== undefined && { keyId: asId<ApiKeyId>(keyId) }),
    ...(action !== undefined && { action }),
    ...(outcome !== undefined && { outcome }),
    ...(code !== undefined && { code }),
    ...(from !== undefined && { from: utc('from', from) }),
    ...(to !== undefined && { to: utc('to', to) }),
  }
  if (filter.from !== undefined && filter.to !== undefined && filter.from > filter.to) {
    throw invalidRequest(['to: must not be before from'])
  }
  return filter
}

/** Later ones are written with a sign, and would come before all others. */
const LAST_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

/** As rows have it. */
function utc(name: string, time: string): string {
  const ms = Date.parse(time)
  if (Number.isNaN(ms)) throw invalidRequest([`${name}: there is no such time`])
  return new Date(Math.min(ms, LAST_MS)).toISOString()
}
